"""Citations: how they are written, where they stand, and what is said of one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trees import contract

from dspark_lint.provenance.cite import Citation, Located, Lost, citations_in, parse_citation, resolve


if TYPE_CHECKING:
    from dspark_lint.provenance.source import SourceTree


ALIASES = {"mini": "models/mini_draft.py"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "mini::MiniModel.__init__::self.rank",
            Citation("vllm", "models/mini_draft.py", "MiniModel.__init__", "self.rank"),
        ),
        ("models/small.py::Small", Citation("vllm", "models/small.py", "Small", "")),
        ("mini", Citation("vllm", "models/mini_draft.py", "", "")),
        ("mini::::needle", Citation("vllm", "models/mini_draft.py", "", "needle")),
        ("mini::f::a::b", Citation("vllm", "models/mini_draft.py", "f", "a::b")),
        ("transformers:models/q/c.py::Q::x", Citation("transformers", "models/q/c.py", "Q", "x")),
    ],
    ids=["alias", "path", "whole module", "needle in the module", "colons in the needle", "transformers"],
)
def test_citations_are_split(text: str, expected: Citation) -> None:
    """Alias or path, definition and needle, in either package."""
    assert parse_citation(text, ALIASES) == expected


def test_a_citation_writes_itself_out() -> None:
    """A split citation is shown with its path, and without the parts that it has not."""
    assert [str(parse_citation(t, ALIASES)) for t in ("mini::f::x", "mini::f", "mini")] == [
        "models/mini_draft.py::f::x",
        "models/mini_draft.py::f",
        "models/mini_draft.py",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mini::MiniModel", 7),
        ("mini::MiniModel.__init__", 10),
        ("mini::MiniModel.__init__::self.rank", 14),
        ('mini::MiniForCausalLM::"rotary"', 20),
        ("mini", 1),
        ("models/registry.py::_DRAFT_MODELS::OtherHeads", 6),
    ],
)
def test_a_citation_stands_at_its_line(tree: SourceTree, text: str, line: int) -> None:
    """The line is the needle's first inside the definition, or the definition's own."""
    found = resolve(parse_citation(text, ALIASES), tree)
    assert isinstance(found, Located)
    assert found.line == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("models/gone.py::MiniModel", "models/gone.py is not there; did you mean models/mini_draft.py::MiniModel?"),
        ("models/gone.py", "models/gone.py is not there"),
        ("moved/small.py", "moved/small.py is not there; did you mean models/small.py?"),
        (
            "mini::SmallForCausalLM",
            "models/mini_draft.py has no SmallForCausalLM; did you mean models/small.py::SmallForCausalLM?",
        ),
        ("mini::MiniModell", "models/mini_draft.py has no MiniModell; did you mean models/mini_draft.py::MiniModel?"),
        ("mini::Unheard", "models/mini_draft.py has no Unheard"),
        (
            "mini::MiniModel.__init__::rotary",
            "models/mini_draft.py: no line of MiniModel.__init__ holds 'rotary'; did you mean models/mini_draft.py::MiniForCausalLM.load_weights::rotary?",
        ),
        (
            "mini::MiniModel.__init__::self.width = config.hidden",
            None,
        ),
        (
            "mini::MiniModel.__init__::self.width = config.hidden_sizes",
            (
                "models/mini_draft.py: no line of MiniModel.__init__ holds 'self.width = config.hidden_sizes'; "
                "did you mean models/mini_draft.py::MiniModel.__init__::self.width = config.hidden_size?"
            ),
        ),
    ],
)
def test_a_lost_citation_says_what_is_missing(tree: SourceTree, text: str, expected: str | None) -> None:
    """File, definition or line, with the likeliest other place."""
    found = resolve(parse_citation(text, ALIASES), tree)
    assert (str(found) if isinstance(found, Lost) else None) == expected


def test_citations_are_found_in_a_contract() -> None:
    """Sources, loaders and special sources, lists of them too; what the audit reads is no citation."""
    found = {
        "families": {
            "f": {
                "loader": "mini::Load",
                "tensors": {"a": {"loader": "column", "source": ["mini::A", "mini::B"], "absent_source": "mini::C"}},
            }
        },
        "audit": {"lists": {"l": {"source": "mini::L"}}},
        "changes": {"c": {"source": "mini::Old"}},
        "sources": {"mini": "models/mini_draft.py"},
    }
    assert list(citations_in(found)) == [
        ("mini::Load", ("families", "f", "loader")),
        ("mini::A", ("families", "f", "tensors", "a")),
        ("mini::B", ("families", "f", "tensors", "a")),
        ("mini::C", ("families", "f", "tensors", "a", "absent_source")),
    ]


def test_every_citation_of_the_fake_contract_stands(tree: SourceTree) -> None:
    """The fixtures of these tests cite what is there."""
    raw = contract()
    lost = [
        text for text, _ in citations_in(raw) if isinstance(resolve(parse_citation(text, raw["sources"]), tree), Lost)
    ]
    assert not lost
