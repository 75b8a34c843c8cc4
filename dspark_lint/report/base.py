"""What every reporter shares: its options and the protocol itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol


if TYPE_CHECKING:
    import os

    from collections.abc import Mapping

    from dspark_lint.finding import Report
    from dspark_lint.report.inventories import Inventory


class RuleInfo(NamedTuple):
    """What reporters need to know of a rule."""

    id: str
    title: str
    rationale: str
    remedy: str
    default_severity: str
    url: str | None = None


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
