"""The index of a sharded checkpoint."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.checkpoint import INDEX, open_checkpoint


if TYPE_CHECKING:
    from pathlib import Path


Told = list[tuple[str, str | None, str | None, str, bool]]

ESCAPES = "leads out of the checkpoint directory"

CASES: dict[str, tuple[Any, Told]] = {
    "good": ({"metadata": {"total_size": 3}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}, []),
    "good, in a directory": ({"weight_map": {"a": "inner/m.safetensors"}}, []),
    "good, dots in a name": ({"weight_map": {"a": "..m.safetensors", "b": "m..x.safetensors"}}, []),
    "linked file": ({"weight_map": {"a": "cached.safetensors"}}, []),
    "no weight_map": (
        {"metadata": {}},
        [("index-no-weight-map", "/weight_map", None, f"`{INDEX}` has no `weight_map`", True)],
    ),
    "weight_map array": (
        {"weight_map": ["a"]},
        [("index-bad-weight-map", "/weight_map", None, f'`weight_map` of `{INDEX}` is ["a"], not an object', True)],
    ),
    "weight_map null": (
        {"weight_map": None},
        [("index-bad-weight-map", "/weight_map", None, f"`weight_map` of `{INDEX}` is null, not an object", True)],
    ),
    "weight_map empty": (
        {"weight_map": {}},
        [("index-empty", "/weight_map", None, f"`weight_map` of `{INDEX}` lists no tensor", False)],
    ),
    "number": (
        {"weight_map": {"a": "m.safetensors", "b/c": 1}},
        [("index-bad-entry", "/weight_map/b~1c", "b/c", "`weight_map` names 1 as the file of `b/c`", False)],
    ),
    "nothing": (
        {"weight_map": {"a": "m.safetensors", "b": ""}},
        [("index-bad-entry", "/weight_map/b", "b", '`weight_map` names "" as the file of `b`', False)],
    ),
    "array and null and nothing": (
        {"weight_map": {"a": ["m.safetensors"], "b": None, "c": "", "d": True}},
        [
            ("index-bad-entry", "/weight_map/a", "a", '`weight_map` names ["m.safetensors"] as the file of `a`', False),
            ("index-bad-entry", "/weight_map/b", "b", "`weight_map` names null as the file of `b`", False),
            ("index-bad-entry", "/weight_map/c", "c", '`weight_map` names "" as the file of `c`', False),
            ("index-bad-entry", "/weight_map/d", "d", "`weight_map` names true as the file of `d`", False),
        ],
    ),
    "parent directory": (
        {"weight_map": {"a": "m.safetensors", "b": "../x.safetensors"}},
        [("index-escapes", "/weight_map/b", "b", f"`../x.safetensors`, the file of `b`, {ESCAPES}", False)],
    ),
    "parent directory, three tensors": (
        {"weight_map": {"a": "i/../../x", "b": "i/../../x", "c": "i/../../x"}},
        [("index-escapes", "/weight_map/a", "a", f"`i/../../x`, the file of `a` and 2 more, {ESCAPES}", False)],
    ),
    "absolute": (
        {"weight_map": {"a": "/etc/passwd"}},
        [("index-escapes", "/weight_map/a", "a", f"`/etc/passwd`, the file of `a`, {ESCAPES}", False)],
    ),
    "backslashes": (
        {"weight_map": {"a": "..\\x.safetensors"}},
        [("index-escapes", "/weight_map/a", "a", f"`..\\x.safetensors`, the file of `a`, {ESCAPES}", False)],
    ),
    "the directory itself": (
        {"weight_map": {"a": ".."}},
        [("index-escapes", "/weight_map/a", "a", f"`..`, the file of `a`, {ESCAPES}", False)],
    ),
    "through a linked directory": (
        {"weight_map": {"a": "outside/x.safetensors"}},
        [("index-escapes", "/weight_map/a", "a", f"`outside/x.safetensors`, the file of `a`, {ESCAPES}", False)],
    ),
    "control characters": (
        {"weight_map": {"a\n": "../\x1b[2Jx"}},
        [("index-escapes", "/weight_map/a\n", "a\n", f"`../\\x1b[2Jx`, the file of `a\\n`, {ESCAPES}", False)],
    ),
}


@pytest.mark.parametrize(("value", "problems"), CASES.values(), ids=CASES.keys())
def test_index(value: Any, problems: Told, tmp_path: Path) -> None:
    """Each fault of the map is told with the pointer of the entry."""
    root = tmp_path / "ckpt"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "blob").write_bytes(b"")
    (root / "cached.safetensors").symlink_to(tmp_path / "blob")
    (root / INDEX).write_text(json.dumps(value))

    got = open_checkpoint(root).index()

    assert [(x.kind, x.pointer, x.tensor, x.detail, x.fatal) for x in got.problems] == problems
    assert got.value == (None if got.fatal else value)
    assert all((x.found or "").isprintable() for x in got.problems)


def test_many_entries_are_counted(tmp_path: Path) -> None:
    """A thousand bad entries, and a hundred files outside, are told a few times each."""
    weight_map: dict[str, Any] = {f"t{i}": i for i in range(1000)}
    weight_map.update({f"u{i}": f"../{i}" for i in range(100)})
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))

    problems = open_checkpoint(tmp_path).index().problems

    assert [x.kind for x in problems] == ["index-bad-entry"] * 8 + ["index-escapes"] * 8
    assert problems[7].detail.endswith("(and 992 more like it)")
    assert problems[15].detail.endswith("(and 92 more files)")


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/hostname", "outside/x.safetensors", ".."])
def test_nothing_outside_is_read(name: str, tmp_path: Path) -> None:
    """A name that leads out is refused without a look at what stands there."""
    root = tmp_path / "ckpt"
    root.mkdir()
    (tmp_path / "x.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (root / "outside").symlink_to(tmp_path)
    checkpoint = open_checkpoint(root)

    assert [(x.kind, x.fatal) for x in checkpoint.header(name).problems] == [("index-escapes", True)]
    assert [(x.kind, x.fatal) for x in checkpoint.document(name).problems] == [("index-escapes", True)]
    assert [(x.kind, x.fatal) for x in checkpoint.pt_storage(name).problems] == [("index-escapes", True)]


def test_index_is_held_to_the_rules_of_documents(tmp_path: Path) -> None:
    """An index that is no JSON object is refused before its map is looked for."""
    (tmp_path / INDEX).write_text("[]")

    assert [x.kind for x in open_checkpoint(tmp_path).index().problems] == ["not-object"]


def test_duplicates_in_the_map_are_told(tmp_path: Path) -> None:
    """A tensor listed twice is a repeated key like any other."""
    (tmp_path / INDEX).write_text('{"weight_map": {"a": "1", "b": "1", "a": "2"}}')

    got = open_checkpoint(tmp_path).index()

    assert [(x.kind, x.pointer, x.fatal) for x in got.problems] == [("duplicate-key", "/weight_map/a", False)]
    assert got.value == {"weight_map": {"a": "2", "b": "1"}}
