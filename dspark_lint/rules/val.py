"""VAL: what the tensors hold: small integer tables and norms by default, everything with --deep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, Rule, finding, plural
from dspark_lint.rules.val_deep import broken_numbers


if TYPE_CHECKING:
    from dspark_lint.finding import Finding


def _table(ctx: Context, name: str) -> tuple[Any, ...] | None:
    """Read a small table by the name it has after the loader's renames."""
    disk = ctx.inventory.disk_of.get(name)
    if disk is None:
        return None
    return ctx.checkpoint.int_values(ctx.inventory.tensors[disk][0], disk)


def _clause(ctx: Context) -> dict[str, Any]:
    return dict(ctx.binding.family.get("tables", {}).get("d2t", {}))


def mapping_range(ctx: Context) -> Iterator[Finding]:
    """VAL001: d2t maps draft ids outside the target's vocabulary or two to one."""
    offsets = _table(ctx, "d2t")
    if not offsets or "d2t" not in ctx.inventory.expected:
        return
    clause = _clause(ctx)
    size = ctx.binding.get("target").get("vocab_size")
    numbers = [int(v) for v in offsets]
    mapped = [i + v for i, v in enumerate(numbers)]
    disk = ctx.inventory.disk_of["d2t"]
    file = ctx.inventory.tensors[disk][0]
    outside = [i for i, m in enumerate(mapped) if m < 0 or (isinstance(size, int) and m >= size)]
    absolute = all(b > a for a, b in zip(numbers, numbers[1:], strict=False)) and len(numbers) > 1 and numbers[0] >= 0
    if outside:
        i = outside[0]
        hint = "; the table looks like absolute target ids, and this loader adds the draft id to each entry" if absolute else ""
        yield finding(
            ctx, "VAL001", {**clause, "effect": "silent"},
            f"{disk} maps {plural(len(outside), 'draft id')} outside the target's vocabulary of {size if size is not UNKNOWN else 'unknown size'} (draft id {i} to {mapped[i]}); vLLM {ctx.release} draws them as they stand{hint}.",
            file=file, tensor=disk, expected=f"0 <= id + {disk}[id] < {size}", found=str(mapped[i]), count=len(outside),
            fix="store offsets: target id minus draft id" if absolute else "export the mapping again",
        )
        return
    seen: dict[int, int] = {}
    clash = [(seen[m], i) for i, m in enumerate(mapped) if seen.setdefault(m, i) != i]
    if clash:
        first, second = clash[0]
        yield finding(
            ctx, "VAL001", {**clause, "effect": "silent"},
            f"{disk} maps {plural(len(clash), 'draft id')} to a target id that another has already (draft ids {first} and {second} both to {mapped[first]}); vLLM {ctx.release} gives it the logit of one of the two.",
            file=file, tensor=disk, expected="distinct target ids", found=str(mapped[first]), count=len(clash), fix="export the mapping again",
        )


def mapping_agrees(ctx: Context) -> Iterator[Finding]:
    """VAL002: d2t and t2d disagree, or d2t is all zero although the vocabulary is reduced."""
    offsets = _table(ctx, "d2t")
    if not offsets or "d2t" not in ctx.inventory.expected:
        return
    clause = _clause(ctx)
    disk = ctx.inventory.disk_of["d2t"]
    file = ctx.inventory.tensors[disk][0]
    mask = _table(ctx, "t2d")
    mapped = sorted(i + int(v) for i, v in enumerate(offsets))
    if mask and set(mask) <= {0, 1} and ctx.inventory.dtype("t2d") == "BOOL":
        kept = [i for i, v in enumerate(mask) if v]
        if kept != mapped:
            wrong = len(set(kept) ^ set(mapped))
            yield finding(
                ctx, "VAL002", {**clause, "effect": "silent", "severity": "warning"},
                f"t2d keeps {plural(len(kept), 'target id')} and {disk} maps to {len(set(mapped))}, and {plural(wrong, 'id')} {'is' if wrong == 1 else 'are'} in one and not in the other: one of the two tables belongs to another draft, and vLLM {ctx.release} takes {disk}.",
                file=file, tensor=disk, expected="the ids that t2d keeps", found=f"{wrong} others", count=wrong, fix="export both tables from one mapping",
            )
    elif not any(offsets) and isinstance(size := ctx.binding.get("target").get("vocab_size"), int) and len(offsets) < size:
        yield finding(
            ctx, "VAL002", {**clause, "effect": "advice", "severity": "info"},
            f"{disk} is all zero: under vLLM {ctx.release} the draft's {len(offsets)} ids are the target's first {len(offsets)}; right only if the draft was trained on exactly those.",
            file=file, tensor=disk, expected="offsets", found="zeros",
        )


#: One-dimensional float tensors up to this many bytes are read without --deep: the norms, a few hundred kilobytes in all.
SMALL = 128 * 1024
MOST_SMALL = 256


def small_values(ctx: Context) -> Iterator[Finding]:
    """VAL003: NaN or infinity in a norm or bias; in anything with --deep."""
    if ctx.deep is not None:
        yield from broken_numbers(ctx)
        return
    bad: list[tuple[str, str]] = []
    read = 0
    for name, (file, entry) in ctx.inventory.tensors.items():
        if len(entry["shape"]) != 1 or entry["dtype"] not in ("BF16", "F16", "F32", "F64"):
            continue
        begin, end = entry["data_offsets"]
        if end - begin > SMALL or read >= MOST_SMALL:
            continue
        read += 1
        values = ctx.checkpoint.int_values(file, name)
        if values and any(v != v or v in (float("inf"), float("-inf")) for v in values):
            bad.append((name, file))
    if bad:
        name, file = bad[0]
        yield finding(
            ctx, "VAL003", {"effect": "silent", "severity": "error", "source": ctx.binding.family.get("loader")},
            f"{plural(len(bad), 'tensor')} ({name}{', …' if len(bad) > 1 else ''}) {'holds' if len(bad) == 1 else 'hold'} NaN or infinity; vLLM {ctx.release} loads {'it' if len(bad) == 1 else 'them'}, and every draft token that passes through is lost.",
            file=file, tensor=name, expected="finite numbers", found="NaN or infinity", count=len(bad), fix="export the weights again",
        )


RULES = (
    Rule("VAL001", "d2t leads outside the target's vocabulary or two ids to one", "A table of offsets maps draft ids to target ids: id + d2t[id]. An entry that leads out of range draws wrong tokens or stops the engine; a table of absolute ids does so for about half of its entries.", "Store offsets, distinct and in range.", "error", "silent", mapping_range, ("family", "weights"), fires="a d2t of absolute target ids", quiet="d2t[i] = target id - i"),
    Rule("VAL002", "d2t and t2d disagree", "t2d, where it ships, is the mask of target ids that the draft can produce; its true positions are exactly id + d2t[id].", "Export both from one mapping.", "warning", "silent", mapping_agrees, ("family", "weights"), fires="a t2d of another draft", quiet="t2d true exactly at id + d2t[id]"),
    Rule("VAL003", "NaN or infinity", "A NaN or an infinity spoils every token that passes through it. Norms and biases, which are small, are always read; everything else with --deep.", "Export the weights again.", "error", "silent", small_values, ("family", "weights"), fires="norm.weight of NaN", quiet="finite weights"),
)
