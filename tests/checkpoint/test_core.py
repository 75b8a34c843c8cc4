"""Finding checkpoints, and opening one."""

from __future__ import annotations

import os
import subprocess
import sys

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dspark_lint.checkpoint import core, find_checkpoints, open_checkpoint
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable


def plant(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")


@pytest.mark.parametrize("given", ["", "config.json", "model.safetensors", "inner/.."])
def test_open(given: str, tmp_path: Path) -> None:
    """A checkpoint is opened by its directory or by any file in it, and remembers how it was named."""
    plant(tmp_path, "config.json", "model.safetensors", "inner/x")
    named = f"{tmp_path}/{given}" if given else str(tmp_path)

    got = open_checkpoint(named)

    assert (got.path, got.root, got.root_dir) == (named, tmp_path, str(tmp_path))
    assert [entry.name for entry in got.files] == ["config.json", "inner", "model.safetensors"]


def test_open_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path stands for the same directory after the process has gone elsewhere."""
    plant(tmp_path, "ckpt/config.json")
    monkeypatch.chdir(tmp_path)
    got = open_checkpoint(Path("ckpt"))
    monkeypatch.chdir("/")

    assert (got.path, got.root, got.config.value) == ("ckpt", tmp_path / "ckpt", {})


def test_open_keeps_links(tmp_path: Path) -> None:
    """The directory is named as the user named it: the runtime guesses from the path, too."""
    plant(tmp_path, "blob/config.json")
    (tmp_path / "dspark-draft").symlink_to("blob")

    assert open_checkpoint(tmp_path / "dspark-draft").root == tmp_path / "dspark-draft"


def test_open_by_dangling_link(tmp_path: Path) -> None:
    """A config.json that is a broken link is a fault of the checkpoint, not of the command line."""
    (tmp_path / "config.json").symlink_to("nowhere")

    assert [x.kind for x in open_checkpoint(tmp_path / "config.json").config.problems] == ["broken-link"]


@pytest.mark.parametrize("function", [open_checkpoint, find_checkpoints])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nothing", "nothing` does not exist"),
        ("config.json/x", "x` does not exist"),
        ("pipe", "pipe` is neither a directory nor a file"),
        ("a\0b", r"/a\\x00b` does not exist"),
    ],
)
def test_no_such_path(function: Callable[[str], object], given: str, words: str, tmp_path: Path) -> None:
    """What stands for nothing on the command line is the user's mistake."""
    plant(tmp_path, "config.json")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError, match=words):
        function(f"{tmp_path}/{given}")


def test_empty_path() -> None:
    """An empty argument is not taken for the working directory."""
    with pytest.raises(UsageError, match="the path of the checkpoint is empty"):
        open_checkpoint("")


FOUND: dict[str, tuple[list[str], str, list[str]]] = {
    "itself, by config": (["config.json", "inner/config.json"], "", [""]),
    "itself, by weights": (["m.safetensors", "inner/config.json"], "", [""]),
    "a file": (["a/config.json", "a/m.safetensors"], "a/config.json", ["a"]),
    "any file": (["a/README.md"], "a/README.md", ["a"]),
    "several": (["b/config.json", "a/m.safetensors", "c/readme", "d/e/config.json"], "", ["a", "b", "d/e"]),
    "four levels down": (["a/b/c/d/config.json", "a/b/c/e/f/config.json"], "", ["a/b/c/d"]),
    "hidden": ([".cache/config.json", "a/.git/config.json"], "", []),
    "none": (["a/readme"], "", []),
    "download cache": (
        ["models--x--y/blobs/0", "models--x--y/refs/main", "models--x--y/snapshots/1f/config.json"],
        "",
        ["models--x--y/snapshots/1f"],
    ),
}


@pytest.mark.parametrize(("names", "given", "want"), FOUND.values(), ids=FOUND.keys())
def test_find(names: list[str], given: str, want: list[str], tmp_path: Path) -> None:
    """A checkpoint is found as itself, else the ones below it, sorted."""
    plant(tmp_path, *names)

    assert find_checkpoints(tmp_path / given) == tuple(str(tmp_path / name) for name in want)


def test_find_through_links(tmp_path: Path) -> None:
    """Linked directories are looked into, each once, and a circle of links ends."""
    plant(tmp_path, "store/one/config.json", "top/two/config.json")
    (tmp_path / "top" / "linked").symlink_to(tmp_path / "store")
    (tmp_path / "top" / "circle").symlink_to(tmp_path / "top")
    (tmp_path / "top" / "gone").symlink_to("nowhere")

    assert find_checkpoints(tmp_path / "top") == (
        str(tmp_path / "top/linked/one"),
        str(tmp_path / "top/two"),
    )


def test_find_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of very many checkpoints is not searched to its end."""
    monkeypatch.setattr(core, "MAX_CHECKPOINTS", 3)
    plant(tmp_path, *(f"{i}/config.json" for i in range(5)))

    assert len(find_checkpoints(tmp_path)) == 3


def test_import_is_light() -> None:
    """Reading needs json and what json needs; nothing heavier is imported before it is wanted."""
    code = "import sys, dspark_lint.checkpoint; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
                          check=True, capture_output=True, text=True)  # fmt: skip

    heavy = {"pathlib", "zipfile", "hashlib", "dataclasses", "inspect", "logging", "importlib.metadata", "pickle"}
    assert not heavy & set(done.stdout.split())


ROOT = Path(core.__file__).parents[2]
