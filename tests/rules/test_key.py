"""KEY: keys that are missing, mistyped, misplaced, misspelt or out of range; defaults; keys that are not read."""

# ruff: noqa: ERA001 - a line of a table reads best whole; the remarks name the rules
from __future__ import annotations

import json

from typing import Any

import pytest

from conformance.live.cases import shape
from rules.build import (
    HIDDEN,
    RELEASES,
    ROWS,
    Case,
    Change,
    Told,
    alone,
    at,
    check,
    findings,
    moved,
    native,
    told,
    unserved,
    without,
    written,
)


LAYER = "transformer_layer_config"
MASKS = ("mask_token_id", "dflash_config.mask_token_id")
IDS = ("target_layer_ids", "dflash_config.target_layer_ids")
RANKS = ("markov_rank", "dflash_config.markov_rank")
#: What releases before 0.28 say of the base's confidence head.
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)


def refused(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return (Told(rule, "error", "refused", where), *((DROPPED,) if early else ()))


def silent(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return (Told(rule, "warning", "silent", where), *((DROPPED,) if early else ()))


def everywhere(places: tuple[str, ...], value: Any) -> tuple[Change, ...]:
    return tuple(at(place, value) for place in places)


def layer_keys(**keys: Any) -> Change:
    """Write the layer block's rope keys anew, in this order."""

    def change(spec: Any) -> None:
        block = spec.config[LAYER]
        for old in ("rope_theta", "rope_scaling"):
            block.pop(old, None)
        block.update(keys)

    return change


def no_columns(spec: Any) -> None:
    """A Markov head of rank 0, tensors and flags with it."""
    for place in RANKS:
        at(place, 0)(spec)
    at("confidence_head_with_markov", False)(spec)
    shape("markov_head.markov_w1.weight", ROWS, 0)(spec)
    shape("markov_head.markov_w2.weight", ROWS, 0)(spec)
    shape("confidence_head.proj.weight", 1, HIDDEN)(spec)


SLIDING = at("layer_types", ["sliding_attention", "sliding_attention"])
PLAIN = without("dflash_config.projector_type", "dflash_config.shift_label")
NATIVE = json.dumps(native().config)

CASES = [
    # KEY001: missing
    Case("KEY001", "markov_rank", "native", (without(*RANKS),), refused("KEY001", "/markov_rank"), says=("markov_rank is missing", "AttributeError"), fix='add "markov_rank": 8'),
    Case("KEY001", "markov_rank, early", "native", (without(*RANKS),), refused("KEY001", "/markov_rank", early=True), vllm="0.25.0", says=("markov_rank",)),
    Case("KEY001", "markov_rank, speculators", "speculators", (without("markov_rank"),), refused("KEY001", "/markov_rank"), says=("markov_rank",), fix='"markov_rank": 8'),
    Case("KEY001", "mask_token_id", "native", (without(*MASKS),), refused("KEY001", "/dflash_config/mask_token_id"), says=("dflash_config.mask_token_id",)),
    Case("KEY001", "mask_token_id, speculators", "speculators", (without("mask_token_id"),), refused("KEY001", "/mask_token_id"), says=("mask_token_id is missing",)),
    Case("KEY001", "mask_token_id, DFlash", "dflash", (without("dflash_config.mask_token_id"),), refused("KEY001", "/dflash_config/mask_token_id"), vllm="0.24.0", says=("mask_token_id",)),
    Case("KEY001", "aux_hidden_state_layer_ids", "speculators", (without("aux_hidden_state_layer_ids"),), refused("KEY001", "/aux_hidden_state_layer_ids"), says=("aux_hidden_state_layer_ids", "KeyError")),
    Case("KEY001", "hidden_size, speculators", "speculators", (without(f"{LAYER}.hidden_size"),), refused("KEY001", f"/{LAYER}/hidden_size"), says=(f"{LAYER}.hidden_size",)),
    Case("KEY001", "vocab_size, speculators", "speculators", (without(f"{LAYER}.vocab_size"),), refused("KEY001", f"/{LAYER}/vocab_size"), says=(f"{LAYER}.vocab_size",)),
    Case("KEY001", "the whole layer block", "speculators", (without(LAYER),), refused("KEY001", f"/{LAYER}"), says=(LAYER,)),
    Case("KEY001", "target layers", "native", (without(*IDS),), refused("KEY001", "/dflash_config/target_layer_ids"), says=("dflash_config.target_layer_ids, target_layer_ids", "takes 3")),
    Case("KEY001", "target layers, DFlash", "dflash", (without("dflash_config.target_layer_ids"),), refused("KEY001", "/dflash_config/target_layer_ids"), vllm="0.28.0", says=("no list of target layers",)),
    Case("KEY001", "a class's default stands in", "native", (without("max_position_embeddings", "rms_norm_eps"),)),
    Case("KEY001", "one of two places is enough", "native", (without("mask_token_id", "target_layer_ids"),)),
    # KEY002: types and nulls
    Case("KEY002", "text for an integer", "native", (at("hidden_size", "64"),), refused("KEY002", "/hidden_size"), says=('hidden_size is "64"', "an integer")),
    Case("KEY002", "text for an integer, speculators", "speculators", (at(f"{LAYER}.hidden_size", "64"),), refused("KEY002", f"/{LAYER}/hidden_size"), says=(f'{LAYER}.hidden_size is "64"', "an integer")),
    Case("KEY002", "markov_rank as text", "native", everywhere(RANKS, "8"), refused("KEY002", "/markov_rank"), says=('markov_rank is "8"', "an integer")),
    Case("KEY002", "markov_rank as a float", "native", everywhere(RANKS, 8.0), refused("KEY002", "/markov_rank"), says=("markov_rank is 8.0",)),
    Case("KEY002", "markov_rank null", "native", everywhere(RANKS, None), refused("KEY002", "/markov_rank", early=True), vllm="0.26.0", says=("markov_rank is null",)),
    Case("KEY002", "a null hides the other place", "native", (at("dflash_config.mask_token_id", None),), refused("KEY002", "/dflash_config/mask_token_id"), says=("dflash_config.mask_token_id is null", "hides")),
    Case("KEY002", "a mask token by name", "native", everywhere(MASKS, "<mask>"), refused("KEY002", "/dflash_config/mask_token_id"), says=('"<mask>"', "int()")),
    Case("KEY002", "dflash_config null", "dflash", (at("dflash_config", None),), refused("KEY002", "/dflash_config"), says=("dflash_config is null", "an object")),
    Case("KEY002", "dflash_config a list", "dflash", (at("dflash_config", []),), refused("KEY002", "/dflash_config"), vllm="0.24.0", says=("dflash_config is []",)),
    Case("KEY002", "layers as text", "dflash", (at("dflash_config.target_layer_ids", ["1", "4", "6"]),), refused("KEY002", "/dflash_config/target_layer_ids"), says=('["1", "4", "6"]',)),
    Case("KEY002", "a number for the layers", "native", (without("dflash_config.target_layer_ids"), at("target_layer_ids", 3)), refused("KEY002", "/target_layer_ids"), says=("target_layer_ids is 3", "a list")),
    Case("KEY002", "layers as text, speculators", "speculators", (at("aux_hidden_state_layer_ids", "2,5,7"),), refused("KEY002", "/aux_hidden_state_layer_ids"), says=('"2,5,7"', "a list of integers")),
    Case("KEY002", "the whole layer block a list", "speculators", (at(LAYER, []),), refused("KEY002", f"/{LAYER}"), says=(f"{LAYER} is []", "an object")),
    Case("KEY002", "a field that no draft reads but its class checks", "native", (at("attention_dropout", "0.0"),), refused("KEY002", "/attention_dropout"), says=('attention_dropout is "0.0"',)),
    Case("KEY002", "text that no earlier list hides", "native", (without(*IDS), at("dspark_target_layer_ids", "relu")), refused("KEY002", "/dspark_target_layer_ids"), says=('dspark_target_layer_ids is "relu"', "a list")),
    Case("KEY002", "text that an earlier list hides", "dflash", (at("dspark_target_layer_ids", "relu"),), (Told("DRF001", "warning", "silent", "/dspark_target_layer_ids"),)),
    Case("KEY002", "a window where no layer slides", "dflash", (at("dflash_config.swa_window_size", "wide"),)),
    Case("KEY002", "a window where layers slide", "dflash", (at("dflash_config.swa_window_size", "wide"), at("dflash_config.use_swa", True)), refused("KEY002", "/dflash_config/swa_window_size"), says=('swa_window_size is "wide"',)),
    Case("KEY002", "rope parameters that are none", "native", (at("rope_parameters", "yarn"),), refused("KEY002", "/rope_parameters"), says=('rope_parameters is "yarn"', "an object")),
    Case("KEY002", "a falsy width that counts as absent", "speculators", (at("target_hidden_size", {}),)),
    Case("KEY002", "scaling that is none", "native", (at("rope_scaling", "yarn"),), refused("KEY002", "/rope_scaling"), says=('rope_scaling is "yarn"', "rope_parameters")),
    Case("KEY002", "scaling that is none, speculators", "speculators", (at(f"{LAYER}.rope_scaling", 0),), refused("KEY002", f"/{LAYER}/rope_scaling"), says=("AttributeError",)),
    Case("KEY002", "an empty scaling counts as absent", "native", (at("rope_scaling", ""),)),
    Case("KEY002", "the rotation's layout by name", "native", (at("is_neox_style", "neox"),), refused("KEY002", "/is_neox_style"), says=("takes a bool",)),
    Case("KEY002", "the rotation's layout by name, where it is overwritten", "dflash", (at("is_neox_style", "neox"),), vllm="0.28.0"),
    Case("KEY002", "the rotation's layout by number", "native", (at("is_neox_style", 1),)),
    Case("KEY002", "what int() takes", "native", everywhere(MASKS, "255")),
    Case("KEY002", "a null that counts as absent", "native", (at("rope_scaling", None), at("target_hidden_size", None))),
    # KEY003: values
    Case("KEY003", "a type that torch does not have", "native", (at("torch_dtype", "bf16"),), refused("KEY003", "/torch_dtype"), says=("torch_dtype is bf16", "AttributeError")),
    Case("KEY003", "a type that torch does not have, layer block", "speculators", (at(f"{LAYER}.dtype", "relu"),), refused("KEY003", f"/{LAYER}/dtype"), says=("dtype is relu",)),
    Case("KEY003", "a type that the layer block's class never takes", "speculators", (at(f"{LAYER}.torch_dtype", "bf16"),)),
    Case("KEY003", "layer types that nobody knows, speculators", "speculators", (at(f"{LAYER}.layer_types", ["full_attention", "relu"]),), refused("KEY003", f"/{LAYER}/layer_types"), says=("full_attention and sliding_attention",)),
    Case("KEY003", "layer types for other layers, speculators", "speculators", (at(f"{LAYER}.layer_types", ["full_attention"]),), refused("KEY003", f"/{LAYER}/layer_types"), says=("a list of 1", "2 entries")),
    Case("KEY003", "a type as a list", "native", (at("dtype", ["bfloat16"]),), refused("KEY003", "/dtype"), says=("IndexError",)),
    Case("KEY003", "a type that counts for nothing beside dtype", "native", (at("dtype", "bfloat16"), at("torch_dtype", "bf16"))),
    Case("KEY003", "the base of the rotation as text", "native", (at("rope_theta", "1e6"),), refused("KEY003", "/rope_theta"), says=("rope_theta", "TypeError")),
    Case("KEY003", "no positions", "native", (at("max_position_embeddings", 0),), refused("KEY003", "/max_position_embeddings"), says=("max_position_embeddings is 0", "at least 1")),
    Case("KEY003", "activation", "native", (at("hidden_act", "gelu"),), refused("KEY003", "/hidden_act"), says=("hidden_act is gelu", "silu")),
    Case("KEY003", "activation, speculators", "speculators", (at(f"{LAYER}.hidden_act", "gelu"),), refused("KEY003", f"/{LAYER}/hidden_act", early=True), vllm="0.27.0", says=("hidden_act is gelu",)),
    Case("KEY003", "unknown layer type", "native", (at("layer_types", ["full_attention", "strange"]),), refused("KEY003", "/layer_types"), says=("strange",)),
    Case("KEY003", "too few layer types", "native", (at("layer_types", ["full_attention"]),), refused("KEY003", "/layer_types"), says=("a list of 1", "2 entries")),
    Case("KEY003", "mixed layers in 0.25", "dflash", (at("layer_types", ["sliding_attention", "full_attention"]), at("dflash_config.swa_window_size", 16)), refused("KEY003", "/layer_types"), vllm="0.25.0", says=("sliding_attention", "mixture")),
    Case("KEY003", "mixed layers later", "dflash", (at("layer_types", ["sliding_attention", "full_attention"]), at("dflash_config.swa_window_size", 16)), vllm="0.26.0"),
    Case("KEY003", "no window", "native", (SLIDING,), refused("KEY003", "/dflash_config/swa_window_size"), says=("swa_window_size", "sliding_window"), fix="swa_window_size"),
    Case("KEY003", "rope without its factor", "native", (at("rope_scaling", {"rope_type": "yarn"}), alone), refused("KEY003", "/rope_scaling"), says=("yarn", "factor")),
    Case("KEY003", "unknown rope", "native", (at("rope_scaling", {"rope_type": "warp", "factor": 2.0}), alone), refused("KEY003", "/rope_scaling"), says=("rope_type warp",)),
    Case("KEY003", "target states unused", "native", (at("dflash_config.use_aux_hidden_state", False),), refused("KEY003", "/dflash_config/use_aux_hidden_state"), says=("use_aux_hidden_state is false", "fc")),
    Case("KEY003", "NaN", "native", (written(NATIVE.replace('"rms_norm_eps": 1e-06', '"rms_norm_eps": NaN')),), refused("KEY003", "/rms_norm_eps"), says=("rms_norm_eps is NaN",)),
    Case("KEY003", "window in its place", "native", (SLIDING, at("dflash_config.swa_window_size", 16))),
    # KEY004: misplaced
    Case("KEY004", "markov_rank nested only", "native", (without("markov_rank"),), refused("KEY004", "/dflash_config/markov_rank"), says=("dflash_config.markov_rank", "looks for markov_rank"), fix='"markov_rank": 8'),
    Case("KEY004", "markov_rank nested only, early", "native", (without("markov_rank"),), refused("KEY004", "/dflash_config/markov_rank", early=True), vllm="0.25.1", says=("dflash_config.markov_rank",)),
    Case("KEY004", "markov_rank in dspark_config", "native", (moved("markov_rank", "dspark_config.markov_rank"), without("dflash_config.markov_rank")), refused("KEY004", "/dspark_config/markov_rank"), says=("dspark_config.markov_rank",)),
    Case("KEY004", "mask at the top in 0.24", "dflash", (moved("dflash_config.mask_token_id", "mask_token_id"),), refused("KEY004", "/mask_token_id"), vllm="0.24.0", says=("looks for dflash_config.mask_token_id",), fix="255"),
    Case("KEY004", "mask at the top later", "dflash", (moved("dflash_config.mask_token_id", "mask_token_id"),), vllm="0.25.0"),
    Case("KEY004", "hidden_size outside the layer block", "speculators", (moved(f"{LAYER}.hidden_size", "hidden_size"),), refused("KEY004", "/hidden_size"), says=(f"looks for {LAYER}.hidden_size",)),
    Case("KEY004", "confidence flag in dspark_config", "native", (moved("enable_confidence_head", "dspark_config.enable_confidence_head"), without("dflash_config.use_confidence_head")), silent("KEY004", "/dspark_config/enable_confidence_head"), says=("dspark_config.enable_confidence_head is true", "top level"), fix='"enable_confidence_head": true'),
    Case("KEY004", "nothing misplaced", "native", (moved("mask_token_id", "other.mask_token_id"),)),
    # KEY005: misspelt
    Case("KEY005", "mask_token", "dflash", (moved("dflash_config.mask_token_id", "dflash_config.mask_token"),), refused("KEY005", "/dflash_config/mask_token"), says=("dflash_config.mask_token ", "dflash_config.mask_token_id"), fix='rename it: "dflash_config.mask_token_id": 255'),
    Case("KEY005", "markov_ranks", "native", (moved("markov_rank", "markov_ranks"), without("dflash_config.markov_rank")), refused("KEY005", "/markov_ranks"), says=("markov_ranks", "markov_rank:"), fix='"markov_rank": 8'),
    Case("KEY005", "target_layers_ids", "dflash", (moved("dflash_config.target_layer_ids", "dflash_config.target_layers_ids"),), refused("KEY005", "/dflash_config/target_layers_ids"), says=("target_layers_ids", "dflash_config.target_layer_ids"), fix="[1, 4, 6]"),
    Case("KEY005", "a stray key of another engine", "native", (at("draft_token_budget", 8),)),
    Case("KEY005", "a flag that has a default", "native", (at("dflash_config.use_aux_hidden_states", False),), silent("KEY005", "/dflash_config/use_aux_hidden_states"), says=("use_aux_hidden_states is read by nobody", "it takes true instead"), fix='rename it: "dflash_config.use_aux_hidden_state": false'),
    Case("KEY005", "a size that has a default", "native", (moved("hidden_size", "hidden_sizes"),), refused("KEY005", "/hidden_sizes"), says=("looks for hidden_size", "it takes 4096 instead", "22 tensors say 64"), fix='"hidden_size": 64'),
    Case("KEY005", "a flag that decides a size", "native", (moved("confidence_head_with_markov", "confidence_head_with_markow"),), refused("KEY005", "/confidence_head_with_markow"), says=("it takes false instead", "expects 64 columns"), fix='"confidence_head_with_markov": true'),
    Case("KEY005", "words set apart otherwise", "dflash", (alone, moved("max_position_embeddings", "maxPositionEmbeddings")), silent("KEY005", "/maxPositionEmbeddings"), vllm="0.24.0", says=("looks for max_position_embeddings",)),
    Case("KEY005", "in the layer block", "speculators", (moved(f"{LAYER}.head_dim", f"{LAYER}.head_dims"),), silent("KEY005", f"/{LAYER}/head_dims"), says=(f"looks for {LAYER}.head_dim",)),
    Case("KEY005", "what it takes anyway", "native", (moved("sample_from_anchor", "sample_from_ancor"), without("dflash_config.shift_label")), (Told("KEY009", "info", "advice", "/sample_from_anchor"),)),
    Case("KEY005", "a name that other configuration classes have", "native", (at("v_head_dim", 64), at("qk_head_dim", 64), at("num_heads", 3))),
    Case("KEY005", "another mapping", "native", (at("trainer", {"hidden_acts": "gelu"}), without("hidden_act")), (Told("KEY009", "info", "advice", "/hidden_act"),)),
    Case("KEY005", "a value of another kind", "native", (at("dflash_config.use_aux_hidden_states", "yes"),)),
    # KEY006: defaults
    Case("KEY006", "sample_from_anchor, flat", "native", (without("sample_from_anchor"), PLAIN), silent("KEY006", "/sample_from_anchor"), says=("sample_from_anchor is missing", "true"), fix='"sample_from_anchor": true'),
    Case("KEY006", "sample_from_anchor, speculators", "speculators", (without("sample_from_anchor"),), silent("KEY006", "/sample_from_anchor"), says=("sample_from_anchor is missing", "false"), fix='"sample_from_anchor": true'),
    Case("KEY006", "rope_theta, flat", "native", (without("rope_theta"), alone), silent("KEY006", "/rope_parameters"), says=("rope_theta", "10000"), fix='"rope_theta"'),
    Case("KEY006", "rope_theta, speculators", "speculators", (without(f"{LAYER}.rope_theta", f"{LAYER}.rope_scaling"), alone), silent("KEY006", f"/{LAYER}/rope_parameters"), says=("rope_theta", "1000000"), fix='"rope_theta"'),
    Case("KEY006", "mask token is the pad token", "native", (at("pad_token_id", ROWS - 1),), silent("KEY006", "/dflash_config/mask_token_id"), says=("255", "pad token")),
    Case("KEY006", "mask token ends the text", "native", (at("eos_token_id", [2, ROWS - 1]),), silent("KEY006", "/dflash_config/mask_token_id"), says=("255", "end-of-text")),
    Case("KEY006", "no Markov columns", "native", (no_columns,), silent("KEY006", "/markov_rank"), says=("markov_rank is 0",)),
    Case("KEY006", "vocab_size", "dflash", (without("vocab_size"), alone), silent("KEY006", "/vocab_size"), says=("vocab_size", "151936"), fix='"vocab_size"'),
    Case("KEY006", "written out", "native", (alone,)),
    # KEY007: truthiness
    Case("KEY007", "the text false", "native", (at("sample_from_anchor", "false"),), silent("KEY007", "/sample_from_anchor"), says=('sample_from_anchor is "false"', "counts as true")),
    Case("KEY007", "a one", "native", (at("sample_from_anchor", 1),), silent("KEY007", "/sample_from_anchor", early=True), vllm="0.27.0", says=("sample_from_anchor is 1",)),
    Case("KEY007", "nested null", "dflash", (at("dflash_config.sample_from_anchor", None),), silent("KEY007", "/dflash_config/sample_from_anchor"), says=("inside dflash_config is null", "counts as false")),
    Case("KEY007", "a boolean", "native", (at("sample_from_anchor", True),)),
    # KEY008: not read by this release
    Case("KEY008", "rope parameters that a null after them replaces", "speculators", (layer_keys(rope_parameters={"rope_type": "default", "rope_theta": 1e6}, rope_scaling=None),), (Told("KEY008", "error", "silent", f"/{LAYER}/rope_parameters"),), says=("theta of 10000",)),
    Case("KEY008", "rope parameters after a null", "speculators", (layer_keys(rope_scaling=None, rope_parameters={"rope_type": "default", "rope_theta": 1e6}),)),
    Case("KEY008", "is_causal in 0.27", "dflash", (at("is_causal", True),), silent("KEY008", "/is_causal"), vllm="0.27.0", says=("is_causal is true", "dflash_config.causal")),
    Case("KEY008", "is_causal from 0.28", "dflash", (at("is_causal", True),), vllm="0.28.0"),
    Case("KEY008", "is_neox_style in 0.27", "dflash", (at("is_neox_style", False),), silent("KEY008", "/is_neox_style"), vllm="0.27.0", says=("is_neox_style is false",)),
    Case("KEY008", "attention_value_scale in 0.30", "dflash", (at("dflash_config.attention_value_scale", 0.5),), silent("KEY008", "/dflash_config/attention_value_scale"), vllm="0.30.0", says=("attention_value_scale is 0.5",)),
    Case("KEY008", "attention_value_scale from 0.31", "dflash", (at("dflash_config.attention_value_scale", 0.5),), vllm="0.31.0"),
    Case("KEY008", "sliding layers in 0.24", "dflash", (SLIDING, at("sliding_window", 16), at("use_sliding_window", True)), silent("KEY008", "/layer_types"), vllm="0.24.0", says=("layer_types", "full attention")),
    Case("KEY008", "bonus layout in 0.26", "native", (without("dflash_config.shift_label"), at("sample_from_anchor", False), at("dflash_config.projector_type", None)), silent("KEY008", "/sample_from_anchor", early=True), vllm="0.26.0", says=("sample_from_anchor is false", "dspark_bonus_anchor"), fix='"dspark_bonus_anchor": true'),
    Case("KEY008", "dspark_draft_topk in 0.27", "native", (at("dspark_draft_topk", 32),), silent("KEY008", "/dspark_draft_topk", early=True), vllm="0.27.0", says=("dspark_draft_topk is 32",)),
    # KEY009: worth knowing
    Case("KEY009", "dspark_draft_topk from 0.28", "native", (at("dspark_draft_topk", 32),), (Told("KEY009", "info", "advice", "/dspark_draft_topk"),), vllm="0.28.0", says=("dspark_draft_topk 32",)),
    Case("KEY009", "sample_from_anchor of an exporter that trains so", "native", (without("sample_from_anchor"),), (Told("KEY009", "info", "advice", "/sample_from_anchor"),), says=("sample_from_anchor is missing",), fix='"sample_from_anchor": true'),
    Case("KEY009", "nothing to know", "native", (unserved,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_keys(case: Case) -> None:
    """A faulty key is one finding that names the key, its value and the place that the release reads."""
    check(case)


@pytest.mark.parametrize("release", RELEASES[1:])
def test_missing_markov_rank_is_one_fault(release: str) -> None:
    """A missing markov_rank is one finding in every release that knows DSpark, and its dependants stay quiet."""
    found = [f for f in findings("native", without(*RANKS), vllm=release) if f.severity != "info"]

    assert told(found) == [Told("KEY001", "error", "refused", "/markov_rank")]


@pytest.mark.parametrize("base", ["native", "dflash"])
def test_missing_hidden_size_is_one_fault(base: str) -> None:
    """What a configuration class fills in for a missing hidden_size shows in every tensor, and is one finding."""
    (found,) = findings(base, without("hidden_size"))

    assert (found.rule, found.effect, found.pointer) == ("TEN004", "refused", "/hidden_size")
    assert found.count == {"native": 22, "dflash": 21}[base]
    assert "Qwen3Config fills in 4096" in found.message
    assert found.fix == '"hidden_size": 64, if the weights are right'
