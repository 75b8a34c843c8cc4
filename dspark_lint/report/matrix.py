"""Which release takes which checkpoint: one row a checkpoint, one column a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.report.color import styled
from dspark_lint.report.escape import safe
from dspark_lint.report.layout import cells, padded
from dspark_lint.report.merge import all_releases, counted


if TYPE_CHECKING:
    from dspark_lint.finding import Report, Result
    from dspark_lint.report.base import RenderOptions


#: Cells of a path; a narrow terminal leaves it less.
_PATH = 60
_GAP = "  "


def cell(result: Result | None) -> str:
    """Return what one release makes of one checkpoint: ``ok``, ``2 errors``, ``1 warning``, ``unchecked``."""
    if result is None:
        return "-"
    verdict = result.verdict
    if verdict in ("ok", "unchecked"):
        return verdict
    return counted(sum(f.severity == verdict for f in result.findings), verdict)


def matrix(report: Report, options: RenderOptions) -> list[str]:
    """Return the lines of the table, in several bands when the releases do not fit beside each other."""
    releases = all_releases(report)
    rows = [{r.release: r for r in c.results} for c in report.checkpoints]
    widths = [max(len(release), *(len(cell(row.get(release))) for row in rows)) for release in releases]
    room = _PATH if options.width is None else max(16, min(_PATH, options.width // 3))
    # of a path the end tells, and here the paths stand below each other
    paths = [safe(c.path if len(c.path) <= room else "…" + c.path[1 - room :]) for c in report.checkpoints]
    first = max(map(cells, paths))
    lines: list[str] = []
    for band in _bands(widths, None if options.width is None else options.width - first):
        if lines:
            lines.append("")
        heads = _GAP.join(padded(releases[i], widths[i]) for i in band)
        lines.append((padded("", first) + _GAP + heads).rstrip())
        for path, row in zip(paths, rows, strict=True):
            shown = [_cell(row.get(releases[i]), widths[i] if i != band[-1] else 0, options) for i in band]
            lines.append(padded(path, first) + _GAP + _GAP.join(shown))
    return lines


def _cell(result: Result | None, width: int, options: RenderOptions) -> str:
    text = cell(result)
    style = result.verdict if result is not None else "dim"
    return styled(text, style, color=options.color) + " " * (width - len(text))


def _bands(widths: list[int], room: int | None) -> list[list[int]]:
    """Cut the columns into bands that fit; a band has at least one."""
    bands: list[list[int]] = [[]]
    used = 0
    for i, width in enumerate(widths):
        need = width + len(_GAP)
        if room is not None and bands[-1] and used + need > room:
            bands.append([])
            used = 0
        bands[-1].append(i)
        used += need
    return bands
