"""How far a scan is, on a terminal."""

from __future__ import annotations

import shutil
import sys
import time

from typing import TextIO


# Seconds: a scan that is over sooner shows nothing, and no more often than this is anything drawn.
_PATIENCE = 0.5
_INTERVAL = 0.1


class Progress:
    """A bar of one line on `stream` (standard error), gone when it is left; nothing at all where that is no terminal.

    It is called with the number of bytes done since the last call:
    ``with Progress(total) as bar: scan_file(..., progress=bar)``.
    """

    def __init__(self, total: int, label: str = "scanning", stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._shown = self._stream is not None and self._stream.isatty()
        self._total, self._label, self._done = total, label, 0
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE
        self._drawn = False

    def __call__(self, size: int) -> None:
        """`size` more bytes are done."""
        self._done += size
        if self._shown and (now := time.monotonic()) >= self._next:
            self._next = now + _INTERVAL
            self._draw(now)

    def _draw(self, now: float) -> None:
        share = min(self._done / self._total, 1) if self._total else 1
        speed = self._done / max(now - self._start, 1e-9)
        words = f" {share:4.0%} of {self._total / 1e9:.2f} GB, {speed / 1e9:.2f} GB/s"
        width = min(40, shutil.get_terminal_size().columns - len(self._label) - len(words) - 4)
        bar = f" [{'#' * round(share * width):<{width}}]" if width >= 8 else ""
        self._stream.write(f"\r\x1b[K{self._label}{bar}{words}")
        self._stream.flush()
        self._drawn = True

    def __enter__(self) -> Progress:  # noqa: PYI034 - typing.Self came with 3.11
        """Nothing is drawn yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave a clean line behind, whatever happened."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
