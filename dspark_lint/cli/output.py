"""Where a report goes: formats, files, standard output, and what is said beside it on standard error."""

# Plain os.path and open: pathlib costs a plain check more than everything here.
from __future__ import annotations

import contextlib
import os
import sys

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.errors import UsageError
from dspark_lint.report import FORMATS, MACHINE, render, resolve_format
from dspark_lint.report.base import RenderOptions, RuleInfo
from dspark_lint.report.color import want_color


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dspark_lint.finding import Report
    from dspark_lint.report.inventories import Inventory


class Wanted(NamedTuple):
    """One rendering of the report."""

    format: str
    file: str | None
    """None is standard output, which only one format may have."""


class Style(NamedTuple):
    """How renderings look, from the flags."""

    color: str
    """``auto``, ``always`` or ``never``."""
    verbose: int
    quiet: bool
    explain: bool


def wanted(formats: Sequence[str], outputs: Sequence[str]) -> list[Wanted]:
    """Read ``--format`` and ``--output``: files first, so that they are written whatever becomes of standard output.

    Raises UsageError for an unknown format, for two that would write to one place, and for a place without a format.
    """
    read = [_of_output(given) for given in outputs]
    unnamed = [pair.file for pair in read if not pair.format]
    pairs = [_of_format(given) for given in formats or ("auto",)]
    plain = [i for i, pair in enumerate(pairs) if pair.file is None]
    if len(plain) > 1:
        raise UsageError("several formats for standard output; give all but one a file (--format sarif=out.sarif)")
    if len(unnamed) > 1:
        raise UsageError("several files for one format; say which format each is for (--output sarif=out.sarif)")
    if unnamed:
        if not unnamed[0]:
            raise UsageError("--output: no file named")
        if not plain:
            raise UsageError("--output: every format has a file of its own already")
        pairs[plain[0]] = pairs[plain[0]]._replace(file=unnamed[0])
    pairs += [pair for pair in read if pair.format]
    places = [os.path.realpath(pair.file) for pair in pairs if pair.file is not None]
    if len(set(places)) < len(places):
        raise UsageError("two formats for one file")
    return sorted(pairs, key=lambda pair: pair.file is None)


def _of_format(given: str) -> Wanted:
    name, equals, file = given.partition("=")
    name = resolve_format(name, os.environ)
    if name not in FORMATS:
        raise UsageError(f"--format {name}: not one of auto, {', '.join(FORMATS)}")
    if equals and not file:
        raise UsageError(f"--format {given}: no file after the equals sign")
    return Wanted(name, file if equals else None)


def _of_output(given: str) -> Wanted:
    """Read one ``--output``; without a format it has the empty one. A file may be called ``./a=b``."""
    name, equals, _ = given.partition("=")
    if not equals or os.path.basename(name) != name:
        return Wanted("", given)
    return _of_format(given)


def write(
    report: Report,
    pairs: Sequence[Wanted],
    style: Style,
    inventories: Mapping[tuple[str, str], Inventory] | None = None,
) -> None:
    """Render a report in every wanted format.

    Raises UsageError when a file cannot be written, BrokenPipeError when the reader of standard output has gone.
    """
    for pair in pairs:
        options = _options(pair, style, inventories)
        text = render(report, pair.format, options)
        if pair.format == "github":
            _summarise(report, options)
        if pair.file is not None:
            _to_file(pair.file, text)
        else:
            _to_stdout(text)


def _options(pair: Wanted, style: Style, inventories: Mapping[tuple[str, str], Inventory] | None) -> RenderOptions:
    in_file = pair.file is not None
    color = pair.format not in MACHINE and (style.color == "always" if in_file else _colored(style))
    explains = style.explain or pair.format not in ("text", "json", "jsonl", "concise")
    return RenderOptions(
        color=color,
        width=_width() if not in_file and _is_terminal() else None,
        verbose=style.verbose,
        quiet=style.quiet,
        explain=style.explain,
        rules=rule_infos() if explains else {},
        base_dir=os.getcwd(),
        inventories=inventories,
        environ=os.environ,
    )


def _colored(style: Style) -> bool:
    return sys.stdout is not None and want_color(style.color, sys.stdout, os.environ)


def _width() -> int:
    from shutil import get_terminal_size  # noqa: PLC0415 - imports every kind of archive; only for a terminal

    return get_terminal_size().columns


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _to_file(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as handle:
            handle.write(text)
    except OSError as e:
        raise UsageError(f"{path} cannot be written: {e.strerror or e}") from e


def _to_stdout(text: str) -> None:
    if sys.stdout is None:  # closed by the caller
        raise UsageError("standard output is closed; --output FILE writes to a file")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as e:
        raise UsageError(f"standard output cannot be written: {e.strerror or e}") from e


def _summarise(report: Report, options: RenderOptions) -> None:
    from dspark_lint.report.github import write_step_summary  # noqa: PLC0415 - only in that format

    try:
        write_step_summary(report, options)
    except OSError as e:  # the log has everything; a summary that cannot be written changes no verdict
        tell(f"the step summary cannot be written: {e.strerror or e}")


def tell(message: str) -> None:
    """Say something about the run, not about a checkpoint: on standard error, never beside a document."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # nobody wants to know
            sys.stderr.write(f"dspark-lint: {message}\n")


def rule_infos() -> dict[str, RuleInfo]:
    """Return the registry as reporters need it."""
    from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - only for formats that explain

    return {r.id: RuleInfo(r.id, r.title, r.rationale, r.remedy, r.severity) for r in REGISTRY.values()}
