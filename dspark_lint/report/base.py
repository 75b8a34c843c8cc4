"""What every reporter shares: its options, escaping for people, where a finding is."""

from __future__ import annotations

import os

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding, Report, Result


class RuleInfo(NamedTuple):
    """What reporters need to know of a rule."""

    id: str
    title: str
    rationale: str
    remedy: str
    severity: str


class RenderOptions(NamedTuple):
    """How to render, decided by the command line."""

    color: bool = False
    width: int | None = None
    """Columns to wrap to; None does not wrap (a pipe)."""
    verbose: int = 0
    quiet: bool = False
    explain: bool = False
    rules: Mapping[str, RuleInfo] = {}
    base_dir: str = "."
    """Machine formats give paths relative to this directory."""
    inventories: Mapping[tuple[str, str], Any] = {}


class Reporter(Protocol):
    """Renders a whole report."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the rendered text."""


#: Bidirectional controls and other invisible characters that can make a name look like another.
_INVISIBLE = frozenset("\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2060\u2066\u2067\u2068\u2069\ufeff")


def safe(text: str, limit: int | None = None) -> str:
    """Escape what a terminal or a reader would interpret: control, escape, bidirectional and lone surrogate characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    for char in text:
        code = ord(char)
        if code < 0x20 or 0x7F <= code < 0xA0:
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{code:02x}"))
        elif 0xD800 <= code < 0xE000 or char in _INVISIBLE or not char.isprintable():
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
        else:
            out.append(char)
    return "".join(out)


def place(finding: Finding) -> str:
    """Return where a finding is, as people write it: file, then key or tensor."""
    parts = [finding.file or ""]
    if finding.pointer:
        parts.append(finding.pointer.lstrip("/").replace("/", ".").replace("~1", "/").replace("~0", "~"))
    elif finding.tensor:
        parts.append(finding.tensor)
    elif finding.module:
        parts.append(finding.module)
    return " ".join(p for p in parts if p) or "(how it is served)"


def file_path(checkpoint: CheckpointReport, finding: Finding, options: RenderOptions) -> str:
    """Return a finding's file relative to the base directory, with forward slashes; the checkpoint when it has none."""
    path = os.path.join(checkpoint.root, finding.file or "config.json")
    try:
        relative = os.path.relpath(path, options.base_dir)
    except ValueError:  # another drive
        relative = path
    if relative.startswith(".."):
        relative = os.path.join(checkpoint.path, finding.file or "config.json") if not os.path.isabs(checkpoint.path) else path
    return relative.replace(os.sep, "/")


def release_ranges(releases: Iterable[str], all_releases: list[str]) -> str:
    """Return releases compactly, runs of neighbours joined: ``0.25.0-0.27.1, 0.33.0``."""
    wanted = set(releases)
    runs: list[list[str]] = []
    for release in all_releases:
        if release not in wanted:
            runs.append([])
        elif runs and runs[-1]:
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(r[0] if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs if r)


class Merged(NamedTuple):
    """One fault over several releases."""

    finding: Finding
    releases: tuple[str, ...]


def merge_releases(results: Iterable[Result]) -> list[Merged]:
    """Join equal faults over the releases that have them, in order of first appearance, errors first."""
    groups: dict[tuple[str, str, str, str], list[tuple[Finding, str]]] = {}
    for result in results:
        for found in result.findings:
            key = (found.fingerprint, found.rule, found.severity, found.effect)
            groups.setdefault(key, []).append((found, result.release))
    order = {"error": 0, "warning": 1, "info": 2}
    merged = [Merged(pairs[-1][0], tuple(r for _, r in pairs)) for pairs in groups.values()]
    return sorted(merged, key=lambda m: order[m.finding.severity])


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Count findings by severity."""
    number = {"error": 0, "warning": 0, "info": 0}
    for found in findings:
        number[found.severity] += 1
    return number


def counted(number: int, noun: str) -> str:
    """Return ``1 error``, ``2 errors``; ``info`` has no plural."""
    return f"{number} {noun}" if number == 1 or noun == "info" else f"{number} {noun}s"
