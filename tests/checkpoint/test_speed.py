"""Reading against its floor: the same bytes through bare json."""

from __future__ import annotations

import importlib.util
import tracemalloc

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dspark_lint.checkpoint import open_checkpoint


if TYPE_CHECKING:
    from types import ModuleType


BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of 16,000 tensors in 10 shards: the whole benchmark has 72,000 in 46."""
    directory: Path = benchmark("synthetic").write_checkpoint(tmp_path_factory.mktemp("large"), 16_000, 10)
    return directory


def test_synthetic_checkpoint_is_clean(large: Path) -> None:
    """What is measured is a checkpoint without a fault, and all of it is read."""
    checkpoint = open_checkpoint(large)
    headers = [checkpoint.header(entry.name) for entry in checkpoint.files if entry.name.endswith(".safetensors")]

    assert [x.problems for x in (*headers, checkpoint.config, checkpoint.index())] == [()] * 12
    assert sum(len(header.tensors) for header in headers) == 16_000
    assert len(checkpoint.index().value["weight_map"]) == 16_000


def test_ratio_to_the_floor(large: Path) -> None:
    """Validating costs about a half of parsing; the limit leaves room for a busy machine."""
    reading = benchmark("reading")
    rounds = [(reading.timed(reading.floor, large), reading.timed(reading.reading, large)) for _ in range(9)]

    assert min(read / bare for bare, read in rounds) < 1.6


def test_memory(large: Path) -> None:
    """Reading keeps the parsed headers and the index, and next to nothing else."""
    reading = benchmark("reading")

    def held(what: str) -> int:
        tracemalloc.start()
        try:
            kept = getattr(reading, what)(large)
            current = tracemalloc.get_traced_memory()[0]
            del kept
        finally:
            tracemalloc.stop()
        return current

    assert held("reading") < 1.05 * held("floor") + 100_000
