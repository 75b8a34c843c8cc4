"""FIL: files, headers, shards and the index."""

from __future__ import annotations

import copy
import json
import os

from typing import TYPE_CHECKING

import pytest

from conformance.live.cases import WEIGHTS, Spec
from rules.build import Case, Told, check, file, made, native, several, told, weights, write, written

from dspark_lint import lint


if TYPE_CHECKING:
    from pathlib import Path


INDEX = "model.safetensors.index.json"
QUANT = "hf_quant_config.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
WHOLE = weights(native())
START = 8 + int.from_bytes(WHOLE[:8], "little")
NAMES = sorted(native().tensors)
CONFIG = json.dumps(native().config)
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"


def header(change: object) -> bytes:
    """The whole file with its header changed by a function."""
    entries = json.loads(WHOLE[8:START])
    change(entries)  # type: ignore[operator]
    raw = json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw + WHOLE[START:]


def overlapping(entries: dict[str, dict[str, list[int]]]) -> None:
    first, second = "fc.weight", "norm.weight"
    begin = entries[first]["data_offsets"][0]
    length = entries[second]["data_offsets"][1] - entries[second]["data_offsets"][0]
    entries[second]["data_offsets"] = [begin, begin + length]


def shard(*prefixes: str) -> bytes:
    """A file of the tensors whose names start so."""
    part = copy.deepcopy(native())
    part.tensors = {name: kind for name, kind in part.tensors.items() if name.startswith(prefixes)}
    return weights(part)


def index(entries: dict[str, object]) -> str:
    return json.dumps({"metadata": {"total_size": len(WHOLE) - START}, "weight_map": entries})


def directory(name: str) -> object:
    return lambda spec: spec.files.update({name: {"directory": True}})


TAIL = [name for name in NAMES if name.startswith("layers.1.")]
HEAD = [name for name in NAMES if name not in TAIL]
ONE = dict.fromkeys(NAMES, WEIGHTS)
TWO = {**dict.fromkeys(HEAD, FIRST), **dict.fromkeys(TAIL, SECOND)}
SHARDS = several(
    file(WEIGHTS, None),
    file(FIRST, shard("fc", "norm", "hidden", "layers.0", "markov", "conf")),
    file(SECOND, shard("layers.1")),
)


def line(rule: str, name: str, *changes: object, found: tuple[Told, ...] = (), **more: object) -> Case:
    return Case(rule, name, "native", changes, found, **more)  # type: ignore[arg-type]


def unusable(name: str, *changes: object, says: tuple[str, ...], fix: str | None = None, where: str = "") -> Case:
    return line(
        "FIL001",
        name,
        *changes,
        found=(Told("FIL001", "error", "refused", where),),
        says=("config.json", *says),
        fix=fix,
    )


def refused(rule: str, name: str, content: str | bytes, *says: str, where: str = "", fix: str | None = None) -> Case:
    return line(
        rule,
        name,
        file(WEIGHTS, content),
        found=(Told(rule, "error", "refused", where),),
        says=(WEIGHTS, *says),
        fix=fix,
    )


DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)
CASES = [
    unusable("absent", file("config.json", None), says=("does not exist",)),
    unusable("empty", file("config.json", ""), says=("empty",)),
    unusable("trailing comma", written(CONFIG[:-1] + ",}"), says=("line 1, column",)),
    unusable("byte order mark", file("config.json", b"\xef\xbb\xbf" + CONFIG.encode()), says=("byte order mark",), fix="without"),
    unusable("invalid UTF-8", file("config.json", CONFIG.encode().replace(b"vanilla", b"vanill\xff")), says=("byte 0xff",)),
    unusable("array", written("[]"), says=("an array",)),
    unusable("directory", directory("config.json"), says=("is a directory",)),
    unusable("pointer", file("config.json", POINTER), says=("Git LFS pointer",), fix="git lfs pull"),
    unusable("nested deep", written("[" * 100_000 + "]" * 100_000), says=("nested more than",)),
    unusable("long integer", written(CONFIG[:-1] + ', "x": ' + "9" * 10_000 + "}"), says=("digits",)),
    line("FIL001", "valid"),
    *(
        line("FIL001", f"quantization {name}", file(QUANT, text), found=(Told("FIL001", "error", "refused", where),), says=(QUANT, "parsing it raises"))
        for name, text, where in (("no JSON", "{", ""), ("empty", "", ""), ("array", "[]", ""), ("pointer", POINTER, ""))
    ),
    line("FIL001", "quantization null", file(QUANT, "null")),
    line("FIL001", "quantization a directory", directory(QUANT)),
    line(
        "FIL002", "key twice", written(CONFIG[:-1] + ', "markov_rank": 8}'),
        found=(Told("FIL002", "warning", "advice", "/markov_rank"),), vllm="0.31.0", says=("markov_rank", "more than once"), fix="once",
    ),
    line(
        "FIL002", "key twice in an inner object", written(CONFIG.replace('"projector_type"', '"mask_token_id": 255, "projector_type"')),
        found=(Told("FIL002", "warning", "advice", "/dflash_config/mask_token_id"),), says=("mask_token_id",),
    ),
    line(
        "FIL002", "NaN", written(CONFIG[:-1] + ', "initializer_range": NaN}'),
        found=(Told("FIL002", "warning", "advice", "/initializer_range"),), says=("NaN", "/initializer_range"), fix="finite",
    ),
    line("FIL002", "same name at two levels"),
    refused("FIL003", "data cut", WHOLE[:-10], "10 bytes", "norm.weight", where="norm.weight", fix="copy the file again"),
    refused("FIL003", "bytes past the end", WHOLE + b"abc", "3 bytes after"),
    refused("FIL003", "header cut", WHOLE[:100], "has only 100"),
    refused("FIL003", "tensors overlap", header(overlapping), "norm.weight", "inside another", where="fc.weight"),
    refused("FIL003", "shape and bytes differ", header(lambda e: e["fc.weight"].update(shape=[1, 1])), "fc.weight", where="fc.weight"),
    refused("FIL003", "unknown dtype", header(lambda e: e["fc.weight"].update(dtype="BF17")), "BF17", where="fc.weight"),
    refused("FIL003", "header is no JSON", (20).to_bytes(8, "little") + b"x" * 30, "JSON"),
    line("FIL003", "two good shards", SHARDS, file(INDEX, index(TWO))),
    refused("FIL004", "Git LFS pointer", POINTER, "Git LFS pointer", fix="git lfs pull"),
    refused("FIL004", "web page", "<!DOCTYPE html><html><body>404</body></html>", "HTML page", fix="download"),
    refused("FIL004", "zip", b"PK\x03\x04" + bytes(200), "zip archive", fix="convert"),
    refused("FIL004", "pickle", b"\x80\x02}q\x00." + bytes(200), "pickle", fix="convert"),
    refused("FIL004", "empty", b"", "empty"),
    line("FIL004", "directory", directory(WEIGHTS), found=(Told("FIL004", "error", "refused", ""),), says=(WEIGHTS, "is a directory")),
    line("FIL004", "weights"),
    line("FIL005", "nothing", file(WEIGHTS, None), found=(Told("FIL005", "error", "refused", ""),), says=("*.safetensors", "Cannot find any model weights")),
    line(
        "FIL005", "the index names none of them", file(INDEX, index({})),
        found=(Told("FIL005", "error", "refused", ""),), says=("names none",),
    ),
    line(
        "FIL005", "the index names only absent ones, which old releases pass over", file(INDEX, index(dict.fromkeys(NAMES, "other.safetensors"))),
        found=(Told("FIL005", "error", "refused", ""),), vllm="0.25.1", says=("names none",),
    ),
    line("FIL005", "under another name", file(WEIGHTS, None), file("draft.safetensors", WHOLE)),
    line(
        "FIL006", "shard absent", SHARDS, file(SECOND, None), file(INDEX, index(TWO)),
        found=(Told("FIL006", "error", "refused", "/weight_map"),), says=(INDEX, SECOND, "FileNotFoundError"), fix="copy",
    ),
    line(
        "FIL006", "shard absent, passed over", SHARDS, file(SECOND, None), file(INDEX, index(TWO)),
        found=(Told("FIL006", "error", "silent", "/weight_map"), DROPPED), vllm="0.25.1", says=(SECOND, "uninitialised"),
    ),
    line("FIL006", "both there", SHARDS, file(INDEX, index(TWO))),
    line(
        "FIL007", "shard not named", SHARDS, file(INDEX, index(dict.fromkeys(HEAD, FIRST))),
        found=(Told("FIL007", "error", "silent", ""),), says=(SECOND, INDEX, "11 tensors"), fix="write the index anew",
    ),
    line(
        "FIL007", "stale copy not named", SHARDS, file(WEIGHTS, WHOLE), file(INDEX, index(TWO)),
        found=(Told("FIL007", "warning", "advice", ""),), says=(WEIGHTS, "also stands"),
    ),
    line("FIL007", "no index", SHARDS),
    line(
        "FIL008", "entry without a tensor", file(INDEX, index({**ONE, "ghost.weight": WEIGHTS})),
        found=(Told("FIL008", "info", "advice", "/weight_map"),), says=("ghost.weight", "in no file"),
    ),
    line(
        "FIL008", "entries of other files", SHARDS, file(INDEX, index({**TWO, TAIL[0]: FIRST, TAIL[1]: FIRST})),
        found=(Told("FIL008", "info", "advice", "/weight_map", 2),), says=(TAIL[0], "2 tensors"),
    ),
    line(
        "FIL008", "tensor without an entry", file(INDEX, index({n: f for n, f in ONE.items() if n != "fc.weight"})),
        found=(Told("FIL008", "info", "advice", "/weight_map"),), says=("fc.weight", "not in the index"),
    ),
    line("FIL008", "exactly the tensors", file(INDEX, index(ONE))),
    line(
        "FIL009", "stale file without an index", SHARDS, file(WEIGHTS, WHOLE),
        found=(Told("FIL009", "warning", "silent", NAMES[0], len(NAMES)),), says=(WEIGHTS, FIRST, "the last file"), fix="delete",
    ),
    line(
        "FIL009", "one name in two listed files", SHARDS, file(SECOND, shard("layers.1", "norm")), file(INDEX, index(TWO)),
        found=(Told("FIL009", "error", "silent", "norm.weight"),), says=("norm.weight", "1 tensor name"),
    ),
    line("FIL009", "disjoint shards", SHARDS),
    *(
        line("FIL010", name, file(INDEX, text), found=(Told("FIL010", "error", "refused", where),), says=(INDEX, *says), fix="anew")
        for name, text, where, says in (
            ("broken JSON", '{"weight_map": ', "", ("not JSON",)),
            ("no weight_map", "{}", "/weight_map", ("weight_map",)),
            ("weight_map a list", '{"weight_map": []}', "/weight_map", ("weight_map",)),
            ("number for a file", index({**ONE, "norm.weight": 3}), "/weight_map/norm.weight", ("norm.weight", "3")),
            ("leads out", index({**ONE, "norm.weight": "../other/model.safetensors"}), "/weight_map/norm.weight", ("../other/model.safetensors", "leads out")),
            ("absolute path", index({**ONE, "norm.weight": "/etc/passwd"}), "/weight_map/norm.weight", ("/etc/passwd", "leads out")),
        )
    ),
    line("FIL010", "usable", file(INDEX, index(ONE))),
    line(
        "FIL011", "consolidated beside", file("consolidated.safetensors", WHOLE),
        found=(Told("FIL011", "info", "advice", ""),), says=("consolidated.safetensors hides model.safetensors",),
    ),
    line("FIL011", "consolidated alone", file(WEIGHTS, None), file("consolidated.safetensors", WHOLE)),
    line(
        "FIL012", "bin alone", file(WEIGHTS, None), file("pytorch_model.bin", b"PK\x03\x04"),
        found=(Told("FIL012", "warning", "advice", ""),), says=("pytorch_model.bin", "pickle"), fix="safetensors",
    ),
    line("FIL012", "bin beside safetensors", file("pytorch_model.bin", b"PK\x03\x04")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_files(case: Case) -> None:
    """A broken file is one finding that names it; a good one is none."""
    check(case)


@pytest.mark.parametrize("name", ["config.json", WEIGHTS, INDEX])
def test_pipe_in_a_file_s_place(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A named pipe that nobody writes to is a finding, not a wait without end."""
    spec: Spec = made("native", file(name, None))
    draft, target = write(spec, tmp_path_factory.mktemp("case"))
    os.mkfifo(draft / name)

    (result,) = lint(draft, vllm="==0.32.0", target=target, speculative_config=spec.serve).checkpoints[0].results

    expected = {"config.json": "FIL001", WEIGHTS: "FIL004", INDEX: "FIL010"}[name]
    assert [t.rule for t in told(result.findings)] == [expected]


def test_link_out_of_the_checkpoint(tmp_path: Path) -> None:
    """A link in a file's place is followed, wherever it leads: download caches store files so."""
    spec = made("native", file(WEIGHTS, None))
    draft, target = write(spec, tmp_path / "here")
    blob = tmp_path / "blobs" / "abc"
    blob.parent.mkdir()
    blob.write_bytes(WHOLE)
    (draft / WEIGHTS).symlink_to(blob)

    (result,) = lint(draft, vllm="==0.32.0", target=target, speculative_config=spec.serve).checkpoints[0].results

    assert told(result.findings) == []
