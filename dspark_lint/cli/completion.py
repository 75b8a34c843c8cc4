"""What the shell completes: formats, releases, ids of rules, files. Only a shell that asks imports this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem


if TYPE_CHECKING:
    from collections.abc import Callable


def complete(parameter: str, incomplete: str) -> list[CompletionItem]:
    """Return what the value of a parameter may go on with; files where nothing is known of it."""
    of = _VALUES.get(parameter)
    return of(incomplete) if of is not None else files(incomplete)


def files(incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell, which completes files."""
    return [CompletionItem(incomplete, type="file")]


def _formats(incomplete: str) -> list[CompletionItem]:
    from dspark_lint.report import FORMATS  # noqa: PLC0415 - one kind of value is asked about at a time

    return [CompletionItem(name) for name in ("auto", *FORMATS) if name.startswith(incomplete)]


def _releases(incomplete: str) -> list[CompletionItem]:
    from dspark_lint.contract.load import shipped_releases  # noqa: PLC0415 - as above

    names = ("all", "latest", "installed", *reversed(shipped_releases()))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _rules(incomplete: str) -> list[CompletionItem]:
    """Return ids with their titles; of several, the last is completed."""
    from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - as above

    before, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(before + comma + rule.id, help=rule.title)
        for rule in REGISTRY.values()
        if rule.id.startswith(last.upper())
    ]


_VALUES: dict[str, Callable[[str], list[CompletionItem]]] = {
    "formats": _formats,
    "vllm": _releases,
    "select": _rules,
    "ignore": _rules,
    "rule_id": _rules,
}
