"""From a JSON pointer to line and column, for the few places a report shows."""

from __future__ import annotations

import json
import re

from typing import Final


# A string without the group that `re` would have to fill for every repetition.
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_KEY: Final = re.compile(rf"[ \t\r\n]*({_STRING})[ \t\r\n]*:[ \t\r\n]*", re.DOTALL)
_COLON: Final = re.compile(r"[ \t\r\n]*:")
_MAP: Final = re.compile(r'"weight_map"[ \t\r\n]*:[ \t\r\n]*\{')
_SCALAR: Final = re.compile(rf"{_STRING}|[^\s,\]}}{{\[\"]+", re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
#: Texts longer than this are first searched for the key as it would be written.
_LONG: Final = 1 << 16


def locate(text: str, pointer: str) -> tuple[int, int] | None:
    """Line and column, both from 1, of what `pointer` (RFC 6901) points at in `text`.

    For a member of an object that is its key, else the value. Where the pointer leads nowhere it is the
    nearest ancestor that exists. None for an empty text or a malformed pointer.
    """
    if pointer and not pointer.startswith("/"):
        return None
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    offset = _quick(text, parts)
    if offset is None:
        offset = _offset(text, parts)
    return None if offset is None else _line_column(text, offset)


def _line_column(text: str, offset: int) -> tuple[int, int]:
    start = text.rfind("\n", 0, offset) + 1
    line = text.count("\n", 0, offset) + 1
    # A byte order mark takes no column.
    return line, offset - start + 1 - (start == 0 and text.startswith("\ufeff"))


def _quick(text: str, parts: list[str]) -> int | None:
    """The offset of the key of an index entry, if it is plain to see; None leaves the matter open."""
    if len(text) < _LONG or len(parts) != 2 or parts[0] != "weight_map":
        return None
    for written in dict.fromkeys((json.dumps(parts[1]), json.dumps(parts[1], ensure_ascii=False))):
        offset = text.find(written)
        if offset >= 0:
            break
    else:
        return None
    opening = _MAP.search(text, 0, offset)
    # Written once, as a key, in the one map at the top, with nothing between the brace and it but a flat list.
    if (
        opening
        and text.find(written, offset + 1) < 0
        and _COLON.match(text, offset + len(written))
        and text.find('"weight_map"', opening.end()) < 0
        and text.count("{", 0, opening.end()) - text.count("}", 0, opening.end()) == 2
        and text.find("{", opening.end(), offset) < 0
        and text.find("}", opening.end(), offset) < 0
    ):
        return offset
    return None


def _offset(text: str, parts: list[str]) -> int | None:
    position = _skip_space(text, 1 if text.startswith("\ufeff") else 0)
    if position >= len(text):
        return None
    best = position
    for part in parts:
        opening = text[position : position + 1]
        if opening == "{":
            found = _member(text, position, part)
        elif opening == "[":
            found = _element(text, position, part)
        else:
            break
        if found is None:
            break
        best, position = found
    return best


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _member(text: str, position: int, part: str) -> tuple[int, int] | None:
    """Offsets of key and value of the last member `part` of the object at `position`."""
    found = None
    position += 1
    while match := _KEY.match(text, position):
        written = match.group(1)
        if (written[1:-1] == part) if "\\" not in written else _same(written, part):
            found = match.start(1), match.end()
        after = _after(text, match.end())
        if after is None:
            break
        position = after
    return found


def _same(written: str, part: str) -> bool:
    try:
        return bool(json.loads(written) == part)
    except ValueError:
        return False


def _element(text: str, position: int, part: str) -> tuple[int, int] | None:
    """Offset, twice, of element `part` of the array at `position`."""
    if not (part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") and len(part) < 10):
        return None
    position = _skip_space(text, position + 1)
    for _ in range(int(part)):
        after = _after(text, position)
        if after is None:
            return None
        position = _skip_space(text, after)
    return None if text[position : position + 1] in ("]", "") else (position, position)


def _after(text: str, position: int) -> int | None:
    """The offset behind the comma that follows the value at `position`; None if none follows."""
    if text[position : position + 1] in ("{", "["):
        depth = 0
        for match in _TOKEN.finditer(text, position):
            char = text[match.start()]
            depth += (char in "{[") - (char in "}]")
            if depth == 0:
                end = match.end()
                break
        else:
            return None
    else:
        scalar = _SCALAR.match(text, position)
        if scalar is None:
            return None
        end = scalar.end()
    end = _skip_space(text, end)
    return end + 1 if text.startswith(",", end) else None
