"""Fingerprints: what changes one, and what must not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from dspark_lint.provenance.fingerprint import fingerprint


BASE = """
def resolve(config, index):
    value = getattr(config, "rank", 8)
    if value is None:
        raise ValueError(f"no rank in {config!r} at {index:>{4}}")
    return [v + 1 for v in value][index]
"""


def of(source: str, *, texts: bool = True) -> str:
    return fingerprint(ast.parse(textwrap.dedent(source)).body[0], texts=texts)


SAME = {
    "comments and blank lines": BASE.replace("    if", "    # why\n\n    if"),
    "a docstring": BASE.replace("index):", 'index):\n    """Resolve."""'),
    "a string that describes a name": BASE.replace("8)", '8)\n    """The rank."""'),
    "another line length": BASE.replace(
        'getattr(config, "rank", 8)', 'getattr(\n        config,\n        "rank",\n        8,\n    )'
    ),
    "other quotes": BASE.replace('"rank"', "'rank'"),
    "a text in two pieces": BASE.replace(
        'f"no rank in {config!r} at {index:>{4}}"', 'f"no rank " f"in {config!r} " "at " f"{index:>{4}}"'
    ),
    "a number spelt otherwise": BASE.replace("8)", "0x8)"),
    "its own name": BASE.replace("def resolve", "def resolve_rank"),
}
OTHER = {
    "a default": BASE.replace("8)", "9)"),
    "a default of another type": BASE.replace("8)", "8.0)"),
    "a key": BASE.replace('"rank"', '"markov_rank"'),
    "an operator": BASE.replace("v + 1", "v - 1"),
    "a condition": BASE.replace("is None", "is not None"),
    "a message": BASE.replace("no rank", "missing rank"),
    "a format": BASE.replace("{config!r}", "{config}"),
    "a parameter": BASE.replace("index):", "index, default=None):"),
    "a statement less": BASE.replace(
        "    if value is None:\n", "    if value is None:\n        value = 3\n    if value is None:\n"
    ),
    "a decorator": "@cache\n" + BASE.lstrip(),
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_what_is_not_executed_changes_nothing(source: str) -> None:
    """Formatting, comments, docstrings and the definition's own name leave the fingerprint as it is."""
    assert of(source) == of(BASE)


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER)
def test_what_is_executed_counts(source: str) -> None:
    """Whatever the code does otherwise gives another fingerprint."""
    assert of(source) != of(BASE)


def test_fingerprints_outlive_the_python_that_made_them() -> None:
    """The recorded fingerprints of the contracts hold under every Python: this one was made by 3.11."""
    assert of(BASE) == "2835f2c4c23a1e25"


@pytest.mark.parametrize(("changed", "same"), [("a message", True), ("a key", False), ("a default", False)])
def test_the_shape_leaves_sentences_out(changed: str, same: bool) -> None:
    """Without texts a reworded message is the same shape, another key or default is not."""
    assert (of(OTHER[changed], texts=False) == of(BASE, texts=False)) is same


def test_assignments_count_by_value() -> None:
    """A table keeps its fingerprint under another name and loses it with another entry."""
    table = '_MODELS = {"A": ("a", "A")}'
    assert of(table) == of(table.replace("_MODELS", "_DRAFTS")) != of(table.replace('"a"', '"b"'))
