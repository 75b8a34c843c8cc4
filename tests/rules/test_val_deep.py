"""VAL with --deep: what all the tensors hold."""

from __future__ import annotations

import struct
import subprocess
import sys

from typing import TYPE_CHECKING

import pytest

from rules.build import (
    HIDDEN,
    LAYERS,
    MLP,
    RANK,
    ROWS,
    Case,
    Change,
    Told,
    at,
    check,
    findings,
    made,
    results,
    several,
    table,
    told,
)


if TYPE_CHECKING:
    from conformance.live.cases import Spec


NAN, ONE = 0x7FC0, 0x3F80
FP8_NAN = 0x7F
EMBEDDING, W1, DOWN, SCALE = (
    "embed_tokens.weight",
    "markov_head.markov_w1.weight",
    "mlp.down_proj.weight",
    "mlp.down_proj.weight_scale",
)


def holding(name: str, width: int, first: int, *values: int) -> Change:
    """Put numbers, as patterns of `width` bytes, into a tensor from its element `first` on; the rest stays as it is."""

    def change(spec: Spec) -> None:
        data = bytearray(spec.tables.get(name, _plain(spec, name)))
        for i, value in enumerate(values, first):
            data[i * width : (i + 1) * width] = value.to_bytes(width, "little")
        spec.tables[name] = bytes(data)

    return change


def _plain(spec: Spec, name: str) -> bytes:
    kind, dims = spec.tensors[name]
    size = {"BF16": 2, "F8_E4M3": 1, "F32": 4, "U8": 1}[kind]
    for dim in dims:
        size *= dim
    return bytes(0x38 + (7 * i + i // 11) % 5 for i in range(size))


def zeros(name: str) -> Change:
    return lambda spec: spec.tables.__setitem__(name, bytes(len(_plain(spec, name))))


def rows(name: str, width: int, values: dict[int, int]) -> Change:
    """Fill rows of a BF16 table with one number each."""
    return several(*(holding(name, 2, row * width, *[value] * width) for row, value in values.items()))


def fp8(spec: Spec) -> None:
    """Quantize the down projections to FP8 with one scale a tensor, as ModelOpt does."""
    at(
        "quantization_config",
        {
            "quant_method": "modelopt",
            "quant_algo": "FP8",
            "ignore": ["*self_attn*", "*gate_up_proj", "*fc", "*markov_head*"],
        },
    )(spec)
    for i in range(LAYERS):
        spec.tensors[f"layers.{i}.{DOWN}"] = ("F8_E4M3", (HIDDEN, MLP))
        for scale in ("weight_scale", "input_scale"):
            spec.tensors[f"layers.{i}.mlp.down_proj.{scale}"] = ("F32", (1,))


def mxfp8(spec: Spec) -> None:
    """The same to MXFP8, whose scales are exponents in bytes."""
    at(
        "quantization_config",
        {
            "quant_method": "modelopt",
            "quant_algo": "MXFP8",
            "ignore": ["*self_attn*", "*gate_up_proj", "*fc", "*markov_head*"],
        },
    )(spec)
    for i in range(LAYERS):
        spec.tensors[f"layers.{i}.{DOWN}"] = ("F8_E4M3", (HIDDEN, MLP))
        spec.tensors[f"layers.{i}.{SCALE}"] = ("U8", (HIDDEN, MLP // 32))


def scale(value: float, layer: int = 0) -> Change:
    return several(fp8, table(f"layers.{layer}.{SCALE}", "F32", [value]))


def deep(
    rule: str,
    name: str,
    base: str,
    *changes: Change,
    found: tuple[Told, ...] = (),
    says: tuple[str, ...] = (),
    vllm: str = "0.32.0",
) -> Case:
    return Case(rule, name, base, changes, found, vllm, says, deep=True)


def broken(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "silent", where, count),)


def doubtful(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "warning", "silent", where, count),)


CASES = [
    # VAL003, beyond norms and biases
    deep("VAL003", "NaN in a projection", "native", holding("fc.weight", 2, 70, NAN), found=broken("VAL003", "fc.weight"), says=("1 NaN", "element 70 of 12,288")),
    deep("VAL003", "NaN in every layer", "dflash", *(holding(f"layers.{i}.{DOWN}", 2, 0, NAN, NAN, 0xFF80) for i in range(LAYERS)), found=broken("VAL003", f"layers.0.{DOWN}", 2), says=("4 NaN and 2 infinities", f"layers.0.{DOWN} and layers.1.{DOWN}")),
    deep("VAL003", "norm and projection", "native", holding("fc.weight", 2, 0, NAN), holding("norm.weight", 2, 3, NAN), holding("hidden_norm.weight", 2, 3, NAN), found=broken("VAL003", "fc.weight", 3), says=("3 tensors",)),
    deep("VAL003", "NaN among FP8 bytes", "native", fp8, holding(f"layers.1.{DOWN}", 1, 5, FP8_NAN, 0xFF), found=broken("VAL003", f"layers.1.{DOWN}"), says=("2 NaN", "element 5"), vllm="0.31.0"),
    deep("VAL003", "the greatest FP8 number", "native", fp8, holding(f"layers.1.{DOWN}", 1, 5, 0x7E)),
    deep("VAL003", "in a tensor that is dropped", "speculators", holding("confidence_head.proj.weight", 2, 0, NAN), found=(Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2),), vllm="0.27.0"),
    # VAL004
    deep("VAL004", "a projection", "native", zeros("fc.weight"), found=broken("VAL004", "fc.weight"), says=("fc.weight is zero",)),
    deep("VAL004", "a norm in every layer", "speculators", *(zeros(f"layers.{i}.input_layernorm.weight") for i in range(LAYERS)), found=broken("VAL004", "layers.0.input_layernorm.weight", 2), says=("a norm of zeros",)),
    deep("VAL004", "a module that adds nothing", "dflash", zeros(f"layers.1.{DOWN}"), found=doubtful("VAL004", f"layers.1.{DOWN}"), vllm="0.24.0"),
    deep("VAL004", "the bias of a confidence head", "native", zeros("confidence_head.proj.bias"), found=(Told("VAL004", "info", "advice", "confidence_head.proj.bias"),), says=("no loss",)),
    deep("VAL004", "two kinds", "native", zeros("fc.weight"), zeros("markov_head.markov_w2.weight"), found=(*broken("VAL004", "fc.weight"), *doubtful("VAL004", "markov_head.markov_w2.weight"))),
    deep("VAL004", "all but one number", "native", zeros("fc.weight"), holding("fc.weight", 2, 12_000, ONE)),
    # VAL005
    deep("VAL005", "rows of ones", "native", rows(W1, RANK, {3: ONE, 9: ONE}), found=doubtful("VAL005", W1, 2), says=("2 rows of the 256", "rows 3, 9")),
    deep("VAL005", "most rows are zeros", "speculators", rows(EMBEDDING, HIDDEN, dict.fromkeys(range(100, ROWS), 0)), found=doubtful("VAL005", EMBEDDING, 156), says=("zeros only", "rows 100, 101")),
    deep("VAL005", "most rows are copies", "speculators", *(holding(EMBEDDING, 2, row * HIDDEN, *range(0x3C00, 0x3C00 + HIDDEN)) for row in range(200)), found=doubtful("VAL005", EMBEDDING, 199), says=("bit for bit",)),
    deep("VAL005", "padding", "speculators", rows(EMBEDDING, HIDDEN, dict.fromkeys(range(250, ROWS), 0)), found=(Told("VAL005", "info", "advice", EMBEDDING, 6),), says=("6 rows", "pads the vocabulary")),
    deep("VAL005", "one row of zeros", "speculators", rows(EMBEDDING, HIDDEN, {7: 0})),
    deep("VAL005", "equal rows of a projection", "native", rows("fc.weight", 3 * HIDDEN, {3: ONE, 9: ONE})),
    # VAL006
    deep("VAL006", "zero", "native", scale(0.0), found=broken("VAL006", f"layers.0.{SCALE}"), says=("weight_scale is zero",)),
    deep("VAL006", "zero in every layer", "native", scale(0.0), table(f"layers.1.{SCALE}", "F32", [0.0]), found=broken("VAL006", f"layers.0.{SCALE}", 2), says=(f"layers.0.{SCALE} and layers.1.{SCALE} are zero",)),
    deep("VAL006", "negative", "native", scale(-0.5, 1), found=broken("VAL006", f"layers.1.{SCALE}"), says=("below zero",)),
    deep("VAL006", "the sentinel of a scale that was never set", "native", scale(-3.4028234663852886e38), found=broken("VAL006", f"layers.0.{SCALE}"), says=("below zero",), vllm="0.33.0"),
    deep("VAL006", "NaN", "native", scale(float("nan")), found=broken("VAL006", f"layers.0.{SCALE}"), says=("NaN or infinite",)),
    deep("VAL006", "infinite", "native", scale(float("inf")), found=broken("VAL006", f"layers.0.{SCALE}"), says=("NaN or infinite",)),
    deep("VAL006", "NaN among exponents", "native", mxfp8, holding(f"layers.1.{SCALE}", 1, 5, 0xFF, 0xFF), found=broken("VAL006", f"layers.1.{SCALE}"), says=("2 of the 256 numbers",)),
    deep("VAL006", "the least exponent", "native", mxfp8, holding(f"layers.1.{SCALE}", 1, 5, 0)),
    deep("VAL006", "positive", "native", scale(0.5)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_values(case: Case) -> None:
    """What a tensor must not hold is one finding over all tensors that hold it."""
    check(case)


@pytest.mark.parametrize("base", ["native", "speculators", "dflash", "gemma4"])
def test_trained_weights_are_quiet(base: str) -> None:
    """Reading everything finds nothing in a draft as it should be."""
    (result,) = results(made(base), deep=True).values()

    assert told(result.findings) == told(findings(base))
    assert {"VAL003", "VAL004", "VAL005", "VAL006"} <= set(result.checked)
    assert [what for what, _ in result.unchecked if what.startswith("VAL")] == []


def test_unchecked_without_it() -> None:
    """Without --deep the rules are said not to have been checked, and the one that looks at norms to have seen those."""
    (result,) = results(made("native", zeros("fc.weight"))).values()

    assert told(result.findings) == []
    assert {what: why for what, why in result.unchecked if what.startswith("VAL")} == {
        "VAL003 (all but norms and biases)": "needs --deep",
        **dict.fromkeys(["VAL004", "VAL005"], "needs --deep"),
        "VAL006 (all but scales of one number)": "needs --deep",
    }


def test_every_release_from_one_scan() -> None:
    """Several releases are told the same of the same data, each with its own line of source."""
    found = results(made("dflash", holding("fc.weight", 2, 0, NAN)), ["==0.24.0", "==0.28.0", "==0.33.0"], deep=True)

    assert {release: told(result.findings) for release, result in found.items()} == {
        release: list(broken("VAL003", "fc.weight")) for release in found
    }
    assert len(found) == 3


def test_nothing_of_it_is_imported_otherwise() -> None:
    """A plain lint of a draft without tables imports neither the scan nor numpy."""
    script = (
        "import sys, dspark_lint; dspark_lint.lint('fixtures/demo/exported', vllm='0.32');"
        "print(sorted(m for m in sys.modules if m.startswith('dspark_lint.scan') or m == 'numpy'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_one_float_is_what_struct_makes_of_it() -> None:
    """The patterns of the tables above are what they are meant to be."""
    assert struct.pack("<f", float("nan"))[2:] == NAN.to_bytes(2, "little")
    assert struct.pack("<f", 1.0)[2:] == ONE.to_bytes(2, "little")
