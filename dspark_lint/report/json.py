"""The fixed JSON document, and the same line by line for fleets."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

from dspark_lint.report.lines import Lines


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding, Report, Result
    from dspark_lint.report.base import RenderOptions


SCHEMA_VERSION = 1


def finding_dict(finding: Finding, line: int | None, column: int | None) -> dict[str, Any]:
    """Return a finding as the document holds it."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "effect": finding.effect,
        "file": finding.file,
        "pointer": finding.pointer,
        "tensor": finding.tensor,
        "module": finding.module,
        "line": line,
        "column": column,
        "message": finding.message,
        "expected": finding.expected,
        "found": finding.found,
        "count": finding.count,
        "source": finding.source,
        "fix": finding.fix,
        "fingerprint": finding.fingerprint,
    }


def _result(result: Result, lines: Lines) -> dict[str, Any]:
    return {
        "runtime": result.runtime,
        "release": result.release,
        "verdict": result.verdict,
        "architecture": result.architecture,
        "method": result.method,
        "findings": [finding_dict(f, *lines.of(f)) for f in result.findings],
        "checked": list(result.checked),
        "unchecked": [{"what": what, "reason": reason} for what, reason in result.unchecked],
        "notes": list(result.notes),
    }


def checkpoint_dict(checkpoint: CheckpointReport) -> dict[str, Any]:
    """Return one checkpoint as the document holds it."""
    lines = Lines(checkpoint)
    return {
        "path": checkpoint.path,
        "architecture": checkpoint.architecture,
        "dialect": checkpoint.dialect,
        "tensors": checkpoint.tensors,
        "results": [_result(r, lines) for r in checkpoint.results],
    }


def _tool(report: Report) -> dict[str, Any]:
    return {"name": "dspark-lint", "version": report.tool_version}


class JsonReporter:
    """One document."""

    def render(self, report: Report, options: RenderOptions) -> str:  # noqa: ARG002 - the protocol's signature
        """Return the document; ASCII, so that no name can break the reader's encoding."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "tool": _tool(report),
            "checkpoints": [checkpoint_dict(c) for c in report.checkpoints],
        }
        return json.dumps(document, indent=2) + "\n"


class JsonLinesReporter:
    """A line a checkpoint."""

    def render(self, report: Report, options: RenderOptions) -> str:  # noqa: ARG002 - the protocol's signature
        """Return one JSON object a line, each complete in itself."""
        rows = ({"schema_version": SCHEMA_VERSION, "tool": _tool(report), **checkpoint_dict(c)} for c in report.checkpoints)
        return "".join(json.dumps(row) + "\n" for row in rows)
