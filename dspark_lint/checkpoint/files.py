"""The file system, met with suspicion: nothing blocks, leads out of the checkpoint or is read without a bound."""

# Plain os.path: pathlib would cost more to import than everything here.
from __future__ import annotations

import os
import stat

from typing import NamedTuple

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.problems import Problem, quote


#: More names than this in one directory are not listed.
MAX_ENTRIES = 20_000

# O_NONBLOCK: opening a FIFO that nobody writes to returns at once, so that fstat can turn it down.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_CHUNK = 1 << 22


class FileEntry(NamedTuple):
    """One name of the checkpoint directory; a symbolic link is described by what it leads to."""

    name: str
    size: int
    """Bytes; 0 for anything but a regular file."""
    kind: str
    """``file``, ``directory``, ``fifo``, ``device``, ``socket``, ``broken-link`` or ``other``."""


class Opened(NamedTuple):
    """An open regular file; whoever gets it closes `fd`."""

    fd: int
    size: int


def kind_of(mode: int) -> str:
    """The word `FileEntry.kind` uses for an ``st_mode``."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "device"
    return "socket" if stat.S_ISSOCK(mode) else "other"


def list_directory(root: str) -> tuple[tuple[FileEntry, ...], tuple[Problem, ...]]:
    """The names in `root`, sorted, without descending; a directory that cannot be listed is a problem, not an error."""
    entries: list[FileEntry] = []
    try:
        with os.scandir(root) as found:
            for item in found:
                if len(entries) == MAX_ENTRIES:
                    detail = f"the directory holds more than {MAX_ENTRIES:,} names; the rest was not looked at"
                    return tuple(sorted(entries)), (Problem(p.TOO_MANY_FILES, None, detail=detail),)
                entries.append(_entry(item))
    except OSError as error:
        detail = f"the directory cannot be listed: {reason(error)}"
        return (), (Problem(p.UNREADABLE, None, detail=detail, fatal=True),)
    return tuple(sorted(entries)), ()


def _entry(item: os.DirEntry[str]) -> FileEntry:
    try:
        status = item.stat()
    except OSError:
        # A link into nothing or in a circle; or, rarely, a name that went away while we looked.
        return FileEntry(item.name, 0, "broken-link" if item.is_symlink() else "other")
    kind = kind_of(status.st_mode)
    return FileEntry(item.name, status.st_size if kind == "file" else 0, kind)


def written_outside(name: str) -> bool:
    """Whether `name` is, as it is written, no path below a directory."""
    if "/" not in name and "\\" not in name and ":" not in name:
        return name in {"..", "."}
    if os.path.isabs(name) or name.startswith(("/", "\\")) or os.path.splitdrive(name)[0]:
        return True
    return ".." in name.replace("\\", "/").split("/")


def leads_out(root: str, name: str) -> bool:
    """Whether `name`, taken relative to `root`, is no path inside it.

    A link in the place of the last part is followed by every loader and is how download caches store files;
    only what stands before it, ``..`` and absolute paths can lead out.
    """
    if written_outside(name):
        return True
    if "/" not in name:
        return False
    try:
        top = os.path.realpath(root)
        return os.path.commonpath((top, os.path.realpath(os.path.join(root, os.path.dirname(name))))) != top
    except (OSError, ValueError):
        return True


def open_regular(root: str, name: str) -> Opened | Problem:
    """Open ``root/name`` for reading if it is, or links to, a regular file; else say what stands there."""
    if leads_out(root, name):
        return Problem(p.INDEX_ESCAPES, name, detail=f"{quote(name)} leads out of the checkpoint directory", fatal=True)
    path = f"{root}/{name}"
    try:
        # Looked at before it is opened: opening a device can do something.
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            return _not_a_file(name, mode)
        fd = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        return _cannot_open(path, name, error)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        return _not_a_file(name, status.st_mode)
    return Opened(fd, status.st_size)


def _not_a_file(name: str, mode: int) -> Problem:
    kind = {"fifo": "a FIFO", "other": "no regular file"}.get(kind_of(mode), f"a {kind_of(mode)}")
    detail = f"{quote(name)} is {kind}"
    return Problem(p.NOT_A_FILE, name, detail=detail, expected="a regular file", found=kind, fatal=True)


def _cannot_open(path: str, name: str, error: OSError | ValueError) -> Problem:
    if isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError)):
        try:
            dangling = os.path.islink(path)
        except ValueError:
            dangling = False
        if not dangling:
            return Problem(p.MISSING, name, detail=f"{quote(name)} does not exist", fatal=True)
        return Problem(p.BROKEN_LINK, name, detail=f"{quote(name)} is a link that leads nowhere", fatal=True)
    if os.path.islink(path) and not os.path.exists(path):
        return Problem(p.BROKEN_LINK, name, detail=f"{quote(name)} is a link that leads in a circle", fatal=True)
    return Problem(p.UNREADABLE, name, detail=f"{quote(name)} cannot be read: {reason(error)}", fatal=True)


def read_exactly(fd: int, offset: int, length: int) -> bytes:
    """Up to `length` bytes from `offset`; fewer at the end of the file. Raises OSError."""
    os.lseek(fd, offset, os.SEEK_SET)
    first = os.read(fd, length)
    if len(first) in (0, length):
        return first
    pieces = [first]
    got = len(first)
    while got < length:
        piece = os.read(fd, min(length - got, _CHUNK))
        if not piece:
            break
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)


def reason(error: OSError | ValueError) -> str:
    """What the system says, without the path, which the caller names better."""
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


_LFS = b"version https://git-lfs"
_MAGIC = (
    (b"PK\x03\x04", p.ZIP_OR_PICKLE, "a zip archive, which is how torch.save writes"),
    (b"PK\x05\x06", p.ZIP_OR_PICKLE, "an empty zip archive"),
    (b"\x80\x02", p.ZIP_OR_PICKLE, "a pickle, which is how torch.save wrote"),
    (b"\x80\x03", p.ZIP_OR_PICKLE, "a pickle"),
    (b"\x80\x04", p.ZIP_OR_PICKLE, "a pickle"),
    (b"\x80\x05", p.ZIP_OR_PICKLE, "a pickle"),
    (b"GGUF", p.OTHER_FORMAT, "a GGUF file"),
    (b"\x1f\x8b", p.OTHER_FORMAT, "gzip data"),
    (b"\x28\xb5\x2f\xfd", p.OTHER_FORMAT, "zstandard data"),
    (b"\x89HDF\r\n", p.OTHER_FORMAT, "an HDF5 file"),
    (b"\x93NUMPY", p.OTHER_FORMAT, "a NumPy array file"),
)


def sniff(name: str, head: bytes) -> Problem | None:
    """What a file that is not what its name says begins like; asked only once reading it has failed."""
    if head.startswith(_LFS):
        detail = f"{quote(name)} is a Git LFS pointer, not the file it stands for; run git lfs pull"
        return Problem(p.LFS_POINTER, name, detail=detail, found="a Git LFS pointer", fatal=True)
    start = head[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        detail = f"{quote(name)} is an HTML page, most likely an error page saved in place of the download"
        return Problem(p.HTML, name, detail=detail, found="an HTML page", fatal=True)
    for magic, kind, what in _MAGIC:
        if head.startswith(magic):
            return Problem(kind, name, detail=f"{quote(name)} is {what}", found=what.partition(",")[0], fatal=True)
    return None
