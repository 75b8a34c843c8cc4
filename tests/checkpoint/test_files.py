"""Whatever stands in a file's place: reading ends at once, in a problem that says what it is."""

from __future__ import annotations

import os
import socket
import threading

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dspark_lint.checkpoint import KINDS, open_checkpoint
from dspark_lint.checkpoint import files as files_module


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


GOOD = b"\x02\0\0\0\0\0\0\0{}"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs, devices and links are made the POSIX way")


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    """Nothing here may wait for anybody: a test that blocks ends the run instead of hanging it."""
    timer = threading.Timer(60, os._exit, (70,))
    timer.start()
    yield
    timer.cancel()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def full(path: Path) -> None:
    path.symlink_to("/dev/full")


def unix_socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        # A socket's path must be short; its directory is not.
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def directory(path: Path) -> None:
    path.mkdir()


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def long_circle(path: Path) -> None:
    path.symlink_to("one")
    (path.parent / "one").symlink_to("two")
    (path.parent / "two").symlink_to(path.name)


def through_a_file(path: Path) -> None:
    (path.parent / "plain").write_bytes(b"")
    path.symlink_to("plain/x")


def open_descriptors() -> int:
    known = Path("/proc/self/fd")
    return len(list(known.iterdir())) if known.is_dir() else 0


PLACES: dict[str, tuple[Callable[[Path], None], str, str, str]] = {
    "FIFO": (fifo, "fifo", "not-a-file", "is a FIFO"),
    "device": (device, "device", "not-a-file", "is a device"),
    "another device": (full, "device", "not-a-file", "is a device"),
    "socket": (unix_socket, "socket", "not-a-file", "is a socket"),
    "directory": (directory, "directory", "not-a-file", "is a directory"),
    "dangling link": (dangling, "broken-link", "broken-link", "is a link that leads nowhere"),
    "link to itself": (circle, "broken-link", "broken-link", "is a link that leads in a circle"),
    "circle of links": (long_circle, "broken-link", "broken-link", "is a link that leads in a circle"),
    "link through a file": (through_a_file, "broken-link", "broken-link", "is a link that leads nowhere"),
}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "mask_embedding.pt"])
@pytest.mark.parametrize("place", PLACES)
def test_no_file(name: str, place: str, tmp_path: Path) -> None:
    """What is no file is listed as what it is, is not opened, and is a fatal problem for every reader."""
    make, entry, kind, words = PLACES[place]
    make(tmp_path / name)
    checkpoint = open_checkpoint(tmp_path)
    read = {".json": checkpoint.document, ".safetensors": checkpoint.header, ".pt": checkpoint.pt_storage}

    got = read[Path(name).suffix](name)

    assert [(x.kind, x.file, x.detail, x.fatal) for x in got.problems] == [(kind, name, f"`{name}` {words}", True)]
    assert [(x.kind, x.size) for x in checkpoint.files if x.name == name] == [(entry, 0)]


def test_a_file_that_turns_into_a_fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a FIFO has taken the place of a file after the look at it, opening it does not wait for a writer."""
    (tmp_path / "was").write_bytes(GOOD)
    regular = (tmp_path / "was").stat()
    os.mkfifo(tmp_path / "model.safetensors")
    checkpoint = open_checkpoint(tmp_path)
    monkeypatch.setattr(files_module.os, "stat", lambda _: regular)

    got = checkpoint.header("model.safetensors")

    assert [x.detail for x in got.problems] == ["`model.safetensors` is a FIFO"]


@pytest.mark.parametrize(
    "name",
    ["nothing.json", "a\0b.json", "\ud800.json", "inner/config.json", "", "config.json/x"],
    ids=ascii,
)
def test_missing(name: str, tmp_path: Path) -> None:
    """A name that stands for nothing, or could not stand for anything, is missing."""
    (tmp_path / "config.json").write_text("{}")
    checkpoint = open_checkpoint(tmp_path)

    kinds = {x.kind for got in (checkpoint.document(name), checkpoint.header(name)) for x in got.problems}

    assert kinds == {"not-a-file" if name == "" else "missing"}


def test_name_too_long(tmp_path: Path) -> None:
    """A name that the file system refuses is told as that, clipped."""
    got = open_checkpoint(tmp_path).document("x" * 5000)

    assert [x.kind for x in got.problems] == ["unreadable"]
    assert len(got.problems[0].detail) < 200


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_permission(tmp_path: Path) -> None:
    """A file that may not be read says why."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "config.json").chmod(0)

    got = open_checkpoint(tmp_path).config

    assert [(x.kind, x.detail) for x in got.problems] == [
        ("unreadable", "`config.json` cannot be read: Permission denied")
    ]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "mask_embedding.pt"])
def test_permission_denied_by_the_system(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for everybody, root included: opening is refused."""
    (tmp_path / name).write_bytes(GOOD)
    checkpoint = open_checkpoint(tmp_path)
    read = {".json": checkpoint.document, ".safetensors": checkpoint.header, ".pt": checkpoint.pt_storage}

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files_module.os, "open", refuse)
    got = read[Path(name).suffix](name)

    assert [(x.kind, x.detail, x.fatal) for x in got.problems] == [
        ("unreadable", f"`{name}` cannot be read: Permission denied", True)
    ]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "mask_embedding.pt"])
def test_read_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails in the middle of a file is a problem of that file, and the file is closed."""
    (tmp_path / name).write_bytes(GOOD)
    checkpoint = open_checkpoint(tmp_path)
    read = {".json": checkpoint.document, ".safetensors": checkpoint.header, ".pt": checkpoint.pt_storage}
    before = open_descriptors()

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files_module.os, "read", fail)
    got = read[Path(name).suffix](name)

    assert [(x.kind, x.detail, x.fatal) for x in got.problems] == [
        ("unreadable", f"`{name}` cannot be read: Input/output error", True)
    ]
    assert open_descriptors() == before


def test_short_reads_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system hands out a file in pieces, the pieces are joined."""
    (tmp_path / "config.json").write_text('{"a": "' + "x" * 100 + '"}')
    whole = os.read
    monkeypatch.setattr(files_module.os, "read", lambda fd, n: whole(fd, min(n, 7)))

    assert open_checkpoint(tmp_path).config.value == {"a": "x" * 100}


FRAMES: dict[str, tuple[bytes, str, str]] = {
    "empty": (
        b"",
        "empty",
        "`m.safetensors` is empty; a safetensors file begins with 8 bytes that give the length of its header",
    ),
    "one byte": (
        b"\x02",
        "header-truncated",
        "`m.safetensors` has only 1 byte; a safetensors file begins with 8 bytes that give the length of its header",
    ),
    "seven bytes": (
        bytes(7),
        "header-truncated",
        "`m.safetensors` has only 7 bytes; a safetensors file begins with 8 bytes that give the length of its header",
    ),
    "header of nothing": (
        bytes(8),
        "header-not-json",
        "the header of `m.safetensors` is not JSON: Expecting value at line 1, column 1",
    ),
    "header past the end": (
        b"\x03\0\0\0\0\0\0\0{}",
        "header-length",
        "the first 8 bytes of `m.safetensors` announce a header of 3 bytes, but the file has only 10",
    ),
    "header of 2**63": (
        bytes(7) + b"\x80{}",
        "header-length",
        (
            "the first 8 bytes of `m.safetensors` announce a header of 9,223,372,036,854,775,808 bytes, more than the "
            "100,000,000 that safetensors reads"
        ),
    ),
    "Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4321\n",
        "lfs-pointer",
        "`m.safetensors` is a Git LFS pointer, not the file it stands for; run git lfs pull",
    ),
    "HTML": (
        b"<!doctype html>\n<html><body>404</body></html>",
        "html",
        "`m.safetensors` is an HTML page, most likely an error page saved in place of the download",
    ),
    "zip": (
        b"PK\x03\x04" + bytes(60),
        "zip-or-pickle",
        "`m.safetensors` is a zip archive, which is how torch.save writes",
    ),
    "pickle": (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(60),
        "zip-or-pickle",
        "`m.safetensors` is a pickle, which is how torch.save wrote",
    ),
    "GGUF": (b"GGUF\x03\0\0\0" + bytes(60), "other-format", "`m.safetensors` is a GGUF file"),
    "GGUF, long enough": (b"\x02\0\0\0\0\0\0\0[]", "not-object", "the header of `m.safetensors` is not a JSON object"),
}


@pytest.mark.parametrize(("content", "kind", "detail"), FRAMES.values(), ids=FRAMES.keys())
def test_frames(content: bytes, kind: str, detail: str, tmp_path: Path) -> None:
    """What is no safetensors file from its first bytes on is told as what it is."""
    (tmp_path / "m.safetensors").write_bytes(content)

    got = open_checkpoint(tmp_path).header("m.safetensors")

    assert [(x.kind, x.detail, x.fatal) for x in got.problems] == [(kind, detail, True)]
    assert (got.size, got.tensors) == (len(content), {})
    assert kind in KINDS


def test_a_zip_that_is_long_enough(tmp_path: Path) -> None:
    """A zip archive long enough for its first bytes to be a length is still told as a zip archive."""
    with (tmp_path / "m.safetensors").open("wb") as file:
        file.write(b"PK\x03\x04\0\0\0\0" + bytes(56))
        file.truncate(70_000_000)

    got = open_checkpoint(tmp_path).header("m.safetensors")

    assert [x.kind for x in got.problems] == ["zip-or-pickle"]


def test_the_largest_header(tmp_path: Path) -> None:
    """A header of a hundred megabytes is read; one of a byte more is not."""
    for length in (100_000_000, 100_000_001):
        with (tmp_path / f"{length}.safetensors").open("wb") as file:
            file.write(length.to_bytes(8, "little") + b"{}")
            file.truncate(8 + length)
    checkpoint = open_checkpoint(tmp_path)

    # The file is full of NUL, which is no JSON: it was read to find that out.
    assert [x.kind for x in checkpoint.header("100000000.safetensors").problems] == ["header-not-json"]
    assert [x.kind for x in checkpoint.header("100000001.safetensors").problems] == ["header-length"]


def test_listing(tmp_path: Path) -> None:
    """The listing has every name once, sorted, links described by what they lead to."""
    (tmp_path / "b.json").write_bytes(b"12")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").symlink_to("b.json")
    (tmp_path / "d").symlink_to("a")

    assert [tuple(x) for x in open_checkpoint(tmp_path).files] == [
        ("a", 0, "directory"),
        ("b.json", 2, "file"),
        ("c", 2, "file"),
        ("d", 0, "directory"),
    ]


def test_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a directory with very many names a part is listed, and that is said."""
    monkeypatch.setattr(files_module, "MAX_ENTRIES", 3)
    for i in range(5):
        (tmp_path / str(i)).write_bytes(b"")
    checkpoint = open_checkpoint(tmp_path)

    assert len(checkpoint.files) == 3
    assert [(x.kind, x.file, x.fatal) for x in checkpoint.problems] == [("too-many-files", None, False)]


def test_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that may not be listed is a problem; its files may still be read by name."""
    (tmp_path / "config.json").write_text("{}")

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files_module.os, "scandir", refuse)
    checkpoint = open_checkpoint(tmp_path)

    assert checkpoint.files == ()
    assert [(x.kind, x.detail, x.fatal) for x in checkpoint.problems] == [
        ("unreadable", "the directory cannot be listed: Permission denied", True)
    ]
    assert checkpoint.config.value == {}
