"""Files of torch.save, from outside: the zip directory and the sizes of the storages, never the pickle."""

from __future__ import annotations

import os
import struct

from typing import NamedTuple

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.files import open_regular, read_exactly, reason, sniff
from dspark_lint.checkpoint.problems import Problem, quote


#: Bytes of a file whose directory is looked at; the tables meant here have a few kilobytes.
MAX_FILE = 256 * 1024 * 1024


class TorchFile(NamedTuple):
    """What a file of torch.save shows without being loaded."""

    file: str
    size: int
    """Bytes on disk."""
    format: str
    """``zip`` (since torch 1.6), ``legacy`` (a bare pickle), ``hole`` (nothing but room that is not written) or
    ``unknown``."""
    storages: tuple[tuple[str, int], ...]
    """Name and bytes of each storage of a zip file; a tensor is a view into one."""
    problems: tuple[Problem, ...]

    @property
    def stored(self) -> int | None:
        """Bytes of the largest storage, 0 where a zip file holds none; None where storages do not show."""
        return max((size for _, size in self.storages), default=0) if self.format == "zip" and not self.fatal else None

    @property
    def fatal(self) -> bool:
        """Whether the file cannot be what its name says."""
        return any(problem.fatal for problem in self.problems)


def read_torch_file(root: str, name: str) -> TorchFile:
    """Look into ``root/name``; never raises for what it finds and never unpickles."""
    opened = open_regular(root, name)
    if isinstance(opened, Problem):
        return TorchFile(name, 0, "unknown", (), (opened,))
    try:
        head = read_exactly(opened.fd, 0, 512)
        if head.startswith(b"PK\x03\x04"):
            return _zip(opened.fd, opened.size, name)
        if head and not any(head) and getattr(os.fstat(opened.fd), "st_blocks", 1) * 512 < opened.size:
            # a manifest's stand-in for a file whose content is not known
            return TorchFile(name, opened.size, "hole", (), ())
    except OSError as error:
        problem = Problem(p.UNREADABLE, name, detail=f"{quote(name)} cannot be read: {reason(error)}", fatal=True)
        return TorchFile(name, opened.size, "unknown", (), (problem,))
    finally:
        os.close(opened.fd)
    if head[:1] == b"\x80" and head[1:2] in (b"\x01", b"\x02", b"\x03", b"\x04", b"\x05"):
        return TorchFile(name, opened.size, "legacy", (), ())
    if not head:
        problem = Problem(p.EMPTY, name, detail=f"{quote(name)} is empty", fatal=True)
    else:
        detail = f"{quote(name)} is neither a zip archive nor a pickle, so no file of torch.save"
        problem = sniff(name, head) or Problem(p.OTHER_FORMAT, name, detail=detail, fatal=True)
    return TorchFile(name, opened.size, "unknown", (), (problem,))


def _zip(fd: int, size: int, name: str) -> TorchFile:
    import zipfile  # noqa: PLC0415 - wanted by few checkpoints

    if size > MAX_FILE:
        detail = f"{quote(name)} has {size:,} bytes; more than {MAX_FILE:,} are not looked into"
        return TorchFile(name, size, "zip", (), (Problem(p.TOO_LARGE, name, detail=detail, fatal=True),))
    try:
        with open(fd, "rb", closefd=False) as stream, zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (
        zipfile.BadZipFile,
        OSError,
        ValueError,
        NotImplementedError,
        EOFError,
        OverflowError,
        struct.error,
    ) as error:
        detail = f"{quote(name)} is a zip archive that is cut off or damaged: {error}"
        return TorchFile(name, size, "zip", (), (Problem(p.TRUNCATED_DATA, name, detail=detail, fatal=True),))
    # archive/data/0, archive/data/1, ...
    found = [m for m in members if m.filename.split("/")[-2:-1] == ["data"] and not m.is_dir()]
    storages = tuple(sorted((m.filename.rpartition("/")[2], m.file_size) for m in found))
    problems: list[Problem] = []
    if not any(m.filename.rpartition("/")[2] == "data.pkl" for m in members):
        detail = f"{quote(name)} is a zip archive without data.pkl, so no file of torch.save"
        problems.append(Problem(p.OTHER_FORMAT, name, detail=detail, found="another zip archive", fatal=True))
    elif any(m.header_offset + m.compress_size > size for m in found):
        detail = f"{quote(name)} lists more bytes of data than the file has"
        problems.append(Problem(p.TRUNCATED_DATA, name, detail=detail, fatal=True))
    return TorchFile(name, size, "zip", storages, tuple(problems))
