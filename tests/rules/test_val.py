"""VAL: what the small tensors hold."""

from __future__ import annotations

import pytest

from rules.build import HIDDEN, ROWS, Case, Told, check, pruned, table
from rules.silent_changes import scaled


HALF = ROWS // 2
NAN, INFINITY, ONE = 0x7FC0, 0x7F80, 0x3F80
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)


def wrong(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "silent", where, count),)


#: The recorded drafts are DFlash and exclude heads that they do not have.
UNMATCHED = Told("QNT003", "info", "advice", "/quantization_config/quantization/exclude_modules/2", 2)


def apart(module: str = "layers.0.self_attn.q_proj", count: int = 1) -> tuple[Told, ...]:
    return (Told("VAL007", "warning", "silent", f"{module}.weight_scale_2", count), UNMATCHED)


NVFP4 = "quant.dflash.nvfp4.both"
EVEN = table("t2d", "BOOL", [i % 2 == 0 for i in range(ROWS)])
#: Two ids of three, so that the offsets repeat as those of real tables do.
THIRDS = [i // 2 for i in range(HALF)]
APART = len({i + offset for i, offset in enumerate(THIRDS)} ^ set(range(1, ROWS, 2)))
ODD = table("t2d", "BOOL", [i % 2 == 1 for i in range(ROWS)])
FIRST = table("t2d", "BOOL", [i < HALF for i in range(ROWS)])

CASES = [
    # VAL001: the mapping's range
    Case("VAL001", "absolute ids", "native", (pruned(d2t=[2 * i for i in range(HALF)]),), wrong("VAL001", "d2t", 42), says=("42 draft ids", "absolute"), fix="store offsets"),
    Case("VAL001", "absolute ids, speculators", "speculators", (pruned(d2t=[2 * i for i in range(HALF)]),), (*wrong("VAL001", "d2t", 42), DROPPED), vllm="0.27.0", says=("absolute",)),
    Case("VAL001", "below zero", "native", (pruned(d2t=[-5] + [0] * (HALF - 1)),), wrong("VAL001", "d2t"), says=("1 draft id", "draft id 0 to -5")),
    Case("VAL001", "two to one", "native", (pruned(d2t=[0] * (HALF - 1) + [-1]),), wrong("VAL001", "d2t"), says=("126 and 127 both to 126",)),
    Case("VAL001", "absolute ids inside the vocabulary", "native", (pruned(), FIRST), wrong("VAL001", "d2t", HALF), says=("absolute target ids", "t2d marks exactly its entries", "draft id 64 becomes 128"), fix="store offsets"),
    Case("VAL001", "absolute ids, by what t2d does not keep", "native", (pruned(), ODD), wrong("VAL001", "d2t", HALF), says=("ascend without a break",)),
    Case("VAL001", "fractions", "native", (pruned(), table("d2t", "F32", [0.5] + [0.0] * (HALF - 1))), wrong("VAL001", "d2t"), says=("1 entry that is no whole number", "draft id 0")),
    Case("VAL001", "not a number", "native", (pruned(), table("d2t", "F32", [float("nan"), float("inf")] + [0.0] * (HALF - 2))), wrong("VAL001", "d2t", 2), says=("2 entries",)),
    Case("VAL001", "offsets", "native", (pruned(),)),
    Case("VAL001", "offsets as floats", "native", (pruned(), table("d2t", "F32", [float(i) for i in range(HALF)]))),
    # VAL002: the two tables
    Case("VAL002", "of another draft", "native", (pruned(d2t=THIRDS), ODD), (Told("VAL002", "warning", "silent", "d2t", APART),), says=("t2d keeps 128", f"{APART} ids")),
    Case("VAL002", "a mask of integers", "native", (pruned(d2t=THIRDS), table("t2d", "I64", [i % 2 for i in range(ROWS)])), (Told("VAL002", "warning", "silent", "d2t", APART),), says=(f"{APART} ids",)),
    Case("VAL002", "no mask", "native", (pruned(), table("t2d", "I64", [3] * ROWS)), (Told("VAL002", "info", "advice", "t2d", ROWS),), says=("other than 0 and 1",)),
    Case("VAL002", "of another target", "native", (pruned(), table("t2d", "BOOL", [i % 2 == 0 and i < ROWS for i in range(ROWS + 64)])), (Told("VAL002", "warning", "silent", "t2d"),), says=("320 entries", "vocabulary is 256")),
    Case("VAL002", "out of order", "native", (pruned(d2t=[1, -1, *range(2, HALF)]),), (Told("VAL002", "info", "advice", "d2t"),), says=("1 time ", "draft id 1")),
    Case("VAL002", "all zero", "native", (pruned(d2t=[0] * HALF),), (Told("VAL002", "info", "advice", "d2t"),), says=("all zero", "128")),
    Case("VAL002", "of one mapping", "native", (pruned(), EVEN)),
    # VAL003: numbers that are none
    Case("VAL003", "NaN in a norm", "native", (table("norm.weight", "BF16", [NAN] * HIDDEN),), wrong("VAL003", "norm.weight"), says=("norm.weight", "NaN")),
    Case("VAL003", "infinity in a bias", "speculators", (table("confidence_head.proj.bias", "BF16", [INFINITY]),), wrong("VAL003", "confidence_head.proj.bias"), says=("confidence_head.proj.bias",)),
    Case("VAL003", "NaN in F32", "dflash", (table("hidden_norm.weight", "F32", [1.0, float("nan")] * (HIDDEN // 2)),), wrong("VAL003", "hidden_norm.weight"), vllm="0.24.0", says=("hidden_norm.weight",)),
    Case("VAL003", "one NaN in a norm of every layer", "native", tuple(table(f"layers.{i}.input_layernorm.weight", "BF16", [NAN] + [ONE] * (HIDDEN - 1)) for i in range(2)), wrong("VAL003", "layers.0.input_layernorm.weight", 2), says=("layers.0.input_layernorm.weight and layers.1",)),
    Case("VAL003", "in a bias that is dropped", "speculators", (table("confidence_head.proj.bias", "BF16", [NAN]),), (DROPPED,), vllm="0.27.0"),
    Case("VAL003", "ones", "native", (table("norm.weight", "BF16", [ONE] * HIDDEN),)),
    # VAL007: one module, different scales
    Case("VAL007", "half of its neighbours'", NVFP4, (scaled(q=0.5, k=1.0, v=1.0),), apart(), says=("by a factor of 2", "qkv_proj takes one", "too large")),
    Case("VAL007", "two modules, the worst first", NVFP4, (scaled(q=1.0, k=1.0, v=0.5), scaled(1, q=8.0, k=1.0, v=1.0)), apart("layers.1.self_attn.k_proj", 2), says=("by a factor of 8", "and 1 module more"), vllm="0.33.0"),
    Case("VAL007", "a rounding", NVFP4, (scaled(q=1.0, k=1.001, v=1.0),), (UNMATCHED,)),
    Case("VAL007", "one for all", NVFP4, (scaled(q=0.25, k=0.25, v=0.25),), (UNMATCHED,)),
    Case("VAL007", "a scale that is none", NVFP4, (scaled(q=0.0, k=1.0, v=1.0),), (*wrong("VAL006", "layers.0.self_attn.q_proj.weight_scale_2"), UNMATCHED)),
    Case("VAL007", "FP8 is quantized again", "quant.dflash.fp8.both", (table("layers.0.self_attn.q_proj.weight_scale", "F32", [0.5]),), (UNMATCHED,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_values(case: Case) -> None:
    """A table or a norm that holds what it must not is one finding with the first entry that shows it."""
    check(case)
