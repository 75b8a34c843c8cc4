"""QNT and DRF007: the quantization that a draft states, the modules that it reaches, what lies on disk for them."""

# ruff: noqa: ERA001 - a line of a table reads best whole; the remarks name the rules
from __future__ import annotations

from typing import Any

import pytest

from conformance.live.cases import add, drop, dtype, rename, shape
from rules.build import RELEASES, Case, Told, alone, at, check, findings, told, without
from rules.quantized import (
    HEADS,
    HEADS_RE,
    TOKENS_INT8,
    WEIGHTS_FP8,
    WEIGHTS_INT4,
    WEIGHTS_INT8,
    compressed,
    fp8,
    fp8_block,
    fp8_channel,
    hf_fp8,
    in_config,
    in_file,
    int8,
    layers,
    mxfp8,
    nvfp4,
    packed_int4,
)

from dspark_lint.finding import Finding


IGNORE = "/quantization_config/ignore"
EXCLUDE = "/quantization/exclude_modules"
#: Where transformers' FP8 leaves the heads alone, by their run-time names.
KEPT = ["lm_head", "model.markov_head.markov_w2"]
#: What releases before 0.28 say of the base's confidence head.
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)
NO_FC = [*HEADS_RE, "re:.*fc"]


def refused(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "refused", where, count),)


def silent(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "silent", where, count),)


def idle(where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told("QNT003", "info", "advice", where, count),)


#: Every scheme, as an exporter writes it, is served by 0.32 as it was trained.
SCHEMES = {
    "FP8, in hf_quant_config.json": (fp8(), in_file("FP8")),
    "FP8, in config.json": (fp8(), in_config("FP8")),
    "FP8, in both": (fp8(), in_config("FP8"), in_file("FP8")),
    "FP8 a row": (fp8_channel(), compressed()),
    "FP8 a block": (fp8_block(), hf_fp8(weight_block_size=[32, 32], modules_to_not_convert=KEPT)),
    "FP8 of transformers": (fp8(static=False), hf_fp8(modules_to_not_convert=KEPT)),
    "FP8 without static scales": (fp8(static=False), compressed({**WEIGHTS_FP8, "strategy": "tensor"})),
    "NVFP4": (nvfp4(), in_file("NVFP4", group_size=16)),
    "NVFP4, in config.json": (nvfp4(), in_config("NVFP4", group_size=16)),
    "W4A16": (nvfp4(act=False), in_config("W4A16_NVFP4", group_size=16)),
    "MXFP8": (mxfp8(), in_config("MXFP8")),
    "INT8": (int8(), compressed(WEIGHTS_INT8, TOKENS_INT8, "int-quantized")),
    "packed INT4": (packed_int4("fc"), compressed(WEIGHTS_INT4, None, "pack-quantized", ignore=NO_FC)),
}

CASES = [
    *(Case("QNT005", name, "native", changes) for name, changes in SCHEMES.items()),
    # DRF007: two statements
    Case("DRF007", "another list", "native", (fp8("fc"), in_config("FP8", [*HEADS, "fc"]), in_file("FP8")), (Told("DRF007", "warning", "silent", ""),), says=("exclusions", "obeys config.json"), fix="one source"),
    Case("DRF007", "another algorithm", "native", (fp8(), in_config("FP8"), in_file("NVFP4", group_size=16)), (Told("DRF007", "warning", "silent", ""),), says=("quant_algo FP8 against NVFP4",)),
    Case("DRF007", "the same list in another order", "native", (fp8(), in_config("FP8"), in_file("FP8", HEADS[::-1]))),
    Case("DRF007", "one statement", "native", (fp8(), in_file("FP8"))),
    # QNT001: the statement is refused
    Case("QNT001", "an algorithm that is none", "native", (fp8(), in_config("FP9")), refused("QNT001", "/quantization_config/quant_algo"), says=("quant_algo in config.json is FP9", "NVFP4")),
    Case("QNT001", "an algorithm that is none, in the file", "native", (fp8(), in_file("FP9")), refused("QNT001", "/quantization/quant_algo"), says=("hf_quant_config.json is FP9",)),
    Case("QNT001", "no algorithm", "native", (fp8(), at("quantization_config", {"quant_method": "modelopt", "ignore": list(HEADS)})), refused("QNT001", "/quantization_config/quant_algo"), says=("quant_algo",)),
    Case("QNT001", "a method that is none", "native", (fp8(), at("quantization_config", {"quant_method": "smooth"})), refused("QNT001", "/quantization_config/quant_method"), says=("smooth",)),
    Case("QNT001", "mixed precision without a map", "native", (fp8(), in_config("MIXED_PRECISION")), refused("QNT001", "/quantization_config/quantized_layers"), says=("quantized_layers",)),
    Case("QNT001", "a list that is null", "native", (fp8(), in_config("FP8"), at("quantization_config.ignore", None)), refused("QNT001", IGNORE), says=("ignore",)),
    Case("QNT001", "a list that is null, compressed-tensors", "native", (fp8_channel(), compressed(), at("quantization_config.ignore", None)), refused("QNT001", IGNORE), says=("null included",)),
    Case("QNT001", "a cache scheme that is none", "native", (fp8_channel(), compressed(kv_cache_scheme=[])), refused("QNT001", "/quantization_config/kv_cache_scheme"), says=("an object or null",)),
    Case("QNT001", "a cache of four bits", "native", (fp8_channel(), compressed(kv_cache_scheme={"type": "float", "num_bits": 4, "strategy": "tensor", "symmetric": True})), refused("QNT001", "/quantization_config/kv_cache_scheme"), says=("num_bits 8",)),
    Case("QNT001", "a cache of eight bits", "native", (fp8_channel(), compressed(kv_cache_scheme={"type": "float", "num_bits": 8, "strategy": "tensor", "symmetric": True}))),
    Case("QNT001", "sparsity without a format", "native", (fp8_channel(), compressed(sparsity_config={"targets": []})), refused("QNT001", "/quantization_config/sparsity_config"), says=("format",)),
    Case("QNT001", "no sparsity", "native", (fp8_channel(), compressed(sparsity_config={}))),
    Case("QNT001", "an algorithm in small letters", "native", (fp8(), in_config("fp8"))),
    # QNT002: it counts for nothing
    Case("QNT002", "no method", "native", (fp8(), at("quantization_config", {"config_groups": {}, "ignore": []})), refused("QNT002", "/quantization_config/quant_method"), says=("names no quant_method", "15 modules keep quantized data"), fix="quant_method"),
    Case("QNT002", "no method, and nothing quantized", "native", (at("quantization_config", {"config_groups": {}, "ignore": []}),), (Told("QNT002", "warning", "silent", "/quantization_config/quant_method"),), says=("counts for nothing",)),
    Case("QNT002", "an empty statement", "native", (at("quantization_config", {}),)),
    # QNT003: entries that match nothing
    Case("QNT003", "the name before a rename", "native", (fp8(), in_file("FP8", ["lm_head", "embed_tokens", "dflash_module.markov_w1", "dflash_module.markov_w2"])), silent("QNT003", f"{EXCLUDE}/3"), says=("did you mean 'markov_head.markov_w2'", "built quantized (FP8", "keeps its sentinel"), fix="write 'markov_head.markov_w2'"),
    Case("QNT003", "the name before a rename, refused under NVFP4", "native", (nvfp4(), in_file("NVFP4", ["lm_head", "dflash_module.markov_w2"], group_size=16)), refused("QNT003", f"{EXCLUDE}/1"), says=("markov_head.markov_w2", "does not fit"), fix="'markov_head.markov_w2'"),
    Case("QNT003", "a prefix of the trainer's", "native", (fp8("fc"), in_config("FP8", [*HEADS, "draft.fc"])), silent("QNT003", f"{IGNORE}/4"), says=("'draft.fc' of ignore", "did you mean 'fc'"), fix="write 'fc'"),
    Case("QNT003", "a projection that is fused at run time", "native", (fp8("layers.0.self_attn.q_proj"), in_config("FP8", [*HEADS, "model.layers.8.self_attn.q_proj"])), silent("QNT003", f"{IGNORE}/4"), says=("is fused into model.layers.8.self_attn.qkv_proj",), fix="'model.layers.8.self_attn.qkv_proj'"),
    Case("QNT003", "an entry of another model", "native", (fp8(), in_config("FP8", [*HEADS, "visual.encoder"])), idle(f"{IGNORE}/4"), says=("matches no module of this draft",)),
    Case("QNT003", "entries of another model", "dflash", (fp8(), in_config("FP8")), idle(f"{IGNORE}/2", 2), says=("'*markov_head*', '*confidence_head*'",)),
    Case("QNT003", "a name without its prefix, compressed-tensors", "native", (fp8_channel("fc"), compressed(ignore=[*HEADS_RE, "fc"])), silent("QNT003", f"{IGNORE}/3"), says=("'fc' of ignore", "model.fc"), fix="write 'model.fc'"),
    Case("QNT003", "a pattern that must match from the start", "native", (fp8_channel("fc"), compressed(ignore=[*HEADS_RE, "re:fc"])), silent("QNT003", f"{IGNORE}/3"), says=("'re:fc'", "from the name's start")),
    Case("QNT003", "modules_to_not_convert without the prefix", "native", (fp8("fc", static=False), hf_fp8(modules_to_not_convert=[*KEPT, "fc"])), silent("QNT003", "/quantization_config/modules_to_not_convert/2"), says=("'fc' of modules_to_not_convert",), fix="'model.fc'"),
    Case("QNT003", "a piece of the name", "native", (fp8(), in_config("FP8", ["lm_head", "markov_w2"]))),
    Case("QNT003", "the whole name", "native", (fp8("fc"), in_config("FP8", [*HEADS, "model.fc"]))),
    Case("QNT003", "the name after the rename", "native", (fp8(), in_file("FP8", ["lm_head", "embed_tokens", "markov_head.markov_w2"]))),
    # QNT004: entries that match more
    Case("QNT004", "a number that begins others", "native", (layers(12), fp8("layers.1.*"), in_config("FP8", [*HEADS, "layers.1"])), refused("QNT004", f"{IGNORE}/4", 40), says=("'layers.1' is a piece of model.layers.10.", "40 modules", "70 weights"), fix="'layers.1.'"),
    Case("QNT004", "a number that ends at its dot", "native", (layers(12), fp8("layers.1.*"), in_config("FP8", [*HEADS, "layers.1."]))),
    # QNT005: quantized by the statement, not on disk
    Case("QNT005", "fc, FP8", "native", (fp8("fc"), in_config("FP8")), silent("QNT005", "fc.weight"), says=("fc is BF16 on disk", "no entry of ignore matches model.fc"), fix="add 'fc' to ignore"),
    Case("QNT005", "fc, NVFP4", "native", (nvfp4("fc"), in_config("NVFP4", group_size=16)), refused("QNT005", "fc.weight"), says=("NVFP4", "[64, 192]")),
    Case("QNT005", "fc, INT8", "native", (int8("fc"), compressed(WEIGHTS_INT8, TOKENS_INT8, "int-quantized")), silent("QNT005", "fc.weight"), says=("fc is BF16 on disk", "the target 'Linear' reaches it"), fix="'model.fc'"),
    Case("QNT005", "36 layers are one fault", "native", (layers(36), fp8("layers.*.mlp.down_proj"), in_config("FP8")), silent("QNT005", "layers.0.mlp.down_proj.weight", 36), says=("36 layers",), fix="'*.down_proj'"),
    Case("QNT005", "markov_w2, from 0.27.1", "native", (fp8(), in_config("FP8", ["lm_head", "*confidence*"])), silent("QNT005", "markov_head.markov_w2.weight"), says=("markov_head.markov_w2 is BF16",), fix="'markov_head.markov_w2'"),
    Case("QNT005", "markov_w2, before 0.27.1", "native", (fp8("layers.*.self_attn.[qkv]_proj"), in_config("FP8", ["lm_head", "*qkv_proj"])), (DROPPED,), vllm="0.27.0"),
    Case("QNT005", "by a number that is offset by the target's layers", "native", (fp8("layers.1.self_attn.o_proj"), in_config("FP8", [*HEADS, "model.layers.9.self_attn.o_proj"]))),
    Case("QNT005", "by a number that is not", "native", (fp8("layers.1.self_attn.o_proj"), compressed({**WEIGHTS_FP8, "strategy": "tensor"}, {**WEIGHTS_FP8, "strategy": "tensor"}, ignore=[*HEADS_RE, "model.layers.1.self_attn.o_proj"])), silent("QNT003", f"{IGNORE}/3"), says=(), vllm="0.32.0"),
    # QNT006: quantized on disk, not by the statement
    Case("QNT006", "scales of an excluded module", "native", (fp8(), in_config("FP8", [*HEADS, "fc"])), refused("QNT006", "fc.input_scale"), says=("'fc' takes model.fc out",), fix="remove 'fc'"),
    Case("QNT006", "no statement at all", "native", (fp8(),), refused("QNT006", "fc.input_scale", 15), says=("15 modules", "states no quantization")),
    Case("QNT006", "a list that takes all out", "native", (layers(36), fp8(), in_config("FP8", [*HEADS, "*"])), refused("QNT006", "fc.input_scale", 253), says=("'*' takes",)),
    Case("QNT006", "unquantized and excluded", "native", (fp8("fc"), in_config("FP8", [*HEADS, "fc"]))),
    # QNT007: scales that are missing
    Case("QNT007", "one", "native", (fp8(), in_config("FP8"), drop("fc.weight_scale")), silent("QNT007", "fc.weight_scale"), says=("fc.weight_scale is missing", "sentinel")),
    Case("QNT007", "one kind", "native", (fp8(), in_config("FP8"), drop("*.input_scale")), silent("QNT007", "fc.input_scale", 15), says=("and 14 more",)),
    Case("QNT007", "the second of NVFP4", "native", (nvfp4(), in_config("NVFP4", group_size=16), drop("*.weight_scale_2")), silent("QNT007", "fc.weight_scale_2", 15), says=("uninitialised",)),
    Case("QNT007", "of a layer in 36", "native", (layers(36), fp8(), in_config("FP8"), drop("layers.*.mlp.up_proj.weight_scale")), silent("QNT007", "layers.0.mlp.up_proj.weight_scale", 36), says=("layers.{i}.mlp.up_proj.weight_scale (36 tensors)",)),
    Case("QNT007", "static scales that a dynamic scheme does not want", "native", (fp8(static=False), hf_fp8(modules_to_not_convert=KEPT))),
    # QNT008: sizes
    Case("QNT008", "a vector for a number", "native", (fp8(), in_config("FP8"), shape("fc.weight_scale", 64)), refused("QNT008", "fc.weight_scale"), says=("[64]", "[1]")),
    Case("QNT008", "another group", "native", (nvfp4(), in_config("NVFP4", group_size=32)), refused("QNT008", "fc.weight_scale", 15), says=("like 14 more", "[64, 12]", "[64, 6]")),
    Case("QNT008", "another group, packed", "native", (packed_int4("fc", group=16), compressed(WEIGHTS_INT4, None, "pack-quantized", ignore=NO_FC)), refused("QNT008", "layers.0.self_attn.q_proj.weight_scale", 14), says=("[64, 4]", "[64, 2]")),
    Case("QNT008", "another block", "native", (fp8_block(), hf_fp8(weight_block_size=[48, 48], modules_to_not_convert=KEPT)), refused("QNT008", "fc.weight_scale_inv", 7), says=("[2, 6]", "[2, 4]")),
    Case("QNT008", "the block that was meant", "native", (fp8_block(size=48), hf_fp8(weight_block_size=[48, 48], modules_to_not_convert=KEPT))),
    # QNT009: what a release does not serve quantized
    Case("QNT009", "q, k and v up to 0.30", "native", (fp8(), in_config("FP8")), refused("QNT009", "/quantization_config", 2), vllm="0.30.0", says=("qkv_proj in 2 layers", "K/V rows itself"), fix="unquantized"),
    Case("QNT009", "q, k and v left alone", "native", (fp8("layers.*.self_attn.[qkv]_proj"), in_config("FP8", [*HEADS, "*qkv_proj"])), vllm="0.30.0"),
    Case("QNT009", "q, k and v from 0.31", "native", (fp8(), in_config("FP8")), vllm="0.31.0"),
    # QNT010: the cache
    Case("QNT010", "scales of the cache", "native", (fp8(), in_config("FP8"), add("layers.0.self_attn.k_proj.k_scale", kind="F32"), add("layers.0.self_attn.v_proj.v_scale", kind="F32")), (Told("QNT010", "info", "advice", "layers.0.self_attn.k_proj.k_scale", 2),), says=("2 scales of the K/V cache",)),
    Case("QNT010", "no scales of the cache", "native", (fp8(), in_config("FP8", kv_cache_quant_algo="FP8"))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_quantization(case: Case) -> None:
    """A quantized draft that is not served as it was quantized is one finding, at its cause."""
    check(case)


def test_every_rule_fires_and_is_quiet() -> None:
    """Each rule of the table has a line that fires it and one that does not."""
    rules = {f"QNT{n:03}" for n in range(1, 11)} | {"DRF007"}

    assert {c.rule for c in CASES if c.fires} == rules
    assert {c.rule for c in CASES if not c.fires} == rules


def test_a_whole_finding() -> None:
    """The finding of the review that this tool began with, field by field."""
    (found,) = findings("native", fp8(), in_file("FP8", ["lm_head", "dflash_module.markov_w2"]))

    assert found == Finding(
        rule="QNT003",
        severity="error",
        effect="silent",
        message=(
            "'dflash_module.markov_w2' of exclude_modules matches no module that vLLM 0.32.0 builds (did you mean "
            "'markov_head.markov_w2'?), so markov_head.markov_w2, BF16 on disk, is built quantized (FP8 with one scale a "
            "tensor): the values are cast to FP8 as they stand, and the scale keeps its sentinel; an entry counts where it "
            "equals the module's name, is a piece of it, or matches the whole of it as a glob."
        ),
        file="hf_quant_config.json",
        pointer="/quantization/exclude_modules/1",
        tensor=None,
        module="model.markov_head.markov_w2",
        expected="markov_head.markov_w2",
        found="dflash_module.markov_w2",
        count=1,
        source=found.source,
        fix="write 'markov_head.markov_w2'",
    )
    assert (found.source or "").startswith("model_executor/layers/quantization/modelopt.py:")


@pytest.mark.parametrize("release", RELEASES[3:])
def test_one_export_under_every_release(release: str) -> None:
    """The same FP8 export: q, k and v are refused up to 0.30, and served from 0.31."""
    found = told(findings("native", fp8(), in_config("FP8"), vllm=release))

    early = [DROPPED] if release < "0.28" else []
    qkv = list(refused("QNT009", "/quantization_config", 2)) if release < "0.31" else []
    assert found == sorted([*early, *qkv]), release


@pytest.mark.parametrize(
    ("changes", "entry"),
    [
        pytest.param((), "model.layers.9.self_attn.o_proj", id="from the target"),
        pytest.param((alone,), "model.layers.9.self_attn.o_proj", id="from num_target_layers"),
        pytest.param((alone, at("num_target_layers", 20)), "model.layers.21.self_attn.o_proj", id="another number"),
    ],
)
def test_where_the_offset_comes_from(changes: tuple[Any, ...], entry: str) -> None:
    """Run-time layer numbers continue the target's: those of --target, else those that the draft states."""
    draft = (fp8("layers.1.self_attn.o_proj"), in_config("FP8", [*HEADS, entry]), *changes)

    assert [f for f in findings("native", *draft) if f.rule.startswith("QNT")] == []


def test_an_offset_that_is_unknown() -> None:
    """Without a target and without num_target_layers, entries with a number are said to be unchecked."""
    from rules.build import made, results

    draft = (fp8(), in_config("FP8", [*HEADS, "model.layers.9.self_attn.o_proj"]), alone, without("num_target_layers"))
    (result,) = results(made("native", *draft)).values()

    assert [f.rule for f in result.findings if f.rule.startswith("QNT")] == []
    assert any("layer" in why or "--target" in why for _, why in result.unchecked)


def test_fused_members_of_two_kinds() -> None:
    """A projection that is quantized beside one that is not, in one fused module, is told at the module."""
    found = findings("native", fp8(), in_config("FP8"), dtype("layers.0.self_attn.k_proj.weight", "BF16"))

    assert [(f.rule, f.module, f.tensor) for f in found] == [
        ("QNT005", "model.layers.8.self_attn.qkv_proj", "layers.0.self_attn.k_proj.weight")
    ]


def test_a_renamed_scale() -> None:
    """A scale under another name is missing, and what stands there has no place."""
    found = findings("native", fp8(), in_config("FP8"), rename(r"fc\.weight_scale", "fc.scale"))

    assert {f.rule for f in found} <= {"QNT007", "TEN002", "TEN003", "QNT006"}
    assert {f.effect for f in found} & {"refused", "silent"}
