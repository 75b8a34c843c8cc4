"""``explain`` and ``rules``: the registry for people and for programs."""

from __future__ import annotations

import json
import textwrap

import click

from dspark_lint.contract.load import shipped_releases
from dspark_lint.errors import UsageError
from dspark_lint.report.merge import ranges
from dspark_lint.ruledocs import rests_on
from dspark_lint.rules import REGISTRY, Rule


#: How many cited lines are shown.
_LINES = 12


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
    if rule.fires:
        parts.append(block("Fires on", rule.fires))
    if rule.quiet:
        parts.append(block("Quiet on", rule.quiet))
    rests = rests_on(rule.id)
    shown = [f"  {line}" for line in rests.lines[:_LINES]]
    if len(rests.lines) > _LINES:
        shown.append(f"  and {len(rests.lines) - _LINES} more: dspark-lint contracts show {rests.releases[-1]}")
    parts.append(f"Code it rests on, in vLLM {rests.releases[-1]}\n" + "\n".join(shown) + "\n")
    parts.append(f"Releases\n  {ranges(rests.releases, shipped_releases())}\n")
    return "\n".join(parts)


@click.command("explain")
@click.argument("rule_id", metavar="RULE")
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
            }
            for r in REGISTRY.values()
        ]
        click.echo(json.dumps(rows, indent=2))
        return 0
    for rule in REGISTRY.values():
        click.echo(f"{rule.id}  {rule.severity:<8} {rule.effect:<8} {rule.title}")
    return 0
