"""Times the scan of tensor data against a plain sequential read of the same file by the same process.

    python benchmarks/scan.py [--gigabytes 2.6] [--rounds 5] [--directory DIR] [--cold]

Writes the data of a draft, 60 BF16 tensors, the rows of two vocabulary tables looked at, into a temporary directory.
All ways run turn and turn about; the ratio of the medians is what counts. With --cold the file is dropped from the
page cache before every run, so that the disk decides.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import sys
import tempfile
import time

from pathlib import Path
from typing import TYPE_CHECKING


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dspark_lint.scan.scanner import scan_file
from dspark_lint.scan.tally import TensorSlice


if TYPE_CHECKING:
    from collections.abc import Callable


HIDDEN = 2560
USUAL = frozenset({"nonfinite", "zero"})
# No number is infinite or NaN: exponents around those of real weights.
_HIGH = bytes(0x3A + byte % 6 | byte & 0x80 for byte in range(256))


def shapes(size: int) -> list[tuple[str, list[int], frozenset[str]]]:
    """Name, shape and wanted statistics of 60 tensors of about `size` bytes in all, shared out as in a real draft."""
    rows = size // 2 // HIDDEN
    table, markov = rows * 3 // 10, rows // 30
    rest = (rows - 2 * table - markov) // 57
    return [
        ("embed_tokens.weight", [table, HIDDEN], USUAL | {"rows"}),
        ("lm_head.weight", [table, HIDDEN], USUAL),
        ("markov_head.markov_w1.weight", [markov * HIDDEN // 256, 256], USUAL | {"rows"}),
        *((f"layers.{i}.weight", [rest, HIDDEN], USUAL) for i in range(57)),
    ]


def write(path: Path, size: int) -> list[TensorSlice]:
    """Write the tensors one behind the other; the header, which nobody reads here, is left out."""
    entries, at = [], 0
    for name, shape, want in shapes(size):
        end = at + shape[0] * shape[1] * 2
        entries.append(TensorSlice(name, "BF16", shape, at, end, want))
        at = end
    block = bytearray(random.Random(0).randbytes(10_000_002))  # noqa: S311 - weights
    block[1::2] = block[1::2].translate(_HIGH)
    with path.open("wb") as file:
        for begin in range(0, at, len(block)):
            file.write(block[: at - begin])
        os.fsync(file.fileno())
    return entries


def plain(path: Path) -> None:
    """Read the file and do nothing with it."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def timed(what: Callable[[], object], path: Path, *, cold: bool) -> float:
    """Seconds of one call."""
    if cold:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def measure(path: Path, entries: list[TensorSlice], rounds: int, *, cold: bool = False) -> dict[str, list[float]]:
    """Seconds of every round of every way; the ways without what is not installed."""
    ways: dict[str, Callable[[], object]] = {
        "plain read": lambda: plain(path),
        "standard library": lambda: scan_file(path, entries, numpy=False),
    }
    if importlib.util.find_spec("numpy") is not None:
        ways["numpy"] = lambda: scan_file(path, entries, numpy=True)
    for what in ways.values():
        what()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, what in ways.items():
            seconds[name].append(timed(what, path, cold=cold))
    return seconds


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", help="where the temporary directory is made")
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        path = Path(directory) / "data"
        entries = write(path, int(given.gigabytes * 1e9))
        seconds = measure(path, entries, given.rounds, cold=given.cold)
        size = path.stat().st_size
    floor = statistics.median(seconds["plain read"])
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        sys.stdout.write(f"{name:17} {size / middle / 1e9:6.2f} GB/s {floor / middle:6.1%}\n")


if __name__ == "__main__":
    main()
