"""``explain`` and ``rules``: the registry for people and for programs."""

from __future__ import annotations

import json
import textwrap

import click

from dspark_lint.cli import completed
from dspark_lint.contract.load import shipped_releases
from dspark_lint.errors import UsageError
from dspark_lint.report.merge import ranges
from dspark_lint.ruledocs import by_file, example_of, rests_on
from dspark_lint.rules import REGISTRY, Rule


def explain_text(rule: Rule) -> str:
    """Return the page of one rule as plain text."""

    def block(label: str, text: str) -> str:
        return f"{label}\n{textwrap.fill(text, 92, initial_indent='  ', subsequent_indent='  ')}\n"

    parts = [
        f"{rule.id}  {rule.title}\n",
        f"default severity {rule.severity}, effect {rule.effect}\n",
        block("Why", rule.rationale),
        block("What to do", rule.remedy),
    ]
    parts += [block("Fires on", rule.fires), block("Quiet on", rule.quiet)]
    shown = example_of(rule.id)
    parts.append(f"From a draft that is quiet to one that fires it\n{textwrap.indent(shown['difference'], '  ')}\n")
    parts.append(f"What is told\n{textwrap.indent(shown['words'], '  ')}\n")
    rests = rests_on(rule.id)
    parts.append(
        f"Code it rests on, in vLLM {rests.releases[-1]}\n" + "".join(map(_lines, by_file(rests.lines).items()))
    )
    parts.append(f"Releases\n  {ranges(rests.releases, shipped_releases())}\n")
    return "\n".join(parts)


def _lines(cited: tuple[str, list[int]]) -> str:
    """Return the cited lines of one file: ``path:12, 40, 77``."""
    file, numbers = cited
    return (
        textwrap.fill(f"{file}:{', '.join(map(str, numbers))}", 92, initial_indent="  ", subsequent_indent="    ")
        + "\n"
    )


@click.command("explain")
@click.argument("rule_id", metavar="RULE", shell_complete=completed)
def explain(rule_id: str) -> int:
    """Explain a rule: why it exists, what fires it, what to do."""
    rule = REGISTRY.get(rule_id.upper())
    if rule is None:
        near = [r for r in REGISTRY if r.startswith(rule_id.upper()[:3])]
        raise UsageError(
            f"no rule {rule_id!r}"
            + (f"; of that family: {', '.join(near)}" if near else "; `dspark-lint rules` lists them")
        )
    click.echo(explain_text(rule), nl=False)
    return 0


@click.command("rules")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
def rules(fmt: str) -> int:
    """List the rules."""
    if fmt == "json":
        rows = [
            {
                "id": r.id,
                "title": r.title,
                "severity": r.severity,
                "effect": r.effect,
                "rationale": r.rationale,
                "remedy": r.remedy,
                "fires": r.fires,
                "quiet": r.quiet,
                "example": example_of(r.id),
                "releases": rests_on(r.id).releases,
                "source": rests_on(r.id).lines,
            }
            for r in REGISTRY.values()
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    for rule in REGISTRY.values():
        click.echo(f"{rule.id}  {rule.severity:<8} {rule.effect:<8} {rule.title}")
    return 0
