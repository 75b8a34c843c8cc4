from __future__ import annotations

import os
import shlex
import shutil
import sys
import tarfile

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import neutral_directory


sys.path.insert(0, str(Path(__file__).parent))

from installs import ROOT, Built, Site, readme_command, run


if TYPE_CHECKING:
    from collections.abc import Iterator


#: What of a checkout is no part of it.
LEFT_OUT = (".*", "__pycache__", "*.egg-info", "build", "dist")


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """A copy of the checkout in which the README's command was run, and nothing else."""
    with neutral_directory() as place:
        checkout, scratch, tools = place / "checkout", place / "elsewhere", place / "tools"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
        scratch.mkdir()
        tools.mkdir()
        # `python3` is the Python that runs these tests, whichever is first on the path
        python = tools / "python3"
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        first = run(
            "README", "sh", "-c", readme_command(), cwd=checkout, PATH=f"{tools}:{os.environ['PATH']}",
            XDG_CACHE_HOME=str(place / "cache"),
        )  # fmt: skip
        yield Site(checkout, scratch, first)


@pytest.fixture(scope="session")
def built(site: Site) -> Built:
    """An sdist and a wheel of the checkout, and a wheel of the sdist."""
    dist = site.scratch / "dist"

    def build(target: str, source: Path, into: Path) -> Path:
        run("build", sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into), cwd=source, check=True)
        (made,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
        return made

    sdist = build("sdist", site.checkout, dist / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(dist / "unpacked")  # noqa: S202 - written two lines above
    (source,) = (dist / "unpacked").iterdir()
    return Built(sdist, build("wheel", site.checkout, dist / "wheel"), build("wheel", source, dist / "again"))
