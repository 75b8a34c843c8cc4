"""Statistics of all tensors of a file in one pass over its data, with bounded memory."""

from __future__ import annotations

import contextlib
import os
import sys

from typing import TYPE_CHECKING, Any, Final

from dspark_lint.checkpoint.files import open_regular
from dspark_lint.checkpoint.problems import Problem
from dspark_lint.scan.reader import CHUNK, blocks, blocks_ahead
from dspark_lint.scan.tally import Stretch, Tally


if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from dspark_lint.scan.reader import Block
    from dspark_lint.scan.tally import TensorSlice, TensorStats


# Importing numpy takes as long as scanning this many bytes without it.
_WORTH_NUMPY: Final = 256 << 20
# Below this a thread that reads ahead does not pay.
_WORTH_THREAD: Final = 16 << 20


def scan_file(
    path: str | os.PathLike[str],
    entries: Sequence[TensorSlice],
    *,
    progress: Callable[[int], None] | None = None,
    numpy: bool | None = None,
) -> list[TensorStats]:
    """Read the tensors `entries` of the file at `path`, in the order of their offsets, and return their statistics
    in the order given.

    `progress` is called with numbers of bytes whose sum is the size of all entries. With `numpy` None, numpy is used
    if it is there and the data is large enough to make up for importing it. A file that cannot be opened or read, or
    that ends early, sets `TensorStats.problem`. Raises ValueError for an entry whose dtype or want is unknown or whose
    size does not follow from dtype and shape, ImportError if `numpy` is True and it is missing.
    """  # noqa: D205
    library = _library(numpy, sum(entry.end - entry.begin for entry in entries))
    tallies = [Tally(entry, library) for entry in entries]
    root, name = os.path.split(os.fspath(path))
    opened = open_regular(root or ".", name)
    if isinstance(opened, Problem):
        for tally, entry in zip(tallies, entries, strict=True):
            tally.problem = opened.detail
            if progress is not None:
                progress(entry.end - entry.begin)
    else:
        with contextlib.closing(_blocks(opened.fd, tallies, threaded=library is not None)) as source:
            for buffer, pieces in source:
                for piece in pieces:
                    if piece.start >= 0:
                        stretch = Stretch(buffer, piece.start, piece.start + piece.size, piece.at)
                        tallies[piece.tensor].feed(stretch)
                    elif piece.problem is not None:
                        tallies[piece.tensor].problem = piece.problem
                if progress is not None:
                    progress(sum(piece.size for piece in pieces))
    return [tally.results() for tally in tallies]


def _library(numpy: bool | None, size: int) -> Any:
    if numpy is False or (numpy is None and "numpy" not in sys.modules and size < _WORTH_NUMPY):
        return None
    try:
        import numpy as np  # noqa: PLC0415 - an extra, and slow to import
    except Exception:
        # Whatever a broken installation raises: it is not needed.
        if numpy:
            raise
        return None
    return np


def _blocks(fd: int, tallies: Sequence[Tally], *, threaded: bool) -> Generator[Block]:
    order = sorted(range(len(tallies)), key=lambda index: tallies[index].begin)
    spans = [tallies[index].span(index) for index in order]
    capacity = max([CHUNK, *(span.unit for span in spans)])
    threaded = threaded and _processors() > 1 and sum(span.end - span.begin for span in spans) >= _WORTH_THREAD
    file = open(fd, "rb", buffering=0)  # noqa: SIM115 - the reader closes it
    return (blocks_ahead if threaded else blocks)(file, spans, lambda index: not tallies[index].finished, capacity)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
