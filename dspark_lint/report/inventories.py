"""The tensors of a checkpoint, expected against found, by layer: the data of the picture, and where it comes from."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any, Literal, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dspark_lint.inventory import Inventory as Compared


CellState = Literal["ok", "missing", "unexpected", "wrong-shape", "unused"]

OUTSIDE = "outside the layers"
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
#: Worst first: of the experts that share a cell the worst is shown.
_ORDER: tuple[CellState, ...] = ("missing", "wrong-shape", "unexpected", "unused", "ok")


class Cell(NamedTuple):
    """One tensor of the inventory: expected, found, or both."""

    suffix: str
    """The tensor's name without what its row has in common: ``self_attn.q_proj.weight``."""
    state: CellState
    expected: tuple[int | None, ...] | None = None
    """Expected shape, None in an axis whose size is not known; None when nothing is expected here."""
    found: tuple[int, ...] | None = None
    """Shape in the file; None when the tensor is not there."""


class InventoryRow(NamedTuple):
    """The tensors of one layer, or of what stands outside the layers."""

    label: str
    cells: tuple[Cell, ...]


class Inventory(NamedTuple):
    """Expected tensors against found ones, by layer, for the picture in the page."""

    rows: tuple[InventoryRow, ...]


def from_inventory(compared: Compared) -> Inventory:
    """Return the picture's rows for the tensors of one checkpoint under one release.

    A tensor that the loader throws away on purpose is `unused`; one that it cannot place is `unexpected`.
    """
    found = {canonical: compared.tensors[disk][1]["shape"] for canonical, disk in compared.disk_of.items()}
    wrong = {mismatch.expected.name for mismatch in compared.mismatches}
    missing = {expected.name for expected in compared.missing}
    cells: list[tuple[str, Cell]] = []
    for name, expected in compared.expected.items():
        if name not in found and name not in missing:
            continue  # optional, or its parts come in another form
        state: CellState = "missing" if name in missing else "wrong-shape" if name in wrong else "ok"
        cells.append((name, Cell(name, state, _shape(expected.shape), _found(found.get(name)))))
    placed = {name for name, _ in cells}
    for name in compared.fused_found:
        cells.append((name, Cell(name, "wrong-shape" if name in wrong else "ok", None, _found(found[name]))))
        placed.add(name)
    for stray in compared.strays:
        name, clause = stray.canonical, stray.clause
        state = "unexpected" if clause.get("effect", "then" not in clause and "refused") == "refused" else "unused"
        cells.append((name, Cell(name, state, None, _found(found[name]))))
        placed.add(name)
    cells += [(name, Cell(name, "unused", None, _found(shape))) for name, shape in found.items() if name not in placed]
    return Inventory(tuple(by_layer(cells)))


def by_layer(cells: Iterable[tuple[str, Cell]]) -> list[InventoryRow]:
    """Group cells by the layer in their tensor's name, layers in order, what stands outside them first.

    Numbers behind the layer's own (experts) share one cell, which shows the worst of them.
    """
    layers: dict[int, dict[str, list[Cell]]] = {}
    for name, cell in cells:
        match = _LAYER.search(name)
        layer = int(match.group(1)) if match else -1
        suffix = _NUMBER.sub("{n}", name[match.end() :]) if match else name
        layers.setdefault(layer, {}).setdefault(suffix, []).append(cell)
    return [
        InventoryRow(
            OUTSIDE if layer < 0 else f"layer {layer}",
            tuple(_worst(suffix, group) for suffix, group in layers[layer].items()),
        )
        for layer in sorted(layers)
    ]


def _worst(suffix: str, group: Sequence[Cell]) -> Cell:
    return min(group, key=lambda cell: _ORDER.index(cell.state))._replace(suffix=suffix)


def _shape(shape: Sequence[Any] | None) -> tuple[int | None, ...] | None:
    return None if shape is None else tuple(d if isinstance(d, int) else None for d in shape)


def _found(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if shape is None else tuple(shape)
