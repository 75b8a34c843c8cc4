"""Markdown for comments on pull requests and for step summaries: nothing in it is interpreted but what we write."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING

from dspark_lint.report.escape import clip, name, sentence
from dspark_lint.report.lines import Lines
from dspark_lint.report.matrix import cell
from dspark_lint.report.merge import all_releases, counted, grouped, merge, ranges, runtime_name, tally, unjudged
from dspark_lint.report.places import subject


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Report
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.merge import Merged


#: A comment holds 65,536 characters, a step summary a mebibyte; findings beyond are counted.
COMMENT = 60_000
#: So many names of what was not checked are listed for a reason.
NAMED = 6
_SIGNS = {"error": "❌", "warning": "⚠️", "info": "ℹ️", "ok": "✅", "unchecked": "❔"}  # noqa: RUF001 - a sign
_ENTITIES = {ord(char): f"&#{ord(char)};" for char in "`|*[]\\~$"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
_OUTER_UNDERSCORE = re.compile(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
#: What sites turn into links by themselves: people, issues, addresses, emoji; a comment in the middle stops them.
_LINKED = re.compile(r"@|#(?=\d)|(?<=:)//|(?<=[Ww])\.|:(?=[\w+-]+:)|(?<=GH)-(?=\d)")
_APART = "<!-- -->"


def text(value: str, *, limit: int = 2000) -> str:
    """Return a text as Markdown that shows exactly it, on one line, in a table cell too."""
    # a NUL marks the places where a comment goes: `sentence` has left none
    shown = _LINKED.sub(lambda match: match.group() + "\0", sentence(value, limit)).translate(_ENTITIES)
    return _OUTER_UNDERSCORE.sub("&#95;", shown).replace("\0", _APART)


def code(value: str) -> str:
    """Return a name as code."""
    shown = name(value)
    if not shown:
        return ""
    if "`" in shown or "|" in shown or shown != shown.strip():
        return f"<code>{text(value)}</code>"
    return f"`{shown}`"


class MarkdownReporter:
    """A heading that says the verdict, the matrix of several releases, a table a checkpoint."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the text, short enough for one comment."""
        return document(report, options, COMMENT)


def document(report: Report, options: RenderOptions, most: int) -> str:
    """Return the report in at most about `most` characters; what was left out is counted."""
    out = [f"### dspark-lint: {headline(report)}", ""]
    several = len(all_releases(report)) > 1
    if several or len(report.checkpoints) > 1:
        out += _limited(_matrix(report), 4, most // 3, "checkpoint")
    left = most - sum(map(len, out))
    findings = unopened = 0
    for checkpoint in report.checkpoints:
        lines, omitted = _checkpoint(checkpoint, options, left)
        size = sum(len(line) + 1 for line in lines)
        findings += omitted
        if size > left:
            unopened += 1
            continue
        left -= size
        out += lines
    if findings or unopened:
        more = ((unopened, "more checkpoint"), (findings, "more finding"))
        out += [f"*{' and '.join(counted(number, noun) for number, noun in more if number)} not shown here.*", ""]
    return "\n".join(out).rstrip("\n") + "\n"


def headline(report: Report) -> str:
    """Return the verdict over everything: ``2 errors, 1 warning in 3 checkpoints under 4 releases``."""
    results = [r for c in report.checkpoints for r in c.results]
    said = tally(one.finding for c in report.checkpoints for one in merge(c.results))
    if not said:
        said = "no findings" if any(r.verdict != "unchecked" for r in results) else "nothing was checked"
    releases = all_releases(report)
    scope = f" under {len(releases)} releases" if len(releases) > 1 else ""
    return f"{said} in {counted(len(report.checkpoints), 'checkpoint')}{scope}"


def _matrix(report: Report) -> list[str]:
    releases = all_releases(report)
    lines = [f"| checkpoint | {' | '.join(releases)} |", "|---" * (len(releases) + 1) + "|"]
    for checkpoint in report.checkpoints:
        by_release = {r.release: r for r in checkpoint.results}
        shown = (by_release.get(release) for release in releases)
        cells = " | ".join(f"{_SIGNS[r.verdict]} {cell(r)}" if r else "" for r in shown)
        lines.append(f"| {code(clip(checkpoint.path))} | {cells} |")
    return [*lines, ""]


def _limited(lines: list[str], least: int, most: int, noun: str) -> list[str]:
    """Cut the rows of a table that is too long."""
    size = 0
    for i, line in enumerate(lines):
        size += len(line) + 1
        if size > most and i >= least:
            return [*lines[:i], "", f"*{counted(len(lines) - 1 - i, f'more {noun}')} not shown here.*", ""]
    return lines


def _checkpoint(checkpoint: CheckpointReport, options: RenderOptions, room: int) -> tuple[list[str], int]:
    """Return the lines of one checkpoint and how many of its findings found no room."""
    releases = [r.release for r in checkpoint.results]
    runtimes = dict.fromkeys(runtime_name(r.runtime) for r in checkpoint.results)
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}" if releases else "no release"
    facts = (
        code(checkpoint.architecture) if checkpoint.architecture else "no architecture",
        checkpoint.dialect or "no dialect",
        counted(checkpoint.tensors, "tensor"),
        " ".join((*runtimes, span)),
    )
    lines = [f"#### {code(checkpoint.path)}", "", " · ".join(facts), ""]
    notes = dict.fromkeys(note for r in checkpoint.results for note in r.notes)
    lines += [f"- {text(note)}" for note in notes]
    lines += _unjudged(checkpoint)
    if lines[-1]:
        lines.append("")
    merged = merge(checkpoint.results)
    if not merged:
        return lines, 0
    places = Lines(checkpoint)
    head = ["", "rule", "where", *(["releases"] if len(releases) > 1 else []), "what"]
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    room -= sum(len(line) + 1 for line in lines)
    shown = 0
    for one in merged:
        row = _row(one, places, releases, options)
        room -= len(row) + 1
        if room < 0:
            break
        lines.append(row)
        shown += 1
    if not shown:
        del lines[-2:]
    return [*lines, ""], len(merged) - shown


def _row(one: Merged, places: Lines, releases: list[str], options: RenderOptions) -> str:
    found = one.finding
    line, _ = places.of(found)
    where = [code(found.file + (f":{line}" if line else "")) if found.file else "", code(subject(found))]
    if found.count > 1:
        where.append(f"×{found.count}")  # noqa: RUF001 - a multiplication sign
    what = [text(found.message)]
    if not options.quiet:
        for label, value in (("expected", found.expected), ("found", found.found), ("fix", found.fix)):
            if value is not None:
                what.append(f"<b>{label}</b> {text(value)}")
        if one.source:
            what.append(f"<sub>{text(one.source)}</sub>")
    rule = found.rule
    info = options.rules.get(rule)
    if info is not None and info.url:
        rule = f"[{rule}]({info.url})"
    cells = [
        f"{_SIGNS[found.severity]} {found.severity}",
        rule,
        " ".join(part for part in where if part),
        *([ranges(one.releases, releases)] if len(releases) > 1 else []),
        "<br>".join(what),
    ]
    return f"| {' | '.join(cells)} |"


def _unjudged(checkpoint: CheckpointReport) -> list[str]:
    """Say where nothing was judged, and count what else was not checked."""
    blind = unjudged(checkpoint)
    lines = [f"- {_SIGNS['unchecked']} {text(blind)}"] if blind is not None else []
    reasons = grouped(r for r in checkpoint.results if r.verdict != "unchecked")
    for why, whats in reasons.items():
        some = ", ".join(code(what) for what in list(whats)[:NAMED])
        more = f" and {len(whats) - NAMED} more" if len(whats) > NAMED else ""
        lines.append(f"- not checked ({text(why)}): {some}{more}")
    return lines
