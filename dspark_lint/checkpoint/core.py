"""One checkpoint directory: what lies in it, read once, on demand, and never judged."""

# Plain os.path: pathlib would cost more to import than everything here.
from __future__ import annotations

import os

from typing import TYPE_CHECKING

from dspark_lint.checkpoint.files import FileEntry, list_directory
from dspark_lint.checkpoint.header import Header, read_header
from dspark_lint.checkpoint.jsonfile import Document, read_document
from dspark_lint.checkpoint.problems import quote
from dspark_lint.checkpoint.torchfile import TorchFile, read_torch_file
from dspark_lint.checkpoint.values import read_values
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from pathlib import Path

    from dspark_lint.checkpoint.problems import Problem


CONFIG = "config.json"
QUANT_CONFIG = "hf_quant_config.json"
INDEX = "model.safetensors.index.json"

#: How far down, and how many, checkpoints are looked for below a directory that is none itself.
MAX_DEPTH = 4
MAX_CHECKPOINTS = 1_000
_MAX_DIRECTORIES = 20_000


class Checkpoint:
    """The files of one directory; every file is read at most once, when it is first asked for."""

    __slots__ = ("_documents", "_headers", "_tables", "files", "path", "problems", "root_dir")

    def __init__(self, path: str, root_dir: str) -> None:
        self.path = path
        """As the user named it."""
        self.root_dir = root_dir
        """Absolute path of the directory."""
        self._documents: dict[str, Document] = {}
        self._headers: dict[str, Header] = {}
        self._tables: dict[tuple[str, str, int], tuple[int | float | bool, ...] | None] = {}
        files, problems = list_directory(root_dir)
        self.files: tuple[FileEntry, ...] = files
        """What stands in the directory itself, sorted by name."""
        self.problems: tuple[Problem, ...] = problems
        """What is wrong with the directory as such."""

    @property
    def root(self) -> Path:
        """The directory, absolute, links kept."""
        from pathlib import Path  # noqa: PLC0415 - not needed for a plain run

        return Path(self.root_dir)

    @property
    def config(self) -> Document:
        """config.json."""
        return self.document(CONFIG)

    @property
    def quant_file(self) -> Document:
        """hf_quant_config.json."""
        return self.document(QUANT_CONFIG)

    def index(self, name: str = INDEX) -> Document:
        """An index of shards; its problems include those of ``weight_map``."""
        return self.document(name)

    def document(self, name: str) -> Document:
        """A JSON document by its path below the root; of a missing one, `Document.exists` is False."""
        if name not in self._documents:
            self._documents[name] = read_document(self.root_dir, name)
        return self._documents[name]

    def header(self, name: str) -> Header:
        """The header of a safetensors file by its path below the root; a missing file has a fatal problem."""
        if name not in self._headers:
            self._headers[name] = read_header(self.root_dir, name)
        return self._headers[name]

    def int_values(self, file: str, tensor: str, limit: int = 2_000_000) -> tuple[int | float | bool, ...] | None:
        """The elements of a small tensor: integers, booleans, or floats for F16, BF16, F32 and F64.

        None if it has more than `limit` elements, another dtype, or cannot be read.
        """
        if (file, tensor, limit) in self._tables:
            return self._tables[file, tensor, limit]
        values = read_values(self.root_dir, self.header(file), tensor, limit)
        if values is None or not isinstance(values[0] if values else 0, float):
            # a few tables that every release asks for; floats are many, and looked at once
            self._tables[file, tensor, limit] = values
        return values

    def pt_storage(self, name: str) -> TorchFile:
        """A file of torch.save, as far as it shows without being unpickled."""
        return read_torch_file(self.root_dir, name)


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint at `path`: its directory, its config.json or another file in it.

    Raises UsageError when nothing stands there.
    """
    given = os.fspath(path)
    return Checkpoint(given, _directory_of(given))


def _directory_of(given: str) -> str:
    if os.path.isdir(given):
        return os.path.abspath(given)
    if os.path.isfile(given) or os.path.islink(given):
        return os.path.dirname(os.path.abspath(given))
    if os.path.lexists(given):
        raise UsageError(f"{quote(given, 1000)} is neither a directory nor a file")
    raise UsageError(f"{quote(given, 1000)} does not exist" if given else "the path of the checkpoint is empty")


def find_checkpoints(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The directories of the checkpoints at or below `path`, absolute, sorted.

    A directory with a config.json or a safetensors file is one, and nothing below it is looked at; the
    directory of a file is taken as it is. Hidden directories are passed over.
    Empty if there is none. Raises UsageError when nothing stands at `path`.
    """
    given = os.fspath(path)
    top = _directory_of(given)
    if not os.path.isdir(given):
        return (top,)
    found: list[str] = []
    # Links to directories are followed, to each directory once.
    seen: set[str] = set()
    level = [top]
    for _ in range(MAX_DEPTH + 1):
        below: list[str] = []
        for directory in level:
            real = os.path.realpath(directory)
            if real in seen:
                continue
            if len(seen) == _MAX_DIRECTORIES or len(found) == MAX_CHECKPOINTS:
                break
            seen.add(real)
            is_one, inner = _look(directory)
            if is_one:
                found.append(directory)
            else:
                below += inner
        level = below
    return tuple(sorted(found))


def _look(directory: str) -> tuple[bool, list[str]]:
    """Whether `directory` is a checkpoint, and the directories in it."""
    inner: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name == CONFIG or entry.name.endswith(".safetensors"):
                    return True, []
                if not entry.name.startswith(".") and entry.is_dir():
                    inner.append(entry.path)
    except OSError:
        return False, []
    return False, sorted(inner)
