"""VAL007: the projections that one module is fused from, and the scales that must be one number for all of them."""

from __future__ import annotations

import math

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, Rule, finding, plural
from dspark_lint.rules.val_deep import dropped, listed


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding


#: A ratio up to this is rounding, not another scale.
ALIKE = 1.01


class _Apart(NamedTuple):
    """A fused module whose projections have different scales."""

    module: str
    disks: tuple[str, ...]
    """The scales on disk, the one that is furthest off first."""
    ratio: float
    clause: Mapping[str, Any]


def unequal_scales(ctx: Context) -> Iterator[Finding]:
    """VAL007: scales of which a fused module takes one for all its projections, and that differ."""
    apart = list(_apart(ctx))
    if not apart:
        return
    worst = max(apart, key=lambda one: one.ratio)
    disk, *others = worst.disks
    more = f" and {plural(len(apart) - 1, 'module')} more" if len(apart) > 1 else ""
    yield finding(
        ctx,
        "VAL007",
        worst.clause,
        f"{disk} differs from {listed(others)} by a factor of {worst.ratio:.4g}, and {worst.module}{more} takes one for all of them; vLLM {ctx.release}: {worst.clause['says']}.",
        file=ctx.inventory.tensors[disk][0],
        tensor=disk,
        expected="one scale for the projections of a fused module",
        found=f"a factor of {worst.ratio:.4g}",
        count=len(apart),
        fix="quantize the fused projections with a shared scale",
    )


def _apart(ctx: Context) -> Iterator[_Apart]:
    fit = ctx.inventory.fit
    passed = dropped(ctx) if fit is not None and fit.modules else set()
    for module in fit.modules if fit is not None else ():
        if len(module.holds) < 2 or module.built.scheme is None or module.built.scheme is UNKNOWN:
            continue
        scheme = ctx.contract["quantization"]["schemes"][module.built.scheme]
        for leaf, clause in scheme["tensors"].items():
            if "across" not in clause:
                continue
            numbers = {
                disk: value
                for name in module.holds
                if (disk := ctx.inventory.disk_of.get(f"{name}.{leaf}")) is not None
                and disk not in passed
                and (value := _number(ctx, disk)) is not None
            }
            if len(numbers) < 2:
                continue
            taken = max(numbers.values())
            furthest = min(numbers, key=numbers.__getitem__)
            if taken > ALIKE * numbers[furthest]:
                disks = (furthest, *(disk for disk in numbers if disk != furthest))
                yield _Apart(module.name, disks, taken / numbers[furthest], clause["across"])


def _number(ctx: Context, disk: str) -> float | None:
    """Return a scale of one number; None for anything that VAL006 speaks of, or that is no such scale."""
    file, entry = ctx.inventory.tensors[disk]
    if entry["shape"] not in ([], [1]):
        return None
    values = ctx.checkpoint.int_values(file, disk)
    return values[0] if values and math.isfinite(values[0]) and values[0] > 0 else None


RULES = (
    Rule(
        "VAL007",
        "One module, different scales",
        "q, k and v are served as one projection, and so are gate and up. Where the scheme has one scale for a whole projection, the largest of theirs is taken for all; NVFP4 weights are not quantized again for it, so those with another scale are read too large or too small.",
        "Quantize with one global scale for the projections that are fused.",
        "warning",
        "silent",
        unequal_scales,
        ("family", "weights"),
        fires="q_proj.weight_scale_2 half of k_proj.weight_scale_2",
        quiet="one weight_scale_2 for q_proj, k_proj and v_proj",
    ),
)
