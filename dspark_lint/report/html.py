"""One page that stands by itself: verdict, matrix, findings with what they point at, and a picture of the tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.report import picture
from dspark_lint.report.escape import name, safe, sentence
from dspark_lint.report.lines import Lines
from dspark_lint.report.markdown import headline
from dspark_lint.report.matrix import cell
from dspark_lint.report.merge import all_releases, counted, grouped, merge, ranges, runtime_name, tally, unjudged
from dspark_lint.report.places import subject
from dspark_lint.report.snippet import snippet
from dspark_lint.report.style import CSS


if TYPE_CHECKING:
    from collections.abc import Iterable

    from dspark_lint.finding import CheckpointReport, Report, Result
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.inventories import Inventory
    from dspark_lint.report.merge import Merged


#: So many findings of a checkpoint stand open; the others open with a click.
OPEN = 25
_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class HtmlReporter:
    """No script, nothing fetched: the page can be kept beside a build and mailed."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the page."""
        said = headline(report)
        results = [r for c in report.checkpoints for r in c.results]
        checked = counted(len({rule for r in results for rule in r.checked}), "rule")
        out = [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>dspark-lint: {_html(said)}</title>",
            f"<style>{CSS}</style>",
            "</head>",
            "<body>",
            "<header>",
            "<h1>dspark-lint</h1>",
            f'<p class="verdict {worst(results)}">{_html(said)}</p>',
            f'<p class="muted">dspark-lint {_html(report.tool_version)} · {checked} checked</p>',
            "</header>",
            "<main>",
        ]
        if results:
            out += _matrix(report)
        for i, checkpoint in enumerate(report.checkpoints):
            out += _checkpoint(checkpoint, i, options)
        out += _rules(results, options)
        out += ["</main>", "</body>", "</html>"]
        return "\n".join(out) + "\n"


def worst(results: Iterable[Result]) -> str:
    """Return the highest verdict of several."""
    verdicts = {r.verdict for r in results}
    return next((v for v in ("error", "warning", "ok") if v in verdicts), "unchecked")


def _html(text: str) -> str:
    return safe(text).translate(_ESCAPES)


def _code(text: str) -> str:
    return f"<code>{name(text).translate(_ESCAPES)}</code>"


def _said(text: str) -> str:
    return sentence(text).translate(_ESCAPES)


def _matrix(report: Report) -> list[str]:
    releases = all_releases(report)
    runtimes = ", ".join(dict.fromkeys(runtime_name(r.runtime) for c in report.checkpoints for r in c.results))
    out = [
        '<section aria-label="Releases">',
        '<div class="scroll" role="region" tabindex="0" aria-label="What each release makes of each checkpoint">',
        f'<table><thead><tr><th scope="col">{_html(runtimes)}</th>',
        *(f'<th scope="col">{_html(release)}</th>' for release in releases),
        "</tr></thead><tbody>",
    ]
    for i, checkpoint in enumerate(report.checkpoints):
        by_release = {r.release: r for r in checkpoint.results}
        out.append(f'<tr><th scope="row"><a href="#c{i}">{_code(checkpoint.path)}</a></th>')
        for release in releases:
            result = by_release.get(release)
            out.append(f'<td class="{result.verdict if result else "none"}">{cell(result)}</td>')
        out.append("</tr>")
    return [*out, "</tbody></table></div></section>"]


def _checkpoint(checkpoint: CheckpointReport, number: int, options: RenderOptions) -> list[str]:
    order = [r.release for r in checkpoint.results]
    facts = [
        _code(checkpoint.architecture) if checkpoint.architecture else "no architecture",
        _html(checkpoint.dialect or "no dialect"),
        counted(checkpoint.tensors, "tensor"),
        *dict.fromkeys(f"method {_html(r.method)}" for r in checkpoint.results if r.method),
    ]
    merged = merge(checkpoint.results)
    verdict = worst(checkpoint.results)
    said = tally(one.finding for one in merged) or ("not checked" if verdict == "unchecked" else "no findings")
    out = [
        f'<section id="c{number}">',
        f"<h2>{_code(checkpoint.path)}</h2>",
        f'<p><span class="badge {verdict}">{said}</span></p>',
        f'<ul class="facts">{"".join(f"<li>{fact}</li>" for fact in facts)}</ul>',
    ]
    notes = dict.fromkeys(note for r in checkpoint.results for note in r.notes)
    blind = unjudged(checkpoint)
    if blind is not None:
        out.append(f'<p><span class="badge unchecked">unchecked</span> {_said(blind)}</p>')
    if notes:
        out.append(f'<ul class="notes">{"".join(f"<li>{_said(note)}</li>" for note in notes)}</ul>')
    if merged:
        out.append("<h3>Findings</h3>")
    lines = Lines(checkpoint)
    for i, one in enumerate(merged):
        out += _finding(one, lines, order, options, opened=i < OPEN)
    out += _inventory(checkpoint, number, options)
    out += _unchecked(checkpoint)
    out.append("</section>")
    return out


def _finding(one: Merged, lines: Lines, order: list[str], options: RenderOptions, *, opened: bool) -> list[str]:
    found = one.finding
    place = lines.of(found)
    info = options.rules.get(found.rule)
    file = found.file + (f":{place.line}" if place.line else "") if found.file else ""
    where = [f'<span class="where">{_code(part)}</span>' for part in (file, subject(found)) if part]
    if found.count > 1:
        where.append(f'<span class="title">in {found.count} places ·</span>')
    scope = f'<span class="title">{_html(runtime_name(one.runtime))} {ranges(one.releases, order)}</span>'
    rule = f'<span class="rule">{_html(found.rule)}</span>'
    if info is not None:
        rule = f'<a class="rule" href="#{_html(found.rule)}" title="{_html(info.title)}">{_html(found.rule)}</a>'
    out = [
        f'<details class="finding {found.severity}"{" open" if opened else ""}>',
        "<summary>",
        " ".join(
            (f'<span class="badge {found.severity}">{found.severity} · {found.effect}</span>', rule, *where, scope)
        ),
        "</summary>",
        f'<p class="message">{_said(found.message)}</p>',
    ]
    rows = snippet(lines, found.file, place) if found.file else ()
    if rows:
        shown = "".join(
            f'<span class="row{" meant" if row.meant else ""}"><i>{row.number}</i>{row.text.translate(_ESCAPES)}</span>'
            for row in rows
        )
        label = f"{_html(name(found.file or ''))} from line {rows[0].number}"
        out.append(f'<pre tabindex="0" role="region" aria-label="{label}">{shown}</pre>')
    elif found.tensor:
        parts = [_code(found.tensor), *(f"{k} {_code(v)}" for k, v in _pair(found.expected, found.found))]
        out.append(f'<div class="tensor">{"".join(f"<span>{part}</span>" for part in parts)}</div>')
    facts = [] if found.tensor and not rows else _pair(found.expected, found.found)
    facts += [(label, value) for label, value in (("fix", found.fix), ("source", one.source)) if value is not None]
    if facts:
        out.append(f"<dl>{''.join(f'<dt>{label}</dt><dd>{_said(value)}</dd>' for label, value in facts)}</dl>")
    return [*out, "</details>"]


def _pair(expected: str | None, found: str | None) -> list[tuple[str, str]]:
    return [(label, value) for label, value in (("expected", expected), ("found", found)) if value is not None]


def _inventory(checkpoint: CheckpointReport, number: int, options: RenderOptions) -> list[str]:
    """Draw each different inventory once, the newest release's first.

    Not where a finding keeps the rules on tensors quiet: what another model expects would be drawn, and mislead.
    """
    order = [r.release for r in checkpoint.results]
    moot = {r.release for r in checkpoint.results if "TEN001" in dict(r.covers)}
    drawn: dict[Inventory, list[str]] = {}
    for release in reversed(order):
        inventory = (options.inventories or {}).get((checkpoint.path, release))
        if inventory is not None and inventory.rows and release not in moot:
            drawn.setdefault(inventory, []).append(release)
    if not drawn:
        return []
    out = ["<h3>Tensors, expected against found</h3>"]
    for i, (inventory, releases) in enumerate(drawn.items()):
        states = tuple({c.state for row in inventory.rows for c in row.cells})
        head = f"{ranges(releases, order)}: {picture.sentence(inventory)}"
        out += [
            f"<details{' open' if i == 0 else ''}>",
            f"<summary>{_html(head)}</summary>",
            picture.key(states),
            picture.picture(inventory, f"{number}-{i}"),
            "</details>",
        ]
    return out


def _rules(results: Iterable[Result], options: RenderOptions) -> list[str]:
    """Say of every rule that fired, once, why it exists and what to do."""
    fired = {f.rule for r in results for f in r.findings}
    out: list[str] = []
    for rule in options.rules.values():
        if rule.id in fired:
            link = f'<a href="{_html(rule.url)}">{_html(rule.id)}</a>' if rule.url else _html(rule.id)
            out.append(f'<h3 id="{_html(rule.id)}">{link} {_html(rule.title)}</h3>')
            out += [f"<p>{_said(part)}</p>" for part in (rule.rationale, rule.remedy) if part]
    return ["<section>", "<h2>The rules behind the findings</h2>", *out, "</section>"] if out else []


def _unchecked(checkpoint: CheckpointReport) -> list[str]:
    reasons = grouped(checkpoint.results)
    if not reasons:
        return []
    rows = "".join(
        f"<dt>{', '.join(_code(what) for what in whats)}</dt><dd>{_said(why)}</dd>" for why, whats in reasons.items()
    )
    number = len({what for whats in reasons.values() for what in whats})
    return [f"<details><summary>{counted(number, 'check')} not made</summary><dl>{rows}</dl></details>"]
