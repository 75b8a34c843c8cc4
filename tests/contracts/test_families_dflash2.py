"""DFlash2DraftModel: convolutions, the candidate selector, and its speculators dialect."""

from __future__ import annotations

import pytest

from conformance.live.cases import Spec, add, config, drop, nested, rename, serve, shape, target
from contracts.drafts import Change, Found, keys, messages, told, without


BASE = "base.dflash2"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.27.1", [("ARC001", "refused", "/architectures")]),
        ("0.28.0", []),
        ("0.31.0", []),
        ("0.33.0", []),
    ],
)
def test_known_from_0_28(release: str, expected: list[Found]) -> None:
    """The first release that knows the architecture serves the base, and so do all later ones."""
    assert told(BASE, vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([without("dflash_config.conv_kernel_size")], [("KEY001", "refused", "/dflash_config/conv_kernel_size")]),
        ([nested(conv_kernel_size=None)], [("KEY002", "refused", "/dflash_config/conv_kernel_size")]),
        ([nested(conv_kernel_size="2", conv_group_size=16.0)], []),
        ([without("dflash_config.selector_rank"), keys(selector_rank=8)], [("KEY004", "refused", "/selector_rank")]),
        ([nested(selector_top_k=257)], [("KEY003", "refused", "/dflash_config/selector_top_k")]),
        ([nested(selector_top_k="many")], [("KEY002", "refused", "/dflash_config/selector_top_k")]),
        ([nested(output_multiplier=0)], [("KEY003", "refused", "/dflash_config/output_multiplier")]),
        ([nested(output_multiplier="2.5", final_logit_softcapping=None)], []),
        ([nested(input_embedding_scale=None)], [("KEY002", "refused", "/dflash_config/input_embedding_scale")]),
        ([nested(input_embedding_scale="wide")], [("KEY002", "refused", "/dflash_config/input_embedding_scale")]),
        ([keys(output_multiplier=2.0)], [("KEY004", "silent", "/output_multiplier")]),
        ([keys(logit_scale=2.0)], [("KEY008", "silent", "/logit_scale")]),
    ],
    ids=[
        "no taps", "null taps", "what int() takes", "misplaced", "more than the vocabulary", "text", "a scale of zero",
        "what float() takes", "null scale", "scale as text", "multiplier at the top", "logit_scale",
    ],
)  # fmt: skip
def test_keys(changes: list[Change], expected: list[Found]) -> None:
    """The sizes are required inside dflash_config, the scalars are optional there and read nowhere else."""
    assert told(BASE, *changes) == expected


def test_what_stands_in_a_broken_dictionary_is_not_told_again() -> None:
    """A null dflash_config is one fault, not one for each size that should be in it."""
    found = told(BASE, lambda spec: spec.config.update(dflash_config=None))

    assert [f for f in found if f[2].startswith("/dflash_config/conv") or f[2] == "/dflash_config"] == [
        ("KEY002", "refused", "/dflash_config")
    ]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (64, [
            ("TEN004", "refused", "layers.{i}.attention_conv.kernel_projection.weight"),
            ("TEN004", "refused", "layers.{i}.mlp_conv.kernel_projection.weight"),
        ]),
        (48, [("KEY003", "refused", "/dflash_config/conv_group_size")]),
        (0, [("KEY003", "refused", "/dflash_config/conv_group_size")]),
    ],
)  # fmt: skip
def test_the_group_divides_the_hidden_size(group: int, expected: list[Found]) -> None:
    """Groups that do not divide the channels are refused as a key, groups of another size through the tensors."""
    assert told(BASE, nested(conv_group_size=group)) == expected


def test_another_number_of_taps_changes_every_convolution() -> None:
    """Both tensors of a convolution are sized by its taps."""
    names = [f"layers.{i}.{c}_conv" for i in (0, 1) for c in ("attention", "mlp")]
    changes = [
        m for n in names for m in (add(f"{n}.base_kernel", 2, 3, 64), add(f"{n}.kernel_projection.weight", 24, 64))
    ]

    assert told(BASE, nested(conv_kernel_size=3), *changes) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([drop("layers.1.mlp_conv.base_kernel")], [("TEN001", "silent", "layers.1.mlp_conv.base_kernel")]),
        ([drop("candidate_selector.*")], [
            ("TEN001", "silent", "candidate_selector.hidden_projection.weight"),
            ("TEN001", "silent", "candidate_selector.predecessor_codebook"),
            ("TEN001", "silent", "candidate_selector.successor_codebook"),
        ]),
        ([rename("_codebook$", "_codebook.weight")], [
            ("TEN003", "refused", "candidate_selector.predecessor_codebook.weight"),
            ("TEN003", "refused", "candidate_selector.successor_codebook.weight"),
        ]),
        ([rename("attention_conv", "attn_conv")], [("TEN003", "refused", "layers.0.attn_conv.base_kernel")]),
        ([shape("candidate_selector.predecessor_codebook", 320, 8)], [
            ("TEN004", "refused", "candidate_selector.predecessor_codebook"),
        ]),
        ([add("layers.0.attention_conv.kernel_projection.bias", 16)], [
            ("TEN005", "advice", "layers.0.attention_conv.kernel_projection.bias"),
        ]),
        ([add("candidate_selector.gate", 8)], [("TEN002", "refused", "candidate_selector.gate")]),
    ],
    ids=["kernel", "selector", "codebooks as modules", "a module renamed", "rows", "a bias", "unknown"],
)  # fmt: skip
def test_tensors(changes: list[Change], expected: list[Found]) -> None:
    """A missing tensor is never noticed, an unknown one refused, a bias of a known module dropped."""
    assert told(BASE, *changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([config(draft_vocab_size=128), add("lm_head.weight", 128, 64), add("d2t", 128)], [("TGT001", "silent", "/draft_vocab_size")]),
        ([config(draft_vocab_size=128)], [("TGT001", "silent", "/draft_vocab_size")]),
        ([add("d2t", 256)], [("TGT002", "refused", "d2t")]),
        ([target(vocab_size=320)], [("TGT001", "silent", "/vocab_size")]),
    ],
    ids=["own reduced head", "reduced without a head", "a mapping without use", "a target with more"],
)  # fmt: skip
def test_vocabularies(changes: list[Change], expected: list[Found]) -> None:
    """Candidates are never mapped through d2t, and the codebooks are looked up with target ids."""
    assert told(BASE, *changes, quiet=("VAL001", "VAL002")) == expected


@pytest.mark.parametrize(
    ("release", "effect"), [("0.28.0", "refused"), ("0.30.0", "refused"), ("0.31.0", "silent"), ("0.33.0", "silent")]
)
def test_taps_past_the_block(release: str, effect: str) -> None:
    """More taps than a block has rows raise up to 0.30 and are never used on a GPU from 0.31."""
    names = [f"layers.{i}.{c}_conv" for i in (0, 1) for c in ("attention", "mlp")]
    changes = [
        m for n in names for m in (add(f"{n}.base_kernel", 2, 8, 64), add(f"{n}.kernel_projection.weight", 64, 64))
    ]

    assert told(BASE, nested(conv_kernel_size=8), *changes, vllm=release) == [
        ("ARC009", effect, "/dflash_config/conv_kernel_size")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([serve(dspark_draft_topk=4)], [("ARC008", "refused", "")]),
        ([keys(n_predict=3), lambda spec: spec.serve.pop("num_speculative_tokens")], []),
        ([keys(n_predict=2)], [("ARC008", "refused", "/n_predict")]),
        ([serve(num_speculative_tokens=4)], [("ARC009", "silent", "")]),
    ],
    ids=["a flag of DSpark", "stages by default", "no multiple", "past the block"],
)
def test_serving(changes: list[Change], expected: list[Found]) -> None:
    """What the speculative config may say beside this file."""
    assert told(BASE, *changes) == expected


LAYER = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta", "hidden_act", "attention_bias", "layer_types",
)  # fmt: skip


def speculators(spec: Spec) -> None:
    """The same draft as the speculators library writes it."""
    nested_keys = spec.config["dflash_config"]
    spec.config = {
        "architectures": ["DFlash2Speculator"],
        "speculators_model_type": "dflash2",
        "speculators_config": {"algorithm": "dflash2", "verifier": {"name_or_path": ""}},
        "aux_hidden_state_layer_ids": [i + 1 for i in nested_keys["target_layer_ids"]],
        "block_size": 4,
        "draft_vocab_size": 256,
        "sliding_window_non_causal": True,
        **{k: v for k, v in nested_keys.items() if k != "target_layer_ids"},
        "transformer_layer_config": {"model_type": "qwen3"} | {k: spec.config[k] for k in LAYER},
    }


@pytest.mark.parametrize(
    ("release", "expected"),
    [("0.28.0", [("ARC007", "refused", "/speculators_model_type")]), ("0.29.0", []), ("0.33.0", [])],
)
def test_speculators_dialect_from_0_29(release: str, expected: list[Found]) -> None:
    """The speculators reader knows the type one release after the flat loader."""
    assert told(BASE, speculators, vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([keys(input_embedding_scale=2.0)], [("KEY008", "silent", "/input_embedding_scale")]),
        ([keys(output_multiplier=2.0)], [("KEY008", "silent", "/output_multiplier")]),
        ([keys(final_logit_softcapping=30.0)], [("KEY008", "silent", "/final_logit_softcapping")]),
        ([keys(output_multiplier=1.0)], []),
        ([without("conv_group_size")], [("KEY001", "refused", "/conv_group_size")]),
        ([without("aux_hidden_state_layer_ids")], [("KEY001", "refused", "/aux_hidden_state_layer_ids")]),
    ],
    ids=["scale", "multiplier", "softcap", "a multiplier of one", "a size", "the layers"],
)
def test_speculators_keys(changes: list[Change], expected: list[Found]) -> None:
    """Four sizes are carried over, the scalars are not, whatever their place."""
    assert told(BASE, speculators, *changes) == expected


def test_a_missing_size_is_read_off_the_tensors() -> None:
    """The fix gives the value that the convolutions have, at the place of the dialect."""
    assert '[add "dflash_config.conv_group_size": 16]' in messages(BASE, without("dflash_config.conv_group_size"))
    assert '[add "conv_kernel_size": 2]' in messages(BASE, speculators, without("conv_kernel_size"))
