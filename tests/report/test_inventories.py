"""From compared tensors to the rows of the picture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.report.inventories import (
    OUTSIDE,
    Cell,
    CellState,
    Inventory,
    InventoryRow,
    by_layer,
    from_inventory,
)


def compared(found: dict[str, list[int]], **more: Any) -> Any:
    """A comparison as the engine leaves it."""
    empty: dict[str, Any] = {"expected": {}, "missing": [], "mismatches": [], "strays": [], "fused_found": ()}
    return SimpleNamespace(
        disk_of={name: f"disk.{name}" for name in found},
        tensors={f"disk.{name}": ("model.safetensors", {"shape": shape}) for name, shape in found.items()},
        **{**empty, **more},
    )


def expected(name: str, shape: tuple[Any, ...] | None) -> Any:
    """A tensor that the loader has a place for."""
    return SimpleNamespace(name=name, shape=shape)


def stray(name: str, **clause: Any) -> Any:
    """A tensor without a place."""
    return SimpleNamespace(canonical=name, clause=clause)


def test_states() -> None:
    """Every tensor has the state that the comparison gave it, names as the loader knows them."""
    places = {
        name: expected(name, shape)
        for name, shape in (
            ("fc.weight", (8, UNKNOWN)),
            ("layers.0.q.weight", (4, 8)),
            ("layers.1.q.weight", (4, 8)),
            ("optional.bias", (4,)),
        )
    }
    found = {"fc.weight": [8, 16], "layers.0.q.weight": [2, 8], "d2t": [5], "t2d": [6], "new": [7], "qkv": [9], "x": []}
    inventory = from_inventory(
        compared(
            found,
            expected=places,
            missing=[places["layers.1.q.weight"]],
            mismatches=[SimpleNamespace(expected=places["layers.0.q.weight"])],
            fused_found=("qkv",),
            strays=[
                stray("d2t", effect="refused"),
                stray("t2d", then="ignored"),
                stray("new"),
                stray("x", effect="silent"),
            ],
        )
    )

    assert inventory == Inventory(
        (
            InventoryRow(
                OUTSIDE,
                (
                    Cell("fc.weight", "ok", (8, None), (8, 16)),
                    Cell("qkv", "ok", None, (9,)),
                    Cell("d2t", "unexpected", None, (5,)),
                    Cell("t2d", "unused", None, (6,)),
                    Cell("new", "unexpected", None, (7,)),
                    Cell("x", "unused", None, ()),
                ),
            ),
            InventoryRow("layer 0", (Cell("q.weight", "wrong-shape", (4, 8), (2, 8)),)),
            InventoryRow("layer 1", (Cell("q.weight", "missing", (4, 8), None),)),
        )
    )


def test_what_nothing_speaks_of_is_unused() -> None:
    """A tensor that is neither expected nor a stray is drawn too."""
    assert from_inventory(compared({"a.weight": [1]})).rows[0].cells == (Cell("a.weight", "unused", None, (1,)),)


@pytest.mark.parametrize(
    ("name", "label", "suffix"),
    [
        ("fc.weight", OUTSIDE, "fc.weight"),
        ("layers.3.mlp.up_proj.weight", "layer 3", "mlp.up_proj.weight"),
        ("model.layers.36.self_attn.q_proj.weight", "layer 36", "self_attn.q_proj.weight"),
        ("layers.0.mlp.experts.17.up.weight", "layer 0", "mlp.experts.{n}.up.weight"),
        ("mtp.0.weight", OUTSIDE, "mtp.0.weight"),
    ],
)
def test_by_layer(name: str, label: str, suffix: str) -> None:
    """A tensor belongs to the layer in its name; experts are counted as one."""
    assert by_layer([(name, Cell(name, "ok"))]) == [InventoryRow(label, (Cell(suffix, "ok"),))]


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (("ok", "ok"), "ok"),
        (("ok", "unused", "missing"), "missing"),
        (("unexpected", "wrong-shape"), "wrong-shape"),
        (("unused", "unexpected"), "unexpected"),
    ],
)
def test_experts_show_the_worst(states: tuple[CellState, ...], shown: CellState) -> None:
    """Experts share a cell, which shows the worst of them."""
    cells = [(f"layers.0.experts.{i}.w", Cell(f"e{i}", state)) for i, state in enumerate(states)]
    (row,) = by_layer(cells)

    assert [cell.state for cell in row.cells] == [shown]


def test_layers_are_in_order() -> None:
    """Layers come by their numbers, what stands outside them first."""
    names = ["layers.10.w", "layers.9.w", "norm.w", "layers.0.w"]

    assert [row.label for row in by_layer([(name, Cell(name, "ok")) for name in names])] == [
        OUTSIDE,
        "layer 0",
        "layer 9",
        "layer 10",
    ]
