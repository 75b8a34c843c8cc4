"""VAL: what the small tensors hold."""

# ruff: noqa: E501 - a line of a table reads best whole; the remarks name the rules
from __future__ import annotations

import pytest

from rules.build import HIDDEN, ROWS, Case, Told, check, pruned, table


HALF = ROWS // 2
NAN, INFINITY, ONE = 0x7FC0, 0x7F80, 0x3F80
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)


def wrong(rule: str, where: str, count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "silent", where, count),)


EVEN = table("t2d", "BOOL", [i % 2 == 0 for i in range(ROWS)])
FIRST = table("t2d", "BOOL", [i < HALF for i in range(ROWS)])

CASES = [
    # VAL001: the mapping's range
    Case("VAL001", "absolute ids", "native", (pruned(d2t=[2 * i for i in range(HALF)]),), wrong("VAL001", "d2t", 42), says=("42 draft ids", "absolute"), fix="store offsets"),
    Case("VAL001", "absolute ids, speculators", "speculators", (pruned(d2t=[2 * i for i in range(HALF)]),), (*wrong("VAL001", "d2t", 42), DROPPED), vllm="0.27.0", says=("absolute",)),
    Case("VAL001", "below zero", "native", (pruned(d2t=[-5] + [0] * (HALF - 1)),), wrong("VAL001", "d2t"), says=("1 draft id", "draft id 0 to -5")),
    Case("VAL001", "two to one", "native", (pruned(d2t=[0] * (HALF - 1) + [-1]),), wrong("VAL001", "d2t"), says=("126 and 127 both to 126",)),
    Case("VAL001", "offsets", "native", (pruned(),)),
    # VAL002: the two tables
    Case("VAL002", "of another draft", "native", (pruned(), FIRST), (Told("VAL002", "warning", "silent", "d2t", HALF),), says=("t2d keeps 128", "128 ids")),
    Case("VAL002", "all zero", "native", (pruned(d2t=[0] * HALF),), (Told("VAL002", "info", "advice", "d2t"),), says=("all zero", "128")),
    Case("VAL002", "of one mapping", "native", (pruned(), EVEN)),
    # VAL003: numbers that are none
    Case("VAL003", "NaN in a norm", "native", (table("norm.weight", "BF16", [NAN] * HIDDEN),), wrong("VAL003", "norm.weight"), says=("norm.weight", "NaN")),
    Case("VAL003", "infinity in a bias", "speculators", (table("confidence_head.proj.bias", "BF16", [INFINITY]),), wrong("VAL003", "confidence_head.proj.bias"), says=("confidence_head.proj.bias",)),
    Case("VAL003", "NaN in F32", "dflash", (table("hidden_norm.weight", "F32", [1.0, float("nan")] * (HIDDEN // 2)),), wrong("VAL003", "hidden_norm.weight"), vllm="0.24.0", says=("hidden_norm.weight",)),
    Case("VAL003", "one NaN in a norm of every layer", "native", tuple(table(f"layers.{i}.input_layernorm.weight", "BF16", [NAN] + [ONE] * (HIDDEN - 1)) for i in range(2)), wrong("VAL003", "layers.0.input_layernorm.weight", 2), says=("2 tensors",)),
    Case("VAL003", "ones", "native", (table("norm.weight", "BF16", [ONE] * HIDDEN),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_values(case: Case) -> None:
    """A table or a norm that holds what it must not is one finding with the first entry that shows it."""
    check(case)
