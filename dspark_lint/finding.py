"""What the tool says: findings, the result of one release, the report of one checkpoint.

Plain immutable records, so that rules can be pure and reporters can be dumb. A finding points at
something symbolic (a file and a JSON pointer, a tensor, a module); line and column are computed by
the reporters that show them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


Severity = Literal["error", "warning", "info"]
Effect = Literal["refused", "silent", "advice"]
Verdict = Literal["ok", "warning", "error", "unchecked"]

#: Highest first; a severity's rank is its index.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(NamedTuple):
    """One fault, said once.

    ``refused``: the release raises before it serves. ``silent``: it loads and serves, wrongly or
    worse than trained. ``advice``: works today, worth a change.
    """

    rule: str
    """Rule id, family and number: ``TEN001``."""
    severity: Severity
    effect: Effect
    message: str
    """One sentence: what stands there, what was expected, what the release does about it."""
    file: str | None = None
    """Path relative to the checkpoint directory, with forward slashes."""
    pointer: str | None = None
    """RFC 6901 JSON pointer inside `file`; the place where a missing key would stand."""
    tensor: str | None = None
    """Tensor name as it stands on disk; for a fault over many layers, the pattern with ``{i}``."""
    module: str | None = None
    """Module name as the runtime spells it."""
    expected: str | None = None
    found: str | None = None
    count: int = 1  # type: ignore[assignment]
    """How many places share this one fault (36 layers: 36)."""
    source: str | None = None
    """``path/in/package.py:line`` of the loader's code, in the release judged."""
    fix: str | None = None
    """The concrete edit, where one is known."""

    @property
    def subject(self) -> tuple[str, ...]:
        """What makes it this fault and no other, whatever the release and the wording: rule, file and place."""
        return (self.rule, self.file or "", self.pointer or "", self.tensor or "", self.module or "")

    @property
    def fingerprint(self) -> str:
        """The subject in 32 hexadecimal digits: stable over releases, wording and line numbers."""
        from hashlib import sha256  # noqa: PLC0415 - brings OpenSSL along; plain text shows no fingerprints

        return sha256("\x1f".join(self.subject).encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Result(NamedTuple):
    """What one release makes of one checkpoint."""

    runtime: str
    release: str
    """Full release number: ``0.32.0``."""
    findings: tuple[Finding, ...]
    """Most severe first, then in the order of the rules."""
    checked: tuple[str, ...]
    """Ids of the rules that ran to a conclusion, fired or not."""
    unchecked: tuple[tuple[str, str], ...] = ()
    """``(rule id or part of the checkpoint, reason)`` for everything that could not be judged."""
    notes: tuple[str, ...] = ()
    """Assumptions stated to the reader: the inferred method, the default block layout, ..."""
    architecture: str | None = None
    """The architecture name that the release resolves to, after its rewriting."""
    method: str | None = None
    judged: bool = True
    """False when nothing about the weights or keys could be judged (an architecture out of scope)."""
    fits: bool = True
    """The same without regard to findings: what is judged where those that refuse the draft are left out."""
    covers: tuple[tuple[str, str], ...] = ()
    """``(rule id, rule id of the finding that keeps it quiet)`` for rules that count as checked only by that finding."""

    @property
    def verdict(self) -> Verdict:
        """The highest severity; without an error or a warning `unchecked` where nothing could be judged, else `ok`."""
        ranks = [SEVERITIES.index(f.severity) for f in self.findings]
        if ranks and min(ranks) < SEVERITIES.index("info"):
            return "error" if min(ranks) == 0 else "warning"
        return "ok" if self.judged else "unchecked"

    @property
    def blind(self) -> bool:
        """Whether nothing about the weights and keys was judged, and nothing refused either: never to read as clean."""
        return not self.judged and self.verdict != "error"


class CheckpointReport(NamedTuple):
    """Everything said about one checkpoint, a result a release."""

    path: str
    """As the user named it."""
    root: str
    """The checkpoint directory, absolute: reporters read JSON files below it to find lines."""
    architecture: str | None
    """``architectures[0]`` as written in config.json."""
    dialect: str | None
    """``flat``, ``speculators`` or ``embedded``; None when config.json could not be read."""
    tensors: int
    """Number of tensors read from the headers."""
    results: tuple[Result, ...]


class Report(NamedTuple):
    """One run of the tool."""

    checkpoints: tuple[CheckpointReport, ...]
    tool_version: str
