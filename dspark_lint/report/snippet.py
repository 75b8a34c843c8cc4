"""The lines of a JSON file around a finding, for formats that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.report.escape import safe


if TYPE_CHECKING:
    from dspark_lint.report.lines import Lines, Place


#: Lines shown before and after the one that is meant.
CONTEXT = 2
#: Characters of a line that are shown; a file written on one line is cut around the place.
COLUMNS = 160


class Row(NamedTuple):
    """One line of a file."""

    number: int
    text: str
    """Escaped, cut to `COLUMNS`."""
    meant: bool


def snippet(lines: Lines, name: str, place: Place) -> tuple[Row, ...]:
    """Return the lines around a place; empty where there is none."""
    text = lines.text(name) if place.line else None
    if text is None or place.line is None:
        return ()
    start = _line_start(text, place.line)
    first = place.line
    while first > 1 and first > place.line - CONTEXT:
        start = text.rfind("\n", 0, start - 1) + 1
        first -= 1
    rows: list[Row] = []
    for number in range(first, place.line + CONTEXT + 1):
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        meant = number == place.line
        rows.append(Row(number, _cut(text[start:stop], (place.column or 1) - 1 if meant else 0), meant))
        if end < 0:
            break
        start = end + 1
    if rows and not rows[-1].meant and not rows[-1].text:
        rows.pop()  # what follows the newline at the end of the file
    return tuple(rows)


def _line_start(text: str, line: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start


def _cut(line: str, column: int) -> str:
    column += line.count("\t", 0, column)  # a tab is shown as two blanks
    line = line.rstrip("\r").replace("\t", "  ")
    if len(line) <= COLUMNS:
        return safe(line)
    start = max(0, min(column - COLUMNS // 4, len(line) - COLUMNS))
    cut = line[start : start + COLUMNS]
    return ("…" if start else "") + safe(cut) + ("…" if start + COLUMNS < len(line) else "")
