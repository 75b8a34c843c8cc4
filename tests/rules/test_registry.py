"""The registry: every rule is described, and every rule has a checkpoint that fires it and one that does not."""

from __future__ import annotations

import re

from collections import Counter

import pytest

from rules import (
    test_arc,
    test_drf,
    test_fil,
    test_key,
    test_mask_embedding,
    test_qnt_embedded,
    test_ten,
    test_tgt,
    test_val,
    test_val_deep,
)
from rules.build import BASES, RELEASES, Case, findings, made, results, told

from dspark_lint.contract.load import shipped_releases
from dspark_lint.contract.model import load_contract
from dspark_lint.rules import REGISTRY, Rule


TABLES: tuple[list[Case], ...] = tuple(
    module.CASES
    for module in (
        test_fil,
        test_mask_embedding,
        test_arc,
        test_key,
        test_drf,
        test_qnt_embedded,
        test_ten,
        test_tgt,
        test_val,
        test_val_deep,
    )
)
CASES = [case for table in TABLES for case in table]
#: Rules about quantization have their tables elsewhere.
ELSEWHERE = ("QNT0", "DRF007")
HERE = [rule for rule in REGISTRY if not rule.startswith(ELSEWHERE) or rule == "QNT011"]

rules = pytest.mark.parametrize("rule", REGISTRY.values(), ids=REGISTRY)


@rules
def test_described(rule: Rule) -> None:
    """A rule's id is a family and three digits, and none of its descriptions is empty or a stub."""
    assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.id)
    assert REGISTRY[rule.id] is rule
    assert rule.severity in ("error", "warning", "info")
    assert rule.effect in ("refused", "silent", "advice")
    for name in ("title", "rationale", "remedy", "fires", "quiet"):
        text = getattr(rule, name)
        assert text.strip() == text
        assert text, name
    assert len(rule.rationale) > len(rule.title)
    assert rule.title[0].isupper() or re.match(r"(config\.json|d2t|t2d) ", rule.title)
    assert rule.title[-1] != "."
    assert rule.rationale[-1] == rule.remedy[-1] == "."
    assert rule.fires != rule.quiet


def test_ids_are_unique_and_dense() -> None:
    """No number of a family is left out or given twice, and titles tell rules apart."""
    families: dict[str, list[int]] = {}
    for rule in REGISTRY:
        families.setdefault(rule[:3], []).append(int(rule[3:]))

    assert {family: sorted(numbers) for family, numbers in families.items()} == {
        family: list(range(1, len(numbers) + 1)) for family, numbers in families.items()
    }
    assert [title for title, n in Counter(rule.title for rule in REGISTRY.values()).items() if n > 1] == []


@pytest.mark.parametrize("rule", HERE)
def test_no_rule_is_left_out(rule: str) -> None:
    """There is a checkpoint that fires the rule and one that does not, both in the rule's own table."""
    table = [case for case in CASES if case.rule == rule]

    assert any(case.fires for case in table), "nothing fires it"
    assert any(not case.fires for case in table), "nothing shows it quiet"


@pytest.mark.parametrize("rule", [rule for rule in HERE if not rule.startswith(("FIL", "VAL", "TGT010", "TEN007"))])
def test_fires_on_more_than_one_kind(rule: str) -> None:
    """A rule is shown on several kinds of its fault: another base, release or place."""
    kinds = {
        (case.base, case.vllm, *(told.where for told in case.found if told.rule == rule))
        for case in CASES
        if case.rule == rule and case.fires
    }

    assert len(kinds) > 1


def test_names_of_cases_tell_them_apart() -> None:
    """Two lines of a rule's table never have the same name."""
    assert [case for case, n in Counter((case.rule, case.name) for case in CASES).items() if n > 1] == []


@pytest.mark.parametrize("base", [base for base in BASES if base not in ("modelopt", "gemma4", "embedded")])
def test_bases_are_clean(base: str) -> None:
    """A draft as it should be has nothing to be told in the releases that serve all of it."""
    found = results(made(base), [f"=={release}" for release in RELEASES if release >= "0.28.0"])

    assert {release: told(result.findings) for release, result in found.items()} == {key: [] for key in found}
    assert {result.verdict for result in found.values()} == {"ok"}


def test_releases_are_those_with_a_contract() -> None:
    """The releases that the tables go through are those that ship."""
    assert shipped_releases() == RELEASES


def test_every_clause_names_a_rule_of_the_registry() -> None:
    """A check clause of any release and family belongs to a rule that exists."""
    unknown = set()
    for release in RELEASES:
        contract = load_contract(release)
        for family in contract["families"]:
            checks = contract.family(family).get("checks", {})
            unknown |= {
                (release, family, name) for name, clause in checks.items() if clause and clause["rule"] not in REGISTRY
            }

    assert unknown == set()


@pytest.mark.parametrize("case", [case for case in CASES if case.fires], ids=lambda case: f"{case.rule}-{case.name}")
def test_says_where_it_is_from(case: Case) -> None:
    """Every finding of a rule's table cites a line of the release and says what was found or expected."""
    for finding in findings(case.base, *case.changes, vllm=case.vllm, deep=case.deep):
        assert finding.source is not None, finding.message
        assert re.search(r"^[\w/]+\.py:\d+$", finding.source), finding.source
        assert finding.message[-1] == "."
        assert "UNKNOWN" not in finding.message
        assert "(unknown)" not in finding.message
        assert "{" not in finding.message.replace("layers.{i}", "").replace('{"', ""), finding.message
