"""What a project has decided about findings: other severities, ignores with a reason, a baseline of known ones.

Imported only where a configuration or a baseline says anything of the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.config import severity_of
from dspark_lint.finding import SEVERITIES


if TYPE_CHECKING:
    from collections.abc import Sequence

    from dspark_lint.baseline import Baseline
    from dspark_lint.config import Config
    from dspark_lint.finding import CheckpointReport, Finding, Report


class Outcome(NamedTuple):
    """A report after a project's decisions, and what they came to."""

    report: Report
    ignored: int
    """Findings, each counted once a release, that an ignore holds back."""
    known: int
    """Those that the baseline holds back."""
    messages: tuple[str, ...]
    """What a maintainer should hear: unused ignores, stale entries."""


def decide(
    report: Report,
    config: Config | None,
    baseline: Baseline | None,
    *,
    selected: frozenset[str] | None = None,
    whole: bool = False,
) -> Outcome:
    """Apply severities, then ignores, then the baseline.

    `selected` are the rules that were asked for, None for all: of others it cannot be said that they no longer fire.
    `whole`: the run checks everything that the configuration names, so that an ignore for a path that no checkpoint
    matched is one too many.
    """
    used: set[tuple[int, str]] = set()
    met: set[int] = set()
    ran: set[str] = set()
    ignored = known = 0
    checkpoints = []
    weighed = []
    for checkpoint in report.checkpoints:
        matching = _matching(config, checkpoint)
        met.update(matching)
        results, plain = [], []
        for result in checkpoint.results:
            ran.update(result.checked if selected is None else selected.intersection(result.checked))
            kept: list[Finding] = []
            all_of_it: list[Finding] = []
            for found in result.findings:
                severity = severity_of(found.rule, config.severity) if config is not None else None
                one = found._replace(severity=severity) if severity is not None else found
                if hit := _ignored(config, matching, one.rule):
                    used.add(hit)
                    ignored += 1
                    continue
                all_of_it.append(one)
                if baseline is not None and baseline.holds(checkpoint, one):
                    known += 1
                else:
                    kept.append(one)
            kept.sort(key=lambda f: SEVERITIES.index(f.severity))
            results.append(result._replace(findings=tuple(kept)))
            plain.append(result._replace(findings=tuple(all_of_it)))
        checkpoints.append(checkpoint._replace(results=tuple(results)))
        weighed.append(checkpoint._replace(results=tuple(plain)))
    messages = [*_unused(config, used, met, ran, whole=whole)]
    if baseline is not None:
        messages += [
            f"{baseline.file}: {entry.rule} of {entry.checkpoint} ({entry.subject or entry.file}) is stale: "
            "it is no longer found; --write-baseline takes it out"
            for entry in baseline.stale(report._replace(checkpoints=tuple(weighed)), ran)
        ]
    return Outcome(report._replace(checkpoints=tuple(checkpoints)), ignored, known, tuple(messages))


def _matching(config: Config | None, checkpoint: CheckpointReport) -> list[int]:
    if config is None:
        return []
    return [i for i, one in enumerate(config.ignores) if config.matches(one.path, checkpoint.root)]


def _ignored(config: Config | None, matching: Sequence[int], rule: str) -> tuple[int, str] | None:
    if config is None:
        return None
    for i in matching:
        prefix = next((p for p in config.ignores[i].rules if rule.startswith(p)), None)
        if prefix is not None:
            return i, prefix
    return None


def _unused(
    config: Config | None, used: set[tuple[int, str]], met: set[int], ran: set[str], *, whole: bool
) -> list[str]:
    if config is None:
        return []
    told = []
    for i, one in enumerate(config.ignores):
        if i not in met:
            if whole:
                told.append(f"{config.file}: ignores[{i}]: no checkpoint matches {one.path}")
            continue
        told += [
            f"{config.file}: ignores[{i}]: {prefix} of {one.path} ignores nothing any more; take it out"
            for prefix in one.rules
            if (i, prefix) not in used and any(rule.startswith(prefix) for rule in ran)
        ]
    return told
