"""What every reporter shares: its options, the optional picture of the tensors, and the protocol itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol


if TYPE_CHECKING:
    import os

    from collections.abc import Mapping

    from dspark_lint.finding import Report


CellState = Literal["ok", "missing", "unexpected", "wrong-shape", "unused"]


class RuleInfo(NamedTuple):
    """What reporters need to know of a rule."""

    id: str
    title: str
    rationale: str
    remedy: str
    default_severity: str
    url: str | None = None


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


class RenderOptions(NamedTuple):
    """How to render, decided by the command line."""

    color: bool = False
    width: int | None = None
    """Columns to wrap to; None does not wrap (a pipe)."""
    verbose: int = 0
    quiet: bool = False
    explain: bool = False
    rules: Mapping[str, RuleInfo] = {}
    base_dir: str | os.PathLike[str] = "."
    """Machine formats give paths relative to this directory."""
    inventories: Mapping[tuple[str, str], Inventory] | None = None
    """By (path of the checkpoint as the user named it, release)."""
    environ: Mapping[str, str] = {}
    """The environment, for formats of CI systems; a reporter never looks at the process's own."""


class Reporter(Protocol):
    """Renders a whole report: never decides, never prints, never exits."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the rendered text; it ends with a newline unless it is empty."""
