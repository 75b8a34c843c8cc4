"""Line and column of findings in JSON files, computed only when a format shows them; never failing."""

from __future__ import annotations

import os

from typing import TYPE_CHECKING, NamedTuple


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding


#: A JSON file of more bytes than this is not searched.
LARGEST = 32 * 1024 * 1024
#: Characters searched in one checkpoint; findings after that have no line. About a second.
BUDGET = 256 * 1024 * 1024


class Place(NamedTuple):
    """A place in a text file, both from 1; None where it has none."""

    line: int | None
    column: int | None


NOWHERE = Place(None, None)


class Lines:
    """The JSON files of one checkpoint, each read once and only when asked for."""

    def __init__(self, checkpoint: CheckpointReport) -> None:
        self._root = checkpoint.root
        self._texts: dict[str, str | None] = {}
        self._known: dict[tuple[str, str], Place] = {}
        self._left = BUDGET

    def of(self, finding: Finding) -> Place:
        """Return where a finding stands; `NOWHERE` for what is no place in a readable JSON file."""
        if finding.file is None or finding.pointer is None or not finding.file.endswith(".json"):
            return NOWHERE
        key = (finding.file, finding.pointer)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = self._locate(*key)
        return place

    def text(self, name: str) -> str | None:
        """Return a file's text, lone bytes as surrogates; None when it cannot be read or is too large."""
        if name not in self._texts:
            self._texts[name] = _read(self._root, name)
        return self._texts[name]

    def _locate(self, name: str, pointer: str) -> Place:
        text = self.text(name)
        if text is None or self._left < len(text):
            return NOWHERE
        self._left -= len(text)
        from dspark_lint.checkpoint.locate import locate  # noqa: PLC0415 - only for findings that are shown

        try:
            found = locate(text, pointer)
        except Exception:  # noqa: BLE001 - a line is a convenience: without it the finding is still told
            return NOWHERE
        return Place(*found) if found is not None else NOWHERE


def _read(root: str, name: str) -> str | None:
    # os and not pathlib: this is on the way of every plain run, and pathlib takes six milliseconds to import
    path = os.path.join(root, name)
    try:
        # a FIFO would wait for ever and a device never ends
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return None
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read(LARGEST + 1)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
