"""One fault over several releases, counted and told once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.finding import SEVERITIES


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dspark_lint.finding import CheckpointReport, Finding, Report, Result


_RUNTIMES = {"vllm": "vLLM"}


def runtime_name(runtime: str) -> str:
    """Return a runtime's name as people write it."""
    return _RUNTIMES.get(runtime, runtime)


class Merged(NamedTuple):
    """One fault, and the releases that have it."""

    finding: Finding
    """As the newest of the releases words it."""
    runtime: str
    releases: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    """``(release, source)`` where a release cites its code."""

    @property
    def source(self) -> str | None:
        """The cited code of the newest release that cites any: ``vLLM 0.32.0 path:line``."""
        if not self.sources:
            return None
        release, source = self.sources[-1]
        return f"{runtime_name(self.runtime)} {release} {source}"


def merge(results: Iterable[Result]) -> list[Merged]:
    """Join equal faults over the releases that have them, most severe first, else in order of first appearance.

    Equal is: the same subject, severity and effect; wording and cited line may differ. Several faults of
    one release with the same subject stay apart.
    """
    groups: dict[tuple[str, tuple[str, ...], str, str, int], list[tuple[Finding, str]]] = {}
    for result in results:
        seen: dict[tuple[str, tuple[str, ...], str, str], int] = {}
        for found in result.findings:
            key = (result.runtime, found.subject, found.severity, found.effect)
            seen[key] = seen.get(key, -1) + 1
            groups.setdefault((*key, seen[key]), []).append((found, result.release))
    merged = [
        Merged(
            pairs[-1][0],
            key[0],
            tuple(release for _, release in pairs),
            tuple((release, found.source) for found, release in pairs if found.source),
        )
        for key, pairs in groups.items()
    ]
    merged.sort(key=lambda one: SEVERITIES.index(one.finding.severity))
    return merged


def ranges(releases: Iterable[str], of: Sequence[str]) -> str:
    """Return releases compactly, runs of neighbours in `of` joined: ``0.25.0-0.27.1, 0.33.0``."""
    wanted = set(releases)
    runs: list[list[str]] = [[]]
    for release in of:
        if release in wanted:
            runs[-1].append(release)
        else:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs if run)


def all_releases(report: Report) -> list[str]:
    """Return every release of a report once, in the order of the results."""
    return list(dict.fromkeys(r.release for c in report.checkpoints for r in c.results))


def grouped(results: Iterable[Result]) -> dict[str, dict[str, list[str]]]:
    """Return what was not checked: ``{reason: {rule or part: [releases]}}``."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for what, reason in result.unchecked:
            reasons.setdefault(reason, {}).setdefault(what, []).append(result.release)
    return reasons


def unjudged(checkpoint: CheckpointReport) -> str | None:
    """Return the sentence about the releases under which nothing was judged: silence would read as clean."""
    blind = [r for r in checkpoint.results if r.blind]
    if not blind:
        return None
    where = ranges((r.release for r in blind), [r.release for r in checkpoint.results])
    why = "; ".join(grouped(blind)) or "no reason was given"
    return f"nothing was judged under {runtime_name(blind[0].runtime)} {where}: {why}"


def counted(number: int, noun: str) -> str:
    """Return ``1 error``, ``2 errors``; ``info`` has no plural."""
    return f"{number} {noun}" if number == 1 or noun == "info" else f"{number} {noun}s"


def tally(findings: Iterable[Finding]) -> str:
    """Return ``2 errors, 1 warning``; empty when there is nothing."""
    number = dict.fromkeys(SEVERITIES, 0)
    for found in findings:
        number[found.severity] += 1
    return ", ".join(counted(n, severity) for severity, n in number.items() if n)
