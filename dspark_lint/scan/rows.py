"""Rows of a table that carry nothing: zeros, one number throughout, or a copy of the row before."""

from __future__ import annotations

import functools

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.scan.classify import is_zero


if TYPE_CHECKING:
    from dspark_lint.scan.formats import Format


#: Numbers of rows that are kept for a message.
KEPT = 5
#: Bytes of a row; wider ones are not looked at, so that memory stays bounded.
WIDEST = 1 << 21


class RowSet(NamedTuple):
    """Some rows of a tensor."""

    total: int
    first: tuple[int, ...]
    """The numbers of the first few."""


class Rows:
    """Collects what the rows of one tensor are while its data goes by, whole rows at a time."""

    def __init__(self, form: Format, row_bytes: int) -> None:
        self._form = form
        self._row = row_bytes
        self._last = b""
        self._found: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._counts = [0, 0, 0]
        # The two highest bytes of the first two elements: enough to turn almost every row away.
        unit = form.unit
        self._probes = tuple(dict.fromkeys((at, unit + at) for at in (unit - 1, max(unit - 2, 0))))

    def feed(self, raw: bytearray, start: int, stop: int, number: int) -> None:
        """Look at the whole rows in ``raw[start:stop]``, the first of which is row `number`; in the order of rows."""
        row = self._row
        rows = (stop - start) // row
        stop = start + rows * row
        if not rows:
            return
        before = 1 if self._last else 0
        alike = copied = 0
        for one, other in self._probes:
            first = int.from_bytes(self._last[one : one + 1] + raw[start + one : stop : row], "little")
            second = int.from_bytes(self._last[other : other + 1] + raw[start + other : stop : row], "little")
            alike |= first ^ second
            copied |= (first ^ first >> 8) | (second ^ second >> 8)
        # A difference of signs may be one of zeros.
        for at in _zero_bytes(alike & _magnitudes(rows + before), rows + before, before):
            begin = start + (at - before) * row
            if is_zero(raw, begin, begin + row, self._form):
                self._note(0, number + at - before)
            elif self._constant(raw, begin):
                self._note(1, number + at - before)
        for at in _zero_bytes(copied & _all(rows + before - 1), rows + before - 1, 0):
            begin = start + (at + 1 - before) * row
            if raw[begin : begin + row] == (self._last if begin == start else raw[begin - row : begin]):
                self._note(2, number + at + 1 - before)
        self._last = bytes(raw[stop - row : stop])

    def _constant(self, raw: bytearray, begin: int) -> bool:
        unit = self._form.unit
        # Equal to itself one element further on.
        return raw[begin : begin + self._row - unit] == raw[begin + unit : begin + self._row]

    def _note(self, which: int, number: int) -> None:
        self._counts[which] += 1
        if len(self._found[which]) < KEPT:
            self._found[which].append(number)

    def results(self) -> tuple[RowSet, RowSet, RowSet]:
        """The rows of zeros, the constant ones among the rest, and those equal to the one before."""
        zero, constant, repeated = (RowSet(n, tuple(kept)) for n, kept in zip(self._counts, self._found, strict=True))
        return zero, constant, repeated


@functools.lru_cache(8)
def _magnitudes(size: int) -> int:
    return int.from_bytes(b"\x7f" * size, "little")


@functools.lru_cache(8)
def _all(size: int) -> int:
    return (1 << 8 * size) - 1


def _zero_bytes(number: int, size: int, begin: int) -> list[int]:
    """The positions from `begin` on of the zeros among the `size` bytes of `number`."""
    data = number.to_bytes(size, "little")
    found = []
    at = data.find(0, begin)
    while at >= 0:
        found.append(at)
        at = data.find(0, at + 1)
    return found
