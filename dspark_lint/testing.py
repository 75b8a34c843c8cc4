"""For an exporter's own tests: `assert_loadable` fails with the text report when a release would not serve the export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.api import lint, rules_named
from dspark_lint.errors import UsageError
from dspark_lint.finding import SEVERITIES
from dspark_lint.suppress import held_back


if TYPE_CHECKING:
    import os

    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dspark_lint.finding import CheckpointReport, Report, Result, Severity


__all__ = ["assert_loadable"]


def assert_loadable(
    path: str | os.PathLike[str],
    vllm: str | Sequence[str] = "latest",
    *,
    target: str | os.PathLike[str] | None = None,
    speculative_config: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    require: Iterable[str] = (),
    fail_on: Severity = "warning",
    contracts: Iterable[str | os.PathLike[str]] = (),
    deep: bool = False,
) -> Report:
    """Assert that every release named by `vllm` serves the checkpoint as it was trained; return the report.

    `vllm`, `target`, `speculative_config`, `contracts` and `deep` are those of `dspark_lint.lint`. `allow` are ids of
    rules, or prefixes of ids, whose findings are accepted. `require` are those that must have been checked to the end:
    ``["TGT"]`` fails a test that forgot its target. `fail_on` is the least severity that fails: ``warning``, because a
    draft that loads and is served badly is what a test is for.

    Raises AssertionError whose message is the text report, also when a release could judge nothing: silence is no pass.
    Raises UsageError for a path that does not exist, a release without a contract, an unknown rule in `allow` or
    `require`, or a `fail_on` that is no severity.
    """
    __tracebackhide__ = True
    accepted, required = rules_named("allow", allow), rules_named("require", require)
    if fail_on not in SEVERITIES:
        raise UsageError(f"fail_on={fail_on!r}: not one of {', '.join(SEVERITIES)}")
    report = lint(path, vllm=vllm, target=target, speculative_config=speculative_config, contracts=contracts, deep=deep)
    held = report._replace(checkpoints=tuple(_without(c, accepted) for c in report.checkpoints))
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    results = [r for c in held.checkpoints for r in c.results]
    wrong = [f"{path}: {sentence}" for sentence in _not_checked(results, required)]
    if any(f.severity in failing for r in results for f in r.findings):
        wrong.insert(0, f"{path} is not served as it was trained")
    if wrong:
        raise AssertionError("\n".join([*wrong, _text(held)]))
    return report


def _not_checked(results: Sequence[Result], required: frozenset[str]) -> Iterator[str]:
    """Yield a sentence on the releases that could judge nothing, and one on rules not checked for one reason."""
    if blind := [result.release for result in results if result.blind]:
        yield f"nothing could be judged under vLLM {', '.join(blind)}"
    gaps: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if not result.blind:
            for rule, why in _gaps(result, required):
                gaps.setdefault((result.release, why), []).append(rule)
    releases: dict[tuple[str, str], list[str]] = {}
    for (release, why), rules in gaps.items():
        releases.setdefault((", ".join(rules), why), []).append(release)
    for (rules_, why), where in releases.items():
        yield f"not checked under vLLM {', '.join(where)}: {rules_} ({why})"


def _gaps(result: Result, required: frozenset[str]) -> list[tuple[str, str]]:
    """Return the required rules of which something was not checked, each with the reason."""
    reasons = {what.partition(" ")[0]: why for what, why in result.unchecked}
    missing = required - (set(result.checked) - reasons.keys())
    return [(rule, reasons.get(rule, "not reached")) for rule in sorted(missing)]


def _without(checkpoint: CheckpointReport, accepted: frozenset[str]) -> CheckpointReport:
    return checkpoint._replace(
        results=tuple(held_back(r, tuple(f for f in r.findings if f.rule not in accepted)) for r in checkpoint.results)
    )


def _text(report: Report) -> str:
    from dspark_lint.report import render  # noqa: PLC0415 - only for a failure
    from dspark_lint.report.base import RenderOptions  # noqa: PLC0415 - as above

    return render(report, "text", RenderOptions())
