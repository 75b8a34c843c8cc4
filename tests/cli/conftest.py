from __future__ import annotations

import os
import subprocess
import sys

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from support import neutral_directory


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"
#: What a CI system or a terminal would change the outcome by.
SPEAKING = ("GITHUB_", "GITLAB_", "CI_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "COLUMNS", "_DSPARK")


class Ran(NamedTuple):
    """A finished process."""

    code: int
    out: str
    err: str


def plain_environment(**more: str) -> dict[str, str]:
    """The environment of this process without what changes how the tool speaks."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(SPEAKING)}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory whose path says nothing of a method, with the demonstration checkpoints in ``demo``."""
    with neutral_directory() as scratch:
        (scratch / "demo").symlink_to(DEMO, target_is_directory=True)
        yield scratch.resolve()


@pytest.fixture
def tool(place: Path) -> Callable[..., Ran]:
    """Run the tool as a process of its own in that directory."""

    def run(*args: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "dspark_lint", *args],
            cwd=place, env=plain_environment(**environment), capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the tool inside this process, in that directory."""
    from dspark_lint.cli.main import run as run_tool

    for name in os.environ:
        if name.startswith(SPEAKING):
            monkeypatch.delenv(name)
    monkeypatch.chdir(place)

    def inside(*args: str, **environment: str) -> Ran:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            code = run_tool(list(args))
        return Ran(code, *capfd.readouterr())

    return inside
