"""A line a finding, as editors and grep read it: ``path:line:column: RULE message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.report.color import styled
from dspark_lint.report.escape import safe, sentence
from dspark_lint.report.located import located, relative, stand_in
from dspark_lint.report.merge import all_releases, ranges, runtime_name, unjudged


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Report
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.located import Located


class ConciseReporter:
    """One line each, nothing else; what has no line or column says 1."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return a line a fault, and one a checkpoint whose judgement failed under some release."""
        releases = all_releases(report)
        lines = [finding_line(one, releases, options) for one in located(report, options)]
        lines += [line for c in report.checkpoints if (line := unjudged_line(c, options))]
        return "".join(f"{line}\n" for line in lines)


def finding_line(one: Located, releases: list[str], options: RenderOptions) -> str:
    """Return the line of one fault; over several releases it names those that have it."""
    found = one.finding
    where = f"{safe(one.path)}:{one.place.line or 1}:{one.place.column or 1}:"
    rule = styled(safe(found.rule), found.severity, color=options.color)
    scope = ""
    if len(releases) > 1:
        scope = f" [{runtime_name(one.merged.runtime)} {ranges(one.merged.releases, releases)}]"
    return f"{styled(where, 'bold', color=options.color)} {rule} {sentence(found.message)}{scope}"


def unjudged_line(checkpoint: CheckpointReport, options: RenderOptions) -> str | None:
    """Return the line of a checkpoint that was not judged under some release."""
    text = unjudged(checkpoint)
    if text is None:
        return None
    path = relative(checkpoint, stand_in(checkpoint), str(options.base_dir))
    return f"{safe(path)}:1:1: unchecked {sentence(text)}"
