"""Processes that see an installation and nothing of the one that runs the tests."""

from __future__ import annotations

import os
import re
import subprocess

from pathlib import Path
from typing import NamedTuple


ROOT = Path(__file__).resolve().parents[2]
#: What would let this process lend a tool under test its own packages, contracts or answers, or change how it speaks.
SPEAKING = ("PYTHON", "VIRTUAL_ENV", "XDG_", "DSPARK", "CI", "GITHUB_", "GITLAB_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


class Ran(NamedTuple):
    """A finished process."""

    code: int
    out: str
    err: str


class Site(NamedTuple):
    """A copy of the checkout with a virtual environment of its own in it, made by the README's command."""

    checkout: Path
    scratch: Path
    """Somewhere else: no part of the checkout is on the path of a process that runs here."""
    first: Ran
    """What the README's command did."""

    @property
    def bin(self) -> Path:
        return self.checkout / ".venv" / "bin"

    @property
    def package(self) -> Path:
        (found,) = (self.checkout / ".venv" / "lib").glob("python3*/site-packages")
        return found / "dspark_lint"

    def pip(self, *args: str) -> None:
        """Run pip in the virtual environment; raises CalledProcessError with its words."""
        run("pip", str(self.bin / "python"), "-m", "pip", "-q", *args, cwd=self.scratch, check=True)


def run(what: str, *command: str, cwd: Path, check: bool = False, **environment: str) -> Ran:
    """Run a command without this process's Python settings and without a cache of contracts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SPEAKING)}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**kept, "PYTHONNOUSERSITE": "1", "XDG_CACHE_HOME": str(cwd / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, f"{what}: {done.stdout}{done.stderr}"
    return Ran(done.returncode, done.stdout, done.stderr)


def readme_command() -> str:
    """The command below "Install it and lint the bundled checkpoint"."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^Install it and lint [^\n]*:\n\n(?:```\w*\n| {4})([^\n]+)\n", text, re.MULTILINE)
    assert found is not None, "the README has no command that installs and lints"
    return found[1]


class Built(NamedTuple):
    """What the build backend made."""

    sdist: Path
    wheel: Path
    """Of the checkout."""
    again: Path
    """Of what was unpacked from the sdist."""
