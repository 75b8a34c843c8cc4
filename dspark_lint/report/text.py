"""Text for people: grouped by checkpoint, most severe first, wrapped to the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.report.color import styled
from dspark_lint.report.escape import name, safe, sentence
from dspark_lint.report.layout import cells, wrap
from dspark_lint.report.lines import Lines
from dspark_lint.report.merge import all_releases, counted, grouped, merge, ranges, runtime_name, tally, unjudged
from dspark_lint.report.places import subject


if TYPE_CHECKING:
    from collections.abc import Iterable

    from dspark_lint.finding import CheckpointReport, Report, Result
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.merge import Merged


#: Where the sentences of a finding begin: behind the severity.
_INDENT = " " * 11
#: Where its place goes on that does not fit behind the rule, and the cells that it needs there.
_PLACED = _INDENT + "  "
_PLACE = 24
#: Room for ``expected``, ``found``, ``fix``, ``source``, ``remedy`` and ``note``.
_LABEL = 10
#: Without -v so many reasons are named for what was not checked.
_REASONS = 2


class TextReporter:
    """The default format."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render a matrix when there are several releases, then every checkpoint, then one line that sums up."""
        lines: list[str] = []
        if not options.quiet and any(len(c.results) > 1 for c in report.checkpoints):
            from dspark_lint.report.matrix import matrix  # noqa: PLC0415 - not for one release

            lines += [*matrix(report, options), ""]
        for checkpoint in report.checkpoints:
            block = _block(checkpoint, options, alone=len(report.checkpoints) == 1)
            lines += [*block, ""] if block else []
        total = _total(report, options)
        if total:
            lines += total
        elif lines:
            lines.pop()  # the blank line that would have led to the total
        return "\n".join(lines) + "\n" if lines else ""


def _block(checkpoint: CheckpointReport, options: RenderOptions, *, alone: bool) -> list[str]:
    """Everything about one checkpoint; nothing when quiet and without findings."""
    merged = merge(checkpoint.results)
    if options.quiet and not merged and all(r.judged for r in checkpoint.results):
        return []
    lines = _head(checkpoint, options)
    if not options.quiet:
        lines += _notes(checkpoint, options)
    releases = [r.release for r in checkpoint.results]
    places = Lines(checkpoint)
    for one in merged:
        shown = ranges(one.releases, releases) if len(releases) > 1 else ""
        if not options.quiet and one is not merged[0]:
            lines.append("")  # a finding is a paragraph
        lines += _finding(one, places, options, shown)
    closing = _unchecked(checkpoint, options)
    if not alone and not options.quiet:
        closing += _verdict(checkpoint, options)
    if closing and merged:
        lines.append("")
    return lines + closing


def _head(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    """``path  architecture  dialect  64 tensors  vLLM 0.32.0``, on two lines when it does not fit on one."""
    path = name(checkpoint.path)
    releases = [r.release for r in checkpoint.results]
    runtimes = dict.fromkeys(runtime_name(r.runtime) for r in checkpoint.results)
    facts = "  ".join(
        (
            name(checkpoint.architecture, 80) if checkpoint.architecture else "no architecture",
            safe(checkpoint.dialect or "no dialect"),
            counted(checkpoint.tensors, "tensor"),
            " ".join((*runtimes, releases[0] if len(releases) == 1 else f"{releases[0]}-{releases[-1]}"))
            if releases
            else "no release",
        )
    )
    shown = styled(path, "bold", color=options.color)
    if options.width is None or cells(path) + cells(facts) + 2 <= options.width:
        return [f"{shown}  {styled(facts, 'dim', color=options.color)}"]
    rest = (styled(line, "dim", color=options.color) for line in wrap(facts, options.width, "  ", "  "))
    return [*(styled(line, "bold", color=options.color) for line in wrap(path, options.width)), *rest]


def _notes(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    releases = [r.release for r in checkpoint.results]
    said: dict[str, list[str]] = {}
    for result in checkpoint.results:
        for note in result.notes:
            said.setdefault(note, []).append(result.release)
    lines: list[str] = []
    for note, where in said.items():
        scope = "" if len(where) == len(releases) else f" (vLLM {ranges(where, releases)})"
        lines += _labelled("note", sentence(note) + scope, options, indent="  ", style="dim")
    return lines


def _finding(one: Merged, places: Lines, options: RenderOptions, releases: str) -> list[str]:
    found = one.finding
    line, column = places.of(found)
    file = (name(found.file) if found.file else "") + (f":{line}:{column}" if line else "")
    where = "  ".join(part for part in (file, name(subject(found))) if part) or (
        "(how it is served)" if found.rule.startswith("ARC") else "(the directory)"
    )
    if found.count > 1:
        where += f"  (x{found.count})"
    if releases:
        where += f"  [{releases}]"
    lead = f"  {found.severity:<8} {safe(found.rule)}  {found.effect:<7}  "
    narrow = options.width is not None and options.width < len(lead) + _PLACE
    first, *more = (
        (lead, *wrap(where, options.width, _PLACED, _PLACED)) if narrow else wrap(where, options.width, lead, _PLACED)
    )
    tag, effect = (
        styled(text, found.severity, color=options.color) for text in (f"{found.severity:<8}", f"{found.effect:<7}")
    )
    rest = styled(first[len(lead) :], "bold", color=options.color)
    lines = [
        f"  {tag} {safe(found.rule)}  {effect}  {rest}".rstrip(),
        *(styled(m, "bold", color=options.color) for m in more),
    ]
    lines += wrap(sentence(found.message), options.width, _INDENT, _INDENT)
    if options.quiet:
        return lines
    for label, value in (("expected", found.expected), ("found", found.found), ("fix", found.fix)):
        if value is not None:
            lines += _labelled(label, sentence(value), options)
    if options.verbose:
        for release, source in one.sources:
            lines += _labelled("source", f"{runtime_name(one.runtime)} {release} {name(source)}", options, style="dim")
    elif one.source:
        lines += _labelled("source", name(one.source), options, style="dim")
    info = options.rules.get(found.rule) if options.explain else None
    if info is not None:
        lines += _labelled("why", f"{info.title}. {info.rationale}", options, style="dim")
        lines += _labelled("remedy", info.remedy, options, style="dim")
    return lines


def _labelled(
    label: str, text: str, options: RenderOptions, *, indent: str = _INDENT, style: str | None = None
) -> list[str]:
    lead = f"{indent}{label:<{_LABEL}}"
    lines = wrap(text, options.width, lead, " " * len(lead))
    return [styled(line, style, color=options.color) for line in lines] if style else lines


def _unchecked(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    """What was not checked and why; quiet keeps only what was not judged at all: it must never read as clean."""
    lines: list[str] = []
    blind = unjudged(checkpoint)
    if blind:
        lines += wrap(sentence(blind, 600), options.width, "  ", "    ")
    reasons = grouped(r for r in checkpoint.results if not r.blind)
    if options.quiet or not reasons:
        return lines
    if options.verbose:
        for why, whats in reasons.items():
            text = f"{', '.join(name(what) for what in whats)}: {sentence(why)}"
            lines += _labelled("unchecked", text, options, indent="  ", style="dim")
        return lines
    number = len({what for whats in reasons.values() for what in whats})
    some = "; ".join(sentence(why) for why in list(reasons)[:_REASONS]) + ("; …" if len(reasons) > _REASONS else "")
    text = f"{counted(number, 'check')} not made, -v lists them: {some}"
    return lines + _labelled("unchecked", text, options, indent="  ", style="dim")


def _verdict(checkpoint: CheckpointReport, options: RenderOptions) -> list[str]:
    worst = _worst(checkpoint.results)
    said = tally(one.finding for one in merge(checkpoint.results)) or ("" if worst == "unchecked" else "no findings")
    facts = f": {said}; {_checked(checkpoint.results)}" if said else ""
    first, *rest = wrap(f"{worst}{facts}", options.width, "  ", "    ")
    return ["  " + styled(worst, worst, color=options.color) + first[2 + len(worst) :], *rest]


def _worst(results: Iterable[Result]) -> str:
    verdicts = {r.verdict for r in results}
    return next((v for v in ("error", "warning", "ok") if v in verdicts), "unchecked")


def _checked(results: Iterable[Result]) -> str:
    return f"{counted(len({rule for r in results for rule in r.checked}), 'rule')} checked"


def _total(report: Report, options: RenderOptions) -> list[str]:
    """The closing line: what was found in how many checkpoints, and how much was looked at."""
    results = [r for c in report.checkpoints for r in c.results]
    said = tally(one.finding for c in report.checkpoints for one in merge(c.results))
    worst = _worst(results)
    if options.quiet and not said and worst == "ok":
        return []
    scope = f"in {counted(len(report.checkpoints), 'checkpoint')}"
    releases = all_releases(report)
    if len(releases) > 1:
        scope += f" under {len(releases)} releases"
    parts = [f"{said or ('nothing was checked' if worst == 'unchecked' else 'no findings')} {scope}"]
    if not options.quiet and worst != "unchecked":
        parts.append(_checked(results))
        blind = sum(r.blind for r in results)
        if blind:
            parts.append(f"{blind} of {counted(len(results), 'result')} unchecked")
    text, *rest = wrap("; ".join(parts), options.width, "", "  ")
    return [styled(text, worst, color=options.color), *rest]
