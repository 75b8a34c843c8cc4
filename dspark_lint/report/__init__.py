"""Reporters: one small class a format behind one table; they render what was found and decide nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.finding import Report
    from dspark_lint.report.base import RenderOptions, Reporter


#: Format name: where its class stands. Only the asked format's module is imported.
FORMATS: Final[dict[str, str]] = {
    "text": "dspark_lint.report.text:TextReporter",
    "concise": "dspark_lint.report.concise:ConciseReporter",
    "json": "dspark_lint.report.json:JsonReporter",
    "jsonl": "dspark_lint.report.json:JsonLinesReporter",
    "sarif": "dspark_lint.report.sarif:SarifReporter",
    "junit": "dspark_lint.report.junit:JunitReporter",
    "github": "dspark_lint.report.github:GithubReporter",
    "gitlab": "dspark_lint.report.gitlab:GitlabReporter",
    "markdown": "dspark_lint.report.markdown:MarkdownReporter",
    "html": "dspark_lint.report.html:HtmlReporter",
}
#: Formats whose standard output is exactly one document for a program.
MACHINE: Final = frozenset({"json", "jsonl", "sarif", "junit", "gitlab"})


def resolve_format(name: str, environ: Mapping[str, str]) -> str:
    """Return the format that ``auto`` stands for in this environment; any other name is returned as it is."""
    if name != "auto":
        return name
    if environ.get("GITHUB_ACTIONS") == "true":
        return "github"
    if environ.get("GITLAB_CI"):
        return "gitlab"
    return "text"


def reporter(name: str) -> Reporter:
    """Return the reporter of a format; UsageError for a name that is none."""
    place = FORMATS.get(name)
    if place is None:
        raise UsageError(f"--format {name}: not one of auto, {', '.join(FORMATS)}")
    module, _, cls = place.partition(":")
    return cast("Reporter", getattr(import_module(module), cls)())


def render(report: Report, name: str, options: RenderOptions) -> str:
    """Render a report in a format; the text ends with a newline unless it is empty."""
    return reporter(name).render(report, options)
