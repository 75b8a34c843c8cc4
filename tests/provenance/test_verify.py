"""Verification: a contract holds for the source that it was read from, and for no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trees import FILES, contract, edited, write

from dspark_lint.contract.load import merge
from dspark_lint.provenance.record import record
from dspark_lint.provenance.source import SourceTree
from dspark_lint.provenance.verify import KINDS, verify


if TYPE_CHECKING:
    from pathlib import Path


MINI, REGISTRY, SERVE = "models/mini_draft.py", "models/registry.py", "config/serve.py"


def issues(root: Path, *edits: tuple[str, str, str], changes: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return (kind, subject) of what is wrong with the fake contract beside an edited source."""
    before = SourceTree(write(root / "before", FILES))
    after = SourceTree(write(root / "after", edited(*edits)))
    recorded = record(contract(), before).record
    return [(i.kind, i.subject) for i in verify(merge(contract(), changes or {}), recorded, after)]


def test_the_source_that_was_read_verifies(tmp_path: Path) -> None:
    """Nothing is wrong with a contract beside its own source."""
    assert issues(tmp_path) == []


def test_formatting_is_no_change(tmp_path: Path) -> None:
    """Comments and spaces inside a cited definition change nothing as long as the cited lines stand where they stood."""
    assert issues(tmp_path, (MINI, "  # the rank of the head", "  # another remark")) == []


@pytest.mark.parametrize(
    ("edit", "citations"),
    [
        (
            (MINI, "or {}", "or dict()"),
            [
                "mini::MiniModel.__init__::config.hidden_size",
                "mini::MiniModel.__init__::rank",
                "mini::MiniModel.__init__::window",
            ],
        ),
        (
            (MINI, "continue", "break"),
            ["mini::MiniForCausalLM.load_weights", 'mini::MiniForCausalLM.load_weights::"rotary"'],
        ),
        (
            (SERVE, "def check(self, hf_config):", "def check(self, hf_config, *, strict=False):"),
            ["serve::ServeConfig.check"],
        ),
        (
            (REGISTRY, '("mini_draft", "MiniForCausalLM")', '("mini_draft", "MiniModel")'),
            ["registry::_DRAFT_MODELS", "registry::_DRAFT_MODELS::MiniDraftModel"],
        ),
    ],
    ids=["a constructor", "a loader", "a signature", "a registry"],
)
def test_an_altered_definition_fails(tmp_path: Path, edit: tuple[str, str, str], citations: list[str]) -> None:
    """Every citation of a definition that says something else now is an issue, wherever in it the change is."""
    found = issues(tmp_path, edit)
    assert [subject for kind, subject in found if kind == "changed"] == citations
    assert {kind for kind, _ in found} <= {"changed", "list"}


@pytest.mark.parametrize(
    ("edits", "changes", "expected"),
    [
        ([(MINI, "class MiniModel", "# one line more\nclass MiniModel")], {}, {"moved"}),
        ([(MINI, "MiniModel", "TinyModel")], {}, {"lost"}),
        ([("_version.py", "0.1.0", "0.1.1")], {}, {"release"}),
        ([], {"files": {"none": {"source": "mini::MiniModel"}}}, {"unrecorded"}),
        (
            [],
            {
                "families": {"mini": {"keys": {"block_size": None}}},
                "audit": {"irrelevant": {"block_size": "no matter"}},
            },
            {"stale"},
        ),
        (
            [(REGISTRY, '    "OtherHeads"', '    "Third": ("third", "Third"),\n    "OtherHeads"')],
            {},
            {"changed", "architecture", "list"},
        ),
        (
            [],
            {"architectures": {"Gone": {"family": "mini", "source": "registry::_DRAFT_MODELS"}}},
            {"architecture", "list"},
        ),
        ([], {"serve": {"fields": {"depth": True}}}, {"list"}),
        ([], {"families": {"mini": {"keys": {"rank": None}}}}, {"key", "stale"}),
        ([], {"families": {"mini": {"keys": {"rank": {"default": 16}}}}}, {"default"}),
    ],
    ids=[
        "moved",
        "lost",
        "release",
        "unrecorded",
        "stale",
        "new architecture",
        "architecture gone",
        "list",
        "key",
        "default",
    ],
)
def test_every_kind_of_issue(
    tmp_path: Path, edits: list[tuple[str, str, str]], changes: dict[str, Any], expected: set[str]
) -> None:
    """What is wrong is told by its kind, and nothing else with it."""
    found = {kind for kind, _ in issues(tmp_path, *edits, changes=changes)}
    assert found == expected


def test_every_kind_is_explained() -> None:
    """The kinds tested above are all there are."""
    assert set(KINDS) == {
        "release",
        "lost",
        "changed",
        "moved",
        "unrecorded",
        "stale",
        "architecture",
        "list",
        "key",
        "default",
    }


def test_issues_say_what_to_do(tmp_path: Path) -> None:
    """Message, old and new of one issue of each sort, word for word."""
    before = SourceTree(write(tmp_path / "before", FILES))
    after = SourceTree(
        write(
            tmp_path / "after",
            edited(
                (MINI, 'getattr(config, "rank", 8)', 'getattr(config, "rank", 16)'),
                (
                    MINI,
                    "        for name, tensor in weights",
                    "        self.scale = self.config.scale\n        for name, tensor in weights",
                ),
                (REGISTRY, '    "MiniDraftModel": ("mini_draft", "MiniForCausalLM"),\n', ""),
            ),
        )
    )
    raw = contract()
    found = {(i.kind, i.subject): i for i in verify(raw, record(raw, before).record, after)}
    changed = found["changed", "mini::MiniModel.__init__::rank"]
    assert changed.message == "MiniModel.__init__ is not the code that was read when the contract was written"
    assert (changed.old.split()[0], changed.new.split()[0]) == (f"{MINI}:14", f"{MINI}:14")
    assert (
        found["default", "rank"].message
        == "MiniModel.__init__ reads rank with default 16 (models/mini_draft.py:14), and the clause of mini says 8"
    )
    assert found["key", "scale"].message == (
        "MiniForCausalLM.load_weights reads scale (models/mini_draft.py:19), and no clause of mini names it; "
        "write one, or list it under audit.irrelevant with the reason"
    )
    assert found["architecture", "MiniDraftModel"].message == (
        "the contract has MiniDraftModel (architectures and registry.other_drafts), and _DRAFT_MODELS does not"
    )
    assert found["lost", "registry::_DRAFT_MODELS::MiniDraftModel"].old == f"{REGISTRY}:5"


def test_transformers_is_verified_with_its_source_only(tmp_path: Path) -> None:
    """Citations of transformers are not stale without its source, and checked with it."""
    raw = merge(contract(), {"transformers": "5.0.0", "flat": {"source": "transformers:config.py::Config"}})
    vllm = SourceTree(write(tmp_path / "v", FILES))
    files = {"__init__.py": '__version__ = "5.0.0"\n', "config.py": "class Config:\n    width = 3\n"}
    read = SourceTree(write(tmp_path / "read", files, "transformers"), "transformers")
    other = SourceTree(
        write(
            tmp_path / "other",
            {**files, "__init__.py": '__version__ = "5.0.1"\n', "config.py": "class Config:\n    width = 4\n"},
            "transformers",
        ),
        "transformers",
    )
    recorded = record(raw, vllm, read).record
    assert verify(raw, recorded, vllm) == []
    assert verify(raw, recorded, vllm, read) == []
    assert [(i.kind, i.subject) for i in verify(raw, recorded, vllm, other)] == [
        ("release", "transformers"),
        ("changed", "transformers:config.py::Config"),
    ]
