"""Strays: tensors that the release has no place for, told in groups and as surplus layers."""

from __future__ import annotations

import difflib
import re

from typing import TYPE_CHECKING

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, config_file, finding, key_place
from dspark_lint.rules.explained import explained
from dspark_lint.rules.naming import dims, file_of
from dspark_lint.rules.sizes import among, told_by_checks
from dspark_lint.words import show


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding
    from dspark_lint.inventory import Stray


def unexpected(ctx: Context) -> Iterator[Finding]:
    """TEN002: a tensor that the release refuses because it has no place for it."""
    yield from _stray_groups(ctx, "TEN002", refused=True)


def dropped(ctx: Context) -> Iterator[Finding]:
    """TEN005: a tensor that the release throws away without a word."""
    yield from _stray_groups(ctx, "TEN005", refused=False)


def _stray_groups(ctx: Context, rule: str, *, refused: bool) -> Iterator[Finding]:
    known = explained(ctx)
    told = told_by_checks(ctx) if ctx.inventory.strays else set()
    excess = excess_layers(ctx)
    groups: dict[str, list[Stray]] = {}
    past: list[Stray] = []
    for stray in ctx.inventory.strays:
        effect = stray.clause.get("effect")
        if (
            stray.clause.get("then") == "ignored"
            or stray.clause.get("rule", rule) != rule
            or (effect == "refused") != refused
        ):
            continue
        if stray.disk in known.strays or among(told, stray.canonical):
            continue
        if excess and re.match(r"layers\.\d+\.", stray.canonical):
            past.append(stray)
            continue
        groups.setdefault(stray.key, []).append(stray)
    if past:
        yield _excess_finding(ctx, rule, excess, past)
    for strays in groups.values():
        yield _stray_finding(ctx, rule, strays)


def _stray_finding(ctx: Context, rule: str, strays: list[Stray]) -> Finding:
    clause = strays[0].clause
    names = [s.disk for s in strays]
    listed = ", ".join(show(n, 80) for n in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    refused = clause.get("effect") == "refused"
    told = "has no place in" if refused else "is thrown away by"
    if len(names) > 1:
        told = "have no place in" if refused else "are thrown away by"
    close = (
        difflib.get_close_matches(strays[0].canonical, list(ctx.inventory.expected), n=1, cutoff=0.8)
        if refused and len(names) == 1
        else []
    )
    return finding(
        ctx,
        rule,
        {"effect": "advice", **clause},
        f"{listed} {told} the model that vLLM {ctx.release} builds: {clause.get('says', '')}.",
        file=file_of(ctx, names[0]),
        tensor=names[0],
        expected=close[0] if close else "no such tensor",
        found=f"{names[0]} {dims(ctx.inventory.tensors[names[0]][1]['shape'])}",
        count=len(names),
        fix=f"rename it to {close[0]}, if that is what it is"
        if close
        else clause.get("fix") or ("leave it out of the export" if refused else None),
    )


def excess_layers(ctx: Context) -> list[int]:
    """Return the layers on disk at or past ``num_hidden_layers``, when the layers below are all there."""
    count = ctx.binding.get("num_hidden_layers") if "num_hidden_layers" in ctx.binding.keys else UNKNOWN
    if not isinstance(count, int) or any(e.name.startswith("layers.") for e in ctx.inventory.missing):
        return []
    numbers = sorted(
        {int(m.group(1)) for s in ctx.inventory.strays if (m := re.match(r"layers\.(\d+)\.", s.canonical))}
    )
    return numbers if numbers and numbers == list(range(count, count + len(numbers))) else []


def _excess_finding(ctx: Context, rule: str, layers: list[int], strays: list[Stray]) -> Finding:
    key = ctx.binding.keys["num_hidden_layers"]
    total = layers[-1] + 1
    clause = strays[0].clause
    outcome = "refuses the rest" if clause.get("effect") == "refused" else "throws the rest away"
    return finding(
        ctx,
        rule,
        {"effect": "advice", **clause},
        f"the files hold layers 0 to {layers[-1]}, but {key_place(key)} is {show(key.value)}"
        + (f" ({key.says})" if key.says else "")
        + f"; vLLM {ctx.release} {outcome}: {clause.get('says', '')}.",
        file=config_file(ctx),
        pointer=key.pointer,
        tensor=strays[0].disk,
        expected=f"num_hidden_layers {total}",
        found=show(key.value),
        count=len(strays),
        fix=f'"num_hidden_layers": {total}',
    )
