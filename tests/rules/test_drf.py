"""DRF: two places that state one fact and disagree."""

# ruff: noqa: ERA001 - a line of a table reads best whole; the remarks name the rules
from __future__ import annotations

from typing import Any

import pytest

from conformance.live.cases import add, drop, shape
from rules.build import BLOCK, HIDDEN, RANK, Case, Told, at, check, served, without


LAYER = "transformer_layer_config"
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)


def warned(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return (Told(rule, "warning", "silent", where), *((DROPPED,) if early else ()))


def refused(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return (Told(rule, "error", "refused", where), *((DROPPED,) if early else ()))


def typed(kind: str) -> Any:
    """The Markov head's type in both places."""
    return lambda spec: (at("markov_head_type", kind)(spec), at("dflash_config.markov_head_type", kind)(spec))


PLAIN = without("dflash_config.projector_type")
MIXED = at("layer_types", ["sliding_attention", "full_attention"])
WINDOW = at("dflash_config.swa_window_size", 16)
FEWER = served(method="dspark", num_speculative_tokens=BLOCK - 1)

CASES = [
    # DRF001: written twice
    Case("DRF001", "markov_rank", "native", (at("dflash_config.markov_rank", 4),), warned("DRF001", "/dflash_config/markov_rank"), says=("markov_rank = 8", "dflash_config.markov_rank = 4", "takes markov_rank")),
    Case("DRF001", "markov_rank, early", "native", (at("dflash_config.markov_rank", 4),), warned("DRF001", "/dflash_config/markov_rank", early=True), vllm="0.25.0", says=("takes markov_rank",)),
    Case("DRF001", "mask_token_id", "native", (at("mask_token_id", 254),), warned("DRF001", "/mask_token_id"), says=("dflash_config.mask_token_id = 255", "mask_token_id = 254", "takes dflash_config.mask_token_id")),
    Case("DRF001", "mask_token_id beside a speculators file's", "speculators", (at("dflash_config.mask_token_id", 3),), warned("DRF001", "/dflash_config/mask_token_id"), says=("takes mask_token_id",)),
    Case("DRF001", "target_layer_ids", "native", (at("target_layer_ids", [1, 4, 7]),), warned("DRF001", "/target_layer_ids"), says=("dflash_config.target_layer_ids = [1, 4, 6]", "target_layer_ids = [1, 4, 7]", "takes dflash_config.target_layer_ids")),
    Case("DRF001", "block_size", "native", (at("dflash_config.block_size", 8),), warned("DRF001", "/dflash_config/block_size"), says=("block_size = 4", "dflash_config.block_size = 8")),
    Case("DRF001", "markov_head_type", "native", (at("dflash_config.markov_head_type", "gated"),), warned("DRF001", "/markov_head_type"), says=('markov_head_type = "vanilla"', '"gated"', "reads none of them")),
    Case("DRF001", "equal in another spelling", "native", (at("dflash_config.markov_head_type", "VANILLA"),)),
    Case("DRF001", "in one place", "native", (without("dflash_config.markov_rank", "mask_token_id", "target_layer_ids"),)),
    # DRF002: the block layout
    Case("DRF002", "true in the wrong place", "native", (at("dflash_config.sample_from_anchor", True),), refused("DRF002", "/dflash_config/sample_from_anchor"), says=("inside dflash_config is true", "refuses"), fix='"sample_from_anchor": true at the top level'),
    Case("DRF002", "true in the wrong place alone", "native", (without("sample_from_anchor"), at("dflash_config.sample_from_anchor", True)), refused("DRF002", "/dflash_config/sample_from_anchor"), vllm="0.33.0", says=("inside dflash_config is true",)),
    Case("DRF002", "true in the wrong place, DFlash", "dflash", (at("dflash_config.sample_from_anchor", True),), refused("DRF002", "/dflash_config/sample_from_anchor"), vllm="0.27.0", says=("inside dflash_config is true",)),
    Case("DRF002", "true in the wrong place, unread before 0.27", "dflash", (at("dflash_config.sample_from_anchor", True),), vllm="0.26.0"),
    Case("DRF002", "false in the wrong place", "native", (without("sample_from_anchor"), at("dflash_config.sample_from_anchor", False)), warned("DRF002", "/dflash_config/sample_from_anchor"), says=("false inside dflash_config", "takes true"), fix='"sample_from_anchor": false at the top level'),
    Case("DRF002", "two places", "native", (at("dflash_config.sample_from_anchor", False),), warned("DRF002", "/dflash_config/sample_from_anchor"), says=("true at the top level and false inside",)),
    Case("DRF002", "shift_label false", "native", (PLAIN, at("dflash_config.shift_label", False)), warned("DRF002", "/dflash_config/shift_label"), says=("shift_label is false", "sample_from_anchor counts as true"), fix='"sample_from_anchor": false'),
    Case("DRF002", "shift_label true", "native", (PLAIN, at("sample_from_anchor", False)), warned("DRF002", "/dflash_config/shift_label"), says=("shift_label is true", "sample_from_anchor counts as false")),
    Case("DRF002", "ModelOpt always shifts", "native", (at("sample_from_anchor", False),), warned("DRF002", "/dflash_config/shift_label"), says=("projector_type is dspark", "sample_from_anchor counts as false"), fix='"sample_from_anchor": true'),
    Case("DRF002", "proposal of one token fewer", "speculators", (at("speculators_config.proposal_methods.0.speculative_tokens", BLOCK - 1),), warned("DRF002", "/speculators_config/proposal_methods/0/speculative_tokens"), says=("speculative_tokens is 3", "block_size 4", "sample_from_anchor counts as true")),
    Case("DRF002", "proposal of the whole block", "speculators", (at("sample_from_anchor", False),), warned("DRF002", "/speculators_config/proposal_methods/0/speculative_tokens"), says=("speculative_tokens is 4", "sample_from_anchor counts as false")),
    Case("DRF002", "the old key", "native", (without("sample_from_anchor"), at("dspark_bonus_anchor", True)), warned("DRF002", "/dspark_bonus_anchor"), says=("dspark_bonus_anchor is true", "no longer reads"), fix='"sample_from_anchor": false'),
    Case("DRF002", "the old key and the nested one", "native", (without("sample_from_anchor"), at("dspark_bonus_anchor", True), at("dflash_config.sample_from_anchor", False)), warned("DRF002", "/dspark_bonus_anchor"), says=("dspark_bonus_anchor is true, and dflash_config.sample_from_anchor false", "no longer reads either for DSpark"), fix='"sample_from_anchor": false'),
    Case("DRF002", "the old key while it was read", "native", (without("sample_from_anchor", "dflash_config"), at("dspark_bonus_anchor", True), at("dflash_config", {"target_layer_ids": [1, 4, 6]})), (DROPPED, Told("KEY009", "info", "advice", "/dspark_bonus_anchor")), vllm="0.26.0"),
    Case("DRF002", "a bonus token throughout", "speculators", (at("sample_from_anchor", False), at("speculators_config.proposal_methods.0.speculative_tokens", BLOCK - 1), FEWER)),
    # DRF003: the confidence head
    Case("DRF003", "flag off", "native", (at("enable_confidence_head", False),), warned("DRF003", "/enable_confidence_head"), says=("enable_confidence_head", "thrown away"), fix='"enable_confidence_head": true'),
    Case("DRF003", "flag missing", "native", (without("enable_confidence_head"),), warned("DRF003", "/enable_confidence_head"), vllm="0.28.0", says=("counts as false",)),
    Case("DRF003", "flag missing, speculators", "speculators", (without("enable_confidence_head"),), warned("DRF003", "/enable_confidence_head"), says=("thrown away",)),
    Case("DRF003", "flag without tensors", "native", (drop("confidence*"),), warned("DRF003", "/enable_confidence_head"), says=("enable_confidence_head is true", "no confidence_head tensor"), fix='"enable_confidence_head": false'),
    Case("DRF003", "the exporter's flag alone", "native", (drop("confidence*"), at("enable_confidence_head", False)), warned("DRF003", "/dflash_config/use_confidence_head"), says=("dflash_config.use_confidence_head is true", "without a head")),
    Case("DRF003", "wider than its flag", "native", (at("confidence_head_with_markov", False),), refused("DRF003", "/confidence_head_with_markov"), says=("confidence_head_with_markov counts as false", "64 columns", "has 72"), fix='"confidence_head_with_markov": true'),
    Case("DRF003", "wider, flag missing", "speculators", (without("confidence_head_with_markov"),), refused("DRF003", "/confidence_head_with_markov"), vllm="0.29.0", says=("counts as false",)),
    Case("DRF003", "narrower than its flag", "native", (shape("confidence_head.proj.weight", 1, HIDDEN),), refused("DRF003", "/confidence_head_with_markov"), says=("counts as true", "has 64"), fix='"confidence_head_with_markov": false'),
    Case("DRF003", "a width of neither", "native", (shape("confidence_head.proj.weight", 1, HIDDEN + 3),), refused("TEN004", "confidence_head.proj.weight")),
    Case("DRF003", "before there were heads", "native", (at("enable_confidence_head", False),), (DROPPED,), vllm="0.27.0"),
    # DRF004: the Markov head's type
    *(
        Case("DRF004", f"{kind}, vanilla tensors, {base}", base, (typed(kind) if base == "native" else at("markov_head_type", kind),), warned("DRF004", "/markov_head_type"), says=(f"markov_head_type is {kind}", "never reads"), fix='"vanilla"')
        for kind in ("gated", "rnn")
        for base in ("native", "speculators")
    ),
    Case("DRF004", "gated tensors", "native", (typed("gated"), add("markov_head.gate_proj.weight", RANK, HIDDEN + RANK)), refused("DRF004", "/markov_head_type"), says=("markov_head.gate_proj", "markov_head_type gated"), fix="vanilla"),
    Case("DRF004", "recurrent tensors", "native", (typed("rnn"), add("markov_head.joint_proj.weight", RANK, HIDDEN), add("markov_head.joint_proj.bias", RANK)), refused("DRF004", "/markov_head_type", early=True), vllm="0.25.1", says=("markov_head.joint_proj", "rnn")),
    Case("DRF004", "vanilla with gated tensors", "speculators", (add("markov_head.gate_proj.weight", RANK, HIDDEN + RANK),), refused("DRF004", "/markov_head_type"), says=("gated Markov head (markov_head_type vanilla)",)),
    Case("DRF004", "Vanilla", "native", (typed("Vanilla"),), (Told("DRF004", "info", "advice", "/markov_head_type"),), says=("Vanilla",), fix='"vanilla"'),
    Case("DRF004", "vanilla", "native", (typed("vanilla"),)),
    # DRF005: two conventions of layer lists
    Case("DRF005", "the same numbers in both", "native", (at("eagle_aux_hidden_state_layer_ids", [1, 4, 6]),), warned("DRF005", "/eagle_aux_hidden_state_layer_ids"), says=("eagle_aux_hidden_state_layer_ids is [1, 4, 6]", "[1, 4, 6]", "takes the first")),
    Case("DRF005", "the same numbers in both, DFlash", "dflash", (at("eagle_aux_hidden_state_layer_ids", [1, 4, 6]),), warned("DRF005", "/eagle_aux_hidden_state_layer_ids"), vllm="0.24.0", says=("[1, 4, 6]",)),
    Case("DRF005", "out of order", "dflash", (at("dflash_config.target_layer_ids", [4, 1, 6]),), warned("DRF005", "/dflash_config/target_layer_ids"), says=("[5, 2, 7]", "order")),
    Case("DRF005", "out of order, speculators", "speculators", (at("aux_hidden_state_layer_ids", [5, 2, 7]),), warned("DRF005", "/aux_hidden_state_layer_ids"), says=("[5, 2, 7]",)),
    Case("DRF005", "the embedding's output", "speculators", (at("aux_hidden_state_layer_ids", [0, 2, 7]),), warned("DRF005", "/aux_hidden_state_layer_ids"), says=("boundary 0",)),
    Case("DRF005", "an eagle_config that hides the list", "dflash", (at("eagle_config", {"x": 1}),), warned("DRF005", "/eagle_config"), says=("eagle_config",)),
    Case("DRF005", "one higher", "native", (at("eagle_aux_hidden_state_layer_ids", [2, 5, 7]),)),
    # DRF006: attention
    Case("DRF006", "use_swa beside layer types", "dflash", (MIXED, at("dflash_config.use_swa", True), WINDOW), warned("DRF006", "/dflash_config/use_swa"), says=("use_swa is true", "ignored")),
    Case("DRF006", "a window that no layer has", "native", (without("layer_types"), at("sliding_window", 16)), (Told("DRF006", "info", "advice", "/sliding_window"),), says=("sliding_window is 16", "full attention")),
    Case("DRF006", "one causality for mixed layers", "native", (MIXED, WINDOW, at("dflash_config.causal", False)), (Told("DRF006", "info", "advice", "/dflash_config/causal"),), says=("causal counts as false",)),
    Case("DRF006", "non-causal windows of a DSpark file", "speculators", (at(f"{LAYER}.layer_types", ["sliding_attention"] * 2), at(f"{LAYER}.sliding_window", 16), at("sliding_window_non_causal", True)), warned("DRF006", "/sliding_window_non_causal"), says=("sliding_window_non_causal is true",)),
    Case("DRF006", "windows in their place", "native", (MIXED, WINDOW)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_drift(case: Case) -> None:
    """Places that disagree are one finding that names both values and the one that the release takes."""
    check(case)
