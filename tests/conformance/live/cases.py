#!/usr/bin/env python3
"""Make new cases for the corpus: a recorded base and mutations of it.

    python tests/conformance/live/cases.py --append      put the cases below that are not there yet into the corpus
    python tests/conformance/live/record.py --write      and ask the loader about them, once a release

Needs nothing but the standard library: float data is constant in the corpora, so a case is its headers and its text.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import re
import sys

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any


HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]

from conformance.recorded import FIXTURES, Case, read_corpus, write_corpus  # noqa: E402

from dspark_lint.manifest.rows import Tensor  # noqa: E402
from dspark_lint.manifest.write import header  # noqa: E402


WEIGHTS = "model.safetensors"
#: As a value of a key: the key goes.
GONE: Any = object()


@dataclass
class Spec:
    """A case as it is being made."""

    config: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    """Name to dtype and shape."""
    tables: dict[str, bytes]
    """Name to data, for integer tensors."""
    target: dict[str, Any]
    serve: dict[str, Any]
    files: dict[str, Any]
    """Further files, in the form of the corpora."""
    dirname: str = "draft"
    text: str | None = None
    """Instead of `config`."""


Mutation = "Callable[[Spec], None]"


# ---------------------------------------------------------------- mutations
def _put(where: dict[str, Any], keys: dict[str, Any]) -> None:
    for key, value in keys.items():
        if value is GONE:
            where.pop(key, None)
        else:
            where[key] = copy.deepcopy(value)


def config(**keys: Any) -> Mutation:
    """Set (or remove) top-level keys of config.json."""
    return lambda spec: _put(spec.config, keys)


def nested(**keys: Any) -> Mutation:
    """Set keys of dflash_config."""
    return lambda spec: _put(spec.config.setdefault("dflash_config", {}), keys)


def layer(**keys: Any) -> Mutation:
    """Set keys of transformer_layer_config."""
    return lambda spec: _put(spec.config["transformer_layer_config"], keys)


def target(**keys: Any) -> Mutation:
    """Set keys of the target's config."""
    return lambda spec: _put(spec.target, keys)


def serve(**keys: Any) -> Mutation:
    """Set keys of the speculative config."""
    return lambda spec: _put(spec.serve, keys)


def drop(*globs: str) -> Mutation:
    """Leave tensors out."""

    def change(spec: Spec) -> None:
        hit = [name for name in spec.tensors if any(fnmatch(name, glob) for glob in globs)]
        assert hit, globs
        for name in hit:
            del spec.tensors[name]

    return change


def rename(pattern: str, replacement: str) -> Mutation:
    """Rename tensors by a regular expression."""

    def change(spec: Spec) -> None:
        renamed = {re.sub(pattern, replacement, name): what for name, what in spec.tensors.items()}
        assert renamed.keys() != spec.tensors.keys(), pattern
        spec.tensors = renamed

    return change


def shape(name: str, *dims: int) -> Mutation:
    """Give a tensor another shape."""
    return lambda spec: spec.tensors.__setitem__(name, (spec.tensors[name][0], dims))


def dtype(glob: str, kind: str) -> Mutation:
    """Give tensors another dtype, by its name in safetensors."""

    def change(spec: Spec) -> None:
        hit = [name for name in spec.tensors if fnmatch(name, glob)]
        assert hit, glob
        for name in hit:
            spec.tensors[name] = (kind, spec.tensors[name][1])

    return change


def add(name: str, *dims: int, kind: str = "BF16") -> Mutation:
    """Add a tensor."""
    return lambda spec: spec.tensors.__setitem__(name, (kind, dims))


def files(**texts: str) -> Mutation:
    """Add text files; ``__`` in a name stands for a dot."""
    added = {name.replace("__", "."): {"text": text} for name, text in texts.items()}
    return lambda spec: spec.files.update(added)


# ---------------------------------------------------------------- from and to the corpus
def from_case(case: Case) -> Spec:
    """Take a recorded case with one safetensors file apart."""
    record = case["files"][WEIGHTS]
    head = base64.b64decode(record["head"])
    start = 8 + int.from_bytes(head[:8], "little")
    entries = json.loads(head[8:start])
    entries.pop("__metadata__", None)
    data = bytearray(head) + bytes(record["size"] - len(head))
    for at, kept in record.get("keep", ()):
        stretch = base64.b64decode(kept)
        data[at : at + len(stretch)] = stretch
    tables = {
        name: bytes(data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]])
        for name, entry in entries.items()
        if entry["dtype"] in ("BOOL", "I32", "I64")
    }
    return Spec(
        json.loads(case["files"]["config.json"]["text"]),
        {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in entries.items()},
        tables,
        json.loads(case["target"]),
        dict(case["speculative_config"] or {}),
        {name: file for name, file in case["files"].items() if name not in (WEIGHTS, "config.json")},
        case["dirname"],
    )


def to_case(name: str, group: str, spec: Spec) -> dict[str, Any]:
    """Put it together, without a verdict."""
    tensors = [Tensor(tensor, kind, dims) for tensor, (kind, dims) in spec.tensors.items()]
    head, places, size = header(tensors, {})
    keep = [
        [len(head) + places[tensor][0], base64.b64encode(table).decode("ascii")]
        for tensor, table in spec.tables.items()
        if tensor in places and places[tensor][1] - places[tensor][0] == len(table)
    ]
    text = json.dumps(spec.config, indent=1) if spec.text is None else spec.text
    weights = {"head": base64.b64encode(head).decode("ascii"), "size": len(head) + size, "keep": keep}
    return {
        "id": name,
        "group": group,
        "dirname": spec.dirname,
        "files": {"config.json": {"text": text}, WEIGHTS: weights, **spec.files},
        "target": json.dumps(spec.target, indent=1),
        "speculative_config": spec.serve,
        "verdicts": {},
    }


def cases(bases: dict[str, Case]) -> dict[str, dict[str, Any]]:
    """The cases defined here, made of recorded bases."""
    made = {}
    for name, (group, base, mutations) in CASES.items():
        spec = from_case(bases[base])
        for mutate in mutations:
            mutate(spec)
        made[name] = to_case(name, group, spec)
    return made


# One of each kind, all of them recorded. Add yours: id, group, base, mutations.
CASES: dict[str, tuple[str, str, list[Any]]] = {
    "drop.native.markov_w1": ("drop", "base.native", [drop("*markov_w1*")]),
    "drop.native.conf_bias": ("drop", "base.native", [drop("confidence_head.proj.bias")]),
    "rename.native.model_prefix": ("rename", "base.native", [rename(r"^", "model.")]),
    "missing.native.sample_from_anchor": ("config-missing", "base.native", [config(sample_from_anchor=GONE)]),
    "moved.native.markov_rank_nested_only": ("config-moved", "base.native", [config(markov_rank=GONE)]),
    "arch.native.method_dflash": ("arch", "base.native", [serve(method="dflash", num_speculative_tokens=3)]),
    "ids.native.high": (
        "layer-ids",
        "base.native",
        [config(target_layer_ids=[1, 4, 9]), nested(target_layer_ids=[1, 4, 9])],
    ),
    "mask.native.vocab": ("mask", "base.native", [config(mask_token_id=256), nested(mask_token_id=256)]),
}


def main() -> int:
    """Tell which cases are new, and append them when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--append", action="store_true", help="write them into the corpus, without verdicts")
    wanted = parser.parse_args()
    recorded = {case["id"]: case for case in read_corpus("loader")}
    new = [case for name, case in cases(recorded).items() if name not in recorded]
    for case in new:
        print(case["id"])
    if wanted.append and new:
        write_corpus(FIXTURES / "loader.jsonl.gz", [*recorded.values(), *new])
    print(f"{len(new)} new, {len(CASES) - len(new)} in the corpus already")
    return 0


if __name__ == "__main__":
    sys.exit(main())
