"""Lines of a terminal: wrapping with a hanging indent, counting cells."""

from __future__ import annotations


#: Text is never squeezed into fewer cells than this.
_LEAST = 16


def cells(text: str) -> int:
    """Return how many terminal cells a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - only for text that is not ASCII

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text: str, width: int | None, first: str = "", rest: str = "") -> list[str]:
    """Break a text at blanks into lines of `width` cells, `first` before the first line and `rest` before the others.

    A word that is longer than a line is cut. None does not wrap.
    """
    if width is None or cells(first) + cells(text) <= width:
        return [first + text]
    room = max(width - cells(first), _LEAST)
    later = max(width - cells(rest), _LEAST)
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        size = cells(word)
        if line and used + 1 + size > room:
            lines.append(line.rstrip())
            line, used, room = "", 0, later
        while size > room:
            piece = _head(word, room)
            lines.append(piece)
            word = word[len(piece) :]  # noqa: PLW2901 - what is left of the word
            size, room = cells(word), later
        line, used = (f"{line} {word}", used + 1 + size) if line else (word, size)
    if line:
        lines.append(line)
    return [(rest if i else first) + one for i, one in enumerate(lines)]


def _head(word: str, room: int) -> str:
    if word.isascii():
        return word[:room]
    end = used = 0
    while end < len(word) and used + cells(word[end]) <= room:
        used += cells(word[end])
        end += 1
    return word[:end]


def padded(text: str, width: int) -> str:
    """Return a text filled up with blanks to a width in cells."""
    return text + " " * (width - cells(text))
