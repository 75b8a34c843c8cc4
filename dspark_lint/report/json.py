"""The fixed JSON document, and the same line by line for fleets; their schemas lie in ``schemas/``."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

from dspark_lint.report.escape import whole
from dspark_lint.report.lines import Lines


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding, Report, Result
    from dspark_lint.report.base import RenderOptions
    from dspark_lint.report.lines import Place


SCHEMA_VERSION = 1


class JsonReporter:
    """One document."""

    def render(self, report: Report, options: RenderOptions) -> str:  # noqa: ARG002 - the protocol's signature
        """Return the document; ASCII, so that no name can break the reader's encoding."""
        document = {**_head(report), "checkpoints": [checkpoint_dict(c) for c in report.checkpoints]}
        return json.dumps(document, indent=2) + "\n"


class JsonLinesReporter:
    """A line a checkpoint."""

    def render(self, report: Report, options: RenderOptions) -> str:  # noqa: ARG002 - the protocol's signature
        """Return one JSON object a line, each complete in itself; nothing when there is no checkpoint."""
        head = _head(report)
        return "".join(json.dumps({**head, **checkpoint_dict(c)}) + "\n" for c in report.checkpoints)


def _head(report: Report) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "tool": {"name": "dspark-lint", "version": report.tool_version}}


def checkpoint_dict(checkpoint: CheckpointReport) -> dict[str, Any]:
    """Return one checkpoint as the document holds it."""
    lines = Lines(checkpoint)
    return {
        "path": whole(checkpoint.path),
        "architecture": _whole(checkpoint.architecture),
        "dialect": _whole(checkpoint.dialect),
        "tensors": checkpoint.tensors,
        "results": [_result(r, lines) for r in checkpoint.results],
    }


def _result(result: Result, lines: Lines) -> dict[str, Any]:
    return {
        "runtime": result.runtime,
        "release": result.release,
        "verdict": result.verdict,
        "architecture": _whole(result.architecture),
        "method": _whole(result.method),
        "findings": [finding_dict(f, lines.of(f)) for f in result.findings],
        "checked": list(result.checked),
        "unchecked": [{"what": whole(what), "reason": whole(reason)} for what, reason in result.unchecked],
        "notes": [whole(note) for note in result.notes],
    }


def finding_dict(finding: Finding, place: Place) -> dict[str, Any]:
    """Return a finding as the document holds it."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "effect": finding.effect,
        "file": _whole(finding.file),
        "pointer": _whole(finding.pointer),
        "tensor": _whole(finding.tensor),
        "module": _whole(finding.module),
        "line": place.line,
        "column": place.column,
        "message": whole(finding.message),
        "expected": _whole(finding.expected),
        "found": _whole(finding.found),
        "count": finding.count,
        "source": _whole(finding.source),
        "fix": _whole(finding.fix),
        "fingerprint": finding.fingerprint,
    }


def _whole(text: str | None) -> str | None:
    return None if text is None else whole(text)
