"""The reader audit: keys without a clause, and defaults that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trees import contract, edited, write

from dspark_lint.contract.load import merge
from dspark_lint.provenance.audit import audited, gaps
from dspark_lint.provenance.reads import REQUIRED
from dspark_lint.provenance.source import SourceTree


if TYPE_CHECKING:
    from pathlib import Path


READ_MORE = (
    "models/mini_draft.py",
    "        self.rank",
    '        self.more = getattr(config, "more", 5)\n        self.rank',
)


def told(root: Path, changes: dict[str, Any], *edits: tuple[str, str, str]) -> list[tuple[str, str, Any, Any]]:
    tree = SourceTree(write(root, edited(*edits)))
    return [(g.kind, g.key, g.contract, g.source) for g in gaps(merge(contract(), changes), tree)]


def test_the_fake_contract_has_no_gap(tree: SourceTree) -> None:
    """Every read of the fake source has its clause and its default."""
    assert list(gaps(contract(), tree)) == []


def test_a_new_key_is_a_gap(tmp_path: Path) -> None:
    """A key that no clause names, with where it is read and its default."""
    tree = SourceTree(write(tmp_path, edited(READ_MORE)))
    (gap,) = gaps(contract(), tree)
    assert gap._asdict() == {
        "kind": "key",
        "key": "more",
        "where": "models/mini_draft.py:14",
        "definition": "MiniModel.__init__",
        "contract": None,
        "source": 5,
        "families": ("mini",),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"families": {"mini": {"keys": {"more": {"lookup": ["old", "more"], "default": 5}}}}},
        {"families": {"mini": {"keys": {"more": {"lookup": [{"path": "more", "when": "true"}], "default": 5}}}}},
        {"families": {"mini": {"keys": {"more": {"lookup": ["more.inner?"]}}}}},
        {"families": {"mini": {"let": {"twice": "2 * config.more"}}}},
        {"families": {"mini": {"tensors": {"a": {"when": "own.more == 3"}}}}},
        {"families": {"mini": {"checks": {"c": {"rule": "KEY003", "require": "config.more > 0"}}}}},
        {"families": {"mini": {"checks": {"c": {"rule": "KEY003", "at": "/more", "require": "false"}}}}},
        {"routes": {"r": {"when": "config.more is not None"}}},
        {"audit": {"irrelevant": {"more": "a scalar"}}},
        {"audit": {"irrelevant": {"mo*": "a pattern"}}},
    ],
    ids=[
        "lookup",
        "conditional lookup",
        "something inside it",
        "let",
        "tensor",
        "check",
        "place of a check",
        "route",
        "irrelevant",
        "pattern",
    ],
)
def test_a_clause_or_a_reason_closes_the_gap(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Anything that the contract makes of the key counts, and so does a stated reason."""
    assert told(tmp_path, changes, READ_MORE) == []


@pytest.mark.parametrize(
    "changes",
    [
        {
            "families": {"mini": {"checks": {"c": {"rule": "KEY008", "require": "config.more is None"}}}},
            "audit": {"unread_rules": ["KEY008"]},
        },
        {
            "families": {
                "mini": {"checks": {"c": {"rule": "KEY003", "require": "true", "message": "config.more is read"}}}
            }
        },
        {"families": {"idle": {"keys": {"more": {"lookup": ["more"]}}}}},
        {"families": {"mini": {"keys": {"more_of_it": {"lookup": ["more_of_it"]}}}}},
    ],
    ids=["a check that says it is not read", "a message", "a family not in use", "a longer name"],
)
def test_what_is_no_clause_for_a_key(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A check that calls the key unread does not cover it once it is read, nor does a mere mention."""
    assert told(tmp_path, changes, READ_MORE) == [("key", "more", None, 5)]


def default(value: str) -> tuple[str, str, str]:
    return ("models/mini_draft.py", 'getattr(config, "rank", 8)', value)


@pytest.mark.parametrize(
    ("clause", "read", "expected"),
    [
        ({}, 'getattr(config, "rank", 8)', []),
        ({}, 'getattr(config, "rank", 16)', [("default", "rank", 8, 16)]),
        ({}, 'getattr(config, "rank", 8.0)', []),
        ({}, 'getattr(config, "rank", True)', [("default", "rank", 8, True)]),
        ({}, 'getattr(config, "rank", None)', [("default", "rank", 8, None)]),
        ({}, "config.rank", []),
        ({}, 'getattr(config, "rank", self.width)', []),
        ({}, 'getattr(config, "rank", None) or 8', []),
        ({}, 'getattr(config, "rank", None) or 4', [("default", "rank", 8, 4)]),
        ({}, 'getattr(config, "rank", None); x = getattr(config, "rank", 8)', []),
        ({"default": None}, 'getattr(config, "rank", ())', []),
        ({"default": [1, 2]}, 'getattr(config, "rank", (1, 2))', []),
        ({"default": None, "default_value": "width"}, 'getattr(config, "rank", 3)', []),
        ({"type": "truthy", "default": False}, 'getattr(config, "rank", None)', []),
        ({"type": "truthy", "default": False}, 'getattr(config, "rank", True)', [("default", "rank", False, True)]),
        ({"lookup": ["rank", "other"]}, 'getattr(config, "rank", None)', []),
        ({"lookup": ["rank", "other"]}, 'getattr(config, "rank", 4)', [("default", "rank", 8, 4)]),
    ],
)
def test_defaults_are_compared(tmp_path: Path, clause: dict[str, Any], read: str, expected: list[Any]) -> None:
    """The literal in the code against the clause's; a null that leads to the next place is none."""
    assert told(tmp_path, {"families": {"mini": {"keys": {"rank": clause}}}}, default(read)) == expected


def test_a_default_where_the_contract_says_required(tmp_path: Path) -> None:
    """A key that is no longer required is a difference too; a null is what the code complains of further down."""
    changes = {"families": {"mini": {"keys": {"rank": {"default": None, "absent": {"effect": "refused"}}}}}}
    assert told(tmp_path / "eight", changes, default('getattr(config, "rank", 8)')) == [
        ("default", "rank", REQUIRED, 8)
    ]
    assert told(tmp_path / "null", changes, default('getattr(config, "rank", None)')) == []


def test_another_default_may_be_accepted(tmp_path: Path) -> None:
    """``audit.defaults`` lists values that mean the same."""
    assert told(tmp_path, {"audit": {"defaults": {"rank": [16]}}}, default('getattr(config, "rank", 16)')) == []


def test_two_clauses_of_one_place_both_count(tmp_path: Path) -> None:
    """A place that two keys look at has two defaults, and the code need have only one of them."""
    changes = {"families": {"mini": {"keys": {"rank_again": {"lookup": ["rank"], "default": 16}}}}}
    assert told(tmp_path, changes, default('getattr(config, "rank", 16)')) == []


def test_an_audited_definition_that_is_gone_is_told(tmp_path: Path) -> None:
    """The audit does not pass by what it cannot read."""
    found = told(tmp_path, {}, ("config/serve.py", "def check", "def check_all"))
    assert found == [("definition", "config/serve.py::ServeConfig.check", None, None)]


def test_a_definition_may_call_its_configuration_otherwise(tmp_path: Path) -> None:
    """An entry inside an audited module is read with its own receivers, and not with the module's."""
    inner = ("models/mini_draft.py", "        self.width = config.hidden_size", "        self.width = config.window")
    changes = {
        "audit": {
            "definitions": {
                "head": {"source": "mini::MiniModel", "families": ["mini"], "receivers": {"config": "mini_config"}}
            }
        }
    }
    keys = {
        "rank": {"lookup": ["mini_config.rank"]},
        "inner": {"lookup": ["mini_config.mini_config.window"], "default": 64},
    }
    assert told(tmp_path, merge(changes, {"families": {"mini": {"keys": keys}}}), inner) == []


@pytest.mark.parametrize("families", [["mini"], ["elsewhere"]])
def test_definitions_of_families_not_in_use_are_left_out(families: list[str]) -> None:
    """A definition listed for families that the release does not have is not audited in it."""
    raw = merge(contract(), {"audit": {"definitions": {"serve": {"families": families}}}})
    assert ("serve" in [one.name for one in audited(raw)]) is (families == ["mini"])


def test_a_dialect_names_its_own_file(tmp_path: Path) -> None:
    """Keys of a dialect's file are covered by what its reader requires, copies and maps, under the dialect's name."""
    reader = """
def read(file_dict):
    a = file_dict["required_one"], file_dict.get("copied"), file_dict.get("mapped", False), file_dict.get("kind")
    return file_dict.get("forgotten")
"""
    changes = {
        "dialects": {"other": {"selector": "kind", "base": "layers"}},
        "other": {
            "x": {
                "required": {"required_one": {}},
                "copy": ["copied"],
                "set": {"m": {"members": {"n": {"from": "mapped"}}}},
            }
        },
        "audit": {"receivers": {"file_dict": "other"}, "definitions": {"reader": {"source": "config/reader.py::read"}}},
    }
    tree = SourceTree(write(tmp_path, edited(**{"config/reader.py": reader})))
    assert [g.key for g in gaps(merge(contract(), changes), tree)] == ["other.forgotten"]
