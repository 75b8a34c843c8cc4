"""Times whole processes: the check against the floor, and all releases against one.

    python benchmarks/whole_process.py [--python VENV/bin/python] [--rounds 21] [--only draft] [--assert-targets]

The floor is bare Python that reads the same headers and JSON files and parses them, the collector off. Both run turn
and turn about; what counts is the median of the ratios pair by pair, so that a busy machine slows both sides alike.
`--python` measures what is installed beside another interpreter, from a wheel; without it this checkout is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple


if TYPE_CHECKING:
    from types import ModuleType


ROOT = Path(__file__).resolve().parents[1]
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
#: Starts a command and says what memory it took at most. A process begins with the peak of the one that starts it, so
#: that has to be a small one.
LAUNCHER = """
import os, sys
child = os.fork()
if not child:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execvp(sys.argv[1], sys.argv[1:])
print(os.wait4(child, 0)[2].ru_maxrss)
"""
#: A draft of 64 tensors that is served as it was trained, and one inside its target, among 72,317 tensors.
DRAFT, EMBEDDED = "deepseek-ai--dspark_qwen3_8b_block7", "deepseek-ai--deepseek-v4-flash-0731"


class Contest(NamedTuple):
    """Two commands, and what the second may cost."""

    title: str
    fast: list[str]
    slow: list[str]
    ratio: float
    megabytes: float = 150


class Outcome(NamedTuple):
    """Of one contest."""

    fast: float
    """Milliseconds, the median."""
    slow: float
    ratio: float
    """The median of the ratios of the pairs."""
    megabytes: float
    """The most that the second command held."""


class Tool(NamedTuple):
    """The command that is measured, and its interpreter, which runs the floor too."""

    python: str
    command: list[str]
    environment: dict[str, str]

    def check(self, checkpoint: Path, releases: str) -> list[str]:
        """Return the command that holds a checkpoint against releases."""
        return [*self.command, str(checkpoint), "--vllm", releases]

    def floor(self, checkpoint: Path) -> list[str]:
        """Return the command that reads a checkpoint and nothing else."""
        return [self.python, "-c", FLOOR, str(checkpoint)]

    def once(self, command: list[str]) -> float:
        """Run a command and return its milliseconds; the exit code is the checkpoint's business."""
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=self.environment)
        return (time.perf_counter() - start) * 1e3

    def peak(self, command: list[str]) -> float:
        """Run a command and return the most memory that it held, in megabytes."""
        done = subprocess.run(
            [sys.executable, "-c", LAUNCHER, *command], capture_output=True, check=True, env=self.environment
        )
        return int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024) / 1e6

    def verify(self, checkpoint: Path, releases: str, tensors: int, results: int) -> None:
        """Raise RuntimeError unless a check reads so many tensors and gives so many results: a crash is quick too."""
        done = subprocess.run(
            [*self.check(checkpoint, releases), "--format", "json"],
            capture_output=True,
            env=self.environment,
            check=False,
        )
        found = json.loads(done.stdout)["checkpoints"][0] if done.stdout else {}
        if (found.get("tensors"), len(found.get("results", ()))) != (tensors, results):
            raise RuntimeError(f"{checkpoint.name} was not judged: {done.stderr.decode(errors='replace')[-500:]}")


def tool(python: str | None, cache: Path) -> Tool:
    """Return the tool installed beside an interpreter, else the module of this checkout."""
    # an installed tool has its bytecode; so has this one from the first round on
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    kept["XDG_CACHE_HOME"] = str(cache)
    if python is not None:
        return Tool(python, [str(Path(python).with_name("dspark-lint"))], kept)
    return Tool(sys.executable, [sys.executable, "-m", "dspark_lint"], {**kept, "PYTHONPATH": str(ROOT)})


def synthetic() -> ModuleType:
    """Import the script beside this one."""
    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).with_name("synthetic.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def materialised(name: str, place: Path) -> Path:
    """Write a published checkpoint with sparse data, by the command of this checkout."""
    manifest = ROOT / "fixtures" / "manifests" / f"{name}.json"
    command = [sys.executable, "-m", "dspark_lint.manifest", "materialise", str(manifest), str(place)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return place


def contests(measured: Tool, place: Path, only: str | None = None) -> dict[str, Contest]:
    """Write the checkpoints below `place`, and return the contests by name."""
    made: dict[str, Contest] = {}
    if only in (None, "draft", "all"):
        draft = materialised(DRAFT, place / "draft")
        one, every = measured.check(draft, "0.32"), measured.check(draft, "all")
        measured.verify(draft, "0.32", 64, 1)
        measured.verify(draft, "all", 64, len(list((ROOT / "contracts" / "vllm").glob("*.yaml"))))
        made["draft"] = Contest("64 tensors: floor, check", measured.floor(draft), one, 5)
        made["all"] = Contest("64 tensors: one release, all", one, every, 2.5)
    if only in (None, "large"):
        large = synthetic().write_checkpoint(place / "large")
        measured.verify(large, "0.32", 72_000, 1)
        made["large"] = Contest(
            "72,000 tensors in 46 shards: floor, check", measured.floor(large), measured.check(large, "0.32"), 3
        )
    if only in (None, "embedded"):
        target = materialised(EMBEDDED, place / "embedded")
        measured.verify(target, "0.33", 72_317, 1)
        made["embedded"] = Contest(
            "4,705 draft tensors among 72,317: floor, check",
            measured.floor(target),
            measured.check(target, "0.33"),
            3,
        )
    return {name: contest for name, contest in made.items() if only in (None, name)}


def run(measured: Tool, contest: Contest, rounds: int) -> Outcome:
    """Hold one contest; the first pair warms the caches and does not count."""
    measured.once(contest.fast)
    measured.once(contest.slow)
    pairs = [(measured.once(contest.fast), measured.once(contest.slow)) for _ in range(rounds)]
    return Outcome(
        statistics.median(fast for fast, _ in pairs),
        statistics.median(slow for _, slow in pairs),
        statistics.median(slow / fast for fast, slow in pairs),
        measured.peak(contest.slow),
    )


def main() -> int:
    """Run the contests and tell their outcomes; 1 when a target is asked for and missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="the interpreter of the environment that the tool is installed in")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", choices=["draft", "all", "large", "embedded"])
    parser.add_argument("--assert-targets", action="store_true")
    wanted = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        measured = tool(wanted.python, Path(place, "cache"))
        for contest in contests(measured, Path(place), wanted.only).values():
            found = run(measured, contest, wanted.rounds)
            missed += found.ratio > contest.ratio or found.megabytes > contest.megabytes
            print(
                f"{contest.title:47} {found.fast:7.1f} ms {found.slow:7.1f} ms  x {found.ratio:.2f}"
                f" (at most {contest.ratio:g})  {found.megabytes:4.0f} MB (at most {contest.megabytes:g})",
                flush=True,
            )
    return 1 if missed and wanted.assert_targets else 0


if __name__ == "__main__":
    sys.exit(main())
