"""QNT: the quantization that the checkpoint states, the modules it reaches, the scales they keep."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, Rule, finding, plural, show


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dspark_lint.finding import Effect, Finding
    from dspark_lint.quant.entries import Entries, Idle
    from dspark_lint.quant.fit import Member, Unquantized
    from dspark_lint.quant.modules import Module
    from dspark_lint.quant.statement import Statement


#: Up to so many kinds of tensors are told one by one; more of them have one cause.
_FEW = 3


def _numbers(members: Iterable[Member]) -> str:
    """Return `` in 36 layers (0, 1, 2, ...)`` for members of one pattern; nothing for a module outside the layers."""
    numbers = sorted({m.module.number for m in members if m.module is not None and m.module.number is not None})
    if not numbers:
        return ""
    listed = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f" of {plural(len(numbers), 'layer')} ({listed})"


def _subject(members: list[Member]) -> str:
    return members[0].name if len(members) == 1 else members[0].pattern + _numbers(members)


def _file(ctx: Context, disk: str) -> str | None:
    entry = ctx.inventory.tensors.get(disk)
    return entry[0] if entry else None


def _title(ctx: Context, module: Module) -> str:
    return str(ctx.contract["quantization"]["schemes"][module.built.scheme]["title"])


def _list(statement: Statement) -> str:
    """Return the key of the exclusion list as this statement spells it."""
    pointer, _ = statement.at("exclude")
    return pointer.rpartition("/")[2] or str(statement.clause.get("entries", "the list"))


def _why(ctx: Context, module: Module) -> str:
    """Return by what a module is quantized: the group, the entry of the map, or the want of an exclusion."""
    statement = ctx.statement
    assert statement is not None
    if module.built.by and "groups" in statement.clause:
        return f"the target {module.built.by!r} reaches it"
    if module.built.by:
        return f"the key {module.built.by!r} of quantized_layers names it"
    return f"no entry of {_list(statement)} matches {module.name}"


def refused_statement(ctx: Context) -> Iterator[Finding]:
    """QNT001: the release raises over the statement itself."""
    statement = ctx.statement
    if statement is None:
        return
    for trouble in statement.troubles:
        clause = trouble.clause
        place = trouble.pointer.rpartition("/")[2] or trouble.file
        found = trouble.found
        yield finding(
            ctx,
            "QNT001",
            clause,
            f"{place} in {trouble.file} is {found}, where vLLM {ctx.release} expects {clause.get('expected', 'something else')}: {clause['says']}.",
            file=trouble.file,
            pointer=trouble.pointer,
            expected=clause.get("expected"),
            found=found,
            fix=clause.get("fix"),
        )


def no_method(ctx: Context) -> Iterator[Finding]:
    """QNT002: a statement that the release reads and takes for none."""
    statement = ctx.statement
    if statement is None or statement.route.get("backend") != "none" or not statement.place.value:
        return
    clause: dict[str, Any] = {"effect": "silent", "severity": "warning", **statement.route}
    damage = ctx.inventory.fit.scaled if ctx.have("weights") and ctx.inventory.fit is not None else []
    so = ""
    if damage:
        worst = next((s for s in damage if s.clause.get("effect") == "refused"), damage[0])
        clause |= {"effect": worst.clause.get("effect", "silent"), "severity": "error"}
        so = f" {plural(len(damage), 'module')} {'keeps' if len(damage) == 1 else 'keep'} quantized data on disk: {worst.clause.get('says', '')}."
    yield finding(
        ctx,
        "QNT002",
        clause,
        f"the quantization stated in {statement.place.file} names no quant_method; vLLM {ctx.release}: {statement.route['says']}.{so}",
        file=statement.place.file,
        pointer=f"{statement.place.pointer}/quant_method",
        expected="a quant_method",
        found="nothing",
        fix='write "quant_method" ("modelopt", "compressed-tensors", ...), or remove the statement',
    )


def _entries(ctx: Context) -> Entries | None:
    fit, statement = ctx.inventory.fit, ctx.statement
    if fit is None or statement is None or not fit.modules:
        return None
    from dspark_lint.quant.entries import Entries  # noqa: PLC0415 - only for a quantized draft

    return Entries(ctx.binding, statement, fit.modules, ctx.inventory)


def idle_entries(ctx: Context) -> Iterator[Finding]:
    """QNT003: an entry of an exclusion list that matches no module the release builds."""
    entries, statement, fit = _entries(ctx), ctx.statement, ctx.inventory.fit
    if entries is None or statement is None or fit is None:
        return
    pointer, _ = statement.at("exclude")
    groups: dict[tuple[str, str, bool], list[Idle]] = {}
    for idle in entries.idle():
        hurt = any(u.member.name in idle.meant for u in fit.unquantized)
        groups.setdefault((_kind(fit.modules, idle), idle.why, hurt), []).append(idle)
    told = False
    for (generic, _, _), items in groups.items():
        first = items[0]
        listed = (
            repr(first.entry)
            if len(items) == 1
            else f"{len(items)} entries ({', '.join(repr(i.entry) for i in items[:3])}{', …' if len(items) > 3 else ''})"
        )
        one = len(items) == 1
        meant = {name for idle in items for name in idle.meant}
        damage = [u for u in fit.unquantized if u.member.name in meant]
        clause = {
            "effect": _worst(u.effect for u in damage),
            "severity": ("warning" if _kept_otherwise(damage) else "error") if damage else "info",
            "source": statement.clause.get("match_source"),
        }
        if not generic:
            yield finding(
                ctx,
                "QNT003",
                clause,
                f"{listed} of {_list(statement)} {'matches' if one else 'match'} no module of this draft; vLLM {ctx.release} passes over such entries in silence.",
                file=statement.place.file,
                pointer=f"{pointer}/{first.at}",
                found=first.entry,
                count=len(items),
            )
            continue
        instead = entries.suggest(first.meant, first.entry)
        ways = "" if told else f"; {statement.clause['match_says']}"
        told = True
        yield finding(
            ctx,
            "QNT003",
            clause,
            f"{listed} of {_list(statement)} {'matches' if one else 'match'} no module that vLLM {ctx.release} builds{_meaning(fit.modules, first, instead)}{_built_quantized(ctx, damage)}{ways}.",
            file=statement.place.file,
            pointer=f"{pointer}/{first.at}",
            module=damage[0].member.module.name if damage and damage[0].member.module else None,
            expected=instead,
            found=first.entry,
            count=len(items),
            fix=f"write {instead!r}" + ("" if one else ", and so on") if instead else None,
        )


def _worst(effects: Iterable[Effect]) -> Effect:
    seen = set(effects)
    return "refused" if "refused" in seen else "silent" if "silent" in seen else "advice"


def _kept_otherwise(items: list[Unquantized]) -> bool:
    """Whether all of these keep their scales: another kind of quantized weight, which may well be meant."""
    return all(i.scaled for i in items) and _worst(i.effect for i in items) == "silent"


def _built_quantized(ctx: Context, damage: list[Unquantized]) -> str:
    """Return what becomes of the modules that an entry was meant to take out."""
    if not damage:
        return ""
    first = damage[0]
    assert first.member.module is not None
    one = len(damage) == 1
    name = first.member.name if one else f"{first.member.name} and {len(damage) - 1} more"
    return f", so {name}, {first.dtype} on disk, {'is' if one else 'are'} built quantized ({_title(ctx, first.member.module)}): {first.says}"


def _kind(modules: list[Module], idle: Idle) -> str:
    """Return what entries of one fault share: the fused module, else the entry without its numbers."""
    if not idle.meant:
        return ""
    if idle.why == "fused":
        return next(m.template for m in modules if set(m.holds) & set(idle.meant))
    return re.sub(r"\d+", "{i}", idle.entry)


def _meaning(modules: list[Module], idle: Idle, instead: str | None) -> str:
    """Return in brackets what an idle entry was most likely meant for."""
    module = next(m for m in modules if set(m.holds) & set(idle.meant))
    if idle.why == "fused":
        return f" ({idle.meant[0]} is fused into {module.name})"
    if idle.why == "name":
        return f" (here the module is called {module.name})"
    return f" (did you mean {instead or module.name!r}?)" if instead else f" (did you mean {module.name}?)"


def wide_entries(ctx: Context) -> Iterator[Finding]:
    """QNT004: an entry that takes more modules out than its words say."""
    entries, statement, fit = _entries(ctx), ctx.statement, ctx.inventory.fit
    if entries is None or statement is None or fit is None:
        return
    pointer, _ = statement.at("exclude")
    for index, entry, modules in entries.wide():
        held = {h for m in modules for h in m.holds}
        damage = [s for s in fit.scaled if s.member.name in held]
        worst = next((s for s in damage if s.clause.get("effect") == "refused"), damage[0] if damage else None)
        so = (
            f", though {plural(len(damage), 'weight')} of them keep{'s' if len(damage) == 1 else ''} quantized data on disk: {worst.clause.get('says', '')}"
            if worst is not None
            else ""
        )
        names = ", ".join(m.name for m in modules[:3]) + (", …" if len(modules) > 3 else "")
        yield finding(
            ctx,
            "QNT004",
            {
                "effect": worst.clause.get("effect", "silent") if worst is not None else "advice",
                "severity": "error" if worst is not None else "info",
                "source": statement.clause.get("match_source"),
            },
            f"{entry!r} is a piece of {names}, so vLLM {ctx.release} leaves {plural(len(modules), 'module')} unquantized by it{so}; {statement.clause['match_says']}.",
            file=statement.place.file,
            pointer=f"{pointer}/{index}",
            module=modules[0].name,
            found=entry,
            count=len(modules),
            fix=f"write {entry + '.'!r}, which ends at the dot"
            if entry[-1:].isdigit()
            else "write the whole name of the module",
        )


def left_unquantized(ctx: Context) -> Iterator[Finding]:
    """QNT005: a module is built quantized, and its weight on disk is not."""
    fit = ctx.inventory.fit
    if fit is None:
        return
    groups: dict[tuple[str, str, str], list[Any]] = {}
    entries = _entries(ctx)
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
            _subject([i.member for i in items])
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
            f"{subject} {'is' if len(items) == 1 else 'are'} {first.dtype} on disk, but {module.name} is built quantized ({_title(ctx, module)}), because {_why(ctx, module)}; vLLM {ctx.release}: {first.says}.",
            effect=first.effect,
            file=_file(ctx, disk),
            tensor=disk,
            module=module.name,
            expected=" or ".join(ctx.contract["quantization"]["schemes"][module.built.scheme]["dtypes"]),
            found=first.dtype,
            count=len(items),
            fix=_exclude_fix(ctx, [i.member.name for i in items]),
        )


def _exclude_fix(ctx: Context, held: list[str]) -> str:
    entries, statement = _entries(ctx), ctx.statement
    if entries is None or statement is None or not statement.clause.get("entries"):
        return "quantize it"
    entry = entries.suggest(held)
    return (
        f"add {entry!r} to {_list(statement)}, or quantize it"
        if entry
        else "take these modules out by their run-time names, or quantize them"
    )


def scaled_for_nothing(ctx: Context) -> Iterator[Finding]:
    """QNT006: scales or packed weights of a module that is built unquantized."""
    fit = ctx.inventory.fit
    if fit is None or (ctx.statement is not None and ctx.statement.backend == "none"):
        return  # of a statement that counts for nothing QNT002 tells
    groups: dict[tuple[str, str], list[Any]] = {}
    entries = _entries(ctx)
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
            _subject([i.member for i in items])
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
            file=_file(ctx, disk),
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
            f"{module.name} has an {'input' if side == 'in' else 'output'} size of {size}, which {divisor} does not divide, and it is built as {_title(ctx, module)}; vLLM {ctx.release}: {clause['says']}.",
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
            f"{subject} is {_dims(first.found)} on disk, where {scheme} keeps {_dims(first.expected.shape)}; vLLM {ctx.release}: {says}.",
            effect=effect,
            file=_file(ctx, first.disk),
            tensor=first.disk,
            expected=_dims(first.expected.shape),
            found=_dims(first.found),
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
        file=_file(ctx, first.disk),
        tensor=first.disk,
        count=len(fit.cache_scales),
    )


def _dims(shape: Any) -> str:
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
            scheme = f" ({_title(ctx, module)})" if isinstance(module.built.scheme, str) else ""
            name = (
                module.name
                if len(group) == 1
                else f"{module.template.replace('{n}', '{i}')} in {plural(len(group), 'layer')}"
            )
            yield finding(
                ctx,
                "QNT009",
                {"severity": "error", **clause},
                f"{name} is built quantized{scheme}, because {_why(ctx, module)}; vLLM {ctx.release}: {clause['says']}.",
                file=ctx.statement.place.file if ctx.statement else None,
                pointer=ctx.statement.place.pointer if ctx.statement else None,
                module=module.name,
                expected="an unquantized module",
                found=str(module.built.scheme) if isinstance(module.built.scheme, str) else None,
                count=len(group),
                fix="leave these projections unquantized, or serve with a release that takes them",
            )


def two_statements(ctx: Context) -> Iterator[Finding]:
    """DRF007: two quantization statements that say different things; one of them is not read."""
    statement = ctx.statement
    if statement is None or not statement.others or not isinstance(statement.place.value, dict):
        return
    from dspark_lint.quant.statement import summary  # noqa: PLC0415 - only for a quantized draft

    ours = summary(statement, statement.place)
    for other in statement.others:
        theirs = summary(statement, other)
        differ = {k: (ours[k], theirs[k]) for k in ours if k in theirs and ours[k] != theirs[k]}
        if not differ:
            continue
        told = "; ".join(f"{k} {_short(a)} against {_short(b)}" for k, (a, b) in differ.items())
        yield finding(
            ctx,
            "DRF007",
            {"effect": "silent", "severity": "warning", "source": other.clause.get("source")},
            f"{statement.place.file} and {other.file} state different quantizations ({told}); vLLM {ctx.release} obeys {statement.place.file}: {other.clause.get('says', statement.place.clause.get('says', ''))}.",
            file=other.file,
            pointer=other.pointer or "",
            expected="the same statement in both",
            found=", ".join(differ),
            fix="write both from one source, or leave the second out",
        )


def _short(value: Any) -> str:
    if isinstance(value, frozenset):
        listed = sorted(value)
        return show(listed[:6]) if len(listed) <= 6 else f"{len(listed)} entries"
    return show(value, 60)


RULES = (
    Rule(
        "DRF007",
        "Two quantization statements disagree",
        "config.json and hf_quant_config.json both state the quantization; a release reads one of them.",
        "Write both from one source.",
        "warning",
        "silent",
        two_statements,
        ("config",),
        fires='"ignore": ["lm_head"] beside "exclude_modules": ["lm_head", "fc"]',
        quiet="the same list in both",
    ),
    Rule(
        "QNT001",
        "The quantization statement is refused",
        "The statement is read before a weight is; an unknown algorithm, a missing field or a wrong type stops the engine.",
        "Write what the release reads.",
        "error",
        "refused",
        refused_statement,
        ("config",),
        fires='"quant_algo": "W4A16_NVFP4" in a file of producer modelopt',
        quiet='"quant_algo": "NVFP4"',
    ),
    Rule(
        "QNT002",
        "A quantization statement that counts for nothing",
        "Without quant_method every module is built unquantized, whatever else the statement says.",
        "Write quant_method.",
        "warning",
        "silent",
        no_method,
        ("config",),
        fires='a quantization_config without "quant_method"',
        quiet='"quant_method": "compressed-tensors"',
    ),
    Rule(
        "QNT003",
        "An exclusion entry matches nothing",
        "Entries are held against the names that the modules have at run time: prefixed, renumbered past the target's layers, projections fused. An entry that matches none is passed over in silence.",
        "Write the name that the release builds.",
        "warning",
        "silent",
        idle_entries,
        ("family", "weights"),
        fires='"dflash_module.markov_w2" in exclude_modules',
        quiet='"markov_head.markov_w2"',
    ),
    Rule(
        "QNT004",
        "An exclusion entry matches more than it says",
        "An entry counts wherever it is a piece of a module's name: layers.3 takes out layers 30 to 39.",
        "End the entry at a dot.",
        "warning",
        "silent",
        wide_entries,
        ("family", "weights"),
        fires='"layers.3" with a target of 30 layers',
        quiet='"layers.3."',
    ),
    Rule(
        "QNT005",
        "Quantized by the statement, unquantized on disk",
        "The module is built with a quantized weight; what lies on disk is cast into it without a scale, or does not fit.",
        "Exclude the module by its run-time name, or quantize it.",
        "error",
        "silent",
        left_unquantized,
        ("family", "weights"),
        fires="a BF16 fc.weight under FP8 without an entry for fc",
        quiet='"fc" in exclude_modules',
    ),
    Rule(
        "QNT006",
        "Quantized on disk, unquantized by the statement",
        "The module is built unquantized, so its scales have no place, and packed values count as they stand.",
        "Take the module out of the exclusion list, or export it unquantized.",
        "error",
        "refused",
        scaled_for_nothing,
        ("family", "weights"),
        fires='fc.weight_scale with "fc" in exclude_modules',
        quiet="fc.weight alone, BF16",
    ),
    Rule(
        "QNT007",
        "A scale is missing",
        "Most schemes never notice that a scale was not loaded and multiply with whatever the memory holds.",
        "Export the scales along with the weight.",
        "error",
        "silent",
        missing_scales,
        ("family", "weights"),
        fires="an FP8 weight without its weight_scale",
        quiet="both",
    ),
    Rule(
        "QNT008",
        "A packed weight or a scale of the wrong size",
        "Block and group scales follow from the unquantized sizes and the group; sizes that the group does not divide cannot be built.",
        "Quantize again with the group that the statement gives.",
        "error",
        "refused",
        sizes,
        ("family", "weights"),
        fires="a weight_scale of 64 numbers under FP8 with one scale a tensor",
        quiet="a weight_scale of one number",
    ),
    Rule(
        "QNT009",
        "A module that this release does not serve quantized",
        "Some projections are multiplied outside their quantization in some releases.",
        "Leave them unquantized, or serve with a release that takes them.",
        "error",
        "refused",
        unserved,
        ("family", "weights"),
        fires="a quantized q_proj under vLLM 0.30",
        quiet="the same under vLLM 0.31",
    ),
    Rule(
        "QNT010",
        "Scales of the K/V cache in a draft",
        "They count only where the engine keeps the draft's K/V cache quantized.",
        "Nothing, if that is meant.",
        "info",
        "advice",
        cache_scales,
        ("family", "weights"),
        fires="layers.0.self_attn.k_proj.k_scale under a quantization",
        quiet="no such tensor",
    ),
)
