"""K3DSparkModel: the strict configuration class, MLA's tensors, the tables that are always the target's, the late head."""

from __future__ import annotations

import pytest

from conformance.live.cases import add, drop, shape
from rules.build import HIDDEN, ROWS, Change, Told, at, results, served, told, without
from rules.silent_changes import spec


HEAD = [Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)]


def found(*changes: Change, vllm: str = "0.32.0") -> list[Told]:
    """What one release makes of a K3 draft with changes."""
    (result,) = results(spec("k3", changes), f"=={vllm}").values()
    assert result.verdict != "unchecked"
    return told(result.findings)


def refused(rule: str, where: str) -> list[Told]:
    return [Told(rule, "error", "refused", where)]


@pytest.mark.parametrize(
    ("release", "expected"),
    [("0.26.0", refused("ARC007", "/model_type")), ("0.27.0", HEAD), ("0.30.0", HEAD), ("0.31.0", []), ("0.33.0", [])],
)
def test_known_from_0_27(release: str, expected: list[Told]) -> None:
    """The confidence head is served from 0.31 on, and dropped before."""
    assert found(vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([at("mla_use_nope", True)], refused("KEY003", "/mla_use_nope")),
        ([at("mla_use_qk_norm", True)], refused("KEY003", "/mla_use_nope")),
        ([at("dspark_bonus_anchor", True)], refused("DRF002", "/dspark_bonus_anchor")),
        ([at("draft_vocab_size", ROWS // 2)], refused("KEY003", "/draft_vocab_size")),
        ([at("target_layer_ids", [1, 4])], refused("KEY003", "/num_target_layers")),
        ([without("q_lora_rank"), at("q_lora_rank", None)], refused("KEY002", "/q_lora_rank")),
        ([at("target_layer_ids", [1, 4, 8])], refused("TGT004", "/target_layer_ids")),
        ([without("target_num_hidden_layers"), at("target_layer_ids", [1, 4, 8])], []),
        ([at("dspark_draft_topk", 32)], refused("ARC008", "/dspark_draft_topk")),
        ([without("rope_theta")], []),
    ],
    ids=[
        "no positions", "normed queries", "bonus token", "reduced vocabulary", "fewer layers than said", "no rank",
        "past the target", "a depth that nobody says", "candidates", "a base of its own",
    ],
)  # fmt: skip
def test_configuration(changes: list[Change], expected: list[Told]) -> None:
    """The configuration class refuses by name what the model does not do; each is one finding."""
    assert found(*changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([drop("context_norm.weight")], [Told("TEN001", "error", "refused", "context_norm.weight")]),
        ([drop("context_proj.weight")], [Told("TEN001", "error", "silent", "context_proj.weight")]),
        ([shape("layers.0.self_attn.q_b_proj.weight", 128, 16)], [
            Told("TEN004", "error", "silent", "layers.0.self_attn.q_b_proj.weight"),
        ]),
        ([add("lm_head.weight", ROWS, HIDDEN)], [Told("TEN005", "info", "advice", "lm_head.weight")]),
        ([add("fc.weight", HIDDEN, 3 * HIDDEN)], [Told("TEN002", "error", "refused", "fc.weight")]),
    ],
    ids=["no norm", "no projection", "too many rows", "an own head", "another family's name"],
)  # fmt: skip
def test_tensors(changes: list[Change], expected: list[Told]) -> None:
    """The check after loading passes projections over, and the target's tables are always taken."""
    assert found(*changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        [at("enable_confidence_head", False)],
        [at("confidence_head_with_markov", False)],
        [at("dflash_config", {"use_confidence_head": True})],
        [at("dspark_config", {"enable_confidence_head": True})],
    ],
    ids=["off", "without the Markov state", "ModelOpt's flag", "in another place"],
)
def test_before_0_31_nothing_of_the_head_counts(changes: list[Change]) -> None:
    """What is dropped in any case is no contradiction, whatever the flags and the width."""
    assert found(*changes, vllm="0.29.0") == HEAD


@pytest.mark.parametrize(
    ("release", "changes", "expected"),
    [
        ("0.28.0", [], [*refused("ARC008", ""), *HEAD]),
        ("0.30.0", [], [*refused("ARC008", ""), *HEAD]),
        ("0.31.0", [], []),
        ("0.31.0", [drop("confidence*"), at("enable_confidence_head", False)], [
            Told("ARC008", "warning", "silent", "/enable_confidence_head"),
        ]),
    ],
    ids=["0.28", "0.30", "0.31", "0.31 without the head"],
)  # fmt: skip
def test_adaptive_verification(release: str, changes: list[Change], expected: list[Told]) -> None:
    """The speculator asks the model for a head, which its class has from 0.31 on."""
    flags = served(method="dspark", num_speculative_tokens=4, enable_adaptive_verification=True)

    assert found(*changes, flags, vllm=release) == expected


def test_the_depth_of_the_target_is_a_key_of_its_own() -> None:
    """num_target_layers counts the layers that are tapped, and is not taken for the target's depth."""
    (result,) = results(spec("k3", ()), "==0.32.0").values()

    (note,) = result.notes
    assert note.endswith("its depth to be target_num_hidden_layers, 8, its hidden size to be target_hidden_size, 64")
