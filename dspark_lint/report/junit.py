"""JUnit XML: a suite a checkpoint and release, a case a rule, so that "not checked" is seen."""

from __future__ import annotations

import re
import time

from typing import TYPE_CHECKING

from dspark_lint.report.escape import safe
from dspark_lint.report.lines import Lines
from dspark_lint.report.located import relative
from dspark_lint.report.merge import runtime_name
from dspark_lint.report.places import subject


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding, Report, Result
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.lines import Place


#: What XML 1.0 cannot hold, not even as a reference.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TEXT = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord("\r"): "&#13;"}
_ATTRIBUTE = {**_TEXT, ord('"'): "&quot;", ord("\n"): "&#10;", ord("\t"): "&#9;"}


class JunitReporter:
    """Errors and warnings fail their case, infos are printed by the suite, what was not checked is skipped."""

    def render(self, report: Report, options: RenderOptions) -> str:
        """Return the document; the suites carry what both Ant's and Jenkins' schema ask for."""
        epoch = options.environ.get("SOURCE_DATE_EPOCH", "")
        seconds = int(epoch) if epoch.isascii() and epoch.isdigit() and len(epoch) < 12 else None
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        out = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
        number = 0
        for checkpoint in report.checkpoints:
            lines = Lines(checkpoint)
            for result in checkpoint.results:
                out += _suite(checkpoint, result, lines, options, f'id="{number}" timestamp="{stamp}"')
                number += 1
        out.append("</testsuites>")
        return "\n".join(out) + "\n"


def _suite(
    checkpoint: CheckpointReport, result: Result, lines: Lines, options: RenderOptions, identity: str
) -> list[str]:
    path = relative(checkpoint, None, str(options.base_dir))
    release = f"{runtime_name(result.runtime)} {result.release}"
    # readers split a class name at its dots: the package is the release, the class the checkpoint
    where = f"{result.runtime}-{result.release}".replace(".", "_") + "." + path.replace(".", "_")
    failing: dict[str, list[Finding]] = {}
    infos: list[Finding] = []
    for found in result.findings:
        if found.severity == "info":
            infos.append(found)
        else:
            failing.setdefault(found.rule, []).append(found)
    skipped: dict[str, list[str]] = {}
    for what, why in result.unchecked:
        if what not in failing:
            skipped.setdefault(what, []).append(why)
    if result.verdict == "unchecked" and not skipped:
        skipped["verdict"] = ["nothing was judged"]
    passed = [rule for rule in result.checked if rule not in failing and rule not in skipped]
    known = dict.fromkeys((*options.rules, *result.checked, *failing, *skipped))
    cases: list[str] = []
    for rule in known:
        if rule in failing:
            cases += _case(rule, where, options, _failure(failing[rule], lines))
        elif rule in skipped:
            cases += _case(rule, where, options, f'<skipped message="{_attribute("; ".join(skipped[rule]))}"/>')
        elif rule in passed:
            cases += _case(rule, where, options, "")
    counts = f'tests="{len(failing) + len(skipped) + len(passed)}" failures="{len(failing)}" skipped="{len(skipped)}"'
    name = _attribute(f"{path} {release}")
    facts = {
        "checkpoint": checkpoint.path,
        "runtime": result.runtime,
        "release": result.release,
        "verdict": result.verdict,
        "architecture": checkpoint.architecture or "",
        "dialect": checkpoint.dialect or "",
        "tensors": str(checkpoint.tensors),
        "method": result.method or "",
    }
    told = "\n".join([*result.notes, *(_told(f, lines.of(f)) for f in infos)])
    package = _attribute(where.rpartition(".")[0])
    return [
        f'  <testsuite name="{name}" package="{package}" {identity} hostname="localhost" {counts} errors="0" time="0">',
        "    <properties>",
        *(f'      <property name="{key}" value="{_attribute(value)}"/>' for key, value in facts.items()),
        "    </properties>",
        *cases,
        f"    <system-out>{_text(told)}</system-out>",
        "    <system-err></system-err>",
        "  </testsuite>",
    ]


def _case(rule: str, where: str, options: RenderOptions, outcome: str) -> list[str]:
    title = options.rules[rule].title if rule in options.rules else ""
    head = f'    <testcase name="{_attribute(f"{rule} {title}".strip())}" classname="{_attribute(where)}" time="0"'
    return [f"{head}>", f"      {outcome}", "    </testcase>"] if outcome else [f"{head}/>"]


def _failure(findings: list[Finding], lines: Lines) -> str:
    """Return the one failure that a case may have, with every finding of the rule in it."""
    worst = "error" if any(f.severity == "error" for f in findings) else "warning"
    message = findings[0].message + (f" (and {len(findings) - 1} more)" if len(findings) > 1 else "")
    body = "\n\n".join(_told(f, lines.of(f)) for f in findings)
    return f'<failure type="{worst}" message="{_attribute(message)}">{_text(body)}</failure>'


def _told(finding: Finding, place: Place) -> str:
    """Return a finding in plain text."""
    where = (finding.file or "") + (f":{place.line}:{place.column}" if place.line else "")
    about = subject(finding)
    head = "  ".join(part for part in (f"{finding.severity} {finding.rule}", where, about) if part)
    if finding.count > 1:
        head += f"  (x{finding.count})"
    rows = [head, finding.message]
    for label, value in (
        ("expected", finding.expected),
        ("found", finding.found),
        ("fix", finding.fix),
        ("source", finding.source),
    ):
        if value is not None:
            rows.append(f"{label}: {value}")
    return "\n".join(rows)


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda match: safe(match.group()), text)


def _text(text: str) -> str:
    return _legal(text).translate(_TEXT)


def _attribute(text: str) -> str:
    return _legal(text).translate(_ATTRIBUTE)
