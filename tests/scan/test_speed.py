"""The scan against a plain read of the same file."""

from __future__ import annotations

import importlib.util

from pathlib import Path
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The script that measures it on files of any size."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "scan.py"
    spec = importlib.util.spec_from_file_location("benchmark_scan", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_share_of_plain_reading(benchmark: ModuleType, tmp_path: Path) -> None:
    """In the best of some rounds, with numpy 60 % of the throughput of reading, without 12 %."""
    entries = benchmark.write(tmp_path / "data", 256_000_000)
    seconds = benchmark.measure(tmp_path / "data", entries, 9)

    def best(name: str) -> float:
        return float(max(bare / taken for bare, taken in zip(seconds["plain read"], seconds[name], strict=True)))

    assert best("numpy") > 0.6
    assert best("standard library") > 0.12


def test_synthetic_draft(benchmark: ModuleType, tmp_path: Path) -> None:
    """What is measured is 60 tensors that fill the file, with nothing wrong in them."""
    entries = benchmark.write(tmp_path / "data", 10_000_000)
    stats = benchmark.scan_file(tmp_path / "data", entries)

    assert len(stats) == 60
    assert (tmp_path / "data").stat().st_size == sum(entry.end - entry.begin for entry in entries) > 9_500_000
    assert [(one.nan, one.inf, one.all_zero, one.problem) for one in stats] == [(0, 0, False, None)] * 60
    assert [one.zero_rows is not None for one in stats] == [i in (0, 2) for i in range(60)]
