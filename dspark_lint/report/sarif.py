"""SARIF 2.1.0, in the part of it that code scanning services read."""

from __future__ import annotations

import json

from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dspark_lint.report.base import RuleInfo
from dspark_lint.report.escape import whole
from dspark_lint.report.located import ci_base, is_address, located, relative
from dspark_lint.report.merge import all_releases, grouped, ranges, runtime_name


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import CheckpointReport, Report
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.located import Located


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: The root that relative addresses count from; its own address is left to the reader.
ROOT = "%SRCROOT%"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SUBJECTS = (("pointer", "property"), ("tensor", "variable"), ("module", "module"))


class SarifReporter:
    """One run; one result a fault, over all the releases that have it."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the log; ASCII."""
        releases = all_releases(report)
        base = ci_base(options)
        found = list(located(report, options, base))
        rules = _rules(found, options)
        index = {rule.id: i for i, rule in enumerate(rules)}
        taken: dict[str, int] = {}
        run = {
            "tool": {
                "driver": {
                    "name": "dspark-lint",
                    "version": report.tool_version,
                    "rules": [_descriptor(rule) for rule in rules],
                }
            },
            "invocations": [
                {
                    "executionSuccessful": True,
                    "toolExecutionNotifications": [n for c in report.checkpoints for n in _unchecked(c, index, base)],
                }
            ],
            "originalUriBaseIds": {ROOT: {"description": {"text": "The directory the tool was run in."}}},
            "columnKind": "unicodeCodePoints",
            "results": [_result(one, releases, index, taken, base) for one in found],
            "properties": {"checkpoints": [_verdicts(c, base) for c in report.checkpoints]},
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules(found: list[Located], options: RenderOptions) -> list[RuleInfo]:
    """Return every rule, and a stand-in for a finding whose rule is not among them."""
    rules = dict(options.rules)
    for one in found:
        if one.finding.rule not in rules:
            rules[one.finding.rule] = RuleInfo(one.finding.rule, one.finding.rule, "", "", one.finding.severity)
    return list(rules.values())


def _descriptor(rule: RuleInfo) -> dict[str, Any]:
    why = rule.rationale or rule.title
    entry: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": whole(rule.title)},
        "fullDescription": {"text": whole(why)},
        "help": {
            "text": whole(f"{why}\n\n{rule.remedy}" if rule.remedy else why),
            "markdown": whole(f"{why}\n\n**What to do:** {rule.remedy}" if rule.remedy else why),
        },
        "defaultConfiguration": {"level": _LEVELS.get(rule.default_severity, "warning")},
        "properties": {"tags": [rule.id[:3]], "problem.severity": _problem(rule.default_severity)},
    }
    if rule.url:
        entry["helpUri"] = rule.url
    return entry


def _problem(severity: str) -> str:
    return "recommendation" if severity == "info" else severity


def _result(
    one: Located, releases: list[str], index: dict[str, int], taken: dict[str, int], base: str
) -> dict[str, Any]:
    found = one.finding
    text = found.message
    if len(releases) > 1:
        text += f" [{runtime_name(one.merged.runtime)} {ranges(one.merged.releases, releases)}]"
    if found.fix:
        text += f"\nFix: {found.fix}"
    identity = f"{found.fingerprint}:{found.severity}:{found.effect}"
    key = f"{relative(one.checkpoint, None, base)}\x1f{identity}"
    number = taken[key] = taken.get(key, 0) + 1
    properties: dict[str, Any] = {
        "checkpoint": one.checkpoint.path,
        "runtime": one.merged.runtime,
        "releases": list(one.merged.releases),
        "effect": found.effect,
        "count": found.count,
        "pointer": found.pointer,
        "tensor": found.tensor,
        "module": found.module,
        "expected": found.expected,
        "found": found.found,
        "fix": found.fix,
        "source": found.source,
    }
    return {
        "ruleId": found.rule,
        "ruleIndex": index[found.rule],
        "level": _LEVELS[found.severity],
        "message": {"text": whole(_literal(text))},
        "locations": [_location(one)],
        "partialFingerprints": {
            "dsparkLint/v1": f"{identity}:{number}",
            # the one key that GitHub reads; without it, it would hash a line of a binary file
            "primaryLocationLineHash": f"{found.fingerprint[:16]}:{number}",
        },
        "properties": {k: whole(v) if isinstance(v, str) else v for k, v in properties.items() if v is not None},
    }


def _literal(text: str) -> str:
    """Escape what SARIF would read as an embedded link: ``[text](target)``."""
    if "](" not in text:
        return text
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _location(one: Located) -> dict[str, Any]:
    found = one.finding
    # GitHub takes no result without a first line; a binary file has no other
    region = {"startLine": one.place.line or 1}
    if one.place.column:
        region["startColumn"] = one.place.column
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact(one.path), "region": region}}
    logical = [
        {"fullyQualifiedName": whole(value), "kind": kind}
        for field, kind in _SUBJECTS
        if (value := getattr(found, field))
    ]
    if logical:
        location["logicalLocations"] = logical
    return location


def artifact(path: str) -> dict[str, Any]:
    """Return a path as a SARIF address: relative to the root where it lies below it, else absolute."""
    if is_address(path):
        scheme, _, rest = path.partition("://")
        return {"uri": f"{scheme}://{_quoted(rest)}"}
    if path.startswith("/"):
        return {"uri": f"file://{_quoted(path)}"}
    if PurePath(path).is_absolute():  # a drive
        return {"uri": f"file:///{_quoted(path)}"}
    return {"uri": _quoted(path), "uriBaseId": ROOT}


def _quoted(path: str) -> str:
    """Percent-encode a path; bytes of a file name that are no UTF-8 are encoded as they are."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"), safe="/")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return quote(whole(path).encode(), safe="/")


def _unchecked(checkpoint: CheckpointReport, index: dict[str, int], base: str) -> Iterator[dict[str, Any]]:
    """What was not checked: a notification for each reason."""
    order = [r.release for r in checkpoint.results]
    path = relative(checkpoint, None, base)
    for reason, whats in grouped(checkpoint.results).items():
        for what, releases in whats.items():
            text = f"{what} was not checked under {ranges(releases, order)}: {reason}"
            note: dict[str, Any] = {
                "level": "note",
                "message": {"text": whole(_literal(text))},
                "locations": [{"physicalLocation": {"artifactLocation": artifact(path)}}],
                "properties": {"releases": list(dict.fromkeys(releases))},
            }
            if what in index:
                note["associatedRule"] = {"id": what, "index": index[what]}
            yield note


def _verdicts(checkpoint: CheckpointReport, base: str) -> dict[str, Any]:
    return {
        "path": whole(relative(checkpoint, None, base)),
        "architecture": None if checkpoint.architecture is None else whole(checkpoint.architecture),
        "verdicts": {r.release: r.verdict for r in checkpoint.results},
        "notes": [whole(note) for note in dict.fromkeys(n for r in checkpoint.results for n in r.notes)],
    }
