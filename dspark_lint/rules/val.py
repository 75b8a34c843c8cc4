"""VAL: what the tensors hold: small integer tables and norms by default, everything with --deep."""

from __future__ import annotations

import math

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.rules.base import Context, Rule, finding, plural
from dspark_lint.rules.val_deep import (
    TABLES,
    Scale,
    broken_numbers,
    broken_scales,
    dropped,
    is_scale,
    listed,
    scale_faults,
)


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding
    from dspark_lint.scan.tables import TableFacts


class _Mapping(NamedTuple):
    """d2t as it stands, and what counts of it."""

    disk: str
    file: str
    facts: TableFacts


def _mapping(ctx: Context) -> _Mapping | None:
    """Return the facts of d2t, against t2d and the target's vocabulary; None where the loader has no use for it."""
    disk = ctx.inventory.disk_of.get("d2t")
    offsets = _table(ctx, "d2t")
    if disk is None or not offsets or "d2t" not in ctx.inventory.expected:
        return None
    from dspark_lint.scan.tables import table_facts  # noqa: PLC0415 - most drafts have no tables

    size = ctx.binding.get("target").get("vocab_size")
    return _Mapping(
        disk,
        ctx.inventory.tensors[disk][0],
        table_facts(offsets, _table(ctx, "t2d"), size if isinstance(size, int) else None),
    )


def _table(ctx: Context, name: str) -> tuple[Any, ...] | None:
    """Read a small table by the name it has after the loader's renames."""
    disk = ctx.inventory.disk_of.get(name)
    return ctx.checkpoint.int_values(ctx.inventory.tensors[disk][0], disk) if disk is not None else None


def _clause(ctx: Context) -> dict[str, Any]:
    return {**ctx.binding.family.get("tables", {}).get("d2t", {}), "effect": "silent"}


def mapping_range(ctx: Context) -> Iterator[Finding]:
    """VAL001: d2t maps draft ids outside the target's vocabulary, two to one, or holds no offsets at all."""
    mapping = _mapping(ctx)
    if mapping is not None and (told := _range_fault(ctx, mapping)) is not None:
        yield told


def _range_fault(ctx: Context, mapping: _Mapping) -> Finding | None:
    disk, file, facts = mapping
    vllm = f"vLLM {ctx.release}"
    where = f"the target's vocabulary of {facts.target_vocab if facts.target_vocab is not None else 'unknown size'}"
    outside = facts.below.total + facts.beyond.total
    mapped = {i: i + int(v) for i, v in enumerate(_table(ctx, "d2t") or ()) if math.isfinite(v)}
    again = "export the mapping again"
    mask = facts.mask if facts.mask is not None and not facts.mask.other.total else None
    absolute = (
        facts.looks_absolute
        if mask is not None or facts.mask is None
        else bool(facts.beyond.total) and facts.fits_as_absolute
    )
    if facts.not_whole.total:
        i = facts.not_whole.first
        return finding(
            ctx,
            "VAL001",
            _clause(ctx),
            f"{disk} holds {plural(facts.not_whole.total, 'entry', 'entries')} that {'is no whole number' if facts.not_whole.total == 1 else 'are no whole numbers'} (the first for draft id {i}); {vllm} cuts off what follows the point.",
            file=file,
            tensor=disk,
            expected="integers",
            found=plural(facts.not_whole.total, "fraction"),
            count=facts.not_whole.total,
            fix=again,
        )
    if outside:
        i = min(f.first for f in (facts.below, facts.beyond) if f.first is not None)
        hint = (
            "; the table looks like absolute target ids, and this loader adds the draft id to each entry"
            if absolute
            else ""
        )
        return finding(
            ctx,
            "VAL001",
            _clause(ctx),
            f"{disk} maps {plural(outside, 'draft id')} outside {where} (draft id {i} to {mapped[i]}); {vllm} draws them as they stand{hint}.",
            file=file,
            tensor=disk,
            expected=f"0 <= id + {disk}[id] < {facts.target_vocab}",
            found=str(mapped[i]),
            count=outside,
            fix="store offsets: target id minus draft id" if absolute else again,
        )
    if absolute:
        i = mask.unmarked.first if mask is not None else None
        shown = f" (draft id {i} becomes {mapped[i]})" if i is not None else ""
        marks = (
            "t2d marks exactly its entries"
            if mask is not None and mask.agrees_with_absolute
            else "its entries ascend without a break and t2d marks other ids than it leads to"
        )
        return finding(
            ctx,
            "VAL001",
            _clause(ctx),
            f"{disk} looks like a table of absolute target ids, for {marks}; {vllm} adds the draft id to each entry{shown}.",
            file=file,
            tensor=disk,
            expected="offsets",
            found="absolute ids",
            count=facts.entries,
            fix="store offsets: target id minus draft id",
        )
    if facts.repeated.first is not None:
        first, second = facts.repeated_earlier, facts.repeated.first
        return finding(
            ctx,
            "VAL001",
            _clause(ctx),
            f"{disk} maps {plural(facts.repeated.total, 'draft id')} to a target id that another has already (draft ids {first} and {second} both to {mapped[second]}); {vllm} gives it the logit of one of the two.",
            file=file,
            tensor=disk,
            expected="distinct target ids",
            found=str(mapped[second]),
            count=facts.repeated.total,
            fix=again,
        )
    return None


def mapping_agrees(ctx: Context) -> Iterator[Finding]:
    """VAL002: d2t and t2d disagree, or d2t leads where a pruned vocabulary seldom does."""
    mapping = _mapping(ctx)
    if mapping is None or _range_fault(ctx, mapping) is not None:
        return
    disk, file, facts = mapping
    mask, vllm = facts.mask, f"vLLM {ctx.release}"
    known = ctx.binding.get("target").get("vocab_size")
    if mask is not None and mask.other.total:
        yield finding(
            ctx,
            "VAL002",
            {**_clause(ctx), "effect": "advice"},
            f"t2d holds {plural(mask.other.total, 'entry', 'entries')} other than 0 and 1 (the first for target id {mask.other.first}), so it is no mask of target ids; {vllm} takes {disk} and never reads it.",
            severity="info",
            file=file,
            tensor="t2d",
            expected="true or false",
            found="other numbers",
            count=mask.other.total,
            fix="leave t2d out of the export",
        )
    elif mask is not None and not mask.agrees:
        wrong = mask.unmarked.total + mask.unreached.total
        yield finding(
            ctx,
            "VAL002",
            _clause(ctx),
            f"t2d keeps {plural(mask.marked, 'target id')} and {disk} maps to {facts.entries}, and {plural(wrong, 'id')} {'is' if wrong == 1 else 'are'} in one and not in the other: one of the two tables belongs to another draft, and {vllm} takes {disk}.",
            severity="warning",
            file=file,
            tensor=disk,
            expected="the ids that t2d keeps",
            found=f"{wrong} others",
            count=wrong,
            fix="export both tables from one mapping",
        )
    elif (
        mask is not None and isinstance(known, int) and ctx.binding.get("target").get("known") and mask.entries != known
    ):
        yield finding(
            ctx,
            "VAL002",
            _clause(ctx),
            f"t2d has {mask.entries:,} entries, one for each id of the target it was made for, and this target's vocabulary is {known:,}; {vllm} takes {disk}, made for the same target.",
            severity="warning",
            file=file,
            tensor="t2d",
            expected=f"{known} entries",
            found=f"{mask.entries} entries",
            fix="pair the draft with the target it was trained for",
        )
    elif facts.all_zero and isinstance(known, int) and facts.entries < known:
        yield finding(
            ctx,
            "VAL002",
            {**_clause(ctx), "effect": "advice"},
            f"{disk} is all zero: under {vllm} the draft's {facts.entries} ids are the target's first {facts.entries}; right only if the draft was trained on exactly those.",
            severity="info",
            file=file,
            tensor=disk,
            expected="offsets",
            found="zeros",
        )
    elif facts.descending.total:
        i = facts.descending.first
        yield finding(
            ctx,
            "VAL002",
            {**_clause(ctx), "effect": "advice"},
            f"{disk} leads to a lower target id from one draft id to the next {plural(facts.descending.total, 'time')} (first at draft id {i}), which no table of kept ids in order does; {vllm} takes it as it stands, right only if the rows of lm_head are in the same order.",
            severity="info",
            file=file,
            tensor=disk,
            expected="target ids in order",
            found=f"{facts.descending.total} steps down",
            count=facts.descending.total,
            fix="export d2t and lm_head from one mapping",
        )


#: One-dimensional float tensors up to this many bytes are read without --deep: the norms, a few hundred kilobytes in all.
SMALL = 128 * 1024
MOST_SMALL = 256
_FLOATS = ("BF16", "F16", "F32", "F64")


def _small(ctx: Context, *, scales: bool) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """Yield the name after renames, the name on disk and the numbers of the norms and biases, or of scales of one number."""
    passed = dropped(ctx)
    read = 0
    for canonical, disk in ctx.inventory.disk_of.items():
        file, entry = ctx.inventory.tensors[disk]
        shape = entry["shape"]
        if (
            entry["dtype"] not in _FLOATS
            or (shape not in ([], [1]) if scales else len(shape) != 1)
            or disk in passed
            or canonical in TABLES
            or is_scale(ctx, canonical) != scales
        ):
            continue
        begin, end = entry["data_offsets"]
        if end - begin > SMALL or read >= MOST_SMALL:
            continue
        read += 1
        values = ctx.checkpoint.int_values(file, disk)
        if values:
            yield canonical, disk, values


def small_values(ctx: Context) -> Iterator[Finding]:
    """VAL003: NaN or infinity in a norm or bias; in anything with --deep."""
    if ctx.deep is not None:
        yield from broken_numbers(ctx)
        return
    bad = [disk for _, disk, values in _small(ctx, scales=False) if not all(map(math.isfinite, values))]
    if bad:
        clause = ctx.contract["values"]["nonfinite"]
        yield finding(
            ctx,
            "VAL003",
            clause,
            f"{listed(bad)} {'holds' if len(bad) == 1 else 'hold'} NaN or infinity; vLLM {ctx.release}: {clause['says']}.",
            file=ctx.inventory.tensors[bad[0]][0],
            tensor=bad[0],
            expected="finite numbers",
            found="NaN or infinity",
            count=len(bad),
            fix="export the weights again",
        )


def small_scales(ctx: Context) -> Iterator[Finding]:
    """VAL006: scales that are no positive numbers: of one number, or all of them with --deep."""
    if ctx.deep is not None:
        yield from broken_scales(ctx)
        return
    scales = [(disk, values[0]) for _, disk, values in _small(ctx, scales=True)]
    yield from scale_faults(
        ctx,
        [Scale(d, 1, 1, 0, 0) for d, v in scales if not math.isfinite(v)],
        [Scale(d, 1, 0, 1, 0) for d, v in scales if math.isfinite(v) and v < 0],
        [Scale(d, 1, 0, 0, 1) for d, v in scales if v == 0],
    )


RULES = (
    Rule(
        "VAL001",
        "d2t leads outside the target's vocabulary or two ids to one",
        "A table of offsets maps draft ids to target ids: id + d2t[id]. An entry that leads out of range draws wrong tokens or stops the engine; a table of absolute ids does so for about half of its entries.",
        "Store offsets, distinct and in range.",
        "error",
        "silent",
        mapping_range,
        ("family", "weights"),
        fires="a d2t of absolute target ids",
        quiet="d2t[i] = target id - i",
    ),
    Rule(
        "VAL002",
        "d2t and t2d disagree",
        "t2d, where it ships, is the mask of target ids that the draft can produce; its true positions are exactly id + d2t[id].",
        "Export both from one mapping.",
        "warning",
        "silent",
        mapping_agrees,
        ("family", "weights"),
        fires="a t2d of another draft",
        quiet="t2d true exactly at id + d2t[id]",
    ),
    Rule(
        "VAL003",
        "NaN or infinity",
        "A NaN or an infinity spoils every token that passes through it. Norms and biases, which are small, are always read; everything else with --deep.",
        "Export the weights again.",
        "error",
        "silent",
        small_values,
        ("family", "weights"),
        fires="norm.weight of NaN",
        quiet="finite weights",
    ),
    Rule(
        "VAL006",
        "A scale that is no positive number",
        "Quantized weights are multiplied by their scales: NaN, infinity and numbers below zero spoil everything behind them, zero wipes it out. Scales of one number are always read; all others with --deep.",
        "Quantize again.",
        "error",
        "silent",
        small_scales,
        ("family", "weights"),
        fires="a weight_scale of 0.0",
        quiet="positive scales",
    ),
)
