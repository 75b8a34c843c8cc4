"""Text for people: grouped by checkpoint, most severe first, wrapped to the terminal."""

from __future__ import annotations

import textwrap

from typing import TYPE_CHECKING

from dspark_lint.report.base import (
    Merged,
    RenderOptions,
    counted,
    counts,
    merge_releases,
    place,
    release_ranges,
    safe,
)
from dspark_lint.report.color import styled


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Report, Result


#: Longer names are clipped for people; machine formats give them whole.
NAME = 160
MARGIN = 11


class TextReporter:
    """The default format."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render every checkpoint, then one line that sums up."""
        lines: list[str] = []
        several = any(len(c.results) > 1 for c in report.checkpoints)
        if several and not options.quiet:
            lines += _matrix(report, options)
        for checkpoint in report.checkpoints:
            block = _several(checkpoint, options) if len(checkpoint.results) > 1 else _single(checkpoint, options)
            lines += block
        lines += _summary(report, options)
        return "\n".join(lines) + "\n" if lines else ""


def _head(checkpoint: CheckpointReport, options: RenderOptions, tail: str) -> str:
    name = styled(safe(checkpoint.path, NAME), "bold", color=options.color)
    facts = [safe(checkpoint.architecture or "no architecture", 60), checkpoint.dialect or "unreadable", counted(checkpoint.tensors, "tensor"), tail]
    return f"{name}  " + styled("  ".join(facts), "dim", color=options.color)


def _single(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    result = checkpoint.results[0]
    if options.quiet and not result.findings:
        return []
    lines = [_head(checkpoint, options, f"vLLM {result.release}" + (f"  method {result.method}" if result.method else ""))]
    if not options.quiet:
        lines += [styled(line, "dim", color=options.color) for note in result.notes for line in _wrapped(note, "  note     ", options)]
    for found in result.findings:
        lines += _finding(Merged(found, (result.release,)), options, "")
    lines += _unchecked(result, options)
    lines.append(_verdict(result, options))
    lines.append("")
    return lines


def _verdict(result: Result, options: RenderOptions) -> str:
    number = counts(result.findings)
    said = ", ".join(counted(number[s], s) for s in ("error", "warning", "info") if number[s])
    word = {"ok": "ok", "warning": "warning", "error": "error", "unchecked": "not checked"}[result.verdict]
    tail = f": {said}" if said else ""
    return "  " + styled(word, result.verdict, color=options.color) + f"{tail} ({counted(len(result.checked), 'rule')} checked)"


def _unchecked(result: Result, options: RenderOptions) -> list[str]:
    if options.quiet or not result.unchecked:
        return []
    if options.verbose or not result.judged:
        reasons: dict[str, list[str]] = {}
        for what, why in result.unchecked:
            reasons.setdefault(why, []).append(what)
        rows = [f"{', '.join(whats)}: {why}" for why, whats in reasons.items()]
        return [line for row in rows for line in _wrapped(safe(row, 600), "  unchecked ", options)]
    needs = sorted({why for _, why in result.unchecked})
    return _wrapped(f"{counted(len(result.unchecked), 'check')} not made ({'; '.join(needs[:2])}{'; …' if len(needs) > 2 else ''}); -v lists them", "  ", options)


def _wrapped(text: str, label: str, options: RenderOptions) -> list[str]:
    if options.width is None:
        return [label + text]
    width = max(options.width, 40)
    return textwrap.wrap(text, width=width, initial_indent=label, subsequent_indent=" " * len(label), break_on_hyphens=False) or [label]


def _finding(merged: Merged, options: RenderOptions, releases: str) -> list[str]:
    found = merged.finding
    tag = styled(f"{found.severity:<8}", found.severity, color=options.color)
    where = styled(safe(place(found), NAME), "bold", color=options.color)
    many = f"  (x{found.count})" if found.count > 1 else ""
    lines = [f"  {tag} {found.rule}  {where}{many}" + (f"  [vLLM {releases}]" if releases else "")]
    lines += _wrapped(safe(found.message, 1200), " " * MARGIN, options)
    if options.verbose or options.explain:
        for label, value in (("expected", found.expected), ("found", found.found)):
            if value:
                lines += _wrapped(safe(value, 400), " " * MARGIN + f"{label:<9}", options)
    if found.fix and not options.quiet:
        lines += _wrapped(safe(found.fix, 900), " " * MARGIN + "fix      ", options)
    if found.source and not options.quiet:
        lines.append(styled(" " * MARGIN + f"source   vLLM {merged.releases[-1]} {safe(found.source, NAME)}", "dim", color=options.color))
    if options.explain and found.rule in options.rules:
        info = options.rules[found.rule]
        lines += _wrapped(info.rationale, " " * MARGIN + "why      ", options)
        lines += _wrapped(info.remedy, " " * MARGIN + "remedy   ", options)
    return lines


def _cell(result: Result) -> str:
    number = counts(result.findings)
    if result.verdict == "unchecked":
        return "?"
    if result.verdict == "ok":
        return "ok"
    worst = result.verdict
    return f"{worst} {number[worst]}" if number[worst] > 1 else worst


def _matrix(report: Report, options: RenderOptions) -> list[str]:
    """One row a checkpoint, one column a release."""
    releases = [r.release for r in report.checkpoints[0].results]
    widths = [max(len(r), 9) for r in releases]
    first = max((len(safe(c.path, 60)) for c in report.checkpoints), default=10)
    lines = [" " * first + "  " + "  ".join(f"{r:<{w}}" for r, w in zip(releases, widths, strict=True)).rstrip()]
    for checkpoint in report.checkpoints:
        cells = []
        for result, width in zip(checkpoint.results, widths, strict=False):
            text = _cell(result)
            cells.append(styled(text, result.verdict, color=options.color) + " " * max(0, width - len(text)))
        lines.append(f"{safe(checkpoint.path, 60):<{first}}  " + "  ".join(cells).rstrip())
    return [*lines, ""]


def _several(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    merged = merge_releases(checkpoint.results)
    if options.quiet and not merged:
        return []
    releases = [r.release for r in checkpoint.results]
    lines = [_head(checkpoint, options, f"vLLM {releases[0]} to {releases[-1]}")]
    for one in merged:
        lines += _finding(one, options, release_ranges(one.releases, releases))
    blind = [r.release for r in checkpoint.results if not r.judged]
    if blind and not options.quiet:
        lines += _wrapped(f"nothing was judged under vLLM {release_ranges(blind, releases)}", "  ", options)
    lines.append("")
    return lines


def _summary(report: Report, options: RenderOptions) -> list[str]:
    findings = [m.finding for c in report.checkpoints for m in merge_releases(c.results)]
    number = counts(findings)
    if options.quiet and not findings:
        return []
    if len(report.checkpoints) == 1 and len(report.checkpoints[0].results) == 1:
        return []
    said = ", ".join(counted(number[s], s) for s in ("error", "warning", "info") if number[s]) or "nothing found"
    return [f"{said} in {counted(len(report.checkpoints), 'checkpoint')}"]
