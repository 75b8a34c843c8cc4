"""What the real loader did with 1,600 tiny checkpoints, and what the tool says of them."""

from __future__ import annotations

import pytest

from conformance.recorded import (
    CORPORA,
    OUTCOMES,
    Case,
    Comparison,
    Verdict,
    agrees,
    compare,
    exempt,
    read_corpus,
    read_exceptions,
    verdicts,
)

from dspark_lint.finding import Effect, Finding, Result, Severity


EXCEPTIONS = read_exceptions()
CASES = [pytest.param(case, id=f"{corpus}:{case['id']}") for corpus in CORPORA for case in read_corpus(corpus)]


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_loader(case: Case) -> None:
    """Under every recorded release the tool says what the loader did, but for argued exceptions, which must differ."""
    compared = compare(case, tuple(verdicts(case)))

    wrong = [c for c in compared if c.agrees == (exempt(EXCEPTIONS, c.case, c.release) is not None)]
    assert [told(c) for c in wrong] == []


def told(c: Comparison) -> str:
    return f"agrees, so the exception is stale: {c}" if c.agrees else str(c)


def test_every_exception_names_a_recorded_verdict() -> None:
    """An argued exception covers at least one case under each release it names."""
    recorded = [
        (case["id"], release) for corpus in CORPORA for case in read_corpus(corpus) for release in verdicts(case)
    ]
    idle = [
        (e.case, release)
        for e in EXCEPTIONS
        for release in (e.releases or ("",))
        if not any(exempt([e], case, at) and release in ("", at) for case, at in recorded)
    ]

    assert idle == []


def result(*findings: tuple[Severity, Effect]) -> Result:
    return Result(
        "vllm", "0.32.0", tuple(Finding("KEY001", severity, effect, "message") for severity, effect in findings), ()
    )


@pytest.mark.parametrize(
    ("found", "agreeing"),
    [
        ((), "clean base-clean expect-info expect-ok"),
        ((("info", "advice"),), "dropped clean base-clean expect-info expect-ok"),
        ((("info", "silent"),), "dropped clean base-clean expect-info expect-ok"),
        ((("warning", "advice"),), "dropped clean expect-warning expect-info"),
        ((("warning", "silent"),), "silent dropped clean expect-warning expect-info"),
        ((("error", "silent"),), "silent dropped clean expect-error expect-warning"),
        ((("error", "refused"),), "refused silent dropped expect-error expect-warning"),
    ],
    ids=["nothing", "advice", "silent info", "warned advice", "silent warning", "silent error", "refused"],
)
def test_what_agrees(found: tuple[tuple[Severity, Effect], ...], agreeing: str) -> None:
    """The rules of agreement, outcome by outcome."""
    said = [want for want in OUTCOMES if agrees(want, "shape", result(*found))]
    said += ["base-clean"] if agrees("clean", "base", result(*found)) else []

    assert set(said) == set(agreeing.split())


def test_unjudged_is_left_out() -> None:
    """A verdict that the recording could not reach is not compared; a refusal brings its message along."""
    case = {
        "id": "x",
        "verdicts": {
            "0.31.0": {"outcome": "unjudged"},
            "0.32.0": {"outcome": "refused", "error": "ValueError", "message": "no"},
        },
    }

    assert verdicts(case) == {"0.32.0": Verdict("refused", "ValueError no")}


def test_the_corpora_are_whole() -> None:
    """Every case is there once, with verdicts of known outcome."""
    cases = {corpus: list(read_corpus(corpus)) for corpus in CORPORA}

    assert {corpus: len(found) for corpus, found in cases.items()} == {
        "loader": 559,
        "quant": 299,
        "exports": 114,
        "random": 580,
        "bugs": 85,
    }
    assert all(len({case["id"] for case in found}) == len(found) for found in cases.values())
    outcomes = {v.outcome for found in cases.values() for case in found for v in verdicts(case).values()}
    assert outcomes <= set(OUTCOMES)
