"""GitHub Actions: annotations in the log, and a Markdown table in the step's summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dspark_lint.finding import SEVERITIES
from dspark_lint.report.concise import finding_line, unjudged_line
from dspark_lint.report.escape import safe, sentence
from dspark_lint.report.located import ci_base, located, relative, stand_in
from dspark_lint.report.merge import all_releases, ranges, runtime_name, unjudged


if TYPE_CHECKING:
    from dspark_lint.finding import Report
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.located import Located


#: So many annotations of a level GitHub shows for a step; more are in the log only.
SHOWN = 10
#: A step's summary holds a mebibyte.
SUMMARY = 900_000
_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


class GithubReporter:
    """Errors first, as many annotations as GitHub shows, the rest as plain lines of the log, one line that sums up."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the lines for the log; never empty."""
        from dspark_lint.report.markdown import headline  # noqa: PLC0415 - the words of the total are the same

        releases = all_releases(report)
        rows = sorted(located(report, options, ci_base(options)), key=lambda o: SEVERITIES.index(o.finding.severity))
        used = dict.fromkeys(SEVERITIES, 0)
        lines: list[str] = []
        rest: list[Located] = []
        for one in rows:
            if used[one.finding.severity] < SHOWN:
                used[one.finding.severity] += 1
                lines.append(annotation(one, releases))
            else:
                rest.append(one)
        plain = options._replace(color=False)
        lines += [_plain(finding_line(one, releases, plain)) for one in rest]
        lines += _unjudged(report, plain, SHOWN - used["info"])
        total = f"dspark-lint: {headline(report)}"
        if rest:
            total += f"; {len(rows) - len(rest)} of {len(rows)} shown as annotations, GitHub takes {SHOWN} of a level"
        return "\n".join([*lines, total]) + "\n"


def annotation(one: Located, releases: list[str]) -> str:
    """Return the command that annotates a file: ``::error file=..,line=..,col=..,title=RULE::message``."""
    found = one.finding
    text = sentence(found.message)
    if len(releases) > 1:
        text += f" [{runtime_name(one.merged.runtime)} {ranges(one.merged.releases, releases)}]"
    for label, value in (("expected", found.expected), ("found", found.found), ("fix", found.fix)):
        if value is not None:
            text += f"\n{label}: {sentence(value)}"
    if one.merged.source:
        text += f"\nsource: {sentence(one.merged.source)}"
    values = {"file": one.path, "line": one.place.line or 1, "col": one.place.column, "title": found.rule}
    properties = ",".join(f"{key}={_property(safe(str(value)))}" for key, value in values.items() if value is not None)
    return f"::{_LEVELS[found.severity]} {properties}::{_data(text)}"


def _unjudged(report: Report, options: RenderOptions, room: int) -> list[str]:
    """Say where nothing was judged: as notices while there is room for them, else in the log."""
    lines: list[str] = []
    for checkpoint in report.checkpoints:
        text = unjudged(checkpoint)
        if text is not None and len(lines) < room:
            path = relative(checkpoint, stand_in(checkpoint), ci_base(options))
            lines.append(f"::notice file={_property(safe(path))},line=1,title=unchecked::{_data(sentence(text))}")
        elif text is not None:
            lines.append(_plain(unjudged_line(checkpoint, options) or ""))
    return lines


def step_summary(report: Report, options: RenderOptions) -> str:
    """Return the Markdown for the step's summary."""
    from dspark_lint.report.markdown import document  # noqa: PLC0415 - only where a summary is wanted

    return document(report, options, SUMMARY)


def write_step_summary(report: Report, options: RenderOptions) -> bool:
    """Append the summary to the file that GITHUB_STEP_SUMMARY names; False when there is none.

    Raises OSError when the file cannot be written.
    """
    name = options.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return False
    with Path(name).open("a", encoding="utf-8", newline="\n") as handle:
        handle.write(step_summary(report, options) + "\n")
    return True


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _plain(line: str) -> str:
    """Return a line that the runner takes for no command: neither ``::name`` nor the older ``##[name]``."""
    line = line.replace("##[", "## [")
    return f". {line}" if line.lstrip().startswith("::") else line
