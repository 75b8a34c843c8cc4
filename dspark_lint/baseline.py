"""The baseline: findings that are known, so that a gate is about new ones.

A JSON file with one entry a finding: the checkpoint's path relative to the file, the rule, where it stands, and the
fingerprint of just these; wording, lines and releases do not count.
"""

from __future__ import annotations

import contextlib
import json
import os

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from dspark_lint.finding import CheckpointReport, Finding, Report


SCHEMA_VERSION = 1


class Entry(NamedTuple):
    """One known finding."""

    checkpoint: str
    """Relative to the baseline's directory, with forward slashes."""
    rule: str
    fingerprint: str
    file: str = ""
    subject: str = ""
    """Pointer, tensor or module, for whoever reads the file."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it this finding of this checkpoint."""
        return self.checkpoint, self.fingerprint


class Baseline:
    """The entries of one file."""

    def __init__(self, file: str, entries: Iterable[Entry] = ()) -> None:
        self.file = os.path.abspath(file)
        self.entries = tuple(sorted(set(entries)))
        self._keys = {entry.key for entry in self.entries}

    def place(self, checkpoint: CheckpointReport) -> str:
        """Return a checkpoint's path as entries write it."""
        return os.path.relpath(checkpoint.root, os.path.dirname(self.file)).replace(os.sep, "/")

    def holds(self, checkpoint: CheckpointReport, finding: Finding) -> bool:
        """Whether the finding is a known one."""
        return (self.place(checkpoint), finding.fingerprint) in self._keys

    def stale(self, report: Report, rules: Mapping[str, Container[str]]) -> list[Entry]:
        """Return entries that no longer hold.

        `rules` came to a conclusion about each checkpoint that was checked, and the finding is not there; or its
        checkpoint is not.
        """
        there = {entry.key for entry in of_report(self.file, report)}
        return [
            entry
            for entry in self.entries
            if entry.key not in there
            and (entry.rule in rules[entry.checkpoint] if entry.checkpoint in rules else not self._is_there(entry))
        ]

    def _is_there(self, entry: Entry) -> bool:
        return os.path.lexists(os.path.join(os.path.dirname(self.file), entry.checkpoint))


def of_report(file: str, report: Report) -> list[Entry]:
    """Return what every finding of a report is as an entry of a baseline file."""
    home = Baseline(file)
    return [
        Entry(
            home.place(checkpoint),
            found.rule,
            found.fingerprint,
            found.file or "",
            found.pointer or found.tensor or found.module or "",
        )
        for checkpoint in report.checkpoints
        for result in checkpoint.results
        for found in result.findings
    ]


def read(file: str) -> Baseline:
    """Read a baseline file. Raises UsageError for one that cannot be read or is none."""
    try:
        with open(file, encoding="utf-8") as handle:
            document = json.load(handle)
    except OSError as e:
        raise UsageError(f"baseline {file} cannot be read: {e.strerror or e}") from e
    except (ValueError, RecursionError) as e:
        raise UsageError(f"baseline {file} is not JSON: {e}") from e
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise UsageError(f"{file} is no baseline of dspark-lint; --write-baseline FILE writes one")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(f"baseline {file} has schema_version {document.get('schema_version')!r}, not {SCHEMA_VERSION}")
    return Baseline(file, [_entry(file, one) for one in document["findings"]])


def _entry(file: str, one: Mapping[str, Any]) -> Entry:
    if not isinstance(one, dict) or not all(isinstance(one.get(k, ""), str) for k in Entry._fields):
        raise UsageError(f"baseline {file}: an entry is not an object of strings")
    try:
        return Entry(**one)
    except TypeError as e:
        raise UsageError(f"baseline {file}: an entry has other keys than {', '.join(Entry._fields)}") from e


def write(file: str, report: Report, rules: Callable[[CheckpointReport], Container[str]]) -> int:
    """Write every finding of a report as known, sorted; return their number.

    Entries that this run says nothing of stay: of other checkpoints, and of rules that came to no conclusion. Raises
    UsageError when the file cannot be written or is something else.
    """
    old = read(file) if os.path.lexists(file) else Baseline(file)
    gone = set(old.stale(report, {old.place(checkpoint): rules(checkpoint) for checkpoint in report.checkpoints}))
    baseline = Baseline(file, [*(e for e in old.entries if e not in gone), *of_report(file, report)])
    document = {"schema_version": SCHEMA_VERSION, "findings": [entry._asdict() for entry in baseline.entries]}
    # beside it and then in its place: a full disk must not cost what was known
    place = os.path.realpath(file)
    scratch = f"{place}.{os.getpid()}.tmp"
    try:
        with open(scratch, "w", encoding="utf-8", newline="\n") as handle:
            handle.write(json.dumps(document, indent=1) + "\n")
        os.replace(scratch, place)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise UsageError(f"baseline {file} cannot be written: {e.strerror or e}") from e
    return len(baseline.entries)
