"""Statistics of all tensors of a file in one pass over its data, with bounded memory."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from dspark_lint.checkpoint.files import open_regular
from dspark_lint.checkpoint.problems import Problem
from dspark_lint.scan.reader import CHUNK, blocks
from dspark_lint.scan.tally import Stretch, Tally


if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from dspark_lint.scan.reader import Span
    from dspark_lint.scan.tally import TensorSlice, TensorStats


# Importing numpy takes as long as scanning this many bytes without it.
_WORTH_NUMPY: Final = 256 << 20
# Below this a second thread does not pay.
_WORTH_THREAD: Final = 16 << 20
# Seconds between two signs of life while the other thread is busy with the last tensor.
_WAIT: Final = 0.1


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
    size = sum(entry.end - entry.begin for entry in entries)
    library = _library(numpy, size)
    work = _Work([Tally(entry, library) for entry in entries])
    report = progress if progress is not None else _ignore
    file = _open(path)
    if isinstance(file, Problem):
        for tally in work.tallies:
            tally.problem = file.detail
        report(size)
    # Reading, and what numpy does, happens outside the lock of the interpreter: a second thread is much quicker on an
    # idle machine and does no harm on a busy one, since neither waits for the other.
    elif library is not None and size >= _WORTH_THREAD and _processors() > 1:
        _with_a_helper(work, file, path, report)
    else:
        for done in work.on(file):
            report(done)
    return [tally.results() for tally in work.tallies]


def _ignore(_: int) -> None:
    pass


class _Work:
    """Tensors, each of which one worker takes and scans from its first byte to its last."""

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self.tallies = tallies
        spans = [tally.span(index) for index, tally in enumerate(tallies)]
        self._left = deque(sorted(spans, key=lambda span: span.begin))
        self._capacity = max([CHUNK, *(span.unit for span in spans)])

    def on(self, file: io.FileIO) -> Generator[int]:
        """Work until no tensor is left, and close `file`; yields numbers of bytes done."""
        with contextlib.closing(blocks(file, self._take(), self._wanted, self._capacity)) as source:
            for buffer, pieces in source:
                for piece in pieces:
                    if piece.start >= 0:
                        stretch = Stretch(buffer, piece.start, piece.start + piece.size, piece.at)
                        self.tallies[piece.tensor].feed(stretch)
                    elif piece.problem is not None:
                        self.tallies[piece.tensor].problem = piece.problem
                yield sum(piece.size for piece in pieces)

    def _take(self) -> Iterator[Span]:
        with contextlib.suppress(IndexError):
            while True:
                yield self._left.popleft()

    def _wanted(self, tensor: int) -> bool:
        return not self.tallies[tensor].finished


def _with_a_helper(work: _Work, file: io.FileIO, path: str | os.PathLike[str], report: Callable[[int], None]) -> None:
    steps: deque[int] = deque()
    failed: list[BaseException] = []
    stop = threading.Event()

    def help_out() -> None:
        try:
            own = _open(path)
            if isinstance(own, Problem):
                return
            with contextlib.closing(work.on(own)) as theirs:
                for done in theirs:
                    steps.append(done)
                    if stop.is_set():
                        return
        except BaseException as error:  # noqa: BLE001 - raised again where somebody can see it
            failed.append(error)

    def report_helper() -> None:
        while steps:
            report(steps.popleft())

    # As a daemon it cannot keep the program from ending while a dead disk keeps it waiting.
    helper = threading.Thread(target=help_out, name="scan-helper", daemon=True)
    with contextlib.suppress(RuntimeError):
        # Where no thread is to be had, one is enough.
        helper.start()
    try:
        with contextlib.closing(work.on(file)) as mine:
            for done in mine:
                report(done)
                report_helper()
        while helper.is_alive():
            helper.join(_WAIT)
            report_helper()
        report_helper()
    finally:
        stop.set()
        if helper.is_alive():
            helper.join()
    if failed:
        raise failed[0]


def _open(path: str | os.PathLike[str]) -> io.FileIO | Problem:
    root, name = os.path.split(os.fspath(path))
    opened = open_regular(root or ".", name)
    return opened if isinstance(opened, Problem) else io.FileIO(opened.fd)


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


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
