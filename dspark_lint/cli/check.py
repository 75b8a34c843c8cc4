"""The check: from the flags to a rendered report and an exit code."""

from __future__ import annotations

import json
import os
import shutil
import sys

from typing import IO, TYPE_CHECKING, Any

import click

from dspark_lint import __version__
from dspark_lint.cli import exits
from dspark_lint.errors import UsageError
from dspark_lint.finding import SEVERITIES, CheckpointReport, Report
from dspark_lint.report import FORMATS, MACHINE, render, resolve_format
from dspark_lint.report.base import RenderOptions, RuleInfo
from dspark_lint.report.color import want_color


if TYPE_CHECKING:
    from dspark_lint.scan.store import Bar


def _speculative_config(_ctx: click.Context, _param: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        parsed = json.loads(value)
    except ValueError as e:
        raise click.BadParameter(f"not JSON: {e}") from e
    if not isinstance(parsed, dict):
        raise click.BadParameter("not a JSON object")
    return parsed


@click.command("check", options_metavar="[OPTIONS]")
@click.argument("paths", metavar="CKPT...", nargs=-1)
@click.option("--vllm", "vllm", metavar="SPEC", multiple=True, help="Releases: 0.32, 0.32.0, '>=0.28,<0.32', 0.27..0.33, all, latest, installed. [default: latest]")
@click.option("--nearest", is_flag=True, help="For a release without a contract, use the nearest that has one.")
@click.option("--contract", "contracts", metavar="FILE", multiple=True, help="A contract file of one's own, beside the shipped ones.")
@click.option("--target", metavar="PATH", help="The target model: its directory or config.json.")
@click.option("--speculative-config", "serve", metavar="JSON", callback=_speculative_config, help="vLLM's own flag: method, num_speculative_tokens, ... Without it the method is inferred.")
@click.option("--format", "formats", metavar="F", multiple=True, help=f"auto, {', '.join(FORMATS)}; F=FILE writes that format to a file. [default: auto]")
@click.option("--output", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--select", metavar="RULES", multiple=True, help="Only these rules: ids or prefixes, separated by commas.")
@click.option("--ignore", metavar="RULES", multiple=True, help="Not these rules.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), help="The severity that makes the exit code 1. [default: error]")
@click.option("--min-severity", type=click.Choice(list(SEVERITIES)), help="Show findings from this severity up. [default: info]")
@click.option("--deep", is_flag=True, help="Read all tensor data: NaN, infinity, zeros, broken scales.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True, help="Colour; NO_COLOR and FORCE_COLOR are honoured.")
@click.option("--explain", is_flag=True, help="With each finding, why the rule exists and what to do.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only.")
@click.option("-v", "--verbose", count=True, help="Also what was expected, found and not checked.")
def check(**options: Any) -> int:
    """Hold checkpoints against vLLM releases.

    CKPT is a checkpoint directory, a file in one, or a directory that holds several.
    """
    return run_check(options)


def run_check(options: dict[str, Any]) -> int:
    """Check and render; return the exit code."""
    from dspark_lint.checkpoint import find_checkpoints  # noqa: PLC0415 - not for --help

    if not options["paths"]:
        raise click.UsageError("nothing to check: give a checkpoint directory")
    selected = select_rules(options["select"], options["ignore"])
    wanted = formats_of(options)
    found: list[str] = []
    for path in options["paths"]:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: no such file or directory")
        found += [str(p) for p in find_checkpoints(path)] if os.path.isdir(path) else [path]
    found = list(dict.fromkeys(found))
    report = Report(tuple(_check_all(found, options, selected)), __version__)
    if options.get("min_severity"):
        report = _at_least(report, options["min_severity"])
    for name, target in wanted:
        _write(report, name, target, options)
    if not report.checkpoints:
        click.echo("dspark-lint: no checkpoint found (a directory with config.json or *.safetensors)", err=True)
    return exit_code(report, options.get("fail_on") or "error")


def _check_all(paths: list[str], options: dict[str, Any], selected: frozenset[str] | None) -> list[CheckpointReport]:
    from dspark_lint.api import lint_checkpoint, own_contracts  # noqa: PLC0415 - not for --help
    from dspark_lint.checkpoint import open_checkpoint  # noqa: PLC0415
    from dspark_lint.contract.releases import resolve  # noqa: PLC0415
    from dspark_lint.target import read_target  # noqa: PLC0415

    extra = own_contracts(options["contracts"])
    spec = list(options["vllm"]) or (sorted(extra) if extra else "latest")
    releases = resolve(spec, tuple(extra), nearest=options["nearest"])
    target = read_target(options["target"]) if options["target"] else None
    bar: Bar | None = None
    if options["deep"]:
        from dspark_lint.scan.progress import Progress  # noqa: PLC0415 - only for --deep

        bar = Progress
    return [
        lint_checkpoint(open_checkpoint(path), releases, target=target, serve=options["serve"], select=selected, deep=options["deep"], progress=bar, extra=extra)
        for path in paths
    ]


def select_rules(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str] | None:
    """Return the rule ids to report; None for all. An unknown prefix is a usage error, not silence."""
    if not select and not ignore:
        return None
    from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - a check without the flags asks no registry here

    def matching(values: tuple[str, ...]) -> set[str]:
        ids: set[str] = set()
        for prefix in (p.strip() for v in values for p in v.split(",") if p.strip()):
            hits = {r for r in REGISTRY if r.startswith(prefix.upper())}
            if not hits:
                raise UsageError(f"unknown rule or prefix {prefix!r}; `dspark-lint rules` lists them")
            ids |= hits
        return ids

    chosen = matching(select) if select else set(REGISTRY)
    return frozenset(chosen - matching(ignore))


def formats_of(options: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return (format, file) pairs; a file of None is standard output, and only one format may have it."""
    pairs: list[tuple[str, str | None]] = []
    for given in options["formats"] or ("auto",):
        name, equals, file = given.partition("=")
        name = resolve_format(name, os.environ)
        if name not in FORMATS:
            raise UsageError(f"--format {name}: not one of auto, {', '.join(FORMATS)}")
        pairs.append((name, file if equals else None))
    plain = [i for i, (_, file) in enumerate(pairs) if file is None]
    if len(plain) > 1:
        raise UsageError("several formats for standard output; give all but one a file (--format sarif=out.sarif)")
    if options["output"] and plain:
        pairs[plain[0]] = (pairs[plain[0]][0], options["output"])
    return pairs


def _at_least(report: Report, severity: str) -> Report:
    keep = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return Report(
        tuple(c._replace(results=tuple(r._replace(findings=tuple(f for f in r.findings if f.severity in keep)) for r in c.results)) for c in report.checkpoints),
        report.tool_version,
    )


def _write(report: Report, name: str, target: str | None, options: dict[str, Any]) -> None:
    stream: IO[str] = sys.stdout
    to_terminal = target is None and sys.stdout.isatty()
    render_options = RenderOptions(
        color=name not in MACHINE and want_color(options["color"], stream, os.environ) and (target is None or options["color"] == "always"),
        width=shutil.get_terminal_size().columns if to_terminal else None,
        verbose=options["verbose"],
        quiet=options["quiet"],
        explain=options["explain"],
        rules=rule_infos() if options["explain"] or name not in ("text", "json", "jsonl", "concise") else {},
        base_dir=os.getcwd(),
        environ=os.environ,
    )
    text = render(report, name, render_options)
    if name == "github":
        from dspark_lint.report.github import write_step_summary  # noqa: PLC0415 - only in that format

        write_step_summary(report, render_options)
    if target is not None:
        with open(target, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as handle:
            handle.write(text)
        return
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    sys.stdout.write(text)
    sys.stdout.flush()


def rule_infos() -> dict[str, RuleInfo]:
    """Return the registry as reporters need it."""
    from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - only for formats that explain

    return {r.id: RuleInfo(r.id, r.title, r.rationale, r.remedy, r.severity) for r in REGISTRY.values()}


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
