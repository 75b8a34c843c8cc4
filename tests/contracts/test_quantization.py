"""The quantization section of every contract: whole, cited, and telling what changed between releases."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.contract.load import shipped_releases
from dspark_lint.contract.model import load_contract
from dspark_lint.quant.match import WAYS


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


RELEASES = shipped_releases()


def section(release: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_contract(release)["quantization"]
    return found


def named_schemes(backend: Mapping[str, Any]) -> set[str]:
    """Schemes that a backend can arrive at: those of its groups, and those its expression can give."""
    groups = {clause["scheme"] for clause in backend.get("schemes", {}).values() if "scheme" in clause}
    text = str(backend.get("scheme", ""))
    return groups | {word for word in re.findall(r"'(\w+)'(?= if| else|$|\))", text) if word.islower() and "_" in word}


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_named_is_there(release: str) -> None:
    """Routes lead to backends, backends to schemes and ways of matching that exist."""
    quantization = section(release)
    backends, schemes = quantization["backends"], quantization["schemes"]

    assert {r["backend"] for r in quantization["routes"].values() if r and "backend" in r} <= set(backends)
    assert set().union(*(named_schemes(b) for b in backends.values())) <= set(schemes)
    for backend in backends.values():
        for key in ("match", "target_match", "class_match"):
            assert set(backend.get(key, ())) <= set(WAYS)


def clauses(value: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if hasattr(value, "items"):
        yield where, value
        for key, inner in value.items():
            yield from clauses(inner, f"{where}.{key}")


@pytest.mark.parametrize("release", RELEASES)
def test_every_outcome_is_cited(release: str) -> None:
    """A clause with an effect says why and cites the release's own line."""
    contract = load_contract(release)
    for where, clause in clauses(section(release), "quantization"):
        if "effect" in clause:
            assert clause.get("says"), where
            assert re.search(r"\.py:\d+$", contract.cite(clause) or ""), where


def module_names(release: str, family: str) -> set[str]:
    families = load_contract(release)["families"]
    return (
        {n for n, c in load_contract(release).family(family).get("modules", {}).items() if c}
        if family in families
        else set()
    )


@pytest.mark.parametrize(
    ("module", "family", "since"),
    [
        ("model.markov_head.markov_w2", "qwen3_dspark", "0.27.1"),
        ("model.fc", "qwen3_dflash", "0.24.0"),
        ("model.layers.{n}.self_attn.qkv_proj", "qwen3_dflash", "0.24.0"),
    ],
)
def test_what_can_be_quantized(module: str, family: str, since: str) -> None:
    """A module takes a quantization from the release on that builds it with one."""
    having = [r for r in RELEASES if module in module_names(r, family)]

    assert having == list(RELEASES)[RELEASES.index(since) :]


def test_entries_are_rewritten_from_0_31_on() -> None:
    """0.31 and 0.32 keep an entry beside its offset twin; 0.33 maps it; before, it counts as it stands."""
    steps = {r: list(load_contract(r).family("qwen3_dflash").get("entries", {}) or {}) for r in RELEASES}

    assert {r: s for r, s in steps.items() if s} == {
        "0.31.0": ["alias"],
        "0.32.0": ["alias"],
        "0.33.0": ["split", "midlayer", "encoder_fc", "offset", "root"],
    }
