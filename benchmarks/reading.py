"""Times the reading of one checkpoint against the floor: the same bytes through bare json, collector off.

    python benchmarks/reading.py DIRECTORY [--rounds 11]

Both run in this process, turn and turn about; the ratio of the medians is what counts.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time

from pathlib import Path
from typing import TYPE_CHECKING


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dspark_lint.checkpoint import open_checkpoint


if TYPE_CHECKING:
    from collections.abc import Callable


def floor(directory: Path) -> object:
    """Header bytes and JSON documents, parsed and kept; nothing is checked."""
    kept: list[object] = []
    for path in sorted(directory.iterdir()):
        if path.suffix == ".safetensors":
            with path.open("rb", buffering=0) as file:
                kept.append(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
        elif path.suffix == ".json":
            kept.append(json.loads(path.read_bytes()))
    return kept


def reading(directory: Path) -> object:
    """Everything the package reads of a checkpoint, validated."""
    checkpoint = open_checkpoint(directory)
    kept = [checkpoint.header(entry.name) for entry in checkpoint.files if entry.name.endswith(".safetensors")]
    return checkpoint, kept, checkpoint.config, checkpoint.index()


def timed(what: Callable[[Path], object], directory: Path) -> float:
    """Milliseconds of one call, its result thrown away after the clock has stopped."""
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    kept = what(directory)
    elapsed = time.perf_counter() - start
    del kept
    gc.enable()
    return elapsed * 1e3


def compare(directory: Path, rounds: int) -> tuple[float, float]:
    """Median milliseconds of the floor and of the reading."""
    pairs = [(timed(floor, directory), timed(reading, directory)) for _ in range(rounds)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args()
    bare, read = compare(given.directory, given.rounds)
    sys.stdout.write(f"floor {bare:.2f} ms, reading {read:.2f} ms, ratio {read / bare:.2f}\n")


if __name__ == "__main__":
    main()
