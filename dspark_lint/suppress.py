"""What a project has decided about findings: other severities, ignores with a reason, a baseline of known ones.

Imported only where a configuration or a baseline says anything of the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.config import severity_of
from dspark_lint.finding import SEVERITIES


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dspark_lint.baseline import Baseline
    from dspark_lint.config import Config
    from dspark_lint.finding import CheckpointReport, Finding, Report, Result


class Outcome(NamedTuple):
    """A report after a project's decisions, and what they came to."""

    report: Report
    ignored: int
    """Findings, each counted once a release, that an ignore holds back."""
    known: int
    """Those that the baseline holds back."""
    messages: tuple[str, ...]
    """What a maintainer should hear: unused ignores, stale entries."""


class _Tally:
    """What is counted on the way through a report."""

    def __init__(self) -> None:
        self.ignored = self.known = 0
        self.used: set[tuple[int, str]] = set()
        """Ignores, by their number, and of each the prefixes that held something back."""
        self.met: dict[int, set[str]] = {}
        """Ignores whose path matched a checkpoint, and the rules that came to a conclusion there."""


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
    tally = _Tally()
    decided, unheld = [], []
    for checkpoint in report.checkpoints:
        matching = _matching(config, checkpoint)
        for i in matching:
            tally.met.setdefault(i, set()).update(concluded(checkpoint, selected))
        ruled = [(r, _ruled(r, config, matching, tally)) for r in checkpoint.results]
        unheld.append(checkpoint._replace(results=tuple(r._replace(findings=kept) for r, kept in ruled)))
        results = []
        for result, findings in ruled:
            new = tuple(f for f in findings if baseline is None or not baseline.holds(checkpoint, f))
            tally.known += len(findings) - len(new)
            results.append(held_back(result, new))
        decided.append(checkpoint._replace(results=tuple(results)))
    messages = _unused(config, tally, whole=whole) if config is not None else []
    if baseline is not None:
        rules = {baseline.place(c): concluded(c, selected) for c in report.checkpoints}
        messages += _stale(baseline, report._replace(checkpoints=tuple(unheld)), rules)
    return Outcome(report._replace(checkpoints=tuple(decided)), tally.ignored, tally.known, tuple(messages))


def concluded(checkpoint: CheckpointReport, selected: frozenset[str] | None) -> set[str]:
    """Return the rules whose silence about a checkpoint means something, under any of the releases.

    Not those of which a part was left out, nor those that another finding keeps quiet.
    """
    rules: set[str] = set()
    for result in checkpoint.results:
        partly = {what.partition(" ")[0] for what, _ in result.unchecked} | {rule for rule, _ in result.covers}
        rules |= set(result.checked) - partly
    return rules if selected is None else rules & selected


def held_back(result: Result, kept: tuple[Finding, ...]) -> Result:
    """Return a result with only some of its findings.

    What one that is held back kept quiet was not checked, and a draft that is refused in a known way is not thereby
    judged: the same as where the rule is left out by --ignore.
    """
    gone = {f.rule for f in result.findings} - {f.rule for f in kept}
    lost = {rule: cover for rule, cover in result.covers if cover in gone}
    return result._replace(
        findings=kept,
        checked=tuple(rule for rule in result.checked if rule not in lost),
        unchecked=(
            *result.unchecked,
            *((rule, f"{cover} stands before it, and is held back") for rule, cover in lost.items()),
        ),
        covers=tuple(pair for pair in result.covers if pair[0] not in lost),
        judged=result.fits or any(f.effect == "refused" for f in kept),
    )


def _ruled(result: Result, config: Config | None, matching: Sequence[int], tally: _Tally) -> tuple[Finding, ...]:
    """Return the findings with a project's severities and without those that it ignores."""
    if config is None:
        return result.findings
    kept = []
    for found in result.findings:
        if hit := _ignored(config, matching, found.rule):
            tally.used.add(hit)
            tally.ignored += 1
            continue
        severity = severity_of(found.rule, config.severity)
        kept.append(found if severity is None else found._replace(severity=severity))
    return tuple(sorted(kept, key=lambda f: SEVERITIES.index(f.severity)))


def _matching(config: Config | None, checkpoint: CheckpointReport) -> list[int]:
    if config is None:
        return []
    return [i for i, one in enumerate(config.ignores) if config.matches(one.path, checkpoint.root)]


def _ignored(config: Config, matching: Sequence[int], rule: str) -> tuple[int, str] | None:
    for i in matching:
        prefix = next((p for p in config.ignores[i].rules if rule.startswith(p)), None)
        if prefix is not None:
            return i, prefix
    return None


def _unused(config: Config, tally: _Tally, *, whole: bool) -> list[str]:
    told = []
    for i, one in enumerate(config.ignores):
        if i not in tally.met:
            if whole:
                told.append(f"{config.file}: ignores[{i}]: no checkpoint matches {one.path}")
            continue
        told += [
            f"{config.file}: ignores[{i}]: {prefix} of {one.path} ignores nothing any more; take it out"
            for prefix in one.rules
            if (i, prefix) not in tally.used and any(rule.startswith(prefix) for rule in tally.met[i])
        ]
    return told


def _stale(baseline: Baseline, report: Report, rules: Mapping[str, set[str]]) -> list[str]:
    releases = dict.fromkeys(r.release for c in report.checkpoints for r in c.results)
    return [
        f"{baseline.file}: {entry.rule} of {entry.checkpoint} ({entry.subject or entry.file}) is stale: "
        f"it is not found under {', '.join(releases)}; --write-baseline takes it out"
        if entry.checkpoint in rules
        else f"{baseline.file}: {entry.rule} of {entry.checkpoint} ({entry.subject or entry.file}) is stale: "
        "the checkpoint is no longer there; --write-baseline takes it out"
        for entry in baseline.stale(report, rules)
    ]
