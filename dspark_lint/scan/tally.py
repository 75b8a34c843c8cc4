"""What is known of one tensor while its data goes by.

Of a float, NaN and infinity have the greatest magnitudes. So two maxima, of a stretch taken as signed and as
unsigned integers, decide at the speed of memory that there are none (and whether all is zero); where every number is
below 2, as in most weights, the union of all bits shows it in one. The standard library has no such reduction; but it
finds bytes quickly, and the highest byte of a number that is not finite has few values.
Where the quick test does not clear a stretch, `classify` counts exactly. Both ways give the same results.
"""

from __future__ import annotations

import math
import struct

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.scan.classify import classify, is_zero, suspects
from dspark_lint.scan.formats import FORMATS, NAN
from dspark_lint.scan.reader import Buffer, Span
from dspark_lint.scan.rows import WIDEST, Rows, RowSet


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dspark_lint.scan.formats import Float


#: What can be asked of a tensor, see the fields of `TensorStats`.
WANTS: Final = frozenset({"nonfinite", "zero", "rows", "positive", "minmax"})
# Numbers that the standard library unpacks at a time: each is an object of its own.
_UNPACKED: Final = 1 << 15


class TensorSlice(NamedTuple):
    """A tensor to scan."""

    name: str
    dtype: str
    """As safetensors spells it. What decides is how the bytes are meant: E8M0 scales stored as U8 may be given as
    F8_E8M0."""
    shape: Sequence[int]
    begin: int
    end: int
    """Offsets in the file, in bytes."""
    want: frozenset[str]
    """Members of `WANTS`."""


class TensorStats(NamedTuple):
    """What a tensor holds; a statistic that was not wanted stands at its default.

    If `problem` is set, everything but `all_zero` speaks of the part that could be read.
    """

    name: str
    elements: int
    nan: int = 0
    """(nonfinite) How many are NaN; of C64, real and imaginary parts are counted each. 0 for integers."""
    inf: int = 0
    first_bad_index: int | None = None
    """The first element, counted through the whole tensor, that is NaN or infinite."""
    all_zero: bool = False
    """(zero) Every element is zero, of either sign; of F8_E8M0, which has no zero, every byte. Not if empty."""
    zero_rows: RowSet | None = None
    """(rows) Runs along the last dimension that are all zero. None where rows are not looked at: fewer than two
    dimensions or two elements a row, rows above 2 MiB, dtypes that share bytes."""
    constant_rows: RowSet | None = None
    """(rows) Rows of one value, bit for bit, other than zero."""
    repeated_rows: RowSet | None = None
    """(rows) Rows equal, bit for bit, to the row before."""
    zero: int = 0
    """(positive) How many are zero."""
    negative: int = 0
    """(positive) How many are finite and below zero; of scales, NaN and infinity are under `nan` and `inf`."""
    first_nonpositive_index: int | None = None
    """(positive) The first that is zero or below."""
    min: float | None = None
    """(minmax) The least, infinities included, NaN left out; an int for integers. None if there is none."""
    max: float | None = None
    problem: str | None = None
    """Why some or all of the tensor could not be read."""


class Stretch(NamedTuple):
    """Some bytes of a tensor, whole elements (and whole rows, where those are wanted) in a buffer."""

    buffer: Buffer
    start: int
    stop: int
    """Offsets in the buffer."""
    at: int
    """Offset of the first byte in the tensor."""


class Tally:
    """What is known of one tensor so far."""

    def __init__(self, entry: TensorSlice, library: Any) -> None:
        """With numpy as `library`, or None. Raises ValueError as `scan_file` does."""
        name, dtype, shape, begin, end, want = entry
        if unknown := want - WANTS:
            raise ValueError(f"{', '.join(sorted(unknown))} is none of {', '.join(sorted(WANTS))}")
        if dtype not in FORMATS:
            raise ValueError(f"unknown dtype {dtype!r} of {name!r}")
        self.elements = math.prod(shape)
        if self.elements * BITS[dtype] != 8 * (end - begin):
            raise ValueError(f"{name!r}: {end - begin} bytes are no {dtype} {list(shape)}")
        self.name, self.begin, self.end = name, begin, end
        self.library = library
        self.form = FORMATS[dtype]
        self.float = self.form.float
        self.width = self.float.width if self.float is not None else self.form.unit
        self.problem: str | None = None

        row = shape[-1] * self.form.unit if len(shape) > 1 and self.form.whole and shape[-1] > 1 else 0
        self.rows = Rows(self.form, row) if "rows" in want and 0 < row <= WIDEST else None
        self.unit = row if self.rows is not None else self.form.unit
        # A complex number is neither above nor below another.
        ordered = self.width == self.form.unit and bool(self.form.letter)
        self.look_sign = "positive" in want and ordered
        self.look_range = "minmax" in want and ordered
        self.look_bad = self.float is not None and ("nonfinite" in want or self.look_sign)
        self.maybe_zero = "zero" in want
        self.small = True
        """Whether no number so far is 2 or more, as far as anybody looked."""
        self.look_on = self.look_bad or self.look_sign or self.look_range or self.rows is not None

        self.nan = self.inf = self.zero = self.negative = 0
        self.first_bad = self.first_nonpositive = -1
        # Of floats, as patterns: the greatest without the sign bit (or -1), the greatest and the least of all.
        # Of integers: the greatest, the greatest, the least.
        self.extremes: tuple[int, int, int] | None = None

    def span(self, index: int) -> Span:
        """What to read."""
        only_zero_or_bad = self.rows is None and not self.look_sign and not self.look_range
        return Span(index, self.begin, self.end, self.unit, only_zero_or_bad)

    def feed(self, piece: Stretch) -> None:
        """Take in the next bytes of the tensor."""
        if self.finished:
            return
        if rest := (piece.stop - piece.start) % self.form.unit:
            # The end of a cut file leaves part of an element.
            piece = piece._replace(stop=piece.stop - rest)
        kind = self.float
        if piece.stop == piece.start:
            return
        if kind is None:
            self._integers(piece)
        elif self.library is not None and self.width > 1:
            self._maxima(piece, kind)
        else:
            self._bytes(piece, kind)
        if self.rows is not None:
            self.rows.feed(piece.buffer.raw, piece.start, piece.stop, piece.at // self.unit)

    @property
    def finished(self) -> bool:
        """Whether no further bytes can tell anything that is wanted."""
        return not (self.maybe_zero or self.look_on)

    def _maxima(self, piece: Stretch, kind: Float) -> None:
        unsigned = self._array(piece, self.form.letter)
        sign = kind.sign
        if self.small and not self.look_sign and not self.look_range:
            # Few weights reach 2. Below, the highest bit of every exponent is 0, and one look is enough.
            union = int(self.library.bitwise_or.reduce(unsigned)) & ~sign
            self.maybe_zero = self.maybe_zero and not union
            self.small = not union & sign >> 1
            if self.small:
                return
        signed = self._array(piece, self.form.letter.lower())
        top, most = int(self.library.maximum.reduce(signed)), int(self.library.maximum.reduce(unsigned))
        finite = top < kind.limit and most < sign | kind.limit
        if top > 0 or most > sign:
            self.maybe_zero = False
        if not self.look_sign and not self.look_range:
            if not finite and self.look_bad:
                self._count(piece, kind)
            return
        least = int(self.library.minimum.reduce(unsigned))
        nan = 0
        if not finite or (self.look_sign and (least == 0 or most >= sign)):
            nan = self._count(piece, kind)
        if self.look_range and not nan:
            self._widen(max(top, -1), most, least)
        elif self.look_range:
            self._range(piece, kind, nan)

    def _bytes(self, piece: Stretch, kind: Float) -> None:
        raw, start, stop = piece.buffer.raw, piece.start, piece.stop
        self.maybe_zero = self.maybe_zero and is_zero(raw, start, stop, self.form)
        nan = 0
        if self.look_sign:
            nan = self._count(piece, kind)
        elif self.look_bad or self.look_range:
            highest = raw
            if self.width > 1:
                highest = raw[start + self.width - 1 : stop : self.width]
                start, stop = 0, len(highest)
            if any(highest.find(byte, start, stop) >= 0 for byte in suspects(kind)):
                nan = self._count(piece, kind)
        if self.look_range:
            self._range(piece, kind, nan)

    def _integers(self, piece: Stretch) -> None:
        self.maybe_zero = self.maybe_zero and is_zero(piece.buffer.raw, piece.start, piece.stop, self.form)
        if self.look_range and self.library is not None:
            array = self._array(piece, self.form.letter)
            greatest = int(self.library.maximum.reduce(array))
            self._widen(greatest, greatest, int(self.library.minimum.reduce(array)))
        elif self.look_range:
            for part in self._distinct(piece):
                greatest = max(part)
                self._widen(greatest, greatest, min(part))
        if self.look_sign:
            for done, part in enumerate(self._unpacked(piece)):
                lows = [number for number in part if number <= 0]
                if lows and self.first_nonpositive < 0:
                    self.first_nonpositive = piece.at // self.width + done * _UNPACKED + part.index(lows[0])
                zero = lows.count(0)
                self.zero += zero
                self.negative += len(lows) - zero

    def _array(self, piece: Stretch, letter: str) -> Any:
        """The piece as little-endian integers; no copy."""
        views = piece.buffer.views
        if letter not in views:
            count = len(piece.buffer.raw) // self.width
            views[letter] = self.library.frombuffer(piece.buffer.raw, f"<{letter}", count)
        return views[letter][piece.start // self.width : piece.stop // self.width]

    def _unpacked(self, piece: Stretch) -> Iterator[Sequence[int]]:
        """The piece as integers, a part at a time."""
        for begin in range(piece.start, piece.stop, _UNPACKED * self.width):
            count = min(_UNPACKED, (piece.stop - begin) // self.width)
            yield struct.unpack_from(f"<{count}{self.form.letter}", piece.buffer.raw, begin)

    def _distinct(self, piece: Stretch) -> Iterator[Sequence[int]]:
        """The same where only which integers there are matters: of bytes each comes once."""
        if self.width > 1:
            yield from self._unpacked(piece)
            return
        raw, start, stop = piece.buffer.raw, piece.start, piece.stop
        present = bytes(byte for byte in range(256) if raw.find(byte, start, stop) >= 0)
        yield struct.unpack(f"<{len(present)}{self.form.letter}", present)

    def _count(self, piece: Stretch, kind: Float) -> int:
        """Count exactly; how many are NaN."""
        classes = classify(piece.buffer.raw[piece.start : piece.stop], kind)
        before = piece.at // self.width
        if self.first_bad < 0 <= classes.first_bad:
            self.first_bad = before + classes.first_bad
        if self.first_nonpositive < 0 <= classes.first_nonpositive:
            self.first_nonpositive = before + classes.first_nonpositive
        self.nan += classes.nan
        self.inf += classes.inf
        self.zero += classes.zero
        self.negative += classes.negative
        return classes.nan

    def _range(self, piece: Stretch, kind: Float, nan: int) -> None:
        sign = kind.sign or 1 << 8 * self.width
        for part in self._distinct(piece):
            patterns = [one for one in set(part) if kind.code(one) != NAN] if nan else part
            if patterns:
                least, most = min(patterns), max(patterns)
                top = most if most < sign else max((one for one in patterns if one < sign), default=-1)
                self._widen(top, most, least)

    def _widen(self, top: int, most: int, least: int) -> None:
        if self.extremes is not None:
            top, most, least = max(top, self.extremes[0]), max(most, self.extremes[1]), min(least, self.extremes[2])
        self.extremes = top, most, least

    def results(self) -> TensorStats:
        """The statistics, once everything was fed."""
        least: float | None = None
        greatest: float | None = None
        if self.extremes is not None and self.float is None:
            greatest, _, least = self.extremes
        elif self.extremes is not None and self.float is not None:
            top, most, pattern = self.extremes
            # Negative numbers are ordered by their magnitude, the wrong way round.
            least = self.float.value(most if 0 < self.float.sign <= most else pattern)
            greatest = self.float.value(top if top >= 0 else pattern)
        parts = self.form.unit // self.width
        zero_rows, constant_rows, repeated_rows = self.rows.results() if self.rows is not None else (None,) * 3
        return TensorStats(
            self.name,
            self.elements,
            nan=self.nan if self.look_bad else 0,
            inf=self.inf if self.look_bad else 0,
            first_bad_index=self.first_bad // parts if self.look_bad and self.first_bad >= 0 else None,
            all_zero=self.maybe_zero and self.elements > 0 and self.problem is None,
            zero_rows=zero_rows,
            constant_rows=constant_rows,
            repeated_rows=repeated_rows,
            zero=self.zero if self.look_sign else 0,
            negative=self.negative if self.look_sign else 0,
            first_nonpositive_index=self.first_nonpositive if self.look_sign and self.first_nonpositive >= 0 else None,
            min=least,
            max=greatest,
            problem=self.problem,
        )
