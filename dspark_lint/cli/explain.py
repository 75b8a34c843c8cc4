"""``explain`` and ``rules``: the registry for people and for programs."""

from __future__ import annotations

import json
import textwrap

import click

from dspark_lint.errors import UsageError
from dspark_lint.rules import REGISTRY, Rule


def _sources(rule: Rule) -> list[str]:
    """Return the cited code of the contract clauses that belong to a rule, in the newest release."""
    from dspark_lint.contract.load import shipped_releases  # noqa: PLC0415 - only for explain
    from dspark_lint.contract.model import load_contract  # noqa: PLC0415

    contract = load_contract(shipped_releases()[-1])
    cited: dict[str, None] = {}
    for name in contract.get("families", {}):
        for clause in contract.family(name).get("checks", {}).values():
            if clause and clause.get("rule") == rule.id and (line := contract.cite(clause)):
                cited[line] = None
    return list(cited)


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
    if sources := _sources(rule):
        parts.append("Code it rests on (newest release)\n" + "\n".join(f"  {s}" for s in sources) + "\n")
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
