"""From a manifest to a directory: configuration as written, sparse safetensors files at full size."""

from __future__ import annotations

import base64
import json
import sys
import zlib

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.manifest.model import RAW_KEYS
from dspark_lint.manifest.rows import ManifestError


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dspark_lint.manifest.model import Manifest
    from dspark_lint.manifest.rows import Tensor

#: What transformers and safetensors write when nobody says otherwise.
METADATA: Final = {"format": "pt"}
INDEX: Final = "model.safetensors.index.json"

_RANK: Final = {dtype: rank for rank, dtype in enumerate(BITS)}
#: array type codes of the tables that a rule can fill.
_CODES: Final = {"I32": "i", "I64": "q", "BOOL": "B", "U8": "B"}


class Materialised(NamedTuple):
    """What `materialise` wrote."""

    draft: Path
    target: Path | None
    """Directory with the target's config.json, where one was asked for and is known."""
    tensors: int
    size: int
    """Bytes that the safetensors files claim; what they occupy is little more than their headers."""


def materialise(manifest: Manifest, directory: str | Path, *, target_dir: str | Path | None = None) -> Materialised:
    """Write the checkpoint that `manifest` describes into `directory`, which is made when needed.

    The data of the tensors is a hole (reads as zeros) except for the tables of ``values``. Raises ManifestError
    when a file already stands there or a table does not fit its tensor, OSError for the file system.
    """
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    for name, content in manifest.files.items():
        _write_file(_fresh(root, name), content)
    size = 0
    for shard, tensors in manifest.tensors.items():
        size += write_safetensors(_fresh(root, shard), tensors, manifest.shards.get(shard, {}), manifest.values)
    if manifest.index is not None:
        path = _fresh(root, manifest.index.get("name", INDEX))
        path.write_text(index_text(manifest), encoding="utf-8")
    target = None
    if target_dir is not None and manifest.target is not None:
        target = Path(target_dir)
        target.mkdir(parents=True, exist_ok=True)
        _write_file(_fresh(target, "config.json"), manifest.target)
    return Materialised(root, target, manifest.count, size)


def index_text(manifest: Manifest) -> str:
    """The index file as transformers writes it: every tensor of every shard."""
    weight_map = {tensor.name: shard for shard, tensors in manifest.tensors.items() for tensor in tensors}
    total = sum(_bytes(tensor) for tensors in manifest.tensors.values() for tensor in tensors)
    metadata = (manifest.index or {}).get("metadata", {"total_size": total})
    return json.dumps({"metadata": metadata, "weight_map": weight_map}, indent=2, sort_keys=True) + "\n"


def header(tensors: Sequence[Tensor], shard: Mapping[str, Any]) -> tuple[bytes, dict[str, tuple[int, int]], int]:
    """The first 8 + N bytes of a file, each tensor's ``[begin, end)`` in the data, and the size of the data.

    Ordered as the safetensors library does, wide types first and then by name, unless ``shard["order"]`` is
    ``listed``; padded with spaces to a multiple of 8, or to ``shard["header_bytes"]``. Raises ManifestError when
    that does not hold the header.
    """
    if shard.get("order") != "listed":
        tensors = sorted(tensors, key=lambda tensor: (-_RANK[tensor.dtype], tensor.name))
    metadata = shard.get("metadata", METADATA)
    entries: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    places: dict[str, tuple[int, int]] = {}
    at = 0
    for tensor in tensors:
        end = at + _bytes(tensor)
        places[tensor.name] = (at, end)
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (at, end)}
        at = end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    length = shard.get("header_bytes", len(text) + -len(text) % 8)
    if length < len(text):
        raise ManifestError(f"header_bytes is {length:,}, but the header of these tensors takes {len(text):,} bytes")
    return length.to_bytes(8, "little") + text.ljust(length), places, at


def write_safetensors(
    path: Path, tensors: Sequence[Tensor], shard: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]
) -> int:
    """Write one file, its data a hole except for `values`; returns its size in bytes."""
    head, places, size = header(tensors, shard)
    by_name = {tensor.name: tensor for tensor in tensors}
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
        for name in values.keys() & places.keys():
            file.seek(len(head) + places[name][0])
            file.write(_table(by_name[name], values, by_name))
    return len(head) + size


def _table(tensor: Tensor, values: Mapping[str, Mapping[str, Any]], known: Mapping[str, Tensor]) -> bytes:
    """The bytes of a table: given compressed, or by rule.

    ``spread``: offsets that spread the rows evenly over ``of`` target ids (``target = row + table[row]``).
    ``members``: true at every target id that the table named ``of`` reaches.
    """
    value = values[tensor.name]
    if "zlib" in value:
        data = zlib.decompressobj().decompress(base64.b64decode(value["zlib"]), _bytes(tensor) + 1)
    elif value.get("rule") == "spread" and len(tensor.shape) == 1 and tensor.dtype in ("I32", "I64"):
        rows, ids = tensor.shape[0], int(value["of"])
        data = _pack(tensor, (row * ids // rows - row for row in range(rows)))
    elif value.get("rule") == "members" and len(tensor.shape) == 1 and tensor.dtype in _CODES:
        other = known.get(value["of"])
        if other is None or values.get(value["of"], {}).get("rule") != "spread":
            raise ManifestError(f"values/{tensor.name}: {value['of']!r} is no table spread in the same file")
        rows, ids = other.shape[0], int(values[other.name]["of"])
        reached = {row * ids // rows for row in range(rows)}
        data = _pack(tensor, (int(target in reached) for target in range(tensor.shape[0])))
    else:
        raise ManifestError(f"values/{tensor.name}: no rule {value!r} for {tensor.dtype} {list(tensor.shape)}")
    if len(data) != _bytes(tensor):
        raise ManifestError(f"values/{tensor.name}: the table has not the {_bytes(tensor):,} bytes of its tensor")
    return data


def _pack(tensor: Tensor, numbers: Any) -> bytes:
    table = array(_CODES[tensor.dtype], numbers)
    if sys.byteorder == "big":
        table.byteswap()
    return table.tobytes()


def _bytes(tensor: Tensor) -> int:
    bits = BITS[tensor.dtype]
    for dim in tensor.shape:
        bits *= dim
    if bits % 8:
        raise ManifestError(f"{tensor.name}: {tensor.dtype} {list(tensor.shape)} is no whole number of bytes")
    return bits // 8


def _fresh(root: Path, name: str) -> Path:
    path = root / name
    if path.exists() or path.is_symlink():
        raise ManifestError(f"{path} is there already; materialise into an empty directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _write_file(path: Path, content: Any) -> None:
    if not isinstance(content, dict) or not content.keys() & RAW_KEYS:
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    elif content.get("$directory"):
        path.mkdir()
    elif "$text" in content:
        path.write_bytes(content["$text"].encode("utf-8"))
    else:
        data = base64.b64decode(content.get("$base64") or content.get("$head") or "")
        with path.open("wb") as file:
            file.write(data)
            file.truncate(content.get("$bytes", len(data)))
