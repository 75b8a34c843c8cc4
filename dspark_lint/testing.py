"""For an exporter's own tests: `assert_loadable` fails with the text report when a release would not serve the export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.api import lint
from dspark_lint.errors import UsageError
from dspark_lint.finding import SEVERITIES
from dspark_lint.rules import REGISTRY
from dspark_lint.suppress import held_back


if TYPE_CHECKING:
    import os

    from collections.abc import Iterable, Mapping, Sequence

    from dspark_lint.finding import CheckpointReport, Report, Severity


__all__ = ["assert_loadable"]


def assert_loadable(
    path: str | os.PathLike[str],
    vllm: str | Sequence[str] = "latest",
    *,
    target: str | os.PathLike[str] | None = None,
    speculative_config: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    fail_on: Severity = "warning",
    deep: bool = False,
) -> Report:
    """Assert that every release named by `vllm` serves the checkpoint as it was trained; return the report.

    `vllm`, `target`, `speculative_config` and `deep` are those of `dspark_lint.lint`. `allow` are ids of rules, or
    prefixes of ids, whose findings are accepted. `fail_on` is the least severity that fails: ``warning``, because a draft
    that loads and is served badly is what a test is for.

    Raises AssertionError whose message is the text report, also when a release could judge nothing: silence is no pass.
    Raises UsageError for a path that does not exist, a release without a contract, an unknown rule in `allow`, or a
    `fail_on` that is no severity.
    """
    __tracebackhide__ = True
    accepted = _rules(allow)
    if fail_on not in SEVERITIES:
        raise UsageError(f"fail_on={fail_on!r}: not one of {', '.join(SEVERITIES)}")
    report = lint(path, vllm=vllm, target=target, speculative_config=speculative_config, deep=deep)
    held = report._replace(checkpoints=tuple(_without(c, accepted) for c in report.checkpoints))
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    results = [r for c in held.checkpoints for r in c.results]
    failed = any(f.severity in failing for r in results for f in r.findings)
    blind = [r.release for r in results if r.blind]
    if failed or blind or not results:
        raise AssertionError(_message(held, blind))
    return report


def _rules(allow: Iterable[str]) -> frozenset[str]:
    prefixes = [allow] if isinstance(allow, str) else list(allow)
    accepted: set[str] = set()
    for prefix in prefixes:
        hits = {rule for rule in REGISTRY if prefix and rule.startswith(prefix.upper())}
        if not hits:
            raise UsageError(f"allow={prefix!r}: no rule begins so; `dspark-lint rules` lists them")
        accepted |= hits
    return frozenset(accepted)


def _without(checkpoint: CheckpointReport, accepted: frozenset[str]) -> CheckpointReport:
    return checkpoint._replace(
        results=tuple(held_back(r, tuple(f for f in r.findings if f.rule not in accepted)) for r in checkpoint.results)
    )


def _message(report: Report, blind: Sequence[str]) -> str:
    from dspark_lint.report import render  # noqa: PLC0415 - only for a failure
    from dspark_lint.report.base import RenderOptions  # noqa: PLC0415 - as above

    head = (
        f"{report.checkpoints[0].path} is not served as it was trained" if report.checkpoints else "nothing was checked"
    )
    if blind:
        head = f"{report.checkpoints[0].path}: nothing could be judged under vLLM {', '.join(blind)}"
    return f"{head}\n{render(report, 'text', RenderOptions())}"
