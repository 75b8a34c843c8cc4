"""The check: from the flags to a rendered report and an exit code."""

# Plain os.path: pathlib costs a plain check more than everything here.

from __future__ import annotations

import json
import os

from typing import TYPE_CHECKING, Any

import click

from dspark_lint import __version__
from dspark_lint.cli import completed, exits
from dspark_lint.cli.output import Style, tell, wanted, write
from dspark_lint.cli.settings import Settings, expanded, settle
from dspark_lint.cli.settings import shown as shown_settings
from dspark_lint.errors import UsageError
from dspark_lint.finding import SEVERITIES, CheckpointReport, Report
from dspark_lint.report import FORMATS


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dspark_lint.binding import Binding
    from dspark_lint.report.inventories import Inventory
    from dspark_lint.scan.store import Bar
    from dspark_lint.target import Target


def _speculative_config(_ctx: click.Context, _param: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as e:
        raise click.BadParameter(f"not JSON: {e}") from e
    if not isinstance(parsed, dict):
        raise click.BadParameter("not a JSON object")
    return parsed


@click.command("check", options_metavar="[OPTIONS]")
@click.argument("paths", metavar="[CKPT...]", nargs=-1, shell_complete=completed)
@click.option(
    "--vllm",
    "vllm",
    metavar="SPEC",
    multiple=True,
    shell_complete=completed,
    help="Releases: 0.32, 0.32.0, '>=0.28,<0.32', 0.27..0.33, all, latest, installed. [default: latest]",
)
@click.option(
    "--nearest/--no-nearest", default=None, help="For a release without a contract, use the nearest that has one."
)
@click.option(
    "--contract",
    "contracts",
    metavar="FILE",
    multiple=True,
    shell_complete=completed,
    help="A contract file of one's own, beside the shipped ones.",
)
@click.option(
    "--target", metavar="PATH", shell_complete=completed, help="The target model: its directory or config.json."
)
@click.option(
    "--speculative-config",
    "serve",
    metavar="JSON",
    callback=_speculative_config,
    help="vLLM's own flag: method, num_speculative_tokens, ... Without it the method is inferred.",
)
@click.option(
    "--format",
    "formats",
    metavar="F",
    multiple=True,
    shell_complete=completed,
    help=f"auto, {', '.join(FORMATS)}; F=FILE writes that format to a file. [default: auto]",
)
@click.option(
    "--output",
    "outputs",
    metavar="[F=]FILE",
    multiple=True,
    shell_complete=completed,
    help="Write to FILE instead of standard output; F=FILE writes that format besides.",
)
@click.option(
    "--select",
    metavar="RULES",
    multiple=True,
    shell_complete=completed,
    help="Only these rules: ids or prefixes, separated by commas.",
)
@click.option("--ignore", metavar="RULES", multiple=True, shell_complete=completed, help="Not these rules.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    help="The severity that makes the exit code 1. [default: error]",
)
@click.option(
    "--min-severity", type=click.Choice(list(SEVERITIES)), help="Show findings from this severity up. [default: info]"
)
@click.option(
    "--config",
    metavar="FILE",
    shell_complete=completed,
    help="The configuration; else dspark-lint.toml or pyproject.toml, upwards.",
)
@click.option("--no-config", is_flag=True, help="Look for no configuration file.")
@click.option("--show-config", is_flag=True, help="Show what is in force, and where each value comes from.")
@click.option(
    "--baseline", metavar="FILE", shell_complete=completed, help="Findings in this file are known and not told."
)
@click.option("--no-baseline", is_flag=True, help="Tell known findings too.")
@click.option(
    "--write-baseline", metavar="FILE", shell_complete=completed, help="Write the findings of this run as known."
)
@click.option(
    "--allow-lfs-pointers/--no-allow-lfs-pointers",
    default=None,
    help="Git LFS pointers are no error: check what needs no weights.",
)
@click.option("--deep", is_flag=True, help="Read all tensor data: NaN, infinity, zeros, broken scales.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour; NO_COLOR and FORCE_COLOR are honoured.",
)
@click.option("--explain", is_flag=True, help="With each finding, why the rule exists and what to do.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only.")
@click.option("-v", "--verbose", count=True, help="Also what was expected, found and not checked.")
def check(**options: Any) -> int:
    """Hold checkpoints against vLLM releases.

    CKPT is a checkpoint directory, a file in one, or a directory that holds several; without it, the paths of the
    configuration are checked.
    """
    return run_check(options)


def run_check(options: dict[str, Any]) -> int:
    """Check and render; return the exit code."""
    settings = settle(options)
    value = settings.values
    if options["write_baseline"] == "":
        raise UsageError("--write-baseline: no file named")
    if options["show_config"]:
        return _show(settings, options["formats"])
    paths = expanded(settings)
    selected = select_rules(value["select"], value["ignore"])
    if settings.config is not None and settings.config.severity:
        from dspark_lint.config import turned_off  # noqa: PLC0415 - only where a configuration speaks of severities
        from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - as above

        selected = (frozenset(REGISTRY) if selected is None else selected) - turned_off(settings.config.severity)
    renderings = wanted(options["formats"], options["outputs"])
    inventories: dict[tuple[str, str], Inventory] | None = {} if any(w.format == "html" for w in renderings) else None
    found = Report(tuple(_check_all(checkpoints(paths), options, settings, selected, inventories)), __version__)
    report = _decided(found, settings, options, selected)
    fail_on, least = value["fail-on"], value["min-severity"]
    shown = _at_least(report, least) if least != SEVERITIES[-1] else report
    if not report.checkpoints:
        tell("no checkpoint found (a directory with config.json or *.safetensors)")
    write(
        shown,
        renderings,
        Style(options["color"], options["verbose"], options["quiet"], options["explain"]),
        inventories,
    )
    code = exit_code(report, fail_on)
    if code == exits.FINDINGS and exit_code(shown, fail_on) != code:
        tell(f"--min-severity {least} hides the findings that --fail-on {fail_on} is about")
    return code


def _show(settings: Settings, formats: Sequence[str]) -> int:
    if set(formats) - {"json", "text"}:
        raise UsageError("--show-config knows --format text and json")
    click.echo(shown_settings(settings, as_json="json" in formats), nl=False)
    return exits.CLEAN


def _decided(report: Report, settings: Settings, options: dict[str, Any], selected: frozenset[str] | None) -> Report:
    """Return the report after severities, ignores and the baseline, and say what they held back."""
    config, file = settings.config, settings.values["baseline"]
    ruled = config is not None and (config.severity or config.ignores)
    if not (ruled or file or options["write_baseline"]):
        return report
    from dspark_lint import baseline as known  # noqa: PLC0415 - most runs have none
    from dspark_lint.suppress import concluded, decide  # noqa: PLC0415 - as above

    whole = config is not None and settings.origins["paths"] == config.file
    if options["write_baseline"]:
        fresh = decide(report, config, None).report
        number = known.write(options["write_baseline"], fresh, lambda checkpoint: concluded(checkpoint, selected))
        tell(f"{options['write_baseline']}: {number} known finding{'' if number == 1 else 's'}")
        file = options["write_baseline"]
    outcome = decide(report, config, known.read(file) if file else None, selected=selected, whole=whole)
    held = [
        f"{number} {'finding is' if number == 1 else 'findings are'} held back by {what}"
        for number, what in ((outcome.ignored, "the configuration's ignores"), (outcome.known, f"the baseline {file}"))
        if number
    ]
    for message in (*outcome.messages, *(() if options["quiet"] else held)):
        tell(message)
    return outcome.report


def checkpoints(paths: Sequence[str]) -> list[str]:
    """Return the checkpoints that the arguments lead to, once each, named as the user named them.

    One that several files lead to goes by its directory; those below a directory by their path from where the user
    stands. Raises UsageError for an argument where nothing is.
    """
    from dspark_lint.checkpoint import find_checkpoints  # noqa: PLC0415 - not for --help

    found: dict[str, str] = {}
    for path in paths:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: no such file or directory" if path else "the path of a checkpoint is empty")
        if not os.path.isdir(path):
            root = os.path.dirname(os.path.abspath(path))
            found[root] = (os.path.dirname(path) or ".") if root in found else path
            continue
        top = os.path.abspath(path)
        below = list(find_checkpoints(path))
        if not below and not os.access(path, os.R_OK | os.X_OK):
            below = [top]  # that it cannot be looked into is a finding
        for root in below:
            found[root] = path if root == top else os.path.normpath(os.path.join(path, os.path.relpath(root, top)))
    return list(found.values())


def _check_all(
    paths: Sequence[str],
    options: dict[str, Any],
    settings: Settings,
    selected: frozenset[str] | None,
    inventories: dict[tuple[str, str], Inventory] | None,
) -> list[CheckpointReport]:
    from dspark_lint.api import lint_checkpoint, own_contracts  # noqa: PLC0415 - not for --help
    from dspark_lint.checkpoint import open_checkpoint  # noqa: PLC0415
    from dspark_lint.contract.releases import resolve  # noqa: PLC0415
    from dspark_lint.target import read_target  # noqa: PLC0415

    value = settings.values
    extra = own_contracts(value["contracts"])
    spec = list(value["releases"]) or (sorted(extra) if extra else "latest")
    releases = resolve(spec, tuple(extra), nearest=value["nearest"])
    targets: dict[str | None, Target | None] = {None: None}
    wanted_targets = [settings.target_of(_root(path)) for path in paths]
    for place in wanted_targets:
        if place not in targets:
            targets[place] = read_target(place)  # type: ignore[arg-type] # None is there already
    bar: Bar | None = None
    if options["deep"]:
        from dspark_lint.scan.progress import Progress  # noqa: PLC0415 - only for --deep

        bar = Progress
    return [
        lint_checkpoint(
            open_checkpoint(path), releases, target=targets[place], serve=value["speculative-config"], select=selected,
            deep=options["deep"], progress=bar, allow_lfs_pointers=value["allow-lfs-pointers"], extra=extra,
            bound=_drawer(path, inventories),
        )
        for path, place in zip(paths, wanted_targets, strict=True)
    ]  # fmt: skip


def _root(path: str) -> str:
    return os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path) or ".")


def _drawer(path: str, inventories: dict[tuple[str, str], Inventory] | None) -> Callable[[str, Binding], None] | None:
    """Return what keeps the picture of each inventory, where a page is wanted."""
    if inventories is None:
        return None
    from dspark_lint.report.inventories import from_inventory  # noqa: PLC0415 - only for html

    def draw(release: str, binding: Binding) -> None:
        if binding.inventory is not None:
            inventories[path, release] = from_inventory(binding.inventory)

    return draw


def select_rules(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str] | None:
    """Return the rule ids to report; None for all. An unknown prefix is a usage error, not silence."""
    if not select and not ignore:
        return None
    from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - a check without the flags asks no registry here

    def matching(values: tuple[str, ...]) -> set[str]:
        ids: set[str] = set()
        prefixes = [p.strip() for v in values for p in v.split(",") if p.strip()]
        if values and not prefixes:
            raise UsageError("--select and --ignore want the id of a rule or a prefix of ids")
        for prefix in prefixes:
            hits = {r for r in REGISTRY if r.startswith(prefix.upper())}
            if not hits:
                raise UsageError(f"unknown rule or prefix {prefix!r}; `dspark-lint rules` lists them")
            ids |= hits
        return ids

    chosen = matching(select) if select else set(REGISTRY)
    return frozenset(chosen - matching(ignore))


def _at_least(report: Report, severity: str) -> Report:
    keep = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return Report(
        tuple(
            c._replace(
                results=tuple(
                    r._replace(findings=tuple(f for f in r.findings if f.severity in keep)) for r in c.results
                )
            )
            for c in report.checkpoints
        ),
        report.tool_version,
    )


def exit_code(report: Report, fail_on: str) -> int:
    """Return the exit code of a report: findings first, then whether anything was checked at all."""
    results = [r for c in report.checkpoints for r in c.results]
    if fail_on != "never":
        bar = SEVERITIES.index(fail_on)
        if any(SEVERITIES.index(f.severity) <= bar for r in results for f in r.findings):
            return exits.FINDINGS
    if not results or all(r.blind for r in results):
        return exits.NOTHING
    return exits.CLEAN
