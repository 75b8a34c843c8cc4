"""The findings that the tool exists for: of each a checkpoint that shows it, and the same as it should be."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from conformance.live.cases import add, drop, rename, shape
from rules.build import (
    BLOCK,
    HIDDEN,
    MLP,
    RANK,
    ROWS,
    Change,
    Told,
    at,
    findings,
    moved,
    served,
    several,
    told,
    without,
)


class Pair(NamedTuple):
    """One kind of fault."""

    name: str
    base: str
    broken: Change
    finding: Told
    """The one finding, whatever its severity."""
    says: tuple[str, ...]
    mended: Change = several()
    """A change of the same place that is right; the base as it is, unless said."""


def error(rule: str, where: str, count: int = 1, effect: str = "refused") -> Told:
    return Told(rule, "error", effect, where, count)


def warning(rule: str, where: str) -> Told:
    return Told(rule, "warning", "silent", where)


PLAIN = without("dflash_config.projector_type")
PROPOSED = "speculators_config.proposal_methods.0.speculative_tokens"
BONUS = several(
    at("sample_from_anchor", False), at(PROPOSED, BLOCK - 1), served(method="dspark", num_speculative_tokens=BLOCK - 1)
)
HEADLESS = several(
    drop("confidence*"), at("enable_confidence_head", False), at("dflash_config.use_confidence_head", False)
)
NARROW = several(shape("confidence_head.proj.weight", 1, HIDDEN), at("confidence_head_with_markov", False))
UP = "layers.1.mlp.up_proj.weight"

ASKED: dict[str, list[Pair]] = {
    "an exporter's native layout": [
        Pair("ModelOpt", "modelopt", several(), error("ARC003", "/architectures"), ("ModelOpt's native DSpark layout", "DFlashDraftModel", "markov_w1.weight"),
             several(rename("^markov_w", "markov_head.markov_w"), rename("^confidence_proj", "confidence_head.proj"), at("architectures", ["Qwen3DSparkModel"]), at("markov_rank", RANK), at("enable_confidence_head", True), at("confidence_head_with_markov", True), at("sample_from_anchor", True))),
    ],
    "sample_from_anchor": [
        Pair("missing, flat", "native", several(without("sample_from_anchor", "dflash_config.shift_label"), PLAIN), warning("KEY006", "/sample_from_anchor"), ("sample_from_anchor is missing", "takes true")),
        Pair("missing, speculators", "speculators", without("sample_from_anchor"), warning("KEY006", "/sample_from_anchor"), ("sample_from_anchor is missing", "takes false"), BONUS),
        Pair("in the wrong place", "native", at("dflash_config.sample_from_anchor", True), error("DRF002", "/dflash_config/sample_from_anchor"), ("inside dflash_config is true", "refuses"), at("sample_from_anchor", True)),
        Pair("against shift_label", "native", several(PLAIN, at("dflash_config.shift_label", False)), warning("DRF002", "/dflash_config/shift_label"), ("shift_label is false", "counts as true"), PLAIN),
        Pair("against the proposal", "speculators", at(PROPOSED, BLOCK - 1), warning("DRF002", "/" + PROPOSED.replace(".", "/")), ("speculative_tokens is 3", "block_size 4"), BONUS),
    ],
    "the confidence head": [
        Pair("flags contradict each other", "native", at("enable_confidence_head", False), warning("DRF003", "/enable_confidence_head"), ("enable_confidence_head", "thrown away"), HEADLESS),
        Pair("flag without tensors", "native", drop("confidence*"), warning("DRF003", "/enable_confidence_head"), ("enable_confidence_head is true", "drops the head"), HEADLESS),
        Pair("wider than its flag", "native", at("confidence_head_with_markov", False), error("DRF003", "/confidence_head_with_markov"), ("expects 64 columns", "has 72"), NARROW),
        Pair("narrower than its flag", "speculators", shape("confidence_head.proj.weight", 1, HIDDEN), error("DRF003", "/confidence_head_with_markov"), ("expects 72 columns", "has 64"), NARROW),
        Pair("dropped for want of the flag", "speculators", without("enable_confidence_head"), warning("DRF003", "/enable_confidence_head"), ("thrown away without a word",)),
        Pair("bias unset", "native", drop("confidence_head.proj.bias"), error("TEN006", "confidence_head.proj.bias", effect="silent"), ("confidence_head.proj.bias is missing", "unset"), HEADLESS),
    ],
    "written twice": [
        Pair("markov_rank", "native", at("dflash_config.markov_rank", 4), warning("DRF001", "/dflash_config/markov_rank"), ("takes markov_rank",), without("dflash_config.markov_rank")),
        Pair("mask_token_id", "native", at("mask_token_id", 9), warning("DRF001", "/mask_token_id"), ("takes dflash_config.mask_token_id",), without("mask_token_id")),
        Pair("target_layer_ids", "native", at("target_layer_ids", [0, 1, 2]), warning("DRF001", "/target_layer_ids"), ("takes dflash_config.target_layer_ids",), without("target_layer_ids")),
        Pair("the confidence flag", "native", several(drop("confidence*"), at("enable_confidence_head", False)), warning("DRF003", "/dflash_config/use_confidence_head"), ("use_confidence_head is true", "enable_confidence_head"), HEADLESS),
        Pair("block_size", "native", at("dflash_config.block_size", 16), warning("DRF001", "/dflash_config/block_size"), ("takes block_size",), at("dflash_config.block_size", BLOCK)),
    ],
    "markov_head_type": [
        Pair("Vanilla", "native", several(at("markov_head_type", "Vanilla"), at("dflash_config.markov_head_type", "Vanilla")), Told("DRF004", "info", "advice", "/markov_head_type"), ("spelt Vanilla",)),
        Pair("gated", "speculators", at("markov_head_type", "gated"), warning("DRF004", "/markov_head_type"), ("markov_head_type is gated", "vanilla head's tensors")),
        Pair("rnn", "speculators", at("markov_head_type", "rnn"), warning("DRF004", "/markov_head_type"), ("markov_head_type is rnn",)),
        Pair("gated tensors", "native", add("markov_head.gate_proj.weight", RANK, HIDDEN + RANK), error("DRF004", "/markov_head_type"), ("gated Markov head (markov_head_type vanilla)",)),
    ],
    "an architecture dispatched elsewhere": [
        Pair("DSparkDraftModel", "native", several(at("architectures", ["DSparkDraftModel"]), at("model_type", "llama")), error("ARC002", "/architectures"), ("DSparkDraftModel", "DeepSeek-V4"), at("architectures", ["DSparkDraftModel"])),
        Pair("DFlashDraftModel with Markov tensors", "native", several(at("architectures", ["DFlashDraftModel"]), served(method="dflash", num_speculative_tokens=3)), error("ARC002", "/architectures"), ("DFlash loader", "Markov head")),
        Pair("unknown", "dflash", at("architectures", ["NoSuchModel"]), error("ARC001", "/architectures"), ("NoSuchModel", "DFlashNoSuchModel")),
        Pair("missing", "native", without("architectures"), error("ARC002", "/architectures"), ("architectures is missing", "DeepSeek-V4")),
    ],
    "tensors": [
        Pair("missing", "native", drop("fc.weight"), error("TEN001", "fc.weight", effect="silent"), ("fc.weight is missing", "uninitialised")),
        Pair("misnamed", "native", rename("hidden_norm", "hiden_norm"), error("TEN003", "hiden_norm.weight"), ("hiden_norm.weight", "hidden_norm.weight")),
        Pair("misshapen", "native", shape(UP, MLP - 8, HIDDEN), error("TEN004", UP), ("[120, 64]", "refuses")),
        Pair("oversize", "native", shape(UP, MLP + 8, HIDDEN), error("TEN004", UP, effect="silent"), ("[136, 64]", "cuts it to [128, 64] without a word")),
        Pair("superfluous", "native", add("verifier_norm.weight", HIDDEN), error("TEN002", "verifier_norm.weight"), ("verifier_norm.weight has no place",)),
        Pair("superfluous, thrown away", "native", add("norm.bias", HIDDEN), Told("TEN005", "info", "advice", "norm.bias"), ("norm.bias is thrown away",)),
    ],
}  # fmt: skip

PAIRS = [pytest.param(pair, id=f"{bullet}-{pair.name}") for bullet, pairs in ASKED.items() for pair in pairs]


@pytest.mark.parametrize("pair", PAIRS)
def test_broken(pair: Pair) -> None:
    """The fault is one finding in vLLM 0.32, which says what stands there and what the release makes of it."""
    (found,) = findings(pair.base, pair.broken)

    assert told([found]) == [pair.finding]
    assert [word for word in pair.says if word not in found.message] == []
    assert "0.32.0" in found.message
    assert found.expected or found.fix


@pytest.mark.parametrize("pair", PAIRS)
def test_mended(pair: Pair) -> None:
    """The same checkpoint as it should be has no finding at all."""
    assert told(findings(pair.base, pair.mended)) == []


ONE_FAULT: dict[str, tuple[str, Change, Told]] = {
    "intermediate_size of every layer": ("native", at("intermediate_size", 160), error("TEN004", "/intermediate_size", 6)),
    "no hidden_size": ("native", without("hidden_size"), error("TEN004", "/hidden_size", 22)),
    "no hidden_size, DFlash": ("dflash", without("hidden_size"), error("TEN004", "/hidden_size", 21)),
    "no vocab_size": ("native", without("vocab_size"), error("TEN004", "/vocab_size", 2)),
    "a prefix": ("native", rename("^", "model."), error("TEN003", "model.confidence_head.proj.bias", 29)),
    "layers counted on": ("dflash", rename(r"^layers\.(\d)", r"layers.3\1"), error("TEN003", "layers.30.input_layernorm.weight", 22)),
    "ModelOpt's layout": ("modelopt", several(), error("ARC003", "/architectures")),
    "no markov_rank": ("native", without("markov_rank", "dflash_config.markov_rank"), error("KEY001", "/markov_rank")),
    "markov_rank elsewhere": ("native", without("markov_rank"), error("KEY004", "/dflash_config/markov_rank")),
    "no list of layers": ("dflash", without("dflash_config.target_layer_ids"), error("KEY001", "/dflash_config/target_layer_ids")),
    "a misspelt list of layers": ("dflash", moved("dflash_config.target_layer_ids", "dflash_config.target_layers_ids"), error("KEY005", "/dflash_config/target_layers_ids")),
    "a null dflash_config": ("dflash", at("dflash_config", None), error("KEY002", "/dflash_config")),
    "a layer fewer": ("native", drop("layers.1.*"), error("TEN001", "/num_hidden_layers", 11, "silent")),
    "no layer block": ("speculators", without("transformer_layer_config"), error("KEY001", "/transformer_layer_config")),
    "the other dialect": ("speculators", at("model_type", "qwen3"), error("ARC006", "/model_type")),
    "another target's vocabulary": ("native", lambda spec: spec.target.update(vocab_size=ROWS - 56), error("TGT001", "/vocab_size")),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_FAULT)
def test_one_fault_is_one_finding(name: str) -> None:
    """A fault that shows in many places is told once, at its root, and what follows from it stays quiet."""
    base, change, expected = ONE_FAULT[name]

    assert told(findings(base, change)) == [expected]
