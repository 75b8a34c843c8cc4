"""What holds for the shipped contracts, release by release and along their chain."""

from __future__ import annotations

import json

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dspark_lint.contract.load import layer_of, load_raw, shipped_releases
from dspark_lint.contract.model import Contract, load_contract
from dspark_lint.contract.paths import contracts_dir
from dspark_lint.contract.validate import validate
from dspark_lint.provenance.cite import citations_in, parse_citation
from dspark_lint.provenance.record import families_in_use, in_use


RELEASES = shipped_releases()
FILES = Path(contracts_dir()) / "vllm"
STEPS = list(pairwise(RELEASES))
#: How a member of a clause may be said to change.
KINDS = {"none", "new", "loosens", "tightens", "semantics", "message", "fix"}

releases = pytest.mark.parametrize("release", RELEASES)
steps = pytest.mark.parametrize(("older", "newer"), STEPS, ids=[newer for _, newer in STEPS])


@cache
def resolved(release: str) -> Contract:
    return load_contract(release)


@cache
def layer(release: str) -> dict[str, Any]:
    return layer_of(str(FILES / f"{release}.yaml"))


def recorded(release: str) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = json.loads((FILES / "sources" / f"{release}.json").read_text(encoding="utf-8"))
    return entries


def architectures(release: str) -> set[str]:
    return {name for name, clause in resolved(release)["architectures"].items() if clause and clause.get("family")}


@releases
def test_valid(release: str) -> None:
    """Every shipped contract follows the schema, and every expression and reference in its chain is good."""
    assert [str(problem) for problem in validate(str(FILES / f"{release}.yaml"))] == []


@releases
def test_named_for_its_release(release: str) -> None:
    """A file is for the release that its name says, and extends the release before it."""
    before = RELEASES[RELEASES.index(release) - 1] if release != RELEASES[0] else None

    assert layer(release)["release"] == resolved(release).release == release
    assert layer(release).get("extends") == before


@steps
def test_a_file_holds_what_changed(older: str, newer: str) -> None:
    """A release's own file states nothing that its ancestor states already."""
    repeated: list[str] = []

    def compare(own: dict[str, Any], base: Any, place: str) -> None:
        for key, value in own.items():
            there = base.get(key) if isinstance(base, dict) else None
            if isinstance(value, dict) and isinstance(there, dict):
                compare(value, there, f"{place}.{key}")
            elif value is not None and value == there and not place.endswith(("changes", "others", "captures")):
                repeated.append(f"{place}.{key}")

    own = {k: v for k, v in layer(newer).items() if k not in ("contract", "runtime", "release", "extends", "changes")}
    compare(own, load_raw(older), newer)

    assert repeated == []


@steps
def test_no_architecture_disappears_unsaid(older: str, newer: str) -> None:
    """An architecture that a release no longer serves has a clause in its changes that names it."""
    gone = architectures(older) - architectures(newer)
    said = json.dumps(layer(newer).get("changes", {}))

    assert {name for name in gone if name not in said} == set()


@steps
def test_new_architectures_are_said(older: str, newer: str) -> None:
    """A release that serves a new architecture says so in its changes."""
    changes = layer(newer).get("changes") or {}
    areas = {clause["area"] for clause in changes.values()}

    assert not (architectures(newer) - architectures(older)) or "registry" in areas


@releases
def test_changes_are_told_in_words(release: str) -> None:
    """A change has an area, a kind and a sentence; a file that changes anything has one."""
    changes = layer(release).get("changes") or {}

    assert {clause["kind"] for clause in changes.values()} <= KINDS
    assert all(clause["area"].strip() and len(clause["says"]) > 10 for clause in changes.values())
    sections = set(layer(release)) - {"contract", "runtime", "release", "extends", "changes", "transformers"}
    assert bool(changes) or not sections or release == RELEASES[0]


@releases
def test_families_say_what_they_are(release: str) -> None:
    """Every family that an architecture is served by has a title, a method of the release and a loader."""
    contract = resolved(release)
    families = {name: contract.family(name) for name in families_in_use(contract)}

    assert len(families) > 0
    for name, family in families.items():
        assert family["title"], name
        assert family["method"] in contract["methods"]["drafts"], name
        assert family["loader"], name
        assert family["keys"], name
        assert family["tensors"], name


@releases
def test_every_architecture_has_its_family(release: str) -> None:
    """Every architecture leads to a family that exists, or says why it is out of scope."""
    contract = resolved(release)
    for name, clause in contract["architectures"].items():
        assert clause.get("family") in contract["families"] or clause.get("out_of_scope"), name


@releases
def test_every_effect_has_a_source(release: str) -> None:
    """A clause that states an effect cites the code that has it."""
    unsourced: list[str] = []

    def walk(node: Any, place: str) -> None:
        if isinstance(node, dict):
            own = node.get("effect") is not None and "says" in node
            if own and "source" not in node and not place.endswith((".absent", ".outcome", ".scales")):
                unsourced.append(place)
            for key, value in node.items():
                walk(value, f"{place}.{key}")

    for section, content in in_use(resolved(release)).items():
        if section not in ("transformers", "lines", "changes"):
            walk(content, section)

    assert unsourced == []


@releases
def test_every_citation_is_recorded(release: str) -> None:
    """A citation has an alias of the release, and a recorded line and fingerprint in that release."""
    lines = recorded(release)
    aliases = resolved(release)["sources"]
    cited = {text for text, _ in citations_in(in_use(resolved(release)))}

    assert {text for text in cited if text not in lines} == set()
    for text in cited:
        citation = parse_citation(text, aliases)
        entry = lines[text]
        assert entry["path"].endswith(citation.path)
        assert entry["line"] > 0
        assert len(entry["fingerprint"]) >= 16


@releases
def test_nothing_is_recorded_in_vain(release: str) -> None:
    """Every recorded line is cited."""
    cited = {text for text, _ in citations_in(in_use(resolved(release)))}

    assert set(recorded(release)) - cited == set()


@releases
def test_methods_are_known(release: str) -> None:
    """Every method that a clause leads to is one of the release's own."""
    methods = resolved(release)["methods"]
    named = {methods["fallback"], *methods["drafts"], *methods["taken_as_said"]}
    named |= {clause["method"] for clause in methods["detect"].values() if clause}

    assert named <= set(methods["known"])
