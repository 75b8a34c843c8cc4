"""What the tensors of one checkpoint hold: scanned when first asked for, once, whatever number of releases ask."""

from __future__ import annotations

import os

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.scan.scanner import scan_file


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from dspark_lint.scan.tally import TensorSlice, TensorStats

    #: Given the bytes that are about to be read; what it returns is entered and called with numbers of bytes done.
    Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]


class Asked(NamedTuple):
    """A tensor of a file, by the file's path below the checkpoint."""

    file: str
    entry: TensorSlice


class Store:
    """Statistics of the tensors below `root`; memory is bounded by their number, never by their size."""

    def __init__(self, root: str, bar: Bar | None = None, *, numpy: bool | None = None) -> None:
        """Show progress through `bar`, silently without one; `numpy` is that of `scan_file`."""
        self._root = root
        self._bar = bar
        self._numpy = numpy
        self._known: dict[tuple[str, str, int, str], tuple[frozenset[str], TensorStats]] = {}

    def stats(self, asked: Iterable[Asked]) -> list[TensorStats]:
        """Return the statistics in the order asked, reading what is not known yet.

        Raises ValueError for an entry whose dtype is unknown or whose size does not follow from dtype and shape.
        """
        asked = list(asked)
        new: dict[str, list[TensorSlice]] = {}
        for one in asked:
            want, _ = self._known.get(_key(one), (frozenset(), None))
            if not one.entry.want <= want or _key(one) not in self._known:
                new.setdefault(one.file, []).append(one.entry)
        if new:
            self._read(new)
        return [self._known[_key(one)][1] for one in asked]

    def _read(self, new: dict[str, list[TensorSlice]]) -> None:
        total = sum(entry.end - entry.begin for entries in new.values() for entry in entries)
        if self._bar is None:
            self._scan(new, None)
            return
        with self._bar(total) as progress:
            self._scan(new, progress)

    def _scan(self, new: dict[str, list[TensorSlice]], progress: Callable[[int], None] | None) -> None:
        for file, entries in new.items():
            found = scan_file(os.path.join(self._root, file), entries, progress=progress, numpy=self._numpy)
            for entry, stats in zip(entries, found, strict=True):
                self._known[_key(Asked(file, entry))] = (entry.want, stats)


def _key(one: Asked) -> tuple[str, str, int, str]:
    return one.file, one.entry.name, one.entry.begin, one.entry.dtype
