"""What the drafts of docs/silent-damage.yaml are made of: further bases, and changes that several of them share."""

from __future__ import annotations

import json

from fnmatch import fnmatch

from conformance.live.cases import Spec, add, drop, shape
from rules.build import (
    BASES,
    BLOCK,
    DEPTH,
    HEAD,
    HEADS,
    HIDDEN,
    KV,
    LAYER,
    LAYERS,
    MLP,
    RANK,
    ROWS,
    Change,
    at,
    file,
    recorded,
    served,
    several,
    table,
    weights,
    without,
)


# ---------------------------------------------------------------- further bases
def deepseek() -> Spec:
    """A DeepSeek-V4 target with its DSpark draft inside, unquantized."""
    lora, groups, width, mix, stages = 32, 2, 32, 2, 3
    last = f"mtp.{stages - 1}."
    config = {
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "hidden_size": HIDDEN,
        "vocab_size": ROWS,
        "num_hidden_layers": DEPTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "q_lora_rank": lora,
        "o_lora_rank": lora,
        "o_groups": groups,
        "hc_mult": mix,
        "hc_eps": 1e-06,
        "n_routed_experts": 2,
        "n_shared_experts": 1,
        "moe_intermediate_size": width,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-06,
        "rope_theta": 10000.0,
        "n_mtp_layers": stages,
        "dspark_block_size": BLOCK,
        "dspark_markov_rank": RANK,
        "dspark_noise_token_id": ROWS - 1,
        "dspark_target_layer_ids": [1, 4, 6],
    }
    expert = {"w1.weight": (width, HIDDEN), "w2.weight": (HIDDEN, width), "w3.weight": (width, HIDDEN)}
    hyper = {"fn": ((2 + mix) * mix, mix * HIDDEN), "base": ((2 + mix) * mix,), "scale": (3,)}
    stage: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (HIDDEN,),
        "ffn_norm.weight": (HIDDEN,),
        "attn.attn_sink": (HEADS,),
        "attn.q_norm.weight": (lora,),
        "attn.kv_norm.weight": (HEAD,),
        "attn.wq_a.weight": (lora, HIDDEN),
        "attn.wkv.weight": (HEAD, HIDDEN),
        "attn.wq_b.weight": (HEADS * HEAD, lora),
        "attn.wo_a.weight": (groups * lora, HEADS * HEAD // groups),
        "attn.wo_b.weight": (HIDDEN, groups * lora),
        "ffn.gate.weight": (2, HIDDEN),
        "ffn.gate.bias": (2,),
        **{f"ffn.experts.{e}.{name}": dims for e in range(2) for name, dims in expert.items()},
        **{f"ffn.shared_experts.{name}": dims for name, dims in expert.items()},
        **{f"hc_{part}_{name}": dims for part in ("attn", "ffn") for name, dims in hyper.items()},
    }
    tensors: dict[str, tuple[int, ...]] = {
        "mtp.0.main_proj.weight": (HIDDEN, 3 * HIDDEN),
        "mtp.0.main_norm.weight": (HIDDEN,),
        f"{last}norm.weight": (HIDDEN,),
        f"{last}hc_head_fn": (mix, mix * HIDDEN),
        f"{last}hc_head_base": (mix,),
        f"{last}hc_head_scale": (1,),
        f"{last}markov_head.markov_w1.weight": (ROWS, RANK),
        f"{last}markov_head.markov_w2.weight": (ROWS, RANK),
        f"{last}confidence_head.proj.weight": (1, HIDDEN + RANK),
        **{f"mtp.{s}.{name}": dims for s in range(stages) for name, dims in stage.items()},
    }
    kinds = {name: ("BF16", dims) for name, dims in tensors.items()}
    return Spec(config, kinds, {}, {}, {"method": "dspark", "num_speculative_tokens": BLOCK}, {})


def k3() -> Spec:
    """A flat MLA DSpark draft for Kimi-K3, as TorchSpec writes it; the target's depth stands in a key of its own."""
    lora, latent, plain, turned, value = 16, 24, 8, 8, 8
    config = {
        **{k: v for k, v in BASES["native"]().config.items() if k not in ("head_dim", "layer_types", "dflash_config")},
        "architectures": ["K3DSparkModel"],
        "model_type": "k3_dspark",
        "num_key_value_heads": HEADS,
        "q_lora_rank": lora,
        "kv_lora_rank": latent,
        "qk_nope_head_dim": plain,
        "qk_rope_head_dim": turned,
        "v_head_dim": value,
        "num_target_layers": 3,
        "target_num_hidden_layers": DEPTH,
        "target_hidden_size": HIDDEN,
        "draft_vocab_size": ROWS,
        "_torchspec_version": "0.1.0",
    }
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (HIDDEN,),
        "post_attention_layernorm.weight": (HIDDEN,),
        "self_attn.q_a_proj.weight": (lora, HIDDEN),
        "self_attn.q_a_layernorm.weight": (lora,),
        "self_attn.q_b_proj.weight": (HEADS * (plain + turned), lora),
        "self_attn.kv_a_proj_with_mqa.weight": (latent + turned, HIDDEN),
        "self_attn.kv_a_layernorm.weight": (latent,),
        "self_attn.kv_b_proj.weight": (HEADS * (plain + value), latent),
        "self_attn.o_proj.weight": (HIDDEN, HEADS * value),
        "mlp.gate_proj.weight": (MLP, HIDDEN),
        "mlp.up_proj.weight": (MLP, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, MLP),
    }
    tensors: dict[str, tuple[int, ...]] = {
        "context_proj.weight": (HIDDEN, 3 * HIDDEN),
        "context_norm.weight": (HIDDEN,),
        "final_norm.weight": (HIDDEN,),
        "markov_head.markov_w1.weight": (ROWS, RANK),
        "markov_head.markov_w2.weight": (ROWS, RANK),
        "confidence_head.proj.weight": (1, HIDDEN + RANK),
        "confidence_head.proj.bias": (1,),
        **{f"layers.{i}.{name}": dims for i in range(LAYERS) for name, dims in layer.items()},
    }
    kinds = {name: ("BF16", dims) for name, dims in tensors.items()}
    return Spec(config, kinds, {}, {}, {"method": "dspark", "num_speculative_tokens": BLOCK}, {})


def speculators_dflash() -> Spec:
    """A DFlash draft as speculators writes it, without tables of its own."""
    spec = BASES["speculators"]()
    for key in ("sample_from_anchor", "enable_confidence_head", "confidence_head_with_markov"):
        del spec.config[key]
    del spec.config["markov_rank"], spec.config["markov_head_type"]
    spec.config.update(
        architectures=["DFlashDraftModel"], speculators_model_type="dflash", sliding_window_non_causal=True
    )
    spec.config["speculators_config"].update(algorithm="dflash")
    at(PROPOSED, BLOCK - 1)(spec)
    drop("markov*", "confidence*", "embed_tokens*", "lm_head*")(spec)
    spec.serve = {"method": "dflash", "num_speculative_tokens": BLOCK - 1}
    return spec


def speculators_dflash2() -> Spec:
    """A DFlash2 draft as speculators writes it."""
    spec = recorded("base.dflash2")
    flat = spec.config
    sizes = {
        key: flat["dflash_config"][key]
        for key in ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
    }
    spec.config = {
        "architectures": ["DFlash2DraftModel"],
        "speculators_model_type": "dflash2",
        "speculators_config": {
            "algorithm": "dflash2",
            "proposal_methods": [],
            "verifier": {"name_or_path": "@TARGET@"},
        },
        "transformer_layer_config": {
            key: flat[key] for key in BASES["native"]().config if key in flat and key in spec.target
        },
        "draft_vocab_size": ROWS,
        "block_size": BLOCK,
        "mask_token_id": flat["dflash_config"]["mask_token_id"],
        "aux_hidden_state_layer_ids": [i + 1 for i in flat["dflash_config"]["target_layer_ids"]],
        "sliding_window_non_causal": True,
        **sizes,
    }
    spec.config["transformer_layer_config"]["layer_types"] = ["full_attention"] * LAYERS
    spec.config["transformer_layer_config"]["num_hidden_layers"] = LAYERS
    return spec


MADE = {
    "deepseek": deepseek,
    "k3": k3,
    "speculators_dflash": speculators_dflash,
    "speculators_dflash2": speculators_dflash2,
}


def spec(base: str, changes: tuple[Change, ...]) -> Spec:
    """A base with changes."""
    made = (BASES.get(base) or MADE.get(base) or (lambda: recorded(base)))()
    for change in changes:
        change(made)
    return made


# ---------------------------------------------------------------- changes
BLOCK_KEYS = "transformer_layer_config"
PROPOSED = "speculators_config.proposal_methods.0.speculative_tokens"
PLAIN = without("dflash_config.projector_type", "dflash_config.shift_label")
FEWER = served(method="dspark", num_speculative_tokens=BLOCK - 1)
FILL_IN = several(at("sample_from_anchor", False), PLAIN)
BONUS = several(at("sample_from_anchor", False), at(PROPOSED, BLOCK - 1), FEWER)
WINDOW = at("dflash_config.swa_window_size", 16)
SLIDING = several(at("layer_types", ["sliding_attention"] * LAYERS), WINDOW)
MIXED = several(at("layer_types", ["sliding_attention", "full_attention"]), WINDOW)
BLOCK_SLIDING, BLOCK_MIXED = (
    several(at(f"{BLOCK_KEYS}.layer_types", types), at(f"{BLOCK_KEYS}.sliding_window", 16))
    for types in (["sliding_attention"] * LAYERS, ["sliding_attention", "full_attention"])
)
CAUSAL_WINDOWS = at("sliding_window_non_causal", False)
HEADLESS = several(
    drop("confidence*"),
    at("enable_confidence_head", False),
    at("confidence_head_with_markov", False),
    at("dflash_config.use_confidence_head", False),
)
SINKS = several(*(add(f"layers.{i}.self_attn.attention_sink_bias", HEADS) for i in range(LAYERS)))
OUTPUTS = {"q": HEADS * HEAD, "k": KV * HEAD, "v": KV * HEAD, "o": HIDDEN}
BIASES = several(
    *(add(f"layers.{i}.self_attn.{name}_proj.bias", n) for i in range(LAYERS) for name, n in OUTPUTS.items())
)
ONE_TAP = several(at("dflash_config.target_layer_ids", [4]), shape("fc.weight", HIDDEN, HIDDEN))
THREE_LAYERS = several(
    at("num_hidden_layers", 3),
    at("layer_types", ["full_attention"] * 3),
    *(add(f"layers.2.{name}", *dims) for name, dims in LAYER.items()),
)
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256}
HALF = ROWS // 2
WHOLE = at("draft_vocab_size", ROWS)
RANKLESS = several(
    HEADLESS,
    at("markov_rank", 0),
    at("dflash_config.markov_rank", 0),
    shape("markov_head.markov_w1.weight", ROWS, 0),
    shape("markov_head.markov_w2.weight", ROWS, 0),
)
ADAPTIVE = served(method="dspark", num_speculative_tokens=BLOCK, enable_adaptive_verification=True)
FP8, NVFP4 = "quant.dflash.fp8.both", "quant.dflash.nvfp4.both"


def tapped(*ids: int) -> Change:
    """The same target layers in both places."""
    return several(at("target_layer_ids", list(ids)), at("dflash_config.target_layer_ids", list(ids)))


def masked(token: int) -> Change:
    """The same mask token in both places."""
    return several(at("mask_token_id", token), at("dflash_config.mask_token_id", token))


def gated(kind: str) -> Change:
    """The Markov head's type in both places."""
    return several(at("markov_head_type", kind), at("dflash_config.markov_head_type", kind))


def excluded(*names: str) -> Change:
    """Further entries in the exclusion list, in config.json and in hf_quant_config.json."""

    def change(spec: Spec) -> None:
        spec.config["quantization_config"]["quantization"]["exclude_modules"] += names
        beside = json.loads(spec.files["hf_quant_config.json"]["text"])
        beside["quantization"]["exclude_modules"] += names
        spec.files["hf_quant_config.json"] = {"text": json.dumps(beside)}

    return change


def unquantized(*modules: str) -> Change:
    """Modules in BF16, without their scales."""

    def change(spec: Spec) -> None:
        for name, (_, dims) in list(spec.tensors.items()):
            module, _, leaf = name.rpartition(".")
            if any(fnmatch(module, glob) for glob in modules):
                if leaf == "weight":
                    spec.tensors[name] = ("BF16", dims)
                else:
                    del spec.tensors[name]

    return change


def scaled(layer: int = 0, **scales: float) -> Change:
    """The global scales of the attention projections of a layer."""
    place = f"layers.{layer}.self_attn."
    return several(*(table(f"{place}{name}_proj.weight_scale_2", "F32", [scale]) for name, scale in scales.items()))


def beside_says(algorithm: str) -> Change:
    """hf_quant_config.json with another algorithm than config.json."""

    def change(spec: Spec) -> None:
        text = spec.files["hf_quant_config.json"]["text"].replace('"FP8"', f'"{algorithm}"')
        spec.files["hf_quant_config.json"] = {"text": text}

    return change


def indexed(*left_out: str) -> Change:
    """The tensors of these names in a second shard; an index that names the first only."""

    def change(spec: Spec) -> None:

        whole = dict(spec.tensors)
        spec.tensors = {name: what for name, what in whole.items() if name in left_out}
        second = weights(spec)
        spec.tensors = {name: what for name, what in whole.items() if name not in left_out}
        file("model-00002-of-00002.safetensors", second)(spec)
        listing = dict.fromkeys(spec.tensors, "model.safetensors")
        file("model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": listing}))(spec)

    return change


def listed(spec: Spec) -> None:
    """An index that names the one shard."""
    listing = dict.fromkeys(spec.tensors, "model.safetensors")
    file("model.safetensors.index.json", json.dumps({"metadata": {}, "weight_map": listing}))(spec)


def consolidated(spec: Spec) -> None:
    """An older export of the same draft lies beside this one, under the other name."""
    file("consolidated.safetensors", weights(spec))(spec)
