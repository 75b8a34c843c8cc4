from __future__ import annotations

import json
import shutil
import struct

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from dspark_lint.manifest import ManifestError, dump_manifest, load_manifest, materialise, snapshot
from dspark_lint.manifest.cli import manifest_group
from dspark_lint.manifest.rows import Tensor, collapse, expand


if TYPE_CHECKING:
    from pathlib import Path


def document(**changes: Any) -> dict[str, Any]:
    base = {
        "manifest": 1,
        "id": "tiny",
        "source": ["a test"],
        "completeness": "full",
        "files": {"config.json": {"model_type": "qwen3"}},
        "tensors": {"model.safetensors": [["norm.weight", "BF16", [4]]]},
    }
    return base | changes


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (["norm.weight", "BF16", [4]], ["norm.weight"]),
        (["layers.{i}.a", "BF16", [4], {"i": [0, 2]}], ["layers.0.a", "layers.1.a", "layers.2.a"]),
        (["l.{i}.e.{e}", "U8", [], {"i": [3, 3], "e": [0, 1]}], ["l.3.e.0", "l.3.e.1"]),
        (["{i}.{x}.{i}", "U8", [], {"i": [1, 2]}], ["1.{x}.1", "2.{x}.2"]),
        ({"group": "g", "prefix": "p."}, ["p.a.0", "p.a.1"]),
    ],
    ids=["one", "range", "two ranges", "other braces are text", "group"],
)
def test_expand(row: Any, names: list[str]) -> None:
    """A row stands for the tensors that its ranges or its group spell out."""
    groups = {"g": [["a.{i}", "BF16", [1], {"i": [0, 1]}]]}

    assert [tensor.name for tensor in expand([row], groups, "tensors")] == names


@pytest.mark.parametrize(
    ("tensors", "rows"),
    [
        ([], []),
        (["a.0.w", "a.1.w", "a.2.w"], [["a.{i}.w", "BF16", [2], {"i": [0, 2]}]]),
        (["a.0.w", "a.2.w"], [["a.0.w", "BF16", [2]], ["a.2.w", "BF16", [2]]]),
        (["a.01.w", "a.02.w"], [["a.01.w", "BF16", [2]], ["a.02.w", "BF16", [2]]]),
        (["a1.w", "a2.w"], [["a1.w", "BF16", [2]], ["a2.w", "BF16", [2]]]),
        (["{i}.0", "{i}.1"], [["{i}.0", "BF16", [2]], ["{i}.1", "BF16", [2]]]),
        (
            [f"l.{i}.e.{e}.w" for i in (4, 5) for e in (0, 1, 2)],
            [["l.{i}.e.{e}.w", "BF16", [2], {"i": [4, 5], "e": [0, 2]}]],
        ),
        (["l.0.e.0", "l.0.e.1", "l.1.e.0"], [["l.1.e.0", "BF16", [2]], ["l.0.e.{e}", "BF16", [2], {"e": [0, 1]}]]),
    ],
    ids=["none", "run", "gap", "leading zero", "not a part", "braces", "rectangle", "ragged"],
)
def test_collapse(tensors: list[str], rows: list[list[Any]]) -> None:
    """Tensors that differ in whole numbers only become one row a rectangle of numbers."""
    assert collapse(Tensor(name, "BF16", (2,)) for name in tensors) == rows


names = st.lists(
    st.sampled_from(["layers", "w", "{i}", "0", "1", "2", "3", "10", "01", "é"]), min_size=1, max_size=7
).map(".".join)


@given(st.dictionaries(names, st.tuples(st.sampled_from(["BF16", "U8"]), st.sampled_from([(), (2,), (2, 3)]))))
def test_collapse_loses_nothing(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    """Whatever the names, the collapsed rows expand to exactly the tensors they were made of."""
    given_tensors = [Tensor(name, dtype, shape) for name, (dtype, shape) in tensors.items()]

    assert sorted(expand(collapse(given_tensors), {}, "tensors")) == sorted(given_tensors)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"manifest": 7}, "not a manifest of version 1"),
        ({"id": None}, "key 'id' must be there and be a str"),
        ({"tensors": {"m.safetensors": [["a", "BF16"]]}}, "tensors/m.safetensors[0]: not [name, dtype, shape]"),
        ({"tensors": {"m.safetensors": [["a", "BF16", [-1]]]}}, "not [name, dtype, shape]"),
        ({"tensors": {"m.safetensors": [["a", "BF15", [1]]]}}, "safetensors has no dtype BF15"),
        ({"tensors": {"m.safetensors": [["a", "U8", [1]], ["a", "U8", [1]]]}}, "names a tensor twice"),
        ({"tensors": {"m.safetensors": [["a", "U8", [1], {"i": [0, 1]}]]}}, "does not use every range of ['i']"),
        ({"tensors": {"m.safetensors": [["a.{i}", "U8", [1], {"i": [0, 10**9]}]]}}, "2,000,000 is the limit"),
        ({"tensors": {"m.safetensors": [{"group": "g", "prefix": ""}]}}, "needs the name of a group"),
        ({"tensors": {"/m.safetensors": []}}, "is not a path inside the checkpoint"),
        ({"files": {"../config.json": {}}}, "is not a path inside the checkpoint"),
        ({"files": {"c:\\config.json": {}}}, "is not a path inside the checkpoint"),
        ({"index": {"name": "a/../../b"}}, "is not a path inside the checkpoint"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_refuses_a_wrong_manifest(changes: dict[str, Any], message: str) -> None:
    """A manifest that says nothing sensible, or leads out of its directory, is refused with the place named."""
    with pytest.raises(ManifestError) as caught:
        load_manifest(document(**changes))

    assert message in str(caught.value)


def test_materialise_never_overwrites(tmp_path: Path) -> None:
    """A file that stands in the way is left alone."""
    (tmp_path / "model.safetensors").write_bytes(b"precious")

    with pytest.raises(ManifestError, match="is there already"):
        materialise(load_manifest(document()), tmp_path)

    assert (tmp_path / "model.safetensors").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"norm.weight": {"rule": "spread", "of": 9}}, "no rule"),
        ({"d2t": {"rule": "members", "of": "norm.weight"}}, "is no table spread in the same file"),
        ({"d2t": {"zlib": "eJxjAAAAAQAB"}}, "has not the 24 bytes of its tensor"),
    ],
    ids=["float", "no table", "short"],
)
def test_refuses_a_wrong_table(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    """A table that does not fit its tensor is refused."""
    rows = [["norm.weight", "BF16", [4]], ["d2t", "I64", [3]]]

    with pytest.raises(ManifestError) as caught:
        materialise(load_manifest(document(tensors={"model.safetensors": rows}, values=values)), tmp_path)

    assert message in str(caught.value)


def checkpoint(root: Path) -> Path:
    root.mkdir()
    (root / "config.json").write_text('{"model_type": "qwen3", "hidden_size": 4}\n')
    (root / "notes.txt").write_text("12345")
    (root / "odd").mkdir()
    tensors = {f"layers.{i}.w": np.full((2, 4), 7, np.float16) for i in range(3)}
    tensors |= {"d2t": np.array([0, 3, 9]), "t2d": np.array([True, False]), "scale": np.array(0.5, np.float32)}
    save_file(tensors, root / "model.safetensors", metadata={"format": "pt"})
    return root


def test_round_trip(tmp_path: Path) -> None:
    """A snapshot of a checkpoint materialises with the same headers, sizes, documents and tables."""
    original = checkpoint(tmp_path / "original")

    made = materialise(load_manifest(snapshot(original, values=True)), tmp_path / "copy")

    a, b = (root / "model.safetensors" for root in (original, made.draft))
    length = struct.unpack("<Q", a.read_bytes()[:8])[0] + 8
    assert a.read_bytes()[:length] == b.read_bytes()[:length]
    assert sorted((p.name, p.is_dir(), p.stat().st_size * p.is_file()) for p in original.iterdir() if p != a) == [
        ("config.json", False, 42),
        ("notes.txt", False, 5),
        ("odd", True, 0),
    ]
    assert {p.name for p in made.draft.iterdir()} == {p.name for p in original.iterdir()}
    assert json.loads((made.draft / "config.json").read_text()) == {"model_type": "qwen3", "hidden_size": 4}
    assert a.stat().st_size == b.stat().st_size
    with safe_open(a, "np") as one, safe_open(b, "np") as other:
        for name in ("d2t", "t2d"):
            assert one.get_tensor(name).tolist() == other.get_tensor(name).tolist()
        assert other.get_tensor("layers.0.w").tolist() == [[0] * 4] * 2


def test_snapshot_takes_no_content(tmp_path: Path) -> None:
    """Without being asked to, a snapshot reads no tensor and no file that is not configuration."""
    document = snapshot(checkpoint(tmp_path / "original"))

    assert document == {
        "manifest": 1,
        "id": "original",
        "source": ["made by snapshot of a checkpoint directory"],
        "completeness": "full",
        "files": {
            "config.json": {"model_type": "qwen3", "hidden_size": 4},
            "notes.txt": {"$bytes": 5},
            "odd": {"$directory": True},
        },
        "tensors": {
            "model.safetensors": [
                ["d2t", "I64", [3]],
                ["layers.{i}.w", "F16", [2, 4], {"i": [0, 2]}],
                ["scale", "F32", []],
                ["t2d", "BOOL", [2]],
            ]
        },
    }


def raw(header: bytes, data: int) -> bytes:
    return struct.pack("<Q", len(header)) + header + bytes(data)


@pytest.mark.parametrize(
    "content",
    [
        raw(
            b'{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}',
            3,
        ),
        raw(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'.ljust(400), 1),
        raw(b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}', 1),
        raw(b'{"__metadata__":{"by":"hand"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}'.ljust(96), 1),
        raw(b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 1),
        raw(b"{}", 0),
        b"version https://git-lfs.github.com/spec/v1\n",
        b"\xff" * 70_000,
        b"",
    ],
    ids=[
        "other order",
        "long padding",
        "spaces",
        "metadata",
        "truncated",
        "no tensors",
        "lfs pointer",
        "long rubbish",
        "empty",
    ],
)
def test_snapshot_keeps_oddities(tmp_path: Path, content: bytes) -> None:
    """A file written by other hands, or broken, is begun in the same way by what is made of its snapshot."""
    original = tmp_path / "original"
    original.mkdir()
    (original / "model.safetensors").write_bytes(content)

    made = materialise(load_manifest(snapshot(original)), tmp_path / "copy")

    copied = (made.draft / "model.safetensors").read_bytes()
    assert len(copied) == len(content)
    assert copied[: 1 << 16].rstrip(b"\0") == content[: 1 << 16].rstrip(b"\0")


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": NaN}', '\ufeff{"a": 1}', '{"a": 1,}', "[1]", '{"$text": "x"}', "café"],
    ids=["repeated key", "NaN", "byte order mark", "trailing comma", "array", "looks raw", "not JSON"],
)
def test_snapshot_keeps_odd_documents(tmp_path: Path, text: str) -> None:
    """A document that says more than its value does is kept to the letter."""
    original = tmp_path / "original"
    original.mkdir()
    (original / "config.json").write_bytes(text.encode())

    made = materialise(load_manifest(snapshot(original)), tmp_path / "copy")

    assert (made.draft / "config.json").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("edit", "folded"),
    [
        (dict, True),
        (lambda index: index["metadata"].update(total_size=1), True),
        (lambda index: index["weight_map"].pop("a"), False),
        (lambda index: index["weight_map"].update(b="model-00001-of-00002.safetensors"), False),
        (lambda index: index.update(more=1), False),
    ],
    ids=["plain", "other metadata", "tensor left out", "wrong shard", "more keys"],
)
def test_snapshot_folds_an_index(tmp_path: Path, edit: Any, folded: bool) -> None:
    """An index that lists exactly what the shards hold is not spelled out; any other one is kept as it is."""
    rows = {f"model-0000{n}-of-00002.safetensors": [[name, "U8", [1]]] for n, name in ((1, "a"), (2, "b"))}
    original = materialise(load_manifest(document(tensors=rows, index={})), tmp_path / "original").draft
    path = original / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    edit(index)
    path.write_text(json.dumps(index))

    made = snapshot(original)

    assert ("model.safetensors.index.json" not in made["files"]) == folded
    assert json.loads((materialise(load_manifest(made), tmp_path / "copy").draft / path.name).read_text()) == index


def test_dump_is_read_back(tmp_path: Path) -> None:
    """What dump_manifest writes, load_manifest reads as the same document."""
    whole = snapshot(checkpoint(tmp_path / "original"), values=True)

    assert load_manifest(json.loads(dump_manifest(whole))).document == whole


def test_command(tmp_path: Path) -> None:
    """``snapshot`` and ``materialise`` are one command each, and there and back again changes nothing."""
    original, first, copy, second = (tmp_path / name for name in ("original", "1.json", "copy", "2.json"))
    checkpoint(original)
    run = CliRunner().invoke

    results = [
        run(manifest_group, ["snapshot", str(original), str(first)]),
        run(manifest_group, ["materialise", str(first), str(copy / "original")]),
        run(manifest_group, ["snapshot", str(copy / "original"), str(second)]),
    ]

    assert [(r.exit_code, r.stdout) for r in results] == [(0, "")] * 3
    assert first.read_text() == second.read_text()
    assert run(manifest_group, ["snapshot", str(original)]).stdout == first.read_text()
    again = run(manifest_group, ["materialise", str(first), str(copy / "original")])
    assert again.exit_code == 1
    assert "is there already" in again.stderr


def test_refuses_a_header_that_does_not_fit(tmp_path: Path) -> None:
    """A header longer than the length given for it is refused."""
    shards = {"model.safetensors": {"header_bytes": 16}}

    with pytest.raises(ManifestError, match="header_bytes is 16, but the header of these tensors takes 96 bytes"):
        materialise(load_manifest(document(shards=shards)), tmp_path)


def test_command_with_target(tmp_path: Path) -> None:
    """``--target`` writes what is known of the target's configuration."""
    path = tmp_path / "m.json"
    path.write_text(dump_manifest(document(target={"hidden_size": 4})))

    result = CliRunner().invoke(
        manifest_group, ["materialise", str(path), str(tmp_path / "d"), "--target", str(tmp_path / "t")]
    )

    assert result.exit_code == 0
    assert json.loads((tmp_path / "t" / "config.json").read_text()) == {"hidden_size": 4}


def test_snapshot_of_nothing(tmp_path: Path) -> None:
    """A directory that is not there is an error, not an empty manifest."""
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)

    with pytest.raises(ManifestError, match="cannot be listed"):
        snapshot(tmp_path / "gone")
