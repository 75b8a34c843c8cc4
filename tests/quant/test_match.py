"""Matching of exclusion lists and targets: against the contract's rule, written out again here in plain words."""

from __future__ import annotations

import fnmatch
import re

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from quant.trees import HEADS, STEMS, TAILS, entry, names

from dspark_lint.contract.model import load_contract
from dspark_lint.errors import ContractError
from dspark_lint.quant.match import WAYS, broken_patterns, way_of
from dspark_lint.quant.modules import Matcher


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


ENTRY = st.builds(lambda h, s, t: h + s + t, st.sampled_from(HEADS), st.sampled_from(STEMS), st.sampled_from(TAILS))
ENTRIES = st.lists(ENTRY, max_size=4)
SETTINGS = settings(max_examples=60, deadline=None)


# ---------------------------------------------------------------- the rules, once more
def by_pattern(text: str, name: str) -> bool:
    try:
        return re.match(text, name) is not None
    except re.error:
        return False


def modelopt(name: str, entries: Sequence[str]) -> bool:
    """An entry that is the name, or stands anywhere in it, or matches the whole of it as a glob."""
    return any(e == name or e in name or fnmatch.fnmatchcase(name, e) for e in entries)


def compressed(name: str, entries: Sequence[str]) -> bool:
    """``re:`` and a pattern that matches from the start, or the name."""
    return any(by_pattern(e[3:], name) if e.startswith("re:") else e == name for e in entries)


def listed(name: str, entries: Sequence[str]) -> bool:
    """The name as a whole."""
    return name in entries


def aliased(entries: Sequence[str], offset: int) -> list[str]:
    """0.31 and 0.32: beside each entry the same with its layer numbers moved past the target's."""
    alias = re.compile(r"(?<![A-Za-z0-9_.])layers\.(\d+)")
    return [*entries, *(alias.sub(lambda m: f"layers.{int(m.group(1)) + offset}", e) for e in entries)]


def mapped(entries: Sequence[str], offset: int, count: int) -> list[str]:
    """0.33: a trailing star is split, draft numbers are moved, and what has no root gets ``model.``."""
    held: list[str] = []
    for e in entries:
        stem = e[:-1] if e.endswith("*") else ""
        for part in [stem, f"{stem}.*"] if stem and not stem.endswith(".") else [e]:
            part = re.sub(r"(?<![A-Za-z0-9_])midlayer(?=\.|\*|$)", "layers.0", part)  # noqa: PLW2901 - step by step
            part = re.sub(r"(?<![A-Za-z0-9_])encoder\.fc(?=\.|\*|$)", "fc", part)  # noqa: PLW2901
            match = re.match(r"((?:model\.)?\*?layers\.)(\d+)(?=\.|\*|$)", part)
            if match and int(match[2]) < count:
                part = f"{match[1]}{int(match[2]) + offset}{part[match.end() :]}"  # noqa: PLW2901
            if not part.startswith("*") and not re.match(r"model(?:\.|\*|$)", part):
                part = f"model.{part}"  # noqa: PLW2901
            held.append(part)
    return held


BACKENDS: dict[str, Callable[[str, Sequence[str]], bool]] = {
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "modelopt_mxfp8": modelopt,
    "modelopt_mixed": modelopt,
    "compressed-tensors": compressed,
    "quark": compressed,
    "fp8": listed,
}


@dataclass
class Stated:
    """As much of a statement as matching looks at."""

    backend: str
    entries: list[str]
    clause: Mapping[str, Any]
    layers: Mapping[str, Any] = field(default_factory=dict)

    def groups(self) -> Iterator[Any]:
        """No group: matching of targets has a test of its own."""
        yield from ()


@dataclass
class Bound:
    """As much of a binding."""

    family: Mapping[str, Any]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("release", ["0.25.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"])
@given(entries=ENTRIES, count=st.integers(1, 12), depth=st.sampled_from([0, 2, 8, 30]))
@SETTINGS
def test_the_matcher_agrees_with_the_rule(
    backend: str, release: str, entries: list[str], count: int, depth: int
) -> None:
    """For any tree and any list, a module is taken out exactly where the release's rule takes it out."""
    contract = load_contract(release)
    stated = Stated(backend, entries, contract["quantization"]["backends"][backend])
    matcher = Matcher(Bound(contract.family("qwen3_dspark")), stated, depth, count)  # type: ignore[arg-type]

    held = list(entries)
    if backend.startswith("modelopt"):
        held = aliased(entries, depth) if release in ("0.31.0", "0.32.0") else held
        held = mapped(entries, depth, count) if release == "0.33.0" else held
    for name in names(count, depth):
        found = matcher.excluded(name)
        assert (found is not None) is BACKENDS[backend](name, held), (name, held)
        assert found is None or found[0] in entries


@pytest.mark.parametrize(
    ("way", "entry_", "name", "expected"),
    [
        ("equal", "model.fc", "model.fc", True),
        ("equal", "fc", "model.fc", False),
        ("equal_name", "re:x", "re:x", False),
        ("part", "layers.1", "model.layers.10.mlp", True),
        ("part", "layers.1.", "model.layers.10.mlp", False),
        ("part", "", "model.fc", True),
        ("part_any_case", "linear", "QKVParallelLinear", True),
        ("part_any_case", "re:linear", "QKVParallelLinear", False),
        ("glob", "model.layers.*", "model.layers.1.mlp", True),
        ("glob", "layers.*", "model.layers.1.mlp", False),
        ("glob", "model.f[a-c]", "model.fc", True),
        ("regex", "re:.*fc", "model.fc", True),
        ("regex", "re:fc", "model.fc", False),
        ("regex", "fc", "model.fc", False),
        ("regex", "re:(", "model.fc", False),
        ("suffix", "fc", "model.fc", True),
        ("suffix", "c", "model.fc", False),
    ],
)
def test_ways(way: str, entry_: str, name: str, expected: bool) -> None:
    """Each way of matching by itself."""
    assert (way_of(entry_, name, [way]) == way) is expected
    assert way in WAYS


def test_a_way_that_is_none() -> None:
    """A contract that names another way is broken, which is said."""
    with pytest.raises(ContractError, match="no way of matching is called 'prefix'"):
        way_of("a", "a", ["prefix"])


def test_broken_patterns() -> None:
    """Patterns that do not compile are named."""
    assert broken_patterns(["re:(", "re:a", "("]) == ["re:("]


def test_entries_are_made() -> None:
    """The trees' own maker of entries makes what the strategy makes."""
    assert entry(lambda choices: choices[0]) == "fc"
