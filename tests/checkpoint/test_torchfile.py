"""Files of torch.save, seen from outside."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import zipfile

from typing import TYPE_CHECKING

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_lint.checkpoint import KINDS, open_checkpoint, torchfile


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


NAME = "mask_embedding.pt"


class Bomb:
    """Unpickling it ends the process."""

    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        """What a reader that unpickles would call."""
        return os._exit, (99,)


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return made.getvalue()


SAVED = {
    "archive/data.pkl": pickle.dumps(Bomb()),
    "archive/byteorder": b"little",
    "archive/data/0": bytes(5120),
    "archive/version": b"3\n",
    "archive/.data/serialization_id": b"1" * 40,
}
GOOD = archive(SAVED)

CASES: dict[str, tuple[bytes, str, tuple[tuple[str, int], ...], list[tuple[str, str]]]] = {
    "saved": (GOOD, "zip", (("0", 5120),), []),
    "saved under its name": (
        archive({"mask_embedding/data.pkl": b"x", "mask_embedding/data/0": b"12", "mask_embedding/data/1": b"3"}),
        "zip",
        (("0", 2), ("1", 1)),
        [],
    ),
    "no storage": (archive({"archive/data.pkl": b"x"}), "zip", (), []),
    "compressed": (archive(SAVED, zipfile.ZIP_DEFLATED), "zip", (("0", 5120),), []),
    "legacy": (pickle.dumps(Bomb(), protocol=2), "legacy", (), []),
    "another zip": (
        archive({"model/weights.json": b"{}"}),
        "zip",
        (),
        [("other-format", f"`{NAME}` is a zip archive without data.pkl, so no file of torch.save")],
    ),
    "cut off": (
        GOOD[:-100],
        "zip",
        (),
        [("truncated-data", f"`{NAME}` is a zip archive that is cut off or damaged: File is not a zip file")],
    ),
    "cut to its head": (
        GOOD[:4],
        "zip",
        (),
        [("truncated-data", f"`{NAME}` is a zip archive that is cut off or damaged: File is not a zip file")],
    ),
    "empty": (b"", "unknown", (), [("empty", f"`{NAME}` is empty")]),
    "text": (
        b"tensor([0.])",
        "unknown",
        (),
        [("other-format", f"`{NAME}` is neither a zip archive nor a pickle, so no file of torch.save")],
    ),
    "Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\n",
        "unknown",
        (),
        [("lfs-pointer", f"`{NAME}` is a Git LFS pointer, not the file it stands for; run git lfs pull")],
    ),
    "HTML": (
        b"<html>",
        "unknown",
        (),
        [("html", f"`{NAME}` is an HTML page, most likely an error page saved in place of the download")],
    ),
}


@pytest.mark.parametrize(("content", "form", "storages", "problems"), CASES.values(), ids=CASES.keys())
def test_torch_file(
    content: bytes,
    form: str,
    storages: tuple[tuple[str, int], ...],
    problems: list[tuple[str, str]],
    tmp_path: Path,
) -> None:
    """The format and the sizes of the storages are told, and nothing is unpickled: the pickles here would exit."""
    (tmp_path / NAME).write_bytes(content)

    got = open_checkpoint(tmp_path).pt_storage(NAME)

    assert (got.file, got.size, got.format, got.storages) == (NAME, len(content), form, storages)
    assert [(x.kind, x.detail) for x in got.problems] == problems
    assert got.fatal is bool(problems)


@pytest.mark.parametrize(
    ("name", "stored"),
    [("saved", 5120), ("no storage", 0), ("compressed", 5120), ("legacy", None), ("cut off", None)],
)
def test_bytes_of_numbers(name: str, stored: int | None, tmp_path: Path) -> None:
    """The largest storage is told where storages show, and nothing where the file is damaged or of the old format."""
    (tmp_path / NAME).write_bytes(CASES[name][0])

    assert open_checkpoint(tmp_path).pt_storage(NAME).stored == stored


def test_hole(tmp_path: Path) -> None:
    """Room that nothing was written to, a manifest's stand-in, is neither a good file nor a damaged one."""
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(1 << 20)

    got = open_checkpoint(tmp_path).pt_storage(NAME)

    assert (got.format, got.fatal, got.stored) == ("hole", False, None)


def test_storage_longer_than_the_file(tmp_path: Path) -> None:
    """An archive that lists more data than it has is told as cut off."""
    size = (5120).to_bytes(4, "little")
    at = GOOD.rindex(size + size)
    (tmp_path / NAME).write_bytes(GOOD[:at] + b"\xff\xff\xff\x00" * 2 + GOOD[at + 8 :])

    got = open_checkpoint(tmp_path).pt_storage(NAME)

    assert [(x.kind, x.detail) for x in got.problems] == [
        ("truncated-data", f"`{NAME}` lists more bytes of data than the file has")
    ]


def test_missing(tmp_path: Path) -> None:
    """A file that is not there is missing, no more."""
    got = open_checkpoint(tmp_path).pt_storage(NAME)

    assert (got.format, [x.kind for x in got.problems]) == ("unknown", ["missing"])


def test_large_archive_is_not_looked_into(tmp_path: Path) -> None:
    """A file far larger than any such table is turned down by its size."""
    with (tmp_path / NAME).open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(torchfile.MAX_FILE + 1)

    assert [x.kind for x in open_checkpoint(tmp_path).pt_storage(NAME).problems] == ["too-large"]


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 700), st.binary(max_size=6), st.integers(0, 6), st.booleans())
def test_damage(at: int, new: bytes, cut: int, from_end: bool) -> None:
    """However an archive is damaged, looking at it ends in a record."""
    small = archive({**SAVED, "archive/data/0": bytes(16)})
    where = max(len(small) - at, 0) if from_end else min(at, len(small))
    content = small[:where] + new + small[where + cut :]
    with _directory() as root:
        with open(f"{root}/{NAME}", "wb") as file:
            file.write(content)
        got = torchfile.read_torch_file(root, NAME)

    assert all(x.kind in KINDS for x in got.problems)


def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()
