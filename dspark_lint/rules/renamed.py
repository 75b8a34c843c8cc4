"""Missing tensors and strays that are the same under another name."""

from __future__ import annotations

import difflib
import re

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.contract.expr import UNKNOWN


if TYPE_CHECKING:
    from dspark_lint.inventory import Expected, Stray
    from dspark_lint.rules.base import Context


class Rename(NamedTuple):
    """A missing tensor and the stray that is most likely it under another name."""

    expected: Expected
    stray: Stray


#: Two names less alike than this are two things.
ALIKE = 0.55
#: Of more strays than this, with one shape and in one layer, none is a renamed tensor.
MOST = 200


def renames(ctx: Context) -> list[Rename]:
    """Pair missing tensors with strays of the same shape and a similar name.

    A module renamed in several tensors is looked for in the others too, however little alike their names are.
    """
    if ctx.renames is None:
        ctx.renames = _renames(ctx) if ctx.inventory.missing else []
    return ctx.renames


def _renames(ctx: Context) -> list[Rename]:
    pairs: list[Rename] = []
    strays = {
        s.canonical: s
        for s in ctx.inventory.strays
        if s.clause.get("effect") == "refused" or s.clause.get("then") == "dropped"
    }
    # By layer and shape: each missing tensor against every stray would be billions of comparisons in a large target.
    near: dict[tuple[str, ...], dict[tuple[int, ...], list[Stray]]] = {}
    for one in strays.values():
        near.setdefault(_numbers(one.canonical), {}).setdefault(_shape(ctx, one), []).append(one)
    for exp in ctx.inventory.missing:
        around = near.get(_numbers(exp.name), {})
        fitting = [s for shape, same in around.items() if _fits(exp, shape) for s in same if s.canonical in strays]
        scored = [(likeness(exp.name, s.canonical), s) for s in fitting] if len(fitting) <= MOST else []
        best = max((pair for pair in scored if pair[0] >= ALIKE), key=lambda pair: pair[0], default=None)
        if best is not None:
            pairs.append(Rename(exp, strays.pop(best[1].canonical)))
    found = Counter(substitution(pair) for pair in pairs)
    often = [(wanted, there) for (wanted, there), number in found.items() if number > 1 and wanted and there]
    paired = {pair.expected.name for pair in pairs}
    for exp in ctx.inventory.missing:
        for wanted, there in often if exp.name not in paired else ():
            stray = strays.get(_substituted(exp.name, wanted, there))
            if stray is not None and _fits(exp, _shape(ctx, stray)):
                pairs.append(Rename(exp, strays.pop(stray.canonical)))
                break
    return pairs


def _fits(exp: Expected, shape: tuple[int, ...]) -> bool:
    if exp.shape is None or len(shape) != len(exp.shape):
        return False
    return all(want is UNKNOWN or want == have for want, have in zip(exp.shape, shape, strict=True))


def _shape(ctx: Context, stray: Stray) -> tuple[int, ...]:
    return tuple(ctx.inventory.tensors[stray.disk][1]["shape"])


def _numbers(name: str) -> tuple[str, ...]:
    """Return the numbers of layers, stages and experts in a name."""
    return tuple(re.findall(r"\.(\d+)\.", name))


def likeness(wanted: str, found: str) -> float:
    """Return how alike two tensor names are, about 0 to 1; other layer numbers make them unlike."""
    if _numbers(wanted) != _numbers(found):
        return 0.0
    if found.startswith(wanted + ".") or wanted.startswith(found + "."):
        return 0.9  # a bare parameter exported as a module's, or the other way round
    tail = found.rpartition(".")[2] == wanted.rpartition(".")[2]
    core_w, core_f = wanted.rpartition(".")[0] or wanted, found.rpartition(".")[0] or found
    return difflib.SequenceMatcher(None, core_w, core_f).ratio() + (0.05 if tail else -0.2)


def substitution(pair: Rename) -> tuple[str, str]:
    """Return the parts in which the two names differ: (``attention_conv``, ``attn_conv``)."""
    wanted, found = pair.expected.name.split("."), pair.stray.canonical.split(".")
    while wanted and found and wanted[0] == found[0]:
        wanted, found = wanted[1:], found[1:]
    while wanted and found and wanted[-1] == found[-1]:
        wanted, found = wanted[:-1], found[:-1]
    return ".".join(wanted), ".".join(found)


def _substituted(name: str, wanted: str, there: str) -> str:
    return re.sub(rf"(?<![^.]){re.escape(wanted)}(?![^.])", lambda _m: there, name, count=1)
