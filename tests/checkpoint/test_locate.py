"""From pointers to lines and columns."""

from __future__ import annotations

import json
import sys
import time

from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_lint.checkpoint import locate
from dspark_lint.checkpoint.problems import pointer_to


locate_module = sys.modules["dspark_lint.checkpoint.locate"]


TEXT = """{
  "a": 1,
  "b": {"c": [10, {"d": "x"}, [[]], "a,]}"],
        "e/f": null, "g~h": true},
  "": {"": 5},
  "k" : "\\"k\\": {" ,
  "emoji \\ud83d\\ude00": -1.5e3,
  "tab\\there": {},
  "twice": 1, "twice": {"in": 2}
}
"""

CASES: dict[str, tuple[int, int] | None] = {
    "": (1, 1),
    "/a": (2, 3),
    "/b": (3, 3),
    "/b/c": (3, 9),
    "/b/c/0": (3, 15),
    "/b/c/1": (3, 19),
    "/b/c/1/d": (3, 20),
    "/b/c/2": (3, 31),
    "/b/c/2/0": (3, 32),
    "/b/c/3": (3, 37),
    "/b/e~1f": (4, 9),
    "/b/g~0h": (4, 22),
    "/": (5, 3),
    "//": (5, 8),
    "/k": (6, 3),
    "/emoji \U0001f600": (7, 3),
    "/tab\there": (8, 3),
    "/twice": (9, 15),
    "/twice/in": (9, 25),
    # What is not there: the nearest ancestor that is.
    "/absent": (1, 1),
    "/b/absent": (3, 3),
    "/b/c/4": (3, 9),
    "/b/c/-": (3, 9),
    "/b/c/01": (3, 9),
    "/b/c/x": (3, 9),
    "/b/c/99999999999": (3, 9),
    "/b/c/2/0/0": (3, 32),
    "/a/deeper/still": (2, 3),
    # No pointer at all.
    "a": None,
}


@pytest.mark.parametrize(("pointer", "place"), CASES.items(), ids=CASES.keys())
def test_locate(pointer: str, place: tuple[int, int] | None) -> None:
    """A member is found by its key, an element by its value, what is absent by its nearest ancestor."""
    assert locate(TEXT, pointer) == place


@pytest.mark.parametrize(
    ("text", "pointer", "place"),
    [
        ('\ufeff{"a": 1}', "/a", (1, 2)),
        ('\ufeff\n{"a": 1}', "/a", (2, 2)),
        ("\n\n  [1, 2]", "/1", (3, 7)),
        ("  5", "", (1, 3)),
        ("", "", None),
        (" \n", "", None),
        ('{"a": ', "/a", (1, 2)),
        ('{"a": [1, ', "/a/1", (1, 2)),
        ('{"a": 1 "b": 2}', "/b", (1, 1)),
        ("not json", "/a", (1, 1)),
        ('{"\\ud800": 1}', "/\ud800", (1, 2)),
        ('{"\\q": 1, "a": 2}', "/a", (1, 11)),
        ('{"a": {"b": [}, "c": 1}', "/c", (1, 1)),
    ],
)
def test_odd_texts(text: str, pointer: str, place: tuple[int, int] | None) -> None:
    """Byte order marks take no column, and broken texts end in the place that was reached."""
    assert locate(text, pointer) == place


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(JSON, st.sampled_from([None, 1, 2]), st.booleans())
def test_every_value_is_found(value: Any, indent: int | None, ascii_only: bool) -> None:
    """At the place of every value of any document stands that value, or its key."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    lines = text.split("\n")
    decoder = json.JSONDecoder()
    stack: list[tuple[Any, tuple[object, ...]]] = [(value, ())]
    while stack:
        item, path = stack.pop()
        place = locate(text, pointer_to(*path))
        assert place is not None
        rest = "\n".join([lines[place[0] - 1][place[1] - 1 :], *lines[place[0] :]])
        read, end = decoder.raw_decode(rest)
        if path and isinstance(path[-1], str):
            assert read == path[-1]
            assert rest[end:].lstrip().startswith(":")
            read, _ = decoder.raw_decode(rest[end:].lstrip()[1:].lstrip())
        assert read == item
        if isinstance(item, dict):
            stack += [(inner, (*path, key)) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [(inner, (*path, i)) for i, inner in enumerate(item)]


def big_index(count: int) -> str:
    weight_map = {
        f"model.layers.{i}.mlp.experts.{i % 64}.down_proj.weight": "model-00001-of-00046.safetensors"
        for i in range(count)
    }
    return json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}, indent=2)


def test_big_index_is_quick() -> None:
    """A hundred places in an index of 7 MB are found in the time that a report may take."""
    text = big_index(72_000)
    start = time.perf_counter()
    places = [
        locate(text, f"/weight_map/model.layers.{i}.mlp.experts.{i % 64}.down_proj.weight")
        for i in range(0, 72_000, 720)
    ]
    elapsed = time.perf_counter() - start

    assert places == [(6 + i, 5) for i in range(0, 72_000, 720)]
    assert elapsed < 5


def test_big_index_short_cut_is_exact() -> None:
    """A name that also stands elsewhere in a big index is found at its own place."""
    weight_map = {f"t{i}": "m" for i in range(10_000)}
    weight_map["odd"] = "t7"
    text = json.dumps({"note": {"t5": "odd"}, "weight_map": weight_map, "t9": 1}, indent=0)
    lines = text.split("\n")

    for name in ("t5", "t7", "t9", "odd", "t9999"):
        line, column = locate(text, f"/weight_map/{name}") or (0, 0)
        assert (lines[line - 1].startswith(f'"{name}": "'), column) == (True, 1)
        assert line > 4
    assert locate(text, "/weight_map/absent") == locate(text, "/weight_map")


FILL = ", ".join(f'"t{i}": "m"' for i in range(10_000))

TRAPS = {
    "key before the map": f'{{"note": {{"stray": 1}}, "weight_map": {{{FILL}}}}}',
    "key behind the map": f'{{"weight_map": {{{FILL}}}, "stray": 1}}',
    "key in an object behind the map": f'{{"weight_map": {{{FILL}}}, "note": {{"stray": 1}}}}',
    "key in an object in the map": f'{{"weight_map": {{{FILL}, "x": {{"stray": 1}}}}}}',
    "value in the map": f'{{"weight_map": {{{FILL}, "x": "stray"}}}}',
    "key twice": f'{{"weight_map": {{"stray": 1, {FILL}, "stray": 2}}}}',
    "map twice": f'{{"weight_map": {{{FILL}, "stray": 1}}, "weight_map": {{"t0": 1}}}}',
    "map in an object": f'{{"note": {{"weight_map": {{{FILL}, "stray": 1}}}}}}',
    "map in an array": f'{{"weight_map": [{{"weight_map": {{{FILL}, "stray": 1}}}}]}}',
    "braces in a string": f'{{"{{": 1, "weight_map": {{{FILL}, "stray": 1}}}}',
    "braces in a file name": f'{{"weight_map": {{"x": "}}", {FILL}, "stray": 1}}}}',
    "plain": f'{{"weight_map": {{{FILL}, "stray": 1}}}}',
}


@pytest.mark.parametrize("text", TRAPS.values(), ids=TRAPS.keys())
def test_short_cut_gives_what_the_long_way_gives(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In big texts that are built to mislead a search, the place is the one that reading from the top gives."""
    places = locate(text, "/weight_map/stray"), locate(text, "/weight_map/t1")
    monkeypatch.setattr(locate_module, "_LONG", len(text) + 1)

    assert places == (locate(text, "/weight_map/stray"), locate(text, "/weight_map/t1"))
