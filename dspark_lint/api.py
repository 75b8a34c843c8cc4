"""The Python interface: lint a checkpoint, get typed results; nothing is printed and nothing exits."""

from __future__ import annotations

import os

from typing import TYPE_CHECKING, Any

from dspark_lint import __version__
from dspark_lint.contract.model import load_contract
from dspark_lint.contract.releases import resolve
from dspark_lint.engine import judge
from dspark_lint.errors import UsageError
from dspark_lint.finding import CheckpointReport, Report
from dspark_lint.rules import REGISTRY
from dspark_lint.target import Target, read_target


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dspark_lint.binding import Binding
    from dspark_lint.checkpoint import Checkpoint
    from dspark_lint.scan.store import Bar, Store


__all__ = ["lint", "lint_checkpoint", "own_contracts", "rules_named"]


def lint(
    path: str | os.PathLike[str],
    *,
    vllm: str | Sequence[str] = "latest",
    target: str | os.PathLike[str] | None = None,
    speculative_config: Mapping[str, Any] | None = None,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    contracts: Iterable[str | os.PathLike[str]] = (),
    deep: bool = False,
    progress: Bar | None = None,
    allow_lfs_pointers: bool = False,
) -> Report:
    """Hold one checkpoint against one or several vLLM releases.

    `vllm` is a release, a range or a list of them (``"0.32"``, ``"0.27..0.33"``, ``"all"``). `target` is the target
    model's directory or config.json. `speculative_config` is vLLM's own flag as a mapping; without it the method is
    inferred and the result's notes say so. `select` and `ignore` are ids of rules, or prefixes of ids. `contracts` are
    contract files of one's own, whose releases `vllm` may then name. With `deep` all tensor data is read, once for all
    releases; `progress` is then given the number of bytes and returns a context manager that is called with numbers of
    bytes done. With `allow_lfs_pointers`, Git LFS pointers in the place of weights are no error, and what needs no
    weights is checked.

    A broken checkpoint is findings, not an exception. No configuration file is looked for. UsageError is raised for a
    path that does not exist, a target that cannot be read, a release without a contract, none at all, or an unknown
    rule; ContractError for a contract of one's own that cannot be used.
    """
    from dspark_lint.checkpoint import open_checkpoint  # noqa: PLC0415 - reading is not needed to import the API

    extra = own_contracts([os.fspath(file) for file in contracts])
    releases = resolve(vllm, tuple(extra))
    if not releases:
        raise UsageError(f"vllm={vllm!r}: names no release")
    chosen = None if select is None else rules_named("select", select)
    if left_out := rules_named("ignore", ignore):
        chosen = (frozenset(REGISTRY) if chosen is None else chosen) - left_out
    report = lint_checkpoint(
        open_checkpoint(os.fspath(path)),
        releases,
        target=read_target(os.fspath(target)) if target is not None else None,
        serve=speculative_config,
        select=chosen,
        deep=deep,
        progress=progress,
        allow_lfs_pointers=allow_lfs_pointers,
        extra=extra,
    )
    return Report((report,), __version__)


def rules_named(argument: str, prefixes: Iterable[str]) -> frozenset[str]:
    """Return the ids of the rules that ids or prefixes of ids name.

    Raises UsageError, which speaks of `argument`, for one that names none: a rule that is misspelt would be left out
    in silence.
    """
    named: set[str] = set()
    for prefix in (prefixes,) if isinstance(prefixes, str) else prefixes:
        hits = {rule for rule in REGISTRY if prefix and rule.startswith(prefix.upper())}
        if not hits:
            raise UsageError(f"{argument}={prefix!r}: no rule begins so; `dspark-lint rules` lists them")
        named |= hits
    return frozenset(named)


def lint_checkpoint(
    checkpoint: Checkpoint,
    releases: Sequence[str],
    *,
    target: Target | None = None,
    serve: Mapping[str, Any] | None = None,
    select: frozenset[str] | None = None,
    deep: bool = False,
    progress: Bar | None = None,
    allow_lfs_pointers: bool = False,
    extra: Mapping[str, str] | None = None,
    bound: Callable[[str, Binding], None] | None = None,
) -> CheckpointReport:
    """Hold an opened checkpoint against full release numbers.

    `bound` is shown each release and the checkpoint bound to it, for whoever needs more than findings.
    """
    results = []
    values: Store | None = None
    if deep:
        from dspark_lint.scan.store import Store  # noqa: PLC0415 - only for --deep

        values = Store(checkpoint.root_dir, progress)
    dialect: str | None = None
    for release in releases:
        result, binding = judge(
            checkpoint,
            load_contract(release, extra),
            target=target,
            serve=serve,
            selected=select,
            deep=values,
            allow_lfs_pointers=allow_lfs_pointers,
        )
        results.append(result)
        if binding is not None:
            dialect = binding.dialect
            if bound is not None:
                bound(release, binding)
    config = checkpoint.config.value
    written = config.get("architectures") if isinstance(config, dict) else None
    first = written[0] if isinstance(written, list) and written and isinstance(written[0], str) else None
    count = sum(
        len(checkpoint.header(e.name).tensors)
        for e in checkpoint.files
        if e.kind == "file" and e.name.endswith(".safetensors")
    )
    return CheckpointReport(checkpoint.path, checkpoint.root_dir, first, dialect, count, tuple(results))


def own_contracts(files: Sequence[str]) -> dict[str, str]:
    """Return {release: file} of contract files of one's own.

    Raises ContractError for a file that cannot be read or names no release.
    """
    found: dict[str, str] = {}
    for file in files:
        from dspark_lint.contract.load import release_of  # noqa: PLC0415 - only for --contract

        found[release_of(file)] = file
    return found
