"""Checkpoints without their weights: a manifest says what a directory holds, and makes it again.

A manifest is one JSON document: the configuration files, the name, dtype and shape of every tensor, shard by
shard, and where that was learned. `snapshot` makes one of any checkpoint from its headers alone, so that a
problem can be reported without the weights; `materialise` writes a real directory of it, with sparse
safetensors files at full size.

``fixtures/manifest.schema.json`` describes the format; `fixtures/manifests/` holds those of published drafts.
"""

from __future__ import annotations

from dspark_lint.manifest.model import Manifest, dump_manifest, load_manifest
from dspark_lint.manifest.rows import ManifestError
from dspark_lint.manifest.snapshot import snapshot
from dspark_lint.manifest.write import Materialised, materialise


__all__ = [
    "Manifest",
    "ManifestError",
    "Materialised",
    "dump_manifest",
    "load_manifest",
    "materialise",
    "snapshot",
]
