"""What a whole process costs, with slack for a busy machine, and what a plain check never imports."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from typing import TYPE_CHECKING, Any

import pytest

from installs import ROOT
from support import neutral_directory


if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


CONVERTED = ROOT / "fixtures" / "demo" / "converted"
#: Each is milliseconds that a plain check has no use for.
HEAVY = {
    "dataclasses", "email", "hashlib", "importlib.metadata", "jsonschema", "logging", "numpy", "packaging",
    "pathlib", "safetensors", "shutil", "socket", "ssl", "subprocess", "tempfile", "tomllib", "torch", "urllib",
    "xml", "yaml", "zipfile",
}  # fmt: skip
SCRIPT = """
import sys
from dspark_lint.cli.main import run
code = run(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("whole_process", ROOT / "benchmarks" / "whole_process.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with neutral_directory() as scratch:
        yield scratch


@pytest.mark.parametrize(
    "args",
    [("--vllm", "0.32"), ("--vllm", "all"), ("--vllm", "0.28..0.33", "--fail-on", "warning", "-v")],
    ids=["one release", "all", "a range"],
)
def test_what_a_plain_check_imports(args: tuple[str, ...], place: Path) -> None:
    """Once the contracts are kept, a check in text for people imports nothing heavy and none of another command's code."""
    (place / "demo").mkdir(exist_ok=True)
    for path in CONVERTED.iterdir():
        (place / "demo" / path.name).write_bytes(path.read_bytes())
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{SCRIPT}", str(place / "demo")]
    for _ in range(2):  # the first may have to parse YAML
        done = subprocess.run([*command, *args], cwd=place, capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.split()

    assert code in ("0", "1"), done.stderr
    assert {name for name in loaded if name in HEAVY or name.partition(".")[0] in HEAVY} == set()
    own = {name.split(".")[1] for name in loaded if name.startswith("dspark_lint.")}
    assert own & {"provenance", "manifest", "scan", "config", "hook"} == set()


#: Of one contest the least ratio of several rounds, well above what is measured on a quiet machine: 4, 2 and 2.
LIMITS = {"draft": 7, "all": 3.5, "large": 4}


@pytest.mark.parametrize("name", LIMITS)
def test_whole_processes(name: str, benchmark: Any, place: Path) -> None:
    """A check costs a few times what bare Python needs to read the same files, and never much memory."""
    measured = benchmark.tool(None, place / "cache")
    contest = benchmark.contests(measured, place / name, name)[name]
    measured.once(contest.slow)  # keeps the contracts
    pairs = [(measured.once(contest.fast), measured.once(contest.slow)) for _ in range(5)]

    assert min(slow / fast for fast, slow in pairs) < LIMITS[name]
    assert measured.peak(contest.slow) < contest.megabytes


def test_a_crash_is_no_fast_check(benchmark: Any, place: Path) -> None:
    """The benchmark refuses to time a tool that judges nothing."""
    measured = benchmark.tool(None, place / "cache")
    broken = measured._replace(command=[sys.executable, "-c", "raise SystemExit('broken')"])

    with pytest.raises(RuntimeError, match="was not judged: broken"):
        broken.verify(CONVERTED, "0.32", 64, 1)
