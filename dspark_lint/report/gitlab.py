"""GitLab's code quality report: a JSON list of issues, each with a fingerprint of its own."""

from __future__ import annotations

import hashlib
import json

from typing import TYPE_CHECKING, Any

from dspark_lint.report.escape import whole
from dspark_lint.report.located import ci_base, located, relative, stand_in
from dspark_lint.report.merge import all_releases, ranges, runtime_name, unjudged


if TYPE_CHECKING:
    from dspark_lint.finding import Finding, Report
    from dspark_lint.report.base import RenderOptions


class GitlabReporter:
    """One issue a fault, over all the releases that have it."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the list; ASCII, empty when nothing was found."""
        releases = all_releases(report)
        base = ci_base(options)
        issues: list[dict[str, Any]] = []
        taken: dict[str, int] = {}
        for one in located(report, options, base):
            found = one.finding
            text = found.message
            if len(releases) > 1:
                text += f" [{runtime_name(one.merged.runtime)} {ranges(one.merged.releases, releases)}]"
            if found.fix:
                text += f" Fix: {found.fix}"
            place = relative(one.checkpoint, None, base)
            key = _fingerprint(taken, place, found.fingerprint, found.severity, found.effect)
            issues.append(_issue(text, found.rule, key, _severity(found), (one.path, one.place.line)))
        for checkpoint in report.checkpoints:
            blind = unjudged(checkpoint)
            if blind is not None:
                place = relative(checkpoint, None, base)
                key = _fingerprint(taken, place, "unchecked")
                place = relative(checkpoint, stand_in(checkpoint), base)
                issues.append(_issue(blind, "unchecked", key, "info", (place, None)))
        return json.dumps(issues, indent=2) + "\n"


def _issue(text: str, check: str, key: str, severity: str, at: tuple[str, int | None]) -> dict[str, Any]:
    return {
        "description": whole(text),
        "check_name": check,
        "fingerprint": key,
        "severity": severity,
        "location": {"path": whole(at[0]), "lines": {"begin": at[1] or 1}},
    }


def _fingerprint(taken: dict[str, int], *parts: str) -> str:
    """Return a fingerprint that no other issue of the report has: GitLab drops repeated ones.

    Releases are no part of it: checking one release more must not make every known issue look new.
    """
    key = "\x1f".join(parts)
    number = taken[key] = taken.get(key, -1) + 1
    return hashlib.sha256(f"{key}\x1f{number}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _severity(finding: Finding) -> str:
    """Map to GitLab's scale; a refusal is seen at once, so it blocks, and silent damage is next to it."""
    if finding.severity == "error":
        return "blocker" if finding.effect == "refused" else "critical"
    return "major" if finding.severity == "warning" else "info"
