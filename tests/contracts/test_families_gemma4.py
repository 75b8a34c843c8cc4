"""Gemma4DSparkModel: per-layer sizes, a loader that passes unknown names over, the target's tables."""

from __future__ import annotations

import pytest

from conformance.live.cases import Spec, add, config, drop, rename, serve, shape
from contracts.drafts import Change, Found, keys, messages, told, without


BASE = "base.gemma4"
#: Every draft of this base ships tables that are replaced by the target's; only one test is about that.
TABLES = [("TGT001", "advice", "embed_tokens.weight")]
#: Releases that load the base; before them the head is thrown away, and 0.25.1 does not know the architecture.
HEADED = ("0.31.0", "0.32.0", "0.33.0")


def wide() -> list[Change]:
    """Heads of 32 in full_attention layers, 16 in the file's head_dim, as published Gemma4 drafts have two sizes."""
    layers = [
        (f"layers.{i}.self_attn.{name}.weight", dims)
        for i in (0, 1)
        for name, dims in (
            ("q_proj", (128, 64)),
            ("k_proj", (32, 64)),
            ("o_proj", (64, 128)),
            ("q_norm", (32,)),
            ("k_norm", (32,)),
        )
    ]
    return [keys(global_head_dim=32, num_global_key_value_heads=1), *(shape(name, *dims) for name, dims in layers)]


@pytest.mark.parametrize("release", HEADED)
def test_the_base_is_served_whole(release: str) -> None:
    """Releases with a confidence head have nothing to say but that the tables are the target's."""
    assert told(BASE, vllm=release) == TABLES


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.27.1", [("KEY003", "refused", "/global_head_dim")]),
        ("0.28.0", []),
        ("0.31.0", []),
        ("0.32.0", []),
        ("0.33.0", []),
    ],
)
def test_two_head_sizes_are_read_layer_by_layer_from_0_28(release: str, expected: list[Found]) -> None:
    """A file with one head size globally and another in its full layers loads from the release that reads it so."""
    assert told(BASE, *wide(), vllm=release, quiet=("TGT001", "TEN005")) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([without("layer_types")], [("KEY003", "refused", "/layer_types")]),
        ([keys(layer_types=["full_attention", "sliding_attention"])], []),
        ([keys(layer_types=["sliding_attention", "full_attention"])], [("KEY003", "refused", "/layer_types")]),
        ([without("attention_k_eq_v")], [("KEY003", "refused", "/attention_k_eq_v")]),
        ([keys(hidden_activation="relu")], [("KEY003", "refused", "/hidden_activation")]),
        ([keys(hidden_activation="GELU")], []),
        ([keys(num_global_key_value_heads=3)], [
            ("KEY003", "refused", "/num_global_key_value_heads"), ("TEN004", "refused", "layers.{i}.self_attn.k_proj.weight"),
        ]),
        ([keys(global_head_dim="16")], [("KEY002", "refused", "/global_head_dim")]),
        ([keys(per_layer_config={"0": {"head_dim": 16}, "01": {"head_dim": 16}}), without("global_head_dim")], []),
        ([keys(per_layer_config={"7": {"head_dim": 16}})], [("KEY003", "refused", "/per_layer_config")]),
        ([keys(per_layer_config={"0": {"intermediate_size": 64}})], [("KEY003", "refused", "/per_layer_config")]),
        ([keys(model_type="gemma4")], [("KEY003", "refused", "/model_type")]),
        ([keys(final_logit_softcapping=0.0)], [("KEY003", "silent", "/final_logit_softcapping")]),
        ([keys(dspark_draft_topk=4)], [("ARC008", "refused", "/dspark_draft_topk")]),
    ],
    ids=[
        "layer types by default", "last layer forced to full", "a sliding layer", "no k_eq_v", "activation",
        "activation in capitals", "heads that do not divide", "head size as text", "per_layer_config",
        "a layer too many", "another size for one layer", "the multimodal type", "a cap of zero", "topk",
    ],
)  # fmt: skip
def test_configuration(changes: list[Change], expected: list[Found]) -> None:
    """What the configuration class derives and the loader asserts, key by key."""
    assert told(BASE, *changes, quiet=("TGT001", "KEY009")) == expected


@pytest.mark.parametrize(
    ("rope", "refused"),
    [
        ({"full_attention": {"rope_theta": 1e6}}, False),
        ({"rope_type": "default", "rope_theta": 1e6}, False),
        ({}, False),
        (None, False),
        ({"full_attention": {"rope_type": "default"}}, True),
        ({"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4}}, False),
        ({"full_attention": {"rope_type": "default", "rope_theta": None}}, True),
        ({"full_attention": {"rope_type": "yarn", "rope_theta": 1e6}}, True),
        ({"full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 2.0}}, True),
        ({"sliding_attention": {"rope_theta": 1e4}}, True),
        ({"full_attention": {"rope_theta": 1e6}, "rope_type": "yarn"}, False),
    ],
    ids=[
        "no type", "flat", "empty", "null", "no theta", "no theta among others", "theta null", "yarn without factor",
        "more than the whole head", "sliding only", "scalars beside",
    ],
)  # fmt: skip
def test_rope(rope: object, *, refused: bool) -> None:
    """The rope of full_attention layers is built from its own set, or from the flat one."""
    found = told(BASE, keys_replaced(rope_parameters=rope), quiet=("TGT001", "KEY009"))

    assert found == ([("KEY003", "refused", "/rope_parameters")] if refused else [])


def keys_replaced(**values: object) -> Change:
    return lambda spec: spec.config.update(values)


def test_scalar_rope_keys_are_taken_out_from_0_31() -> None:
    """A scalar rope_type that needs more keys stops the parser until vLLM takes it out before."""
    rope = keys_replaced(rope_parameters={"full_attention": {"rope_theta": 1e6}, "rope_type": "yarn"})

    assert told(BASE, rope, vllm="0.30.0", quiet=("TGT001", "TEN005")) == [("KEY003", "refused", "/rope_parameters")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([drop("norm.weight")], [("TEN001", "refused", "norm.weight")]),
        ([drop("markov_head.markov_w1.weight")], [("TEN001", "refused", "markov_head.markov_w1.weight")]),
        ([drop("fc.weight")], [("TEN001", "silent", "fc.weight")]),
        ([drop("layers.1.layer_scalar")], [("TEN001", "silent", "layers.1.layer_scalar")]),
        ([drop("confidence_head.proj.bias")], [("TEN006", "silent", "confidence_head.proj.bias")]),
        ([rename("^", "model.")], [("TEN003", "refused", "model.confidence_head.proj.bias")]),
        ([rename("q_proj", "query")], [("TEN003", "silent", "layers.0.self_attn.query.weight")]),
        ([add("verifier_norm.weight", 64)], [("TEN005", "silent", "verifier_norm.weight")]),
        ([keys(num_hidden_layers=1, layer_types=["full_attention"])], [("TEN005", "silent", "/num_hidden_layers")]),
        ([add("markov_head.gate_proj.weight", 8, 72)], [("DRF004", "silent", "/markov_head_type")]),
        ([add("layers.0.self_attn.v_proj.weight", 32, 64)], [("TEN005", "advice", "layers.0.self_attn.v_proj.weight")]),
        ([add("d2t", 256)], [("TEN005", "advice", "d2t")]),
        ([shape("layers.0.mlp.gate_proj.weight", 200, 64)], [("TEN004", "silent", "layers.0.mlp.gate_proj.weight")]),
        ([shape("layers.0.self_attn.q_proj.weight", 32, 64)], [("TEN004", "refused", "layers.0.self_attn.q_proj.weight")]),
        ([shape("layers.0.layer_scalar")], []),
    ],
    ids=[
        "norm", "markov_w1", "fc", "layer_scalar", "confidence bias", "a prefix", "another name", "unknown",
        "a layer too many", "a gated head", "values", "a mapping", "too many rows", "too few rows", "a scalar",
    ],
)  # fmt: skip
def test_tensors(changes: list[Change], expected: list[Found]) -> None:
    """Norms and markov_w1 are checked after loading; projections and unknown names are passed over."""
    assert told(BASE, *changes, quiet=("TGT001", "KEY009")) == expected


def test_markov_w1_was_not_checked_in_0_26() -> None:
    """The first release with this loader kept markov_w1 in a table that the check passes over."""
    assert ("TEN001", "silent", "markov_head.markov_w1.weight") in told(
        BASE, drop("markov_head.markov_w1.weight"), vllm="0.26.0"
    )


def table(rows: int) -> list[Change]:
    names = ("embed_tokens", "lm_head", "markov_head.markov_w1", "markov_head.markov_w2")
    return [config(vocab_size=rows), *(shape(f"{n}.weight", rows, 8 if "markov" in n else 64) for n in names)]


@pytest.mark.parametrize(
    ("changes", "release", "expected"),
    [
        ([drop("embed_tokens.weight", "lm_head.weight")], "0.32.0", None),
        ([config(draft_vocab_size=128), shape("markov_head.markov_w2.weight", 128, 8)], "0.32.0", "refused"),
        ([config(draft_vocab_size=320), shape("markov_head.markov_w2.weight", 320, 8)], "0.32.0", None),
        ([*table(320)], "0.28.0", "refused"),
        ([*table(264)], "0.32.0", None),
        ([*table(320)], "0.32.0", "silent"),
        ([*table(264), drop("lm_head.weight")], "0.32.0", "silent"),
        ([*table(264), drop("embed_tokens.weight")], "0.32.0", "silent"),
    ],
    ids=[
        "none shipped", "reduced", "wider Markov head", "wider before 0.29", "padded", "wider", "padded, no head",
        "padded, no embedding",
    ],
)  # fmt: skip
def test_tables_are_the_targets(changes: list[Change], release: str, expected: str | None) -> None:
    """embed_tokens and lm_head are replaced by the target's, from 0.29 where the vocabularies allow it."""
    found = [f for f in told(BASE, *changes, vllm=release, quiet=("TEN005",)) if f[1] != "advice"]

    assert [f[:2] for f in found] == ([("TGT001", expected)] if expected else [])


def text_only(spec: Spec) -> None:
    spec.target = {**spec.target["text_config"], "architectures": ["Gemma4ForCausalLM"]}


def test_a_text_only_target_has_layers_of_the_same_names() -> None:
    """Beside a target that is not multimodal the draft's layer names are there twice."""
    assert told(BASE, text_only, quiet=("TGT001",)) == [("TGT010", "refused", "")]


@pytest.mark.parametrize(
    ("tokens", "release", "expected"),
    [
        (6, "0.30.0", [("ARC008", "refused", "/block_size")]),
        (8, "0.30.0", [("ARC009", "silent", "")]),
        (None, "0.26.0", []),
        (6, "0.31.0", [("ARC009", "silent", "")]),
        (None, "0.31.0", []),
    ],
)
def test_number_of_tokens(tokens: int | None, release: str, expected: list[Found]) -> None:
    """Up to 0.30 block_size counts as stages, so that more must be a multiple; it is the default in every release."""
    change: Change = (
        (lambda spec: spec.serve.pop("num_speculative_tokens"))
        if tokens is None
        else serve(num_speculative_tokens=tokens)
    )

    assert told(BASE, change, vllm=release, quiet=("TGT001", "TEN005")) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([keys(target_layer_ids=[])], [("KEY003", "refused", "/target_layer_ids")]),
        ([without("target_layer_ids")], [("KEY001", "refused", "/target_layer_ids")]),
        ([keys(eagle_aux_hidden_state_layer_ids=[2, 5])], [
            ("DRF005", "silent", "/eagle_aux_hidden_state_layer_ids"), ("TGT004", "refused", "/eagle_aux_hidden_state_layer_ids"),
        ]),
    ],
    ids=["empty", "missing", "another list wins"],
)  # fmt: skip
def test_layers_to_tap(changes: list[Change], expected: list[Found]) -> None:
    """Fc is made for target_layer_ids alone, while the target is asked by the shared look-up."""
    assert told(BASE, *changes, quiet=("TGT001",)) == expected


def test_the_message_names_what_the_class_made_of_the_layers() -> None:
    """The finding of a defaulted layer_types says which layers came out of it."""
    assert 'layer_types counts as ["sliding_attention", "full_attention"]' in messages(BASE, without("layer_types"))


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.28.0", [("ARC008", "refused", "")]),
        ("0.30.0", [("ARC008", "refused", "")]),
        ("0.31.0", []),
    ],
)
def test_adaptive_verification(release: str, expected: list[Found]) -> None:
    """The speculator asks the model for a confidence head, which its class has from 0.31 on."""
    changes = serve(num_speculative_tokens=4, enable_adaptive_verification=True)

    assert told(BASE, changes, vllm=release, quiet=("TGT001", "TEN005")) == expected


@pytest.mark.parametrize("place", ["dflash_config", "dspark_config"])
def test_flags_of_a_head_that_no_release_before_0_31_serves(place: str) -> None:
    """What another tool says of the head is no contradiction where the head is dropped in any case."""
    flags = keys(**{place: {"use_confidence_head": True, "enable_confidence_head": True}})

    assert told(BASE, flags, vllm="0.29.0", quiet=("TGT001", "TEN005")) == []
