"""Streams the bytes of many tensors of one file through a buffer that is used again and again."""

from __future__ import annotations

import errno
import os

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspark_lint.checkpoint.files import reason


if TYPE_CHECKING:
    import io

    from collections.abc import Callable, Generator, Iterable


#: Bytes of a buffer. Smaller ones cost more calls, greater ones memory and, in the end, the cache of the processor.
CHUNK: Final = 1 << 21
# Where a stretch starts in a buffer: any width of element, and a line of the cache.
_ALIGN: Final = 64


class Span(NamedTuple):
    """The bytes of one tensor."""

    tensor: int
    """By which the pieces are told apart."""
    begin: int
    end: int
    """Offsets in the file."""
    unit: int
    """Pieces are multiples of this many bytes, save for a last one that the end of the file cuts."""
    skip_holes: bool
    """Whether zeros that are stored nowhere (holes of a sparse file) need not be seen."""


class Piece(NamedTuple):
    """The next bytes of a tensor."""

    tensor: int
    at: int
    """Offset of its first byte in the tensor."""
    size: int
    start: int
    """Offset in the buffer; -1 if these bytes are not there: skipped, or lost to `problem`."""
    problem: str | None = None


class Buffer:
    """Bytes, and what a numeric library makes of them."""

    __slots__ = ("raw", "view", "views")

    def __init__(self, size: int) -> None:
        self.raw = bytearray(size)
        self.view = memoryview(self.raw)
        self.views: dict[str, Any] = {}


class Block(NamedTuple):
    """A filled buffer; it may be used until the next one is asked for."""

    buffer: Buffer
    pieces: list[Piece]


def blocks(file: io.FileIO, spans: Iterable[Span], wanted: Callable[[int], bool], capacity: int) -> Generator[Block]:
    """Read `spans`, in their order; closes `file` when exhausted, closed or failed.

    ``wanted(tensor)`` is asked before every piece; once it says no the rest of that tensor is skipped.
    """
    with file:
        sparse = _sparse(file.fileno())
        buffer = Buffer(capacity)
        pieces: list[Piece] = []
        used = 0
        for tensor, begin, end, unit, skip_holes in spans:
            at, size = 0, end - begin
            stored = 0 if sparse and skip_holes else size
            while at < size:
                if not wanted(tensor):
                    pieces.append(Piece(tensor, at, size - at, -1))
                    break
                if at >= stored:
                    first, last = _stored(file.fileno(), begin + at, end)
                    first, stored = (first - begin) // unit * unit, -((begin - last) // unit) * unit
                    if first > at:
                        pieces.append(Piece(tensor, at, first - at, -1))
                        at = first
                        continue
                step = min(stored - at, (capacity - used) // unit * unit)
                if step <= 0:
                    yield Block(buffer, pieces)
                    pieces, used = [], 0
                    continue
                got, problem = _read(file, begin + at, buffer.view[used : used + step])
                if got:
                    pieces.append(Piece(tensor, at, got, used))
                    at += got
                    used = -(-(used + got) // _ALIGN) * _ALIGN
                if got < step:
                    lost = problem or f"the file ends {size - at:,} bytes before the tensor does"
                    pieces.append(Piece(tensor, at, size - at, -1, lost))
                    break
        if pieces:
            yield Block(buffer, pieces)


def _read(file: io.FileIO, offset: int, into: memoryview) -> tuple[int, str | None]:
    """Fill `into`; how many bytes came, and what went wrong unless the file just ended."""
    got = 0
    try:
        file.seek(offset)
        while got < len(into):
            count = file.readinto(into[got:] if got else into)
            if not count:
                break
            got += count
    except OSError as error:
        return got, f"the tensor cannot be read: {reason(error)}"
    return got, None


def _sparse(fd: int) -> bool:
    """Whether it is worth asking for holes; a file that takes all its room on the disk has none."""
    status = os.fstat(fd)
    return hasattr(os, "SEEK_DATA") and getattr(status, "st_blocks", status.st_size) * 512 < status.st_size


def _stored(fd: int, begin: int, end: int) -> tuple[int, int]:
    """The offsets of the first stretch of ``[begin, end)`` that is more than a hole; what is behind the end of the
    file counts as such, so that reading it fails."""  # noqa: D205, D209
    size = os.fstat(fd).st_size
    if begin >= size:
        return begin, end
    try:
        first = os.lseek(fd, begin, os.SEEK_DATA)
        last = os.lseek(fd, first, os.SEEK_HOLE)
    except OSError as error:
        # ENXIO: nothing but a hole up to the end of the file. Anything else: a file system without holes.
        return (min(size, end), end) if error.errno == errno.ENXIO else (begin, end)
    if last >= size:
        last = end
    return min(first, end), min(last, end)
