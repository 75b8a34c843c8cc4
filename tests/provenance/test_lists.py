"""Lists of the source beside the contract's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trees import FILES, contract, edited, write

from dspark_lint.contract.load import merge
from dspark_lint.errors import ContractError
from dspark_lint.provenance.lists import compare_lists, read_list
from dspark_lint.provenance.source import SourceTree


if TYPE_CHECKING:
    from pathlib import Path


SHAPES = '''
from typing import Literal
from dataclasses import dataclass

A = {"one": ("m", "C"), "two": "D"}
B = {**A, "three": 3}
C = Lazy(four="F", **{"five-5": "G"})
D = Lazy({"six": "H"}, seven="I")
Short = Literal["s"]
Long = Literal["l", Short, "m"]
NOT_A_LIST = load()


@dataclass
class Fields:
    one: int = 0
    two: str
    """Described."""
    _private: int = 0
    shared: "ClassVar[int]" = 0
    three = 3

    def four(self): ...
'''


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("keys", "A", {"one": ("m", "C"), "two": ("D",)}),
        ("keys", "B", {"one": ("m", "C"), "two": ("D",), "three": ()}),
        ("keys", "C", {"four": ("F",), "five-5": ("G",)}),
        ("keys", "D", {"six": ("H",), "seven": ("I",)}),
        ("keys", "NOT_A_LIST", {}),
        ("literals", "Long", {"l": (), "s": (), "m": ()}),
        ("fields", "Fields", {"one": (), "two": ()}),
    ],
)
def test_lists_are_read(tmp_path: Path, kind: str, name: str, expected: dict[str, Any]) -> None:
    """Dict literals and what they unpack, keywords of a call, nested literal types, fields of a dataclass."""
    tree = SourceTree(write(tmp_path, {"__init__.py": "", "shapes.py": SHAPES}))
    assert read_list({"of": kind, "source": f"shapes.py::{name}"}, {}, tree) == expected


def test_several_sources_make_one_list(tmp_path: Path) -> None:
    """A list may be spread over the source."""
    tree = SourceTree(write(tmp_path, {"__init__.py": "", "shapes.py": SHAPES}))
    assert list(read_list({"source": ["shapes.py::A", "shapes.py::D"]}, {}, tree)) == ["one", "two", "six", "seven"]


def test_an_unknown_kind_is_a_fault_of_the_contract(tree: SourceTree) -> None:
    """A slip in the contract is told as one."""
    with pytest.raises(ContractError, match="`of: keyz` is none of keys, fields, literals, implementers"):
        read_list({"of": "keyz", "source": "models/registry.py::_DRAFT_MODELS"}, {}, tree)


CLASSES = {
    "models/registry.py": """
_MODELS = {
    "Direct": ("direct", "Direct"),
    "Inherited": ("inherited", "Child"),
    "Renamed": ("renamed", "Alias"),
    "Wrapped": ("wrapped", "Pooled"),
    "ByPlatform": ("vllm.special", "Lazy"),
    "Generic": ("generic", "Generic"),
    "Plain": ("plain", "Plain"),
    "Circle": ("circle", "Circle"),
    "Gone": ("gone", "Gone"),
}
""",
    "models/direct.py": "from .interfaces import HandsOut\nclass Direct(nn.Module, HandsOut): ...\n",
    "models/inherited.py": "from vllm.models.direct import Direct as Base\nclass Child(Base): ...\n",
    "models/renamed.py": "from .direct import Direct\nAlias = Direct\n",
    "models/wrapped.py": "from .direct import Direct\nclass Pooled(pooling(Direct)): ...\n",
    "special/__init__.py": "def __getattr__(name):\n    if cuda:\n        from .fast import Lazy\n    else:\n        from .slow import Lazy\n    return Lazy\n",
    "special/fast.py": "from ..models.direct import Direct\nclass Lazy(Direct): ...\n",
    "models/generic.py": "from .direct import Direct\nclass Generic(Direct[int]): ...\n",
    "models/plain.py": "class Plain(nn.Module): ...\n",
    "models/circle.py": "from .circle import Circle\n",
}


def test_implementers_are_followed_over_imports(tmp_path: Path) -> None:
    """Direct and inherited bases, other names, wrappers, imports inside functions; what is not there implements nothing."""
    tree = SourceTree(write(tmp_path, {**FILES, **CLASSES}))
    found = read_list({"of": "implementers", "base": "HandsOut", "source": "models/registry.py::_MODELS"}, {}, tree)
    assert list(found) == ["Direct", "Inherited", "Renamed", "Wrapped", "ByPlatform", "Generic"]


def differences(tree: SourceTree, raw: dict[str, Any]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...], str]]:
    return {
        c.name: (c.missing, c.surplus, c.lost) for c in compare_lists(raw, tree) if c.missing or c.surplus or c.lost
    }


def test_the_fake_contract_lists_what_the_source_lists(tree: SourceTree) -> None:
    """No difference, and every list is really compared."""
    assert differences(tree, contract()) == {}
    assert [c.name for c in compare_lists(contract(), tree)] == [
        "architecture",
        "registry",
        "serve_fields",
        "methods",
        "captures",
    ]


def test_lists_differ_in_both_directions(tmp_path: Path) -> None:
    """What only the source has, and what only the contract has, list by list."""
    tree = SourceTree(
        write(
            tmp_path,
            edited(
                (
                    "models/registry.py",
                    '    "OtherHeads"',
                    '    "NewDraft": ("mini_draft", "MiniForCausalLM"),\n    "OtherHeads"',
                ),
                ("config/serve.py", "    tokens: int = 0\n", "    depth: int = 0\n"),
                ("config/serve.py", '"ngram", OwnMethod', "OwnMethod"),
            ),
        )
    )
    raw = merge(contract(), {"registry": {"other_drafts": {"Forgotten": True}}})
    assert differences(tree, raw) == {
        "architecture": (("NewDraft",), ("Forgotten",), ""),
        "registry": (("NewDraft",), ("Forgotten",), ""),
        "serve_fields": (("depth",), ("tokens",), ""),
        "methods": ((), ("ngram",), ""),
        "captures": (("NewDraft",), (), ""),
    }


def test_exceptions_are_patterns(tmp_path: Path) -> None:
    """``except`` leaves names out on both sides."""
    tree = SourceTree(
        write(tmp_path, edited(("config/serve.py", '"ngram", OwnMethod', '"ngram", "a_mtp", "b_mtp", OwnMethod')))
    )
    assert differences(tree, contract()) == {"methods": (("a_mtp", "b_mtp"), (), "")}
    assert differences(tree, merge(contract(), {"audit": {"lists": {"methods": {"except": ["*_mtp"]}}}})) == {}


def test_a_list_that_is_gone_is_told(tmp_path: Path) -> None:
    """A renamed table is no empty list."""
    tree = SourceTree(write(tmp_path, edited(("models/registry.py", "_DRAFT_MODELS", "_SPEC_MODELS"))))
    assert differences(tree, contract())["architecture"] == ((), (), "models/registry.py has no _DRAFT_MODELS")
