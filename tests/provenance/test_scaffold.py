"""The next release's contract: what is inherited, what is re-pointed, and what is put before a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from trees import FILES, contract, edited, write

from dspark_lint.contract.load import merge
from dspark_lint.provenance.draft import KINDS, ReviewItem
from dspark_lint.provenance.record import record
from dspark_lint.provenance.scaffold import Scaffold, scaffold
from dspark_lint.provenance.source import SourceTree
from dspark_lint.provenance.verify import verify


if TYPE_CHECKING:
    from pathlib import Path


MINI, REGISTRY, SERVE = "models/mini_draft.py", "models/registry.py", "config/serve.py"
Edit = tuple[str, str, str]


class Made(NamedTuple):
    """A scaffold, the file it wrote, and the source it was written for."""

    scaffold: Scaffold
    file: dict[str, Any]
    tree: SourceTree

    def kinds(self) -> list[str]:
        return [item.kind for item in self.scaffold.review]

    def item(self, kind: str) -> ReviewItem:
        (found,) = [item for item in self.scaffold.review if item.kind == kind]
        return found

    def resolved(self) -> dict[str, Any]:
        layer = {k: v for k, v in self.file.items() if k != "extends"}
        return merge({k: v for k, v in contract().items() if k != "changes"}, layer)


def made(
    root: Path, files: dict[str, str], *, with_old: bool = True, changes: dict[str, Any] | None = None, **options: Any
) -> Made:
    """Scaffold 0.2.0 from the fake 0.1.0 for a source with those files."""
    raw = merge(contract(), changes or {})
    old = SourceTree(write(root / "old", FILES))
    new = SourceTree(write(root / "new", {**files, "_version.py": "__version__ = '0.2.0'\n"}))
    result = scaffold(raw, record(raw, old).record, new, "0.2.0", previous_tree=old if with_old else None, **options)
    return Made(result, yaml.safe_load(result.yaml_text), new)


NOTHING = {"none": {"area": "files on disk", "kind": "none", "says": "nothing that a draft checkpoint meets changed"}}
HEAD = {"contract": 1, "runtime": "vllm", "release": "0.2.0", "extends": "0.1.0"}


@pytest.mark.parametrize("with_old", [True, False], ids=["with the old source", "with fingerprints alone"])
def test_an_unchanged_release_inherits_everything(tmp_path: Path, with_old: bool) -> None:
    """Nothing to review, a file that only extends, and every citation inherited, though every line has moved."""
    files = edited(
        (MINI, "from torch", "# a line\nfrom torch"), (SERVE, "class ServeConfig", "X = 1\n\n\nclass ServeConfig")
    )
    result = made(tmp_path, files, with_old=with_old)
    assert result.file == {**HEAD, "changes": NOTHING}
    assert (result.scaffold.inherited, result.scaffold.review) == (8, ())


def test_a_moved_file_is_re_pointed(tmp_path: Path) -> None:
    """An alias follows its file, and what is cited through it is inherited."""
    files = dict(FILES)
    files["drafts/mini.py"] = files.pop(MINI).replace(".small", "vllm.models.small")
    files[REGISTRY] = files[REGISTRY].replace('("mini_draft"', '("vllm.drafts.mini"')
    result = made(tmp_path, files)
    assert result.file["sources"] == {"mini": "drafts/mini.py"}
    assert result.kinds() == ["changed"]
    assert result.item("changed").subject == f"{REGISTRY}::_DRAFT_MODELS"
    assert {
        issue.kind for issue in verify(result.resolved(), record(result.resolved(), result.tree).record, result.tree)
    } == set()


def test_a_renamed_definition_is_re_pointed(tmp_path: Path) -> None:
    """The same code under another name is cited by that name; nobody has to read it again."""
    result = made(tmp_path, edited((MINI, "MiniModel", "TinyModel")))
    assert result.file["families"]["mini"]["keys"] == {
        "width": {"source": "mini::TinyModel.__init__::config.hidden_size"},
        "window": {"source": "mini::TinyModel.__init__::window"},
        "rank": {"source": "mini::TinyModel.__init__::rank"},
    }
    assert result.kinds() == ["around"]
    assert result.scaffold.inherited == 8


def test_a_definition_that_moved_alone_is_re_pointed(tmp_path: Path) -> None:
    """One class of a file went elsewhere: its clauses cite the new path, the others keep the alias."""
    head, _, loader = FILES[MINI].partition("class MiniForCausalLM")
    files = {
        **FILES,
        MINI: head,
        "models/mini_loader.py": "from .small import SmallForCausalLM\n\n\nclass MiniForCausalLM" + loader,
    }
    result = made(tmp_path, files)
    assert result.file["families"]["mini"] == {
        "loader": "models/mini_loader.py::MiniForCausalLM.load_weights",
        "names": {"rotary": {"source": 'models/mini_loader.py::MiniForCausalLM.load_weights::"rotary"'}},
    }
    assert "lost" not in result.kinds()


def test_a_changed_definition_is_reviewed(tmp_path: Path) -> None:
    """One item a definition: the clauses that depend on it, both places, the cited lines, the difference."""
    result = made(
        tmp_path, edited((MINI, 'if "rotary" in name:', '# skipped\n            if "rotary" in name and not strict:'))
    )
    assert result.kinds() == ["changed"]
    assert result.item("changed") == ReviewItem(
        kind="changed",
        subject=f"{MINI}::MiniForCausalLM.load_weights",
        clauses=("families.mini.loader", "families.mini.names.rotary"),
        old=f"{MINI}:18",
        new=f"{MINI}:18",
        message="MiniForCausalLM.load_weights is not the code that was read",
        detail=(
            '"rotary": 20 -> 21',
            "@@ -1,5 +1,6 @@",
            "     def load_weights(self, weights):",
            "         for name, tensor in weights:",
            '-            if "rotary" in name:',
            "+            # skipped",
            '+            if "rotary" in name and not strict:',
            "                 continue",
            "             self.params[name].copy_(tensor)",
        ),
    )
    assert result.file == {**HEAD, "changes": NOTHING}


def test_differences_are_kept_short(tmp_path: Path) -> None:
    """A long difference is cut, and says by how much; without the old source there is none."""
    files = edited((MINI, "            self.params", "            self.seen = 1\n            self.params"))
    assert made(tmp_path / "a", files, diff_lines=3).item("changed").detail[-1] == "... and 2 more lines"
    assert made(tmp_path / "b", files, with_old=False).item("changed").detail == ('"rotary": 20 -> 20',)


def test_only_messages_changed(tmp_path: Path) -> None:
    """A reworded sentence is told apart from other code."""
    before = edited((SERVE, 'return getattr(hf_config, "block_size", None)', 'raise ValueError("no block size")'))
    after = {**before, SERVE: before[SERVE].replace("no block size", "the block size is missing")}
    raw = merge(
        contract(), {"families": {"mini": {"keys": {"block_size": {"source": "serve::ServeConfig.check::ValueError"}}}}}
    )
    old, new = SourceTree(write(tmp_path / "old", before)), SourceTree(write(tmp_path / "new", after))
    found = scaffold(raw, record(raw, old).record, new, "0.2.0", previous_tree=old)
    assert [(i.kind, i.message) for i in found.review] == [("texts", "ServeConfig.check differs in its messages only")]


def test_lost_lines_and_definitions_are_reviewed_once(tmp_path: Path) -> None:
    """Everything that is cited in one definition is one item; what is gone says so."""
    result = made(
        tmp_path,
        edited(
            (MINI, '        self.window = mini_config.get("window", 64)\n', ""),
            (SERVE, "def check", "def examine_everything"),
        ),
    )
    lost = {i.subject: i for i in result.scaffold.review if i.kind == "lost"}
    assert lost[f"{MINI}::MiniModel.__init__"].detail[:3] == (
        "config.hidden_size: 11 -> 11",
        "rank: 14 -> 13",
        "window: 13 -> gone",
    )
    assert lost[f"{MINI}::MiniModel.__init__"].clauses == (
        "families.mini.keys.width",
        "families.mini.keys.rank",
        "families.mini.keys.window",
    )
    # the same code under another name is no loss
    assert result.file["families"]["mini"]["keys"]["block_size"] == {"source": "serve::ServeConfig.examine_everything"}
    assert f"{SERVE}::ServeConfig.check" not in lost


def test_new_architectures_are_sorted_by_what_they_are_made_of(tmp_path: Path) -> None:
    """The same class joins its family, a derived one asks for a family, anything else is another kind of draft."""
    new = """
from .mini_draft import MiniForCausalLM, MiniModel


class WideForCausalLM(MiniForCausalLM):
    def __init__(self, config):
        self.width = getattr(config, "wide_width", 3)
"""
    entries = '''    "MiniAgain": ("mini_draft", "MiniForCausalLM"),
    "WideDraft": ("wide", "WideForCausalLM"),
    "OtherAgain": ("other_heads", "OtherHeads"),
    "Unrelated": ("small", "SmallForCausalLM"),
    "OtherHeads"'''
    result = made(tmp_path, edited((REGISTRY, '    "OtherHeads"', entries), **{"models/wide.py": new}))
    cited = "registry::_DRAFT_MODELS"
    assert result.file["architectures"] == {
        "MiniAgain": {"family": "mini", "source": f"{cited}::MiniAgain"},
        "WideDraft": {
            "family": None,
            "source": f"{cited}::WideDraft",
            "out_of_scope": "no family has been written for models/wide.py WideForCausalLM yet",
        },
    }
    assert result.file["registry"]["other_drafts"] == {"OtherAgain": True, "Unrelated": True}
    assert result.file["changes"] == {
        "registry": {"area": "registry", "kind": "loosens", "says": "MiniAgain and WideDraft are known"}
    }
    found = {i.subject: i for i in result.scaffold.review if i.kind == "architecture"}
    assert found["WideDraft"].detail == (
        "it derives from MiniForCausalLM, which serves mini",
        "its module takes MiniModel from the loader of mini",
        "it reads wide_width (3)",
    )
    assert (
        found["MiniAgain"].message
        == "MiniAgain is new, served by models/mini_draft.py MiniForCausalLM like family mini"
    )


def test_architectures_that_go_are_removed(tmp_path: Path) -> None:
    """An architecture that the registry lost is removed, with a change that says so."""
    result = made(tmp_path, edited((REGISTRY, '    "MiniDraftModel": ("mini_draft", "MiniForCausalLM"),\n', "")))
    assert result.file["architectures"] == {"MiniDraftModel": None}
    assert result.file["changes"] == {
        "registry": {"area": "registry", "kind": "tightens", "says": "MiniDraftModel is no longer known"}
    }
    assert "lost" in result.kinds()


def test_lists_are_brought_up_to_date(tmp_path: Path) -> None:
    """Sets get what is new and lose what is gone, plain lists are written whole, and the result verifies."""
    files = edited(
        (
            REGISTRY,
            '    "SmallForCausalLM": ("small", "SmallForCausalLM"),\n',
            '    "LargeForCausalLM": ("small", "SmallForCausalLM"),\n',
        ),
        (SERVE, "    tokens: int = 0\n", "    depth: int = 0\n"),
        (SERVE, '"ngram", OwnMethod', 'OwnMethod, "suffix"'),
    )
    result = made(tmp_path, files)
    assert result.file["registry"] == {"others": {"LargeForCausalLM": True, "SmallForCausalLM": None}}
    assert result.file["serve"] == {"fields": {"depth": True, "tokens": None}}
    assert result.file["methods"] == {"known": ["mini", "suffix"]}
    assert result.file["target"] == {"captures": {"LargeForCausalLM": True, "SmallForCausalLM": None}}
    assert {
        i.kind for i in verify(result.resolved(), record(result.resolved(), result.tree).record, result.tree)
    } == set()


READS = {
    "a new key": (
        (MINI, "        self.rank", '        self.more = getattr(config, "more", 5)\n        self.rank'),
        "key",
        "MiniModel.__init__ reads more, default 5, and no clause names it",
    ),
    "another default": (
        (MINI, '"rank", 8', '"rank", 16'),
        "default",
        "MiniModel.__init__ reads rank with default 16, and the clause says 8",
    ),
    "no longer read": (
        (MINI, 'getattr(config, "rank", 8)', "8"),
        "unread",
        f"{MINI} no longer reads rank; its clause may be out of date",
    ),
}


@pytest.mark.parametrize(("edit", "kind", "message"), READS.values(), ids=READS)
def test_reads_are_compared(tmp_path: Path, edit: Edit, kind: str, message: str) -> None:
    """Keys read anew, with another default, or no longer, with the place in the new source."""
    result = made(tmp_path, edited(edit))
    item = result.item(kind)
    assert (item.message, item.clauses) == (message, ("mini",))


def test_without_the_old_source_new_keys_and_defaults_are_still_found(tmp_path: Path) -> None:
    """The contract knows what was read before; only what is no longer read needs the old source."""
    for number, (edit, kind, _) in enumerate(READS.values()):
        assert (kind in made(tmp_path / str(number), edited(edit), with_old=False).kinds()) is (kind != "unread")


def test_a_known_key_with_a_new_reader_is_told(tmp_path: Path) -> None:
    """A key that has a clause already and is read at another place now may mean something else there."""
    result = made(tmp_path, edited((SERVE, 'return getattr(hf_config, "block_size", None)', "return hf_config.rank")))
    assert [(i.kind, i.message) for i in result.scaffold.review if i.kind == "key"] == [
        ("key", f"{SERVE} reads rank now, default required; a clause names it"),
    ]


def test_what_changed_beside_the_cited_code_is_listed(tmp_path: Path) -> None:
    """Functions of audited modules that no clause cites are named, not shown."""
    result = made(
        tmp_path,
        edited(
            (
                MINI,
                "class MiniForCausalLM(SmallForCausalLM):\n",
                "class MiniForCausalLM(SmallForCausalLM):\n    def forward(self):\n        return 1\n\n",
            )
        ),
    )
    assert result.item("around").detail == ("MiniForCausalLM.forward (new)",)


def test_the_review_stands_in_the_file_as_comments(tmp_path: Path) -> None:
    """Every item is numbered under its heading, and the file is the same contract without its comments."""
    files = edited((MINI, '"rank", 8', '"rank", 16'), (MINI, "continue", "break"))
    text = made(tmp_path, files).scaffold.yaml_text
    assert (
        "# -------------------- Defaults (1)\n# [1] MiniModel.__init__ reads rank with default 16, and the clause says 8\n"
        in text
    )
    assert (
        "# [2] models/mini_draft.py::MiniForCausalLM.load_weights: MiniForCausalLM.load_weights is not the code that\n"
        "#     was read\n"
    ) in text
    assert (
        "#     models/mini_draft.py:18 -> models/mini_draft.py:18\n#     for: families.mini.loader, families.mini.names.rotary\n"
        in text
    )
    assert all(len(line) <= 120 for line in text.splitlines())
    assert yaml.safe_load(text) == yaml.safe_load(
        "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    )


def test_scaffolds_are_deterministic(tmp_path: Path) -> None:
    """The same sources give the same text, however often they are opened."""
    files = edited((MINI, '"rank", 8', '"rank", 16'), (MINI, "continue", "break"), (SERVE, "def check", "def look"))
    assert made(tmp_path / "a", files).scaffold.yaml_text == made(tmp_path / "b", files).scaffold.yaml_text


def test_every_kind_of_item_has_a_heading() -> None:
    """The kinds that the tests above look for are the kinds there are."""
    assert set(KINDS) == {"lost", "architecture", "default", "key", "unread", "changed", "texts", "list", "around"}
