"""Reads: which keys a piece of source reads by name, and with which default."""

from __future__ import annotations

import ast
import textwrap

from typing import Any

import pytest

from dspark_lint.provenance.reads import COMPUTED, PRESENCE, REQUIRED, Receivers, reads


RECEIVERS = Receivers(
    roots={"config": "", "hf_config": "", "nested_config": "nested", "file_dict": "file"},
    foreign=("model_config.hf_config", "target_config"),
    transparent=("dict", "to_dict", "get_text_config"),
    helpers={"nested_value": ["{1}.{2}"], "anywhere": ["nested.{1}", "{1}"]},
    objects=frozenset({"rope"}),
)


def found(body: str, head: str = "def load(self, config):") -> list[tuple[str, Any]]:
    """Return (key, default) of every read of a function."""
    module = ast.parse(f"{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n")
    return [(read.key, read.default) for read in reads(module, RECEIVERS)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = config.rank", [("rank", REQUIRED)]),
        ("x = self.config.rank", [("rank", REQUIRED)]),
        ('x = getattr(config, "rank", 8)', [("rank", 8)]),
        ('x = getattr(config, "rank")', [("rank", REQUIRED)]),
        ('x = hasattr(config, "rank")', [("rank", PRESENCE)]),
        ('x = config.get("rank")', [("rank", None)]),
        ('x = config.get("rank", 8)', [("rank", 8)]),
        ('x = config.pop("rank")', [("rank", REQUIRED)]),
        ('x = config["rank"]', [("rank", REQUIRED)]),
        ('x = "rank" in config', [("rank", PRESENCE)]),
        ('x = "rank" not in config', [("rank", PRESENCE)]),
        ('x = getattr(config, "rank", self.rank)', [("rank", COMPUTED)]),
        ('x = getattr(config, "a", getattr(config, "b", 3))', [("a", COMPUTED), ("b", 3)]),
        ('x = getattr(config, "rank", None) or 3', [("rank", 3)]),
        ('x = getattr(config, "rank", None) or config.width', [("rank", COMPUTED), ("width", REQUIRED)]),
        ('x = getattr(config, "bias", -1.5)', [("bias", -1.5)]),
        ('x = config.layer_types.count("full")', [("layer_types", REQUIRED)]),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_every_way_to_read_a_key(body: str, expected: list[tuple[str, Any]]) -> None:
    """Attributes, getattr, hasattr, get, pop, subscripts and membership; the default is the literal one that counts."""
    assert found(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "config.rank = 3",
        'config["rank"] = 3',
        'setattr(config, "rank", 3)',
        'config.update({"rank": 3})',
        "x = config.to_dict()",
        "x = self.rank",
        "x = other.rank",
        'x = getattr(other, "rank", 8)',
        'x = "full" in config.get_text_config().to_dict().values()',
        "x = model_config.hf_config.rank",
        "config = vllm_config.model_config.hf_config\nx = config.rank",
    ],
)
def test_what_is_no_read(body: str) -> None:
    """Writes, methods, other objects and the target's configuration read no key of the draft."""
    head = "def load(self):" if body.startswith("config = ") else "def load(self, config):"
    assert found(body, head) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('x = (getattr(config, "block", None) or {}).get("size")', [("block", {}), ("block.size", None)]),
        ('inner = getattr(config, "block", {})\nx = inner["size"]', [("block", {}), ("block.size", REQUIRED)]),
        (
            'inner = config.block\nif "size" in inner:\n    x = inner.size',
            [("block", REQUIRED), ("block.size", REQUIRED)],
        ),
        (
            'merged = getattr(config, "a", {})\nmerged.update(getattr(config, "b", {}))\nx = merged.get("size", 4)',
            [("a", {}), ("b", {}), ("a.size", 4), ("b.size", 4)],
        ),
        ('for name in ("a", "b"):\n    x = getattr(config, name, None)', [("a", None), ("b", None)]),
        (
            'for name in ("a", "b"):\n    x = getattr(config, name).size',
            [("a", REQUIRED), ("a.size", REQUIRED), ("b", REQUIRED), ("b.size", REQUIRED)],
        ),
        (
            'x = any("m" in r for r in (config.rope, config.scaling))',
            [("rope", REQUIRED), ("rope.m", PRESENCE), ("scaling", REQUIRED), ("scaling.m", PRESENCE)],
        ),
        ('x = nested_value(config, "block", "size")', [("block.size", COMPUTED)]),
        ('x = anywhere(config, "size")', [("nested.size", COMPUTED), ("size", COMPUTED)]),
        ('x = getattr(config, f"size_{i}")', [("*", REQUIRED)]),
        ("x = nested_config.size", [("nested.size", REQUIRED)]),
        ('x = file_dict["size"]', [("file.size", REQUIRED)]),
        (
            "config = config.text_config\nx = config.rank",
            [
                ("text_config", REQUIRED),
                ("text_config.text_config", REQUIRED),
                ("rank", REQUIRED),
                ("text_config.rank", REQUIRED),
            ],
        ),
        ("x = dict(config)['rank']", [("rank", REQUIRED)]),
        ("x = config.get_text_config().rank", [("rank", REQUIRED)]),
        (
            "def inner():\n    return config.rank\nx = [config.width for _ in inner()]",
            [("rank", REQUIRED), ("width", REQUIRED)],
        ),
    ],
    ids=range(16),
)
def test_names_bound_to_a_configuration_are_followed(body: str, expected: list[tuple[str, Any]]) -> None:
    """Dictionaries inside, merged ones, loops over names, helpers and inner functions give the whole path."""
    assert sorted(found(body), key=repr) == sorted(expected, key=repr)


def test_membership_in_a_value_is_no_key() -> None:
    """``"full" in config.layer_types`` asks for an element; ``"m" in config.rope`` for a key, as the contract says."""
    assert found('x = "full" in config.layer_types, "m" in config.rope') == [
        ("layer_types", REQUIRED),
        ("rope", REQUIRED),
        ("rope.m", PRESENCE),
    ]


def test_reads_know_their_definition_and_line() -> None:
    """Methods, branches of a module, and a constant that the module binds."""
    source = textwrap.dedent("""
        KEY = "rank"
        DEFAULT = 8
        class Model:
            def __init__(self, config):
                self.rank = getattr(config, KEY, DEFAULT)
        if True:
            def late(config):
                return config.width
    """)
    assert [(r.definition, r.line, r.key, r.default) for r in reads(ast.parse(source), RECEIVERS)] == [
        ("Model.__init__", 6, "rank", 8),
        ("late", 9, "width", REQUIRED),
    ]
