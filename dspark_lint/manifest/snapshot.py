"""From a directory to a manifest, reading nothing of a weight but its header."""

from __future__ import annotations

import base64
import json
import zlib

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dspark_lint.checkpoint.files import list_directory
from dspark_lint.checkpoint.header import read_header
from dspark_lint.checkpoint.jsonfile import parse_document
from dspark_lint.manifest.model import FORMAT, RAW_KEYS, load_manifest
from dspark_lint.manifest.rows import ManifestError, Tensor, collapse
from dspark_lint.manifest.write import INDEX, METADATA, header, index_text


if TYPE_CHECKING:
    from dspark_lint.checkpoint.files import FileEntry
    from dspark_lint.checkpoint.header import Header


#: Documents that a loader reads; anything else is recorded by its size alone.
DOCUMENTS: Final = ("config.json", "hf_quant_config.json", "generation_config.json", "quantize_config.json")
#: Bytes of a document, and of the beginning of a file that is no safetensors file, taken into a manifest at most.
MAX_DOCUMENT: Final = 16 << 20
MAX_HEAD: Final = 1 << 16
#: Bytes of integer tables taken in with `values`.
MAX_TABLES: Final = 8 << 20
_TABLES: Final = ("BOOL", "I32", "I64")


def snapshot(checkpoint_dir: str | Path, *, values: bool = False) -> dict[str, Any]:
    """A manifest (its JSON document) of the checkpoint in `checkpoint_dir`.

    Takes the configuration files, the index, and of each safetensors file the header; of other files name and
    size. With `values` the integer tables (vocabulary maps) come along. A file that is broken, or whose header is
    spelled in its own way, is kept as it begins, so that what is made of the manifest reads the same. Raises
    ManifestError when there is nothing there.
    """
    root = Path(checkpoint_dir)
    entries, problems = list_directory(str(root))
    if problems and not entries:
        raise ManifestError(f"{root}: {problems[0].detail}")
    files: dict[str, Any] = {}
    document: dict[str, Any] = {
        "manifest": FORMAT,
        "id": root.resolve().name,
        "source": ["made by snapshot of a checkpoint directory"],
        "completeness": "full",
        "files": files,
        "tensors": {},
    }
    shards: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for entry in entries:
        if entry.kind == "file" and entry.name.endswith(".safetensors"):
            head = read_header(str(root), entry.name)
            told = None if head.fatal else _shard(root, head)
            if told is None:
                files[entry.name] = _beginning(root, entry)
                continue
            rows, shard = told
            document["tensors"][entry.name] = rows
            if shard:
                shards[entry.name] = shard
            if values:
                tables |= _values(root, head)
        elif entry.kind == "file":
            wanted = entry.name in DOCUMENTS or entry.name.endswith(".index.json")
            files[entry.name] = _document(root / entry.name, entry) if wanted else {"$bytes": entry.size}
        elif entry.kind == "directory":
            files[entry.name] = {"$directory": True}
    if shards:
        document["shards"] = shards
    if tables:
        document["values"] = tables
    _fold_index(document)
    return document


def _shard(root: Path, head: Header) -> tuple[list[list[Any]], dict[str, Any]] | None:
    """The rows of one file, and what its header has that a plain one would not; None when rows cannot say it."""
    placed = sorted(head.tensors.items(), key=lambda item: (item[1]["data_offsets"][0], item[1]["data_offsets"][1]))
    tensors = [Tensor(name, entry["dtype"], tuple(entry["shape"])) for name, entry in placed]
    shard: dict[str, Any] = {}
    if head.metadata != METADATA:
        shard["metadata"] = head.metadata
    with (root / head.file).open("rb") as file:
        raw = file.read(head.data_start)
    if header(tensors, shard)[0] == raw:
        return collapse(tensors), shard
    # Other hands wrote it: keep the order of the data and the length of the header.
    shard["order"] = "listed"
    if len(header(tensors, shard)[0]) != len(raw):
        shard["header_bytes"] = len(raw) - 8
    try:
        same = header(tensors, shard)[0] == raw
    except ManifestError:
        same = False
    if not same and len(raw) <= MAX_HEAD:
        return None
    if not same:
        shard.pop("header_bytes", None)
    return [[tensor.name, tensor.dtype, list(tensor.shape)] for tensor in tensors], shard


def _values(root: Path, head: Header) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    with (root / head.file).open("rb") as file:
        for name, entry in head.tensors.items():
            begin, end = entry["data_offsets"]
            if entry["dtype"] in _TABLES and len(entry["shape"]) == 1 and end - begin <= MAX_TABLES:
                file.seek(head.data_start + begin)
                packed = zlib.compress(file.read(end - begin), 9)
                tables[name] = {"zlib": base64.b64encode(packed).decode("ascii")}
    return tables


def _document(path: Path, entry: FileEntry) -> Any:
    if entry.size > MAX_DOCUMENT and not entry.name.endswith(".index.json"):
        return {"$bytes": entry.size}
    raw = path.read_bytes()
    value, problems = parse_document(raw, entry.name)
    if value is not None and not problems and not value.keys() & RAW_KEYS:
        return value
    try:
        return {"$text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"$base64": base64.b64encode(raw).decode("ascii")}


def _beginning(root: Path, entry: FileEntry) -> dict[str, Any]:
    with (root / entry.name).open("rb") as file:
        head = file.read(MAX_HEAD)
    return {"$head": base64.b64encode(head).decode("ascii"), "$bytes": entry.size}


def _fold_index(document: dict[str, Any]) -> None:
    """Replace an index that lists exactly what the shards hold by the fact that there is one."""
    written = document["files"].get(INDEX)
    if not isinstance(written, dict) or written.keys() != {"metadata", "weight_map"}:
        return
    folded = {**document, "index": {"metadata": written["metadata"]}}
    if json.loads(index_text(load_manifest(folded))) == written:
        del document["files"][INDEX]
        document["index"] = folded["index"]
