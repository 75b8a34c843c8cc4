"""What one closer look at the names on disk explains: a prefix, shifted layers, a renamed module, fused tensors."""

from __future__ import annotations

import re

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.rules.renamed import renames


if TYPE_CHECKING:
    from dspark_lint.rules.base import Context


def prefix_of(ctx: Context) -> str | None:
    """Return a prefix that, taken off, gives most strays a place; None when there is no such prefix."""
    strays = [s.canonical for s in ctx.inventory.strays if s.clause.get("effect") or s.clause.get("then") == "dropped"]
    wanted = set(ctx.inventory.expected)
    heads = Counter(s.split(".", 1)[0] + "." for s in strays if "." in s)
    for head, number in heads.most_common(3):
        homes = sum(
            1 for s in strays if s.startswith(head) and (s[len(head) :] in wanted or _fused_home(ctx, s[len(head) :]))
        )
        if homes >= 2 and homes >= number * 0.6:
            return head
    return None


def _fused_home(ctx: Context, name: str) -> bool:
    generic = re.sub(r"\d+", "{i}", name, count=1)
    return generic in ctx.binding.family.get("fused", {})


def layer_shift(ctx: Context) -> int | None:
    """Return by how much the layer numbers on disk are shifted, when a shift explains every missing layer tensor."""
    wanted = {exp.name for exp in ctx.inventory.missing}
    strays = {s.canonical for s in ctx.inventory.strays if s.canonical.startswith("layers.")}
    first = sorted({int(m.group(1)) for s in strays if (m := re.match(r"layers\.(\d{1,9})\.", s))})
    layered = [name for name in wanted if re.match(r"layers\.\d+\.", name)]
    if not layered:
        return None
    return next((shift for shift in first if shift and all(_moved(name, shift) in strays for name in layered)), None)


def _moved(name: str, by: int) -> str:
    """Return the name of the same tensor of another layer."""
    layers, number, rest = name.split(".", 2)
    return f"{layers}.{int(number) + by}.{rest}"


class _Explained(NamedTuple):
    """What one closer look at names already accounts for."""

    missing: set[str]
    strays: set[str]


def explained(ctx: Context) -> _Explained:
    """Return what TEN003 accounts for, so that TEN001 and TEN002 stay quiet about it."""
    prefix = prefix_of(ctx)
    if prefix:
        strays = {s.disk for s in ctx.inventory.strays if s.canonical.startswith(prefix)}
        return _Explained({e.name for e in ctx.inventory.missing}, strays)
    shift = layer_shift(ctx)
    if shift:
        return _Explained(
            {e.name for e in ctx.inventory.missing if e.name.startswith("layers.")},
            {s.disk for s in ctx.inventory.strays if s.canonical.startswith("layers.")},
        )
    pairs = renames(ctx)
    return _Explained({p.expected.name for p in pairs}, {p.stray.disk for p in pairs})
