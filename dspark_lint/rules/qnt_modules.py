"""What lies on disk for a module against what the statement has it built as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, finding, plural
from dspark_lint.rules.qnt_words import entries_of, file_of, list_of, subject_of, title_of, why_of


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Effect, Finding
    from dspark_lint.quant.fit import Member
    from dspark_lint.quant.modules import Module


#: Up to so many kinds of tensors are told one by one; more of them have one cause.
_FEW = 3


def left_unquantized(ctx: Context) -> Iterator[Finding]:
    """QNT005: a module is built quantized, and its weight on disk is not."""
    fit = ctx.inventory.fit
    if fit is None:
        return
    groups: dict[tuple[str, str, str], list[Any]] = {}
    entries = entries_of(ctx)
    told = {name for idle in entries.idle() for name in idle.meant} if entries is not None else set()
    for item in fit.unquantized:
        if item.member.name in told:
            continue  # QNT003 tells it, at the entry that was meant to take the module out
        home = item.member.module.template if item.member.module is not None else item.member.pattern
        groups.setdefault((home, item.dtype, item.effect), []).append(item)
    merged: dict[tuple[str, str, str], list[Any]] = {}
    for (pattern, dtype, effect), items in groups.items():
        key = (dtype, effect, items[0].says) if len(groups) > 4 else (pattern, dtype, effect)
        merged.setdefault(key, []).extend(items)
    for items in merged.values():
        first = items[0]
        module = first.member.module
        names = sorted({i.member.pattern for i in items})
        subject = (
            subject_of([i.member for i in items])
            if len(names) == 1
            else f"{len(items)} weights ({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
        )
        disk = ctx.inventory.disk_of[f"{first.member.name}.weight"]
        yield finding(
            ctx,
            "QNT005",
            {
                **first.clause,
                "severity": "warning" if all(i.scaled for i in items) and first.effect == "silent" else "error",
            },
            f"{subject} {'is' if len(items) == 1 else 'are'} {first.dtype} on disk, but {module.name} is built quantized ({title_of(ctx, module)}), because {why_of(ctx, module)}; vLLM {ctx.release}: {first.says}.",
            effect=first.effect,
            file=file_of(ctx, disk),
            tensor=disk,
            module=module.name,
            expected=" or ".join(ctx.contract["quantization"]["schemes"][module.built.scheme]["dtypes"]),
            found=first.dtype,
            count=len(items),
            fix=_exclude_fix(ctx, [i.member.name for i in items]),
        )


def _exclude_fix(ctx: Context, held: list[str]) -> str:
    entries, statement = entries_of(ctx), ctx.statement
    if entries is None or statement is None or not statement.clause.get("entries"):
        return "quantize it"
    entry = entries.suggest(held)
    return (
        f"add {entry!r} to {list_of(statement)}, or quantize it"
        if entry
        else "take these modules out by their run-time names, or quantize them"
    )


def scaled_for_nothing(ctx: Context) -> Iterator[Finding]:
    """QNT006: scales or packed weights of a module that is built unquantized."""
    fit = ctx.inventory.fit
    if fit is None or (ctx.statement is not None and ctx.statement.backend == "none"):
        return  # of a statement that counts for nothing QNT002 tells
    groups: dict[tuple[str, str], list[Any]] = {}
    entries = entries_of(ctx)
    told = {h for _, _, modules in entries.wide() for m in modules for h in m.holds} if entries is not None else set()
    for item in fit.scaled:
        if item.member.name in told:
            continue  # QNT004 tells it, at the entry that takes it out
        groups.setdefault((item.member.pattern, str(item.clause.get("effect"))), []).append(item)
    if len(groups) > 4:
        folded: dict[tuple[str, str], list[Any]] = {}
        for (_, effect), items in groups.items():
            folded.setdefault(("", effect), []).extend(items)
        groups = folded
    for items in groups.values():
        first = items[0]
        names = sorted({i.member.pattern for i in items})
        subject = (
            subject_of([i.member for i in items])
            if len(names) == 1
            else f"{len(items)} modules ({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
        )
        disk = first.tensors[0]
        what = ", ".join(t.rpartition(".")[2] for t in first.tensors)
        yield finding(
            ctx,
            "QNT006",
            {"severity": "error", **first.clause},
            f"{subject} {'keeps' if len(items) == 1 else 'keep'} quantized data on disk ({what}), but {_unquantized_because(ctx, first.member)}; vLLM {ctx.release}: {first.clause.get('says', '')}.",
            file=file_of(ctx, disk),
            tensor=disk,
            module=first.member.module.name if first.member.module else None,
            expected="an unquantized weight",
            found=ctx.inventory.tensors[disk][1]["dtype"],
            count=len(items),
            fix=_unquantized_fix(ctx, first.member),
        )


def _unquantized_because(ctx: Context, member: Member) -> str:
    statement = ctx.statement
    if statement is None:
        return "the checkpoint states no quantization, and the module is built unquantized"
    if member.module is None:
        return "this release never builds that module quantized"
    built = member.module.built
    if built.by and built.scheme is None:
        return f"{built.by!r} takes {member.module.name} out of the quantization"
    if "layers" in statement.clause:
        return f"no key of quantized_layers names {member.module.name}, so it is built unquantized"
    if "groups" in statement.clause and built.scheme is None:
        return f"no target of config_groups reaches {member.module.name}, neither its name nor its class {member.module.clause['class']}"
    return f"{member.module.name} is built unquantized"


def _unquantized_fix(ctx: Context, member: Member) -> str:
    statement = ctx.statement
    if (
        statement is not None
        and member.module is not None
        and "layers" in statement.clause
        and not member.module.built.by
    ):
        return f"write {member.module.name!r} as the key in quantized_layers"
    if member.module is not None and member.module.built.by:
        return f"remove {member.module.built.by!r} from the list, or export the weight unquantized"
    return "export the weight unquantized"


def missing_scales(ctx: Context) -> Iterator[Finding]:
    """QNT007: a quantized module lacks a scale."""
    fit = ctx.inventory.fit
    if fit is None:
        return
    groups: dict[str, list[Any]] = {}
    for expected in fit.missing:
        groups.setdefault(expected.pattern, []).append(expected)
    if len(groups) > 6:
        folded: dict[str, list[Any]] = {}
        for items in groups.values():
            folded.setdefault(items[0].pattern.rpartition(".")[2], []).extend(items)
        groups = folded
    outcomes = ctx.binding.family.get("outcomes", {})
    for items in groups.values():
        first = items[0]
        clause: Mapping[str, Any] = first.clause["absent"]
        if isinstance(clause, str):
            clause = outcomes.get(clause, {})
        subject = (
            first.name
            if len(items) == 1
            else f"{first.pattern} ({len(items)} tensors)"
            if len({i.pattern for i in items}) == 1
            else f"{first.name} and {len(items) - 1} more"
        )
        yield finding(
            ctx,
            "QNT007",
            {"severity": "error", **clause},
            f"{subject} {'is' if len(items) == 1 else 'are'} missing, which the module's quantization needs; vLLM {ctx.release}: {clause.get('says', '')}.",
            tensor=first.name,
            expected=first.name,
            found="nothing",
            count=len(items),
            fix="export the scales along with the weight",
        )


def sizes(ctx: Context) -> Iterator[Finding]:
    """QNT008: a packed weight or a scale of another size than the scheme keeps, or a size that it cannot divide."""
    fit = ctx.inventory.fit
    if fit is None:
        return
    seen: set[tuple[str, str]] = set()
    meant_otherwise = {u.member.name for u in fit.unquantized}
    for module, side, size, divisor, clause in fit.indivisible:
        if (module.template, side) in seen or meant_otherwise.issuperset(module.holds):
            continue  # a module that nobody quantized is told by what builds it quantized
        seen.add((module.template, side))
        same = [1 for m, s, *_ in fit.indivisible if (m.template, s) == (module.template, side)]
        yield finding(
            ctx,
            "QNT008",
            clause,
            f"{module.name} has an {'input' if side == 'in' else 'output'} size of {size}, which {divisor} does not divide, and it is built as {title_of(ctx, module)}; vLLM {ctx.release}: {clause['says']}.",
            file=ctx.statement.place.file if ctx.statement else None,
            pointer=ctx.statement.at("quant_algo")[0] if ctx.statement else None,
            module=module.name,
            expected=f"a multiple of {divisor}",
            found=str(size),
            count=len(same),
            fix="exclude the module, or quantize it by another scheme",
        )
    groups: dict[str, list[Any]] = {}
    for mismatch in fit.mismatches:
        groups.setdefault(mismatch.expected.pattern, []).append(mismatch)
    if len(groups) > _FEW:  # the group or block of the statement is another than that on disk
        folded: dict[str, list[Any]] = {}
        for items in groups.values():
            folded.setdefault(items[0].expected.pattern.rpartition(".")[2], []).extend(items)
        groups = folded
    for items in groups.values():
        first = next((m for m in items if not m.cut), items[0])
        loader = ctx.contract["parameter_loaders"][first.expected.clause.get("loader", "plain")]
        subject = (
            first.disk
            if len(items) == 1
            else f"{first.expected.pattern} ({len(items)} tensors)"
            if len({m.expected.pattern for m in items}) == 1
            else f"{first.disk}, like {len(items) - 1} more of its kind,"
        )
        scheme = ctx.contract["quantization"]["schemes"][first.expected.clause["scheme"]]["title"]
        effect: Effect = "silent" if all(m.cut for m in items) else "refused"
        says = loader["says"] if effect == "silent" or "cut" not in loader["says"] else "the sizes do not fit"
        yield finding(
            ctx,
            "QNT008",
            {"source": loader.get("source"), "severity": "error"},
            f"{subject} is {dims_of(first.found)} on disk, where {scheme} keeps {dims_of(first.expected.shape)}; vLLM {ctx.release}: {says}.",
            effect=effect,
            file=file_of(ctx, first.disk),
            tensor=first.disk,
            expected=dims_of(first.expected.shape),
            found=dims_of(first.found),
            count=len(items),
        )


def cache_scales(ctx: Context) -> Iterator[Finding]:
    """QNT010: scales of the K/V cache in a draft."""
    fit = ctx.inventory.fit
    if fit is None or not fit.cache_scales:
        return
    clause = ctx.contract["quantization"]["cache_scales"]
    first = fit.cache_scales[0]
    yield finding(
        ctx,
        "QNT010",
        {"effect": "advice", "severity": "info", "source": clause.get("source")},
        f"{plural(len(fit.cache_scales), 'scale')} of the K/V cache ({first.disk}{', …' if len(fit.cache_scales) > 1 else ''}) lie in the draft; vLLM {ctx.release}: {clause['says']}.",
        file=file_of(ctx, first.disk),
        tensor=first.disk,
        count=len(fit.cache_scales),
    )


def dims_of(shape: Any) -> str:
    """Return a shape as it is written: ``[64, ?]``."""
    return "[" + ", ".join("?" if d is UNKNOWN else str(d) for d in shape) + "]"


def unserved(ctx: Context) -> Iterator[Finding]:
    """QNT009: a module that this release does not serve quantized, or refuses to build so."""
    fit = ctx.inventory.fit
    if fit is None:
        return
    for items in (fit.unserved, fit.refused):
        groups: dict[tuple[str, str], list[tuple[Module, Mapping[str, Any]]]] = {}
        for module, clause in items:
            groups.setdefault((module.template, str(clause["says"])), []).append((module, clause))
        for group in groups.values():
            module, clause = group[0]
            scheme = f" ({title_of(ctx, module)})" if isinstance(module.built.scheme, str) else ""
            name = (
                module.name
                if len(group) == 1
                else f"{module.template.replace('{n}', '{i}')} in {plural(len(group), 'layer')}"
            )
            yield finding(
                ctx,
                "QNT009",
                {"severity": "error", **clause},
                f"{name} is built quantized{scheme}, because {why_of(ctx, module)}; vLLM {ctx.release}: {clause['says']}.",
                file=ctx.statement.place.file if ctx.statement else None,
                pointer=ctx.statement.place.pointer if ctx.statement else None,
                module=module.name,
                expected="an unquantized module",
                found=str(module.built.scheme) if isinstance(module.built.scheme, str) else None,
                count=len(group),
                fix="leave these projections unquantized, or serve with a release that takes them",
            )
