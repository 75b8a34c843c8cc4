"""The parts of the live harness that need no vLLM."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.live.cases import CASES, Spec, cases, from_case, to_case
from conformance.live.outcome import verdict
from conformance.recorded import Case, read_corpus, write_corpus


@pytest.fixture(scope="module")
def recorded() -> dict[str, Case]:
    return {case["id"]: case for case in read_corpus("loader")}


def content(spec: Spec) -> tuple[Any, ...]:
    return spec.config, spec.tensors, spec.target, spec.serve, spec.dirname


@pytest.mark.parametrize("name", CASES)
def test_cases_are_made_as_they_were(name: str, recorded: dict[str, Case]) -> None:
    """A case made here of its base and mutations is the one that was recorded."""
    made = cases(recorded)[name]

    assert made["group"] == recorded[name]["group"]
    assert content(from_case(made)) == content(from_case(recorded[name]))


@pytest.mark.parametrize("name", ["base.native", "base.specs_pruned", "base.lilicorr"])
def test_a_base_is_taken_apart_and_put_together(name: str, recorded: dict[str, Case]) -> None:
    """Without a mutation a base comes out with the same header, size and tables."""
    base = recorded[name]

    made = to_case(name, base["group"], from_case(base))

    assert made["files"]["model.safetensors"] == base["files"]["model.safetensors"] | {
        "keep": made["files"]["model.safetensors"]["keep"]
    }
    assert from_case(made) == from_case(base)


LOADED: dict[str, Any] = {
    "verdict": "loaded",
    "unwritten": [],
    "unconsumed": [],
    "probe": {"target_forward": "aux 3 x 64", "combine": "[3, 64]", "draft_logits": "logits [4, 256] bias [4, 256]"},
}
FAILED = {"verdict": "failed", "stage": "build", "exc": "E"}
ERROR = {"exc": "ValueError", "message": "no", "where": None}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (LOADED, {"outcome": "clean"}),
        (
            {"verdict": "failed", "stage": "load", "exc": "KeyError", "message": "'x'" + "y" * 400},
            {"outcome": "refused", "stage": "load", "error": "KeyError", "message": ("'x'" + "y" * 400)[:200]},
        ),
        (
            {"verdict": "crashed", "stage": None, "exc": "signal 11", "message": ""},
            {"outcome": "refused", "stage": None, "error": "signal 11", "message": ""},
        ),
        ({"verdict": "harness-error", "exc": "OSError", "message": ""}, {"outcome": "unjudged"}),
        (
            {
                "verdict": "failed",
                "stage": "build",
                "exc": "E",
                "message": "failed to be inspected",
                "cpu_artifact": True,
            },
            {"outcome": "unjudged"},
        ),
        (
            {
                "verdict": "failed",
                "stage": "build",
                "exc": "E",
                "message": "not implemented on CPU",
                "cpu_artifact": True,
            },
            {"outcome": "refused", "stage": "build", "error": "E", "message": "not implemented on CPU"},
        ),
        (
            LOADED | {"probe": {"target_forward": "aux", "combine": ERROR, "draft_logits": ERROR}},
            {"outcome": "refused", "stage": "profile:combine", "error": "ValueError", "message": "no"},
        ),
        (LOADED | {"probe": {"combine": ERROR | {"message": "no CPU kernel (harness stub)"}}}, {"outcome": "clean"}),
        (LOADED | {"probe": {"harness": ERROR}}, {"outcome": "unjudged"}),
        (
            LOADED | {"unwritten": ["a"], "truncated": ["b 1/2"], "unconsumed": ["c"]},
            {"outcome": "silent", "unwritten": ["a"], "truncated": ["b 1/2"]},
        ),
        (
            LOADED | {"probe": {"draft_logits": "logits [1] MAPPED-IDS-OUT-OF-RANGE [0,300]"}},
            {"outcome": "silent", "wrong": ["mapped-ids-out-of-range"]},
        ),
        (LOADED | {"unconsumed": ["t2d", "x.bias"]}, {"outcome": "dropped", "dropped": ["x.bias"]}),
        (LOADED | {"unconsumed": ["t2d", "rotary_emb.inv_freq"]}, {"outcome": "clean"}),
    ],
    ids=[
        "clean",
        "failed",
        "crashed",
        "harness",
        "CPU only",
        "GPU class",
        "first step",
        "stubbed kernel",
        "probe at fault",
        "unwritten",
        "ids out of range",
        "dropped",
        "never read",
    ],
)
def test_outcome(record: dict[str, Any], expected: dict[str, Any]) -> None:
    """What a record of the harness comes to."""
    assert verdict(record) == expected


def test_corpora_are_written_reproducibly(tmp_path: Any) -> None:
    """Writing a corpus that was read gives the same bytes, so that a new release is a small change."""
    original = list(read_corpus("bugs"))

    for name in ("a", "b"):
        write_corpus(tmp_path / f"{name}.jsonl.gz", original)

    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert list(read_corpus(tmp_path / "a.jsonl.gz")) == original
