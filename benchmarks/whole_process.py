"""Times whole processes: the check against the floor, and all releases against one.

    python benchmarks/whole_process.py [--rounds 21] [--only draft] [--assert-targets]

The floor is bare Python that reads the same headers and JSON files and parses them, the collector off. Both run turn
and turn about; what counts is the median of the ratios pair by pair, so that a busy machine slows both sides alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple


ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dspark_lint.manifest import load_manifest, materialise


if TYPE_CHECKING:
    from types import ModuleType


#: What a process cannot do without: the interpreter, json, the bytes.
FLOOR = """
import gc, json, os, sys
gc.disable()
kept = []
for entry in sorted(os.scandir(sys.argv[1]), key=lambda e: e.name):
    if entry.name.endswith(".safetensors"):
        with open(entry.path, "rb", buffering=0) as file:
            kept.append(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
    elif entry.name.endswith(".json"):
        with open(entry.path, "rb", buffering=0) as file:
            kept.append(json.loads(file.read()))
os._exit(0)
"""
MANIFEST = "deepseek-ai--dspark_qwen3_8b_block7"


class Contest(NamedTuple):
    """Two commands, the slower one's name, and how much slower it may be."""

    name: str
    fast: list[str]
    slow: list[str]
    most: float


class Outcome(NamedTuple):
    """Medians over all rounds."""

    fast: float
    """Milliseconds."""
    slow: float
    ratio: float
    """Median of the ratios of the pairs."""


def tool() -> list[str]:
    """The command as installed beside this interpreter, else the module of this checkout."""
    installed = Path(sys.executable).with_name("dspark-lint")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "dspark_lint"]


def synthetic() -> ModuleType:
    """The script beside this one."""
    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).with_name("synthetic.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contests(place: Path) -> dict[str, Contest]:
    """Write the checkpoints below `place`; the contests by name."""
    draft = materialise(load_manifest(ROOT / "fixtures" / "manifests" / f"{MANIFEST}.json"), place / "draft").draft
    large = synthetic().write_checkpoint(place / "large")
    floor = [sys.executable, "-c", FLOOR]
    one = [*tool(), "--vllm", "0.32"]
    return {
        "draft": Contest("64 tensors: floor, check", [*floor, str(draft)], [*one, str(draft)], 5.0),
        "large": Contest("72,000 tensors in 46 shards: floor, check", [*floor, str(large)], [*one, str(large)], 1.75),
        "all": Contest("64 tensors: one release, all", [*one, str(draft)], [*tool(), "--vllm", "all", str(draft)], 2.5),
    }


def once(command: list[str]) -> float:
    """Milliseconds of one process; the exit code is the checkpoint's business."""
    # an installed tool has its bytecode; so has this one from the first round on
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if "-m" in command:
        environment["PYTHONPATH"] = str(ROOT)
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
    return (time.perf_counter() - start) * 1e3


def run(contest: Contest, rounds: int) -> Outcome:
    """Hold one contest; the first pair warms the caches and does not count."""
    once(contest.fast)
    once(contest.slow)
    pairs = [(once(contest.fast), once(contest.slow)) for _ in range(rounds)]
    return Outcome(
        statistics.median(fast for fast, _ in pairs),
        statistics.median(slow for _, slow in pairs),
        statistics.median(slow / fast for fast, slow in pairs),
    )


def main() -> int:
    """Run the contests and tell their outcomes; 1 when a target is asked for and missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", choices=["draft", "large", "all"])
    parser.add_argument("--assert-targets", action="store_true")
    wanted = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        for name, contest in contests(Path(place)).items():
            if wanted.only in (None, name):
                fast, slow, ratio = run(contest, wanted.rounds if name != "large" else max(3, wanted.rounds // 3))
                good = ratio <= contest.most
                missed += not good
                print(f"{contest.name:45} {fast:8.1f} ms {slow:8.1f} ms  x {ratio:.2f} (at most {contest.most:g})")
    return 1 if missed and wanted.assert_targets else 0


if __name__ == "__main__":
    sys.exit(main())
