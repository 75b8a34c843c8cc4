"""``contracts``: look at what the tool knows, compare releases, check files of one's own."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, NamedTuple

import click

from dspark_lint.cli import exits
from dspark_lint.cli.provenance import new, record_lines, verify_release
from dspark_lint.contract.load import chain_files, layer_of, load_raw, release_of, shipped_releases
from dspark_lint.contract.releases import parts, resolve
from dspark_lint.errors import ContractError, UsageError


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_OWN = click.option(
    "--contract",
    "contracts",
    metavar="FILE",
    multiple=True,
    help="A contract file of one's own, beside the shipped ones.",
)


def own_files(paths: Sequence[str]) -> dict[str, str]:
    """Return files of one's own by the release each says it is for; ContractError for one that says none."""
    return {release_of(path): path for path in paths}


def one_release(text: str, extra: Mapping[str, str]) -> str:
    """Return the one full release that a specification names; UsageError for several and for none."""
    if text in extra:
        return text
    found = resolve(text, tuple(extra))
    if len(found) != 1:
        raise UsageError(f"{text} names {len(found)} releases; give one")
    return found[0]


@click.group("contracts")
def contracts_group() -> None:
    """Look at the contracts; verify and extend them."""


@contracts_group.command("list")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_OWN
def list_releases(fmt: str, contracts: tuple[str, ...]) -> int:
    """List the releases that have a contract, and the draft architectures each knows."""
    extra = own_files(contracts)
    rows = [_row(release, extra) for release in sorted({*shipped_releases(), *extra}, key=parts)]
    if fmt == "json":
        click.echo(json.dumps([row._asdict() for row in rows], indent=2))
        return exits.CLEAN
    click.echo(f"{'RELEASE':<10}{'EXTENDS':<10}{'DRAFTS':>6}{'CHANGES':>9}{'CITED':>7}  NEW")
    for row in rows:
        counts = f"{len(row.architectures):>6}{row.changes:>9}{row.cited_lines:>7}"
        click.echo(f"{row.release:<10}{row.extends or '-':<10}{counts}  {', '.join(row.new) or '-'}")
    return exits.CLEAN


class _Row(NamedTuple):
    release: str
    extends: str | None
    file: str | None
    """The file of one's own; None for a shipped contract."""
    architectures: list[str]
    new: list[str]
    """Architectures that this release's own file brings."""
    changes: int
    cited_lines: int


def _row(release: str, extra: Mapping[str, str]) -> _Row:
    raw = load_raw(release, extra)
    layer = layer_of(chain_files(release, extra)[-1])
    known = sorted(name for name, clause in raw.get("architectures", {}).items() if clause)
    own = sorted(name for name, clause in layer.get("architectures", {}).items() if clause and "source" in clause)
    changes = sum(1 for clause in layer.get("changes", {}).values() if clause and clause.get("kind") != "none")
    return _Row(release, layer.get("extends"), extra.get(release), known, own, changes, len(raw["lines"]))


@contracts_group.command("show")
@click.argument("release")
@click.argument("architecture", required=False)
@click.option("--format", "fmt", type=click.Choice(["yaml", "json", "markdown"]), default="yaml", show_default=True)
@_OWN
def show(release: str, architecture: str | None, fmt: str, contracts: tuple[str, ...]) -> int:
    """Print a resolved contract, or the part of it that one architecture meets.

    Every clause carries the releases whose files wrote it and the line of vLLM's source that it rests on.
    """
    from dspark_lint.contract.show import as_json, as_markdown, as_yaml, shown  # noqa: PLC0415 - for this command only

    extra = own_files(contracts)
    what = shown(one_release(release, extra), architecture, extra)
    click.echo({"yaml": as_yaml, "json": as_json, "markdown": as_markdown}[fmt](what), nl=False)
    return exits.CLEAN


@contracts_group.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--format", "fmt", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option(
    "--clauses/--no-clauses", default=True, show_default=True, help="Also what a comparison of the clauses shows."
)
@_OWN
def diff_releases(first: str, second: str, fmt: str, clauses: bool, contracts: tuple[str, ...]) -> int:
    """Say what loosens, tightens and changes meaning silently from release A to release B."""
    from dspark_lint.contract.diff import diff, render_diff  # noqa: PLC0415 - for this command only

    extra = own_files(contracts)
    found = diff(one_release(first, extra), one_release(second, extra), extra)
    click.echo(render_diff(found if clauses else found._replace(rows=()), fmt), nl=False)
    return exits.CLEAN


@contracts_group.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def validate_files(files: tuple[str, ...]) -> int:
    """Check contract files: the schema, and everything they refer to in their chain.

    Several files that extend each other are given together.
    """
    from dspark_lint.contract.validate import validate  # noqa: PLC0415 - for this command only

    extra = {release: path for path in files if (release := _stated(path)) is not None}
    problems = [problem for path in files for problem in validate(path, extra)]
    for problem in problems:
        click.echo(str(problem))
    faulty = len({problem.file for problem in problems})
    click.echo(f"{len(files)} files, {faulty} with problems, {len(problems)} problems", err=True)
    return exits.FINDINGS if problems else exits.CLEAN


def _stated(path: str) -> str | None:
    """Return the release of a file; None for one without, of which validation tells."""
    try:
        return release_of(path)
    except ContractError:
        return None


contracts_group.add_command(verify_release)
contracts_group.add_command(new)
contracts_group.add_command(record_lines)
