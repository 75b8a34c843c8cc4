"""The drafts of docs/silent-damage.yaml: for each line of it one that shows the damage, and a twin that does not."""

from __future__ import annotations

from typing import NamedTuple

from conformance.live.cases import add, drop, rename, shape, target
from rules.build import (
    BLOCK,
    DEPTH,
    HIDDEN,
    MLP,
    RANK,
    ROWS,
    Change,
    alone,
    at,
    file,
    moved,
    named,
    pruned,
    served,
    table,
    unserved,
    without,
)
from rules.silent_changes import (
    ADAPTIVE,
    BIASES,
    BLOCK_KEYS,
    BLOCK_MIXED,
    BLOCK_SLIDING,
    BONUS,
    CAUSAL_WINDOWS,
    FEWER,
    FILL_IN,
    FP8,
    HALF,
    HEADLESS,
    MIXED,
    NVFP4,
    ONE_TAP,
    PLAIN,
    PROPOSED,
    RANKLESS,
    SINKS,
    SLIDING,
    THREE_LAYERS,
    WINDOW,
    YARN,
    beside_says,
    consolidated,
    excluded,
    gated,
    indexed,
    listed,
    masked,
    scaled,
    tapped,
    unquantized,
)


class Draft(NamedTuple):
    """A draft that shows one kind of damage."""

    base: str
    """A base of `rules.build`, one of `MADE`, or a recorded case."""
    broken: tuple[Change, ...]
    sound: tuple[Change, ...] = ()
    """What makes the twin of the same base, in which the place is right."""
    deep: bool = False


#: In the order of the table's lines.
DRAFTS: dict[str, tuple[Draft, ...]] = {
    "S01": (Draft("native", (without("sample_from_anchor"), PLAIN), (PLAIN,)),),
    "S02": (
        Draft("speculators", (without("sample_from_anchor"),)),
        Draft("speculators", (at(PROPOSED, BLOCK - 1),)),
    ),
    "S03": (Draft("speculators", (without("target_hidden_size"),), (without("target_hidden_size"), BONUS)),),
    "S04": (Draft("native", (FILL_IN, FEWER), (FILL_IN, FEWER, at("dspark_bonus_anchor", True))),),
    "S05": (Draft("native", (PLAIN, FEWER, without("sample_from_anchor"), at("dspark_bonus_anchor", True)), (FILL_IN, FEWER)),),
    "S06": (
        Draft("native", (at("sample_from_anchor", "false"),)),
        Draft("native", (PLAIN, at("sample_from_anchor", None), FEWER), (FILL_IN, FEWER)),
    ),
    "S07": (
        Draft("native", (PLAIN, without("sample_from_anchor"), at("dflash_config.sample_from_anchor", False)), (PLAIN,)),
        Draft("native", (at("dflash_config.sample_from_anchor", True),)),
    ),
    "S08": (
        Draft("native", (FILL_IN, FEWER)),
        Draft("native", (FILL_IN, FEWER, at("dspark_bonus_anchor", True)), (PLAIN,)),
    ),
    "S09": (Draft("native", (FILL_IN, served(method="dspark")), (FILL_IN, FEWER)),),
    "S10": (Draft("dflash", (served(method="dflash", num_speculative_tokens=BLOCK),)),),
    "S11": (Draft("native", (served(method="dspark", num_speculative_tokens=BLOCK + 1),)),),
    "S12": (
        Draft("native", (PLAIN, at("dflash_config.shift_label", False)), (PLAIN,)),
        Draft("native", (HEADLESS, at("dflash_config.use_confidence_head", True)), (HEADLESS,)),
        Draft("dflash", (at("dflash_config.pure_draft_prefix_len", 2),)),
    ),
    "S13": (
        Draft("native", (unserved, named("my-dflash-run")), (unserved,)),
        Draft("dflash", (served(num_speculative_tokens=BLOCK - 1),)),
    ),
    "S20": (
        Draft("native", (at("eagle_aux_hidden_state_layer_ids", [1, 4, 6]),), (at("eagle_aux_hidden_state_layer_ids", [2, 5, 7]),)),
        Draft("native", (tapped(1, 4, DEPTH),)),
        Draft("speculators", (at("aux_hidden_state_layer_ids", [0, 2, 7]),)),
    ),
    "S21": (Draft("dflash", (at("eagle_aux_hidden_state_layer_ids", [3, 4, 5]),)),),
    "S22": (
        Draft("dflash", (at("dflash_config.target_layer_ids", [4, 1, 6]),)),
        Draft("dflash", (at("dflash_config.target_layer_ids", [1, 1, 6]),)),
    ),
    "S23": (Draft("dflash", (THREE_LAYERS, without("dflash_config.target_layer_ids")), (THREE_LAYERS,)),),
    "S24": (Draft("dflash", (at("eagle_config", {"hidden_size": HIDDEN}),)),),
    "S25": (
        Draft("dflash", (at("dflash_config.target_layer_ids", [-1, 1, 4]),)),
        Draft("dflash", (at("dflash_config.target_layer_ids", [1, 4, DEPTH]),)),
    ),
    "S26": (Draft("speculators", (at("aux_hidden_state_layer_ids", [2, 5, DEPTH + 1]),)),),
    "S27": (
        Draft("deepseek", (at("dspark_target_layer_ids", [1, 4, DEPTH]),)),
        Draft("deepseek", (at("dspark_target_layer_ids", [4, 1, 6]),)),
    ),
    "S28": (
        Draft("dflash", (at("dflash_config.use_aux_hidden_state", False),)),
        Draft("dflash", (ONE_TAP, at("dflash_config.use_aux_hidden_state", False)), (ONE_TAP,)),
    ),
    "S30": (
        Draft("speculators_dflash", (CAUSAL_WINDOWS,)),
        Draft("speculators_dflash", (BLOCK_MIXED, CAUSAL_WINDOWS), (BLOCK_MIXED,)),
    ),
    "S31": (
        Draft("speculators_dflash", (BLOCK_SLIDING, without("sliding_window_non_causal")), (BLOCK_SLIDING,)),
        Draft("speculators_dflash", (BLOCK_SLIDING, CAUSAL_WINDOWS), (BLOCK_SLIDING,)),
    ),
    "S32": (Draft("speculators", (BLOCK_MIXED, at("sliding_window_non_causal", True)), (BLOCK_MIXED,)),),
    "S33": (
        Draft("dflash", (MIXED, at("dflash_config.causal", False)), (MIXED,)),
        Draft("native", (at("dflash_config.causal", True),)),
    ),
    "S34": (Draft("dflash", (at("is_causal", True),)),),
    "S35": (
        Draft("dflash", (SLIDING,)),
        Draft("dflash", (at("dflash_config.use_swa", True), WINDOW)),
    ),
    "S36": (
        Draft("dflash", (without("layer_types"), at("sliding_window", 16))),
        Draft("dflash", (SLIDING, at("sliding_window", 16), without("dflash_config.swa_window_size")), (SLIDING,)),
    ),
    "S37": (Draft("dflash", (MIXED, at("dflash_config.use_swa", True)), (MIXED,)),),
    "S38": (
        Draft("native", (alone, without("rope_theta")), (alone,)),
        Draft("native", (at("rope_theta", 10000.0),)),
    ),
    "S39": (
        Draft("native", (target(rope_scaling=YARN),)),
        Draft("dflash", (target(rope_scaling=YARN), at("rope_scaling", {**YARN, "factor": 4.0})), (target(rope_scaling=YARN), at("rope_scaling", YARN))),
    ),
    "S40": (
        Draft("dflash", (at("is_neox_style", False),)),
        Draft("dflash", (target(architectures=["DeepseekV3ForCausalLM"]),)),
    ),
    "S41": (Draft("native", (target(max_position_embeddings=4096),)),),
    "S42": (Draft("dflash", (at("dflash_config.attention_value_scale", 0.5),)),),
    "S43": (
        Draft("dflash", (SLIDING, at("dflash_config.attention_sink_bias", True)), (SLIDING,)),
        Draft("dflash", (SLIDING, SINKS), (SLIDING,)),
        Draft("dflash", (SLIDING, SINKS, at("attention_sink_bias", True)), (SLIDING,)),
    ),
    "S44": (
        Draft("dflash", (at("attention_bias", True),), (at("attention_bias", True), BIASES)),
        Draft("dflash", (BIASES,)),
    ),
    "S45": (Draft("native", (without("head_dim"),)),),
    "S46": (
        Draft("native", (without("rms_norm_eps"), target(rms_norm_eps=1e-05)), (target(rms_norm_eps=1e-05),)),
        Draft("native", (without("hidden_act"),)),
    ),
    "S47": (Draft("dflash", (target(logit_scale=0.5),), (target(logit_scale=0.5), at("logit_scale", 0.5))),),
    "S50": (
        Draft("native", (drop("fc.weight"),)),
        Draft("native", (drop("layers.*.input_layernorm.weight"),)),
        Draft("native", (drop("markov_head.markov_w1.weight"),)),
    ),
    "S51": (Draft("gemma4", (drop("fc.weight"),)),),
    "S52": (
        Draft("native", (at("intermediate_size", 96),)),
        Draft("native", (shape("layers.1.mlp.up_proj.weight", MLP + 8, HIDDEN),)),
    ),
    "S53": (
        Draft("gemma4", (rename("^fc", "fusion"),)),
        Draft("gemma4", (drop("*layer_scalar"),)),
    ),
    "S54": (
        Draft("deepseek", (rename("^mtp", "model.mtp"),)),
        Draft("deepseek", (drop("mtp.1.attn.wq_a.weight"),)),
    ),
    "S55": (
        Draft("dflash", (add("embed_tokens.weight", ROWS, HIDDEN), at("tie_word_embeddings", True)), (add("embed_tokens.weight", ROWS, HIDDEN),)),
    ),
    "S56": (
        Draft("dflash", (pruned(), drop("lm_head.weight")), (pruned(),)),
        Draft("native", (pruned(), drop("lm_head.weight")), (pruned(),)),
    ),
    "S57": (Draft("dflash", (add("lm_head.weight", ROWS, HIDDEN),)),),
    "S58": (
        Draft("native", (at("draft_vocab_size", 300), shape("markov_head.markov_w2.weight", 300, RANK))),
        Draft("speculators", (target(vocab_size=200),)),
    ),
    "S59": (
        Draft("dflash", (pruned(), drop("d2t")), (pruned(),)),
        Draft("native", (pruned(), drop("d2t")), (pruned(),)),
    ),
    "S60": (
        Draft("native", (pruned(d2t=[2 * i for i in range(HALF)]),), (pruned(),)),
        Draft("native", (pruned(), table("t2d", "BOOL", [i < HALF for i in range(ROWS)])), (pruned(), table("t2d", "BOOL", [i % 2 == 0 for i in range(ROWS)]))),
    ),
    "S61": (Draft("native", (pruned(), table("d2t", "F32", [0.5] + [0.0] * (HALF - 1))), (pruned(), table("d2t", "F32", [float(i) for i in range(HALF)]))),),
    "S62": (Draft("dflash", (at("has_own_lm_head", True),), (at("has_own_lm_head", True), add("lm_head.weight", ROWS, HIDDEN))),),
    "S63": (
        Draft("native", (add("mask_embedding", HIDDEN),)),
        Draft("native", (file("mask_embedding.pt", b"PK"),)),
        Draft("dflash", (file("mask_embedding.pt", b"PK"),)),
    ),
    "S64": (Draft("dflash", (alone, without("vocab_size")), (alone,)),),
    "S65": (
        Draft("native", (indexed("fc.weight"),), (listed,)),
        Draft("native", (consolidated,)),
    ),
    "S66": (Draft("native", (pruned(), target(vocab_size=300)), (pruned(),)),),
    "S70": (
        Draft("native", (at("enable_confidence_head", False),), (HEADLESS,)),
        Draft("gemma4", (at("enable_confidence_head", False),), (drop("confidence*"), at("enable_confidence_head", False))),
    ),
    "S71": (
        Draft("native", (), (HEADLESS,)),
        Draft("gemma4", (), (drop("confidence*"), at("enable_confidence_head", False))),
        Draft("deepseek", (), (drop("*confidence*"),)),
        Draft("k3", (), (drop("confidence*"), at("enable_confidence_head", False))),
    ),
    "S72": (Draft("native", (drop("confidence*"),)), Draft("k3", (drop("confidence*"),))),
    "S73": (Draft("native", (HEADLESS, ADAPTIVE), (ADAPTIVE,)), Draft("k3", (ADAPTIVE,))),
    "S74": (
        Draft("native", (drop("confidence_head.proj.bias"),)),
        Draft("k3", (drop("confidence_head.proj.bias"),)),
    ),
    "S75": (
        Draft("native", (at("confidence_head_with_markov", False),)),
        Draft("native", (moved("confidence_head_with_markov", "dflash_config.confidence_head_with_markov"),)),
    ),
    "S76": (
        Draft("native", (gated("gated"),)),
        Draft("native", (gated("rnn"), add("markov_head.joint_proj.weight", 3 * RANK, 2 * RANK + HIDDEN))),
        Draft("gemma4", (at("markov_head_type", "gated"),)),
    ),
    "S77": (Draft("native", (RANKLESS,), (HEADLESS,)),),
    "S78": (
        Draft("native", (at("dspark_draft_topk", 32),)),
        Draft("native", (at("dspark_draft_topk", 32),)),
    ),
    "S79": (
        Draft("native", (without("markov_rank"),)),
        Draft("native", (moved("enable_confidence_head", "dflash_config.enable_confidence_head"),)),
    ),
    "S80": (Draft("gemma4", (at("draft_vocab_size", HALF), shape("markov_head.markov_w2.weight", HALF, RANK))),),
    "S82": (Draft("gemma4", (), (drop("embed_tokens.weight", "lm_head.weight"),)),),
    "S90": (Draft("speculators_dflash", (at("model_type", "qwen3"),)),),
    "S91": (
        Draft("dflash", (at("aux_hidden_state_layer_ids", [2, 5, 7]),)),
        Draft("native", (at("speculators_model_type", "dspark"), at(BLOCK_KEYS, {}))),
    ),
    "S92": tuple(Draft("speculators_dflash2", (at(key, 2.0),)) for key in ("input_embedding_scale", "output_multiplier", "final_logit_softcapping")),
    "S93": (
        Draft("speculators_dflash", (at("logit_scale", 0.5),)),
        Draft("speculators_dflash", (at("is_neox_style", False),)),
        Draft("speculators_dflash", (at("is_causal", True),)),
    ),
    "S94": (Draft("dflash", (ONE_TAP, at("use_aux_hidden_state", False)), (ONE_TAP,)),),
    "S95": (
        Draft("dflash", (moved("dflash_config.mask_token_id", "mask_token_id"),)),
        Draft("dflash", (moved("dflash_config.mask_token_id", "mask_token_id"), file("mask_embedding.pt", b"PK")), (moved("dflash_config.mask_token_id", "mask_token_id"),)),
    ),
    "S96": (Draft("native", (masked(ROWS),)),),
    "S100": (Draft(FP8, (unquantized("fc"),)),),
    "S101": (
        Draft(FP8, (drop("*o_proj.weight_scale"),)),
        Draft(FP8, (drop("fc.input_scale"),)),
        Draft(NVFP4, (drop("layers.0.self_attn.q_proj.weight_scale_2"),)),
        Draft(NVFP4, (drop("layers.0.self_attn.q_proj.weight_scale"),)),
    ),
    "S102": (
        Draft("dflash", (at("quantization_config", {"quant_algo": "FP8"}),)),
        Draft(FP8, (at("quantization_config", {"quant_algo": "FP8"}), file("hf_quant_config.json", None))),
    ),
    "S103": (Draft(FP8, (excluded("layers.7.mlp.down_proj"), unquantized("layers.7.mlp.down_proj"))),),
    "S104": (Draft(FP8, (excluded("model*"),)),),
    "S105": (Draft(FP8, (excluded("*q_proj*"), unquantized("*q_proj")), ()),),
    "S106": (Draft(FP8, (beside_says("NVFP4"),)),),
    "S107": (Draft("gemma4", (target(quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"}),)),),
    "S108": (Draft(NVFP4, (scaled(q=0.5, k=1.0, v=1.0),), (scaled(q=1.0, k=1.0, v=1.0),)),),
    "S109": (Draft(FP8, (add("layers.0.self_attn.k_proj.k_scale", 1, kind="F32"),)),),
}  # fmt: skip
