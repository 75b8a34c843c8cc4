"""Records: lines and fingerprints of everything that a release cites."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING

from trees import FILES, contract, edited, write

from dspark_lint.provenance.record import cited, dump, families_in_use, in_use, record
from dspark_lint.provenance.source import SourceTree


if TYPE_CHECKING:
    from pathlib import Path


def test_a_record_holds_every_citation_once_and_in_order(tree: SourceTree) -> None:
    """Path, line and fingerprint of each citation, sorted by the citation."""
    found = record(contract(), tree)
    assert (found.lost, found.unread) == ({}, ())
    assert list(found.record) == sorted(cited(contract()))
    assert {text: (entry["path"], entry["line"]) for text, entry in found.record.items()} == {
        "mini::MiniForCausalLM.load_weights": ("models/mini_draft.py", 18),
        'mini::MiniForCausalLM.load_weights::"rotary"': ("models/mini_draft.py", 20),
        "mini::MiniModel.__init__::config.hidden_size": ("models/mini_draft.py", 11),
        "mini::MiniModel.__init__::rank": ("models/mini_draft.py", 14),
        "mini::MiniModel.__init__::window": ("models/mini_draft.py", 13),
        "registry::_DRAFT_MODELS": ("models/registry.py", 4),
        "registry::_DRAFT_MODELS::MiniDraftModel": ("models/registry.py", 5),
        "serve::ServeConfig.check": ("config/serve.py", 15),
    }


def test_citations_of_one_definition_share_its_fingerprint(tree: SourceTree) -> None:
    """The fingerprint is the definition's, whatever line of it is cited."""
    entries = record(contract(), tree).record
    assert len({e["fingerprint"] for text, e in entries.items() if text.startswith("mini::MiniModel.__init__")}) == 1
    assert len({e["fingerprint"] for e in entries.values()}) == 4


def test_a_record_does_not_follow_lines(tmp_path: Path, tree: SourceTree) -> None:
    """Comments above move the lines and leave every fingerprint."""
    moved = SourceTree(
        write(tmp_path / "moved", edited(("models/mini_draft.py", "from torch", "# one\n# two\nfrom torch")))
    )
    before, after = record(contract(), tree).record, record(contract(), moved).record
    assert {t: e["fingerprint"] for t, e in before.items()} == {t: e["fingerprint"] for t, e in after.items()}
    assert after["mini::MiniModel.__init__::rank"]["line"] == before["mini::MiniModel.__init__::rank"]["line"] + 2


def test_what_is_lost_is_told_apart_from_what_was_not_read(tree: SourceTree) -> None:
    """A citation that does not stand is lost; one of transformers without its source is unread."""
    raw = contract()
    raw["flat"] = {"source": "transformers:configuration.py::Config", "none": {"source": "mini::Gone"}}
    found = record(raw, tree)
    assert (list(found.lost), found.unread) == (["mini::Gone"], ("transformers:configuration.py::Config",))


def test_transformers_is_recorded_under_its_own_name(tmp_path: Path, tree: SourceTree) -> None:
    """A path in transformers carries the package, so that nobody looks for it in vllm."""
    other = SourceTree(
        write(
            tmp_path / "t", {"__init__.py": "", "configuration.py": "class Config:\n    width = 3\n"}, "transformers"
        ),
        "transformers",
    )
    raw = contract()
    raw["flat"] = {"source": "transformers:configuration.py::Config::width"}
    entry = record(raw, tree, other).record["transformers:configuration.py::Config::width"]
    assert (entry["path"], entry["line"]) == ("transformers/configuration.py", 2)


def test_only_families_in_use_are_cited() -> None:
    """A family that no architecture reaches cites nothing; one that is reached brings what it inherits, nulls left out."""
    raw = contract()
    raw["families"]["base"] = {"keys": {"old": {"source": "mini::Old"}, "kept": {"source": "mini::Kept"}}}
    raw["families"]["idle"] = {"keys": {"x": {"source": "mini::Idle"}}}
    raw["families"]["mini"]["like"] = "base"
    raw["families"]["mini"]["keys"]["old"] = None
    assert families_in_use(raw) == ["mini"]
    assert list(in_use(raw)["families"]) == ["mini"]
    assert ("mini::Kept" in cited(raw), "mini::Old" in cited(raw), "mini::Idle" in cited(raw)) == (True, False, False)


def test_a_record_is_written_one_citation_a_line(tree: SourceTree) -> None:
    """The text reads back as the record, one line each: two releases can be compared with any tool."""
    entries = record(contract(), tree).record
    text = dump(entries)
    assert json.loads(text) == entries
    assert len(text.splitlines()) == len(entries) + 2
    assert text == dump(dict(reversed(entries.items())))


def test_the_fake_tree_is_what_these_tests_think() -> None:
    """Line numbers above count on the files as they stand."""
    assert FILES["models/mini_draft.py"].lstrip("\n").splitlines()[13].endswith("# the rank of the head")
