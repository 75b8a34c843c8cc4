"""``--vllm`` from the outside: what is judged, what is refused, and how several releases are told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from typing import TYPE_CHECKING

import pytest

from cli.conftest import plain_environment

from dspark_lint.cli import exits
from dspark_lint.contract.load import shipped_releases


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Ran


ALL = list(shipped_releases())
DRAFT = "demo/converted"

FORMS: list[tuple[tuple[str, ...], list[str]]] = [
    ((), ALL[-1:]),
    (("--vllm", "0.32.0"), ["0.32.0"]),
    (("--vllm", "v0.32.0"), ["0.32.0"]),
    (("--vllm", "0.25"), ["0.25.1"]),
    (("--vllm", ">=0.28,<0.32"), ["0.28.0", "0.29.0", "0.30.0", "0.31.0"]),
    (("--vllm", "~=0.27.0"), ["0.27.0", "0.27.1"]),
    (("--vllm", "!=0.24.0"), ALL[1:]),
    (("--vllm", "0.31..0.33"), ["0.31.0", "0.32.0", "0.33.0"]),
    (("--vllm", "..0.25"), ["0.24.0", "0.25.0", "0.25.1"]),
    (("--vllm", "0.32.."), ["0.32.0", "0.33.0"]),
    (("--vllm", "all"), ALL),
    (("--vllm", "latest"), ALL[-1:]),
    (("--vllm", "0.30", "--vllm", "0.28", "--vllm", "0.30.0"), ["0.28.0", "0.30.0"]),
    (("--vllm", "0.99", "--nearest"), ALL[-1:]),
    (("--vllm", "0.32.7", "--nearest"), ["0.32.0"]),
    (("--vllm", "0.1", "--nearest"), ALL[:1]),
]


@pytest.mark.parametrize(("args", "releases"), FORMS, ids=[" ".join(args) or "nothing" for args, _ in FORMS])
def test_what_is_judged(args: tuple[str, ...], releases: list[str], run: Callable[..., Ran]) -> None:
    """Every form stands for full releases, oldest first, each judged once."""
    ran = run(DRAFT, *args, "--format", "json", "--fail-on", "never")

    assert ran.code == exits.CLEAN
    assert [result["release"] for result in json.loads(ran.out)["checkpoints"][0]["results"]] == releases


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("0.34", f"--vllm 0.34: there is no contract for it; the nearest is {ALL[-1]} (use --nearest"),
        ("0.32.1", "the nearest is 0.32.0 (use --nearest"),
        ("0.30..0.99", f"the newest contract is {ALL[-1]}; write 0.30..{ALL[-1]}"),
        (">=0.34", "no contract satisfies it; known: 0.24.0"),
        ("main", "not a release; write 0.32"),
    ],
)
def test_what_is_refused(spec: str, words: str, run: Callable[..., Ran]) -> None:
    """A release without a contract is a usage error that says what to write, never a guess."""
    ran = run(DRAFT, "--vllm", spec)

    assert (ran.code, ran.out) == (exits.USAGE, "")
    assert words in ran.err


INSTALLED: list[tuple[str, str | None, tuple[str, ...], int, str]] = [
    ("a release", "0.32.0", (), exits.CLEAN, "0.32.0"),
    ("a build of a release", "0.31.0+cu130", (), exits.CLEAN, "0.31.0"),
    ("a newer release", "0.99.0", (), exits.USAGE, f"the nearest is {ALL[-1]}"),
    ("a newer release, the nearest", "0.99.0", ("--nearest",), exits.CLEAN, ALL[-1]),
    ("a candidate", "0.33.0rc1", (), exits.USAGE, "0.33.0rc1 is no release"),
    ("nothing", None, (), exits.USAGE, "there is no vLLM in this environment"),
]


@pytest.mark.parametrize(
    ("version", "args", "code", "words"), [i[1:] for i in INSTALLED], ids=[i[0] for i in INSTALLED]
)
def test_installed(version: str | None, args: tuple[str, ...], code: int, words: str, place: Path) -> None:
    """The vLLM of the environment is told by its metadata; a vllm that is imported would end the process."""
    site = place / "site"
    (site / "vllm").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("raise SystemExit('vllm was imported')\n", encoding="utf-8")
    if version is not None:
        info = site / f"vllm-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8")
    environment = plain_environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(site), environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "dspark_lint", DRAFT, "--vllm", "installed", *args, "--fail-on", "never"],
        cwd=place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == code, done
    assert words in (done.stdout if code == exits.CLEAN else done.stderr)
    assert "was imported" not in done.stderr


def test_a_matrix(run: Callable[..., Ran]) -> None:
    """Several releases: a row a checkpoint, a column a release, then each finding once with the releases it concerns."""
    ran = run(DRAFT, "demo/exported", "--vllm", "0.24..0.33")

    assert ran.code == exits.FINDINGS
    head, *rows = ran.out.split("\n\n")[0].splitlines()
    assert [f"{r}.0" if r.count(".") == 1 else r for r in re.findall(r"\d+\.\d+(?:\.\d+)?", head)] == ALL
    assert [row.split()[0] for row in rows][:2] == ["demo/converted", "demo/exported"]
    assert ran.out.count("ARC003") == 1
    assert re.search(r"ARC003.*0\.25\.0-0\.33\.0", ran.out)
