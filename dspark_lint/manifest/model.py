"""The manifest as a record, read from its JSON and written back."""

from __future__ import annotations

import json

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.manifest.rows import MAX_TENSORS, ManifestError, Tensor, expand


#: Version of the format, the value of the key ``manifest``.
FORMAT: Final = 1
#: Keys of a file that is not a JSON document: text as it stands, bytes, the first bytes, or a size alone.
RAW_KEYS: Final = frozenset({"$text", "$base64", "$head", "$bytes", "$directory"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint directory holds, and how that is known."""

    id: str
    files: dict[str, Any]
    """Path to JSON document, or to one of the raw forms: ``{"$text": ...}``, ``{"$base64": ...}``,
    ``{"$bytes": size}`` (opaque), ``{"$head": base64, "$bytes": size}`` (first bytes, the rest zeros)."""
    tensors: dict[str, tuple[Tensor, ...]]
    """Shard to its tensors, expanded, in the order listed."""
    shards: dict[str, dict[str, Any]]
    """Shard to ``metadata`` (the header's ``__metadata__``), ``order`` and ``header_bytes``, where they are not
    ``{"format": "pt"}``, the order of the safetensors library, and the least multiple of 8."""
    index: dict[str, Any] | None
    """``name`` and ``metadata`` of the index that lists every tensor; None when there is none."""
    values: dict[str, dict[str, Any]]
    """Tensor to its content, where that is known or stands in for it: a rule or compressed bytes."""
    target: dict[str, Any] | None
    """What is known of the target's config.json."""
    speculative_config: dict[str, Any] | None
    """How the draft is served: method, num_speculative_tokens."""
    about: dict[str, Any]
    """Everything that is not content: source, revision, provenance, completeness, checks, notes, assumed."""
    document: dict[str, Any]
    """The whole as written."""

    @property
    def count(self) -> int:
        """Number of tensors."""
        return sum(map(len, self.tensors.values()))


def load_manifest(source: str | Path | dict[str, Any]) -> Manifest:
    """Read a manifest from a file or from its parsed JSON; raises ManifestError, or OSError for the file."""
    if isinstance(source, dict):
        document, where = source, "manifest"
    else:
        where = str(source)
        try:
            document = json.loads(Path(source).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ManifestError(f"{where}: not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("manifest") != FORMAT:
        raise ManifestError(f"{where}: not a manifest of version {FORMAT} (key 'manifest')")
    for key, kind in (("id", str), ("files", dict), ("tensors", dict)):
        if not isinstance(document.get(key), kind):
            raise ManifestError(f"{where}: key {key!r} must be there and be a {kind.__name__}")
    groups = document.get("groups", {})
    tensors: dict[str, tuple[Tensor, ...]] = {}
    total = 0
    for shard, rows in document["tensors"].items():
        tensors[shard] = tuple(expand(rows, groups, f"{where}: tensors/{shard}"))
        total += len(tensors[shard])
        if total > MAX_TENSORS:
            raise ManifestError(f"{where}: more than {MAX_TENSORS:,} tensors")
        unknown = {tensor.dtype for tensor in tensors[shard]} - BITS.keys()
        if unknown:
            raise ManifestError(f"{where}: {shard}: safetensors has no dtype {', '.join(sorted(unknown))}")
        if len({tensor.name for tensor in tensors[shard]}) != len(tensors[shard]):
            raise ManifestError(f"{where}: {shard} names a tensor twice")
    for name in (*document["files"], *tensors, *filter(None, [(document.get("index") or {}).get("name")])):
        _check_path(name, where)
    content = (
        "manifest",
        "id",
        "files",
        "tensors",
        "shards",
        "groups",
        "index",
        "values",
        "target",
        "speculative_config",
    )
    return Manifest(
        document["id"],
        document["files"],
        tensors,
        document.get("shards", {}),
        document.get("index"),
        document.get("values", {}),
        document.get("target"),
        document.get("speculative_config"),
        {key: value for key, value in document.items() if key not in content},
        document,
    )


def dump_manifest(document: dict[str, Any]) -> str:
    """The JSON text of a manifest: a row a line, so that a difference between two of them can be read."""
    return _lines(document, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(indent) <= 110 or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        body = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(v, inner)}" for key, v in value.items()]
        return "{\n" + ",\n".join(body) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _lines(v, inner) for v in value) + f"\n{indent}]"


def _check_path(name: str, where: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        raise ManifestError(f"{where}: {name!r} is not a path inside the checkpoint")
