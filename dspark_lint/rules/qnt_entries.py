"""Entries of exclusion lists that match nothing, or more than they say."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING

from dspark_lint.rules.base import Context, finding, plural
from dspark_lint.rules.qnt_words import entries_of, list_of, title_of


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dspark_lint.finding import Effect, Finding
    from dspark_lint.quant.entries import Idle
    from dspark_lint.quant.fit import Unquantized
    from dspark_lint.quant.modules import Module


def idle_entries(ctx: Context) -> Iterator[Finding]:
    """QNT003: an entry of an exclusion list that matches no module the release builds."""
    entries, statement, fit = entries_of(ctx), ctx.statement, ctx.inventory.fit
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
                f"{listed} of {list_of(statement)} {'matches' if one else 'match'} no module of this draft; vLLM {ctx.release} passes over such entries in silence.",
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
            f"{listed} of {list_of(statement)} {'matches' if one else 'match'} no module that vLLM {ctx.release} builds{_meaning(fit.modules, first, instead)}{_built_quantized(ctx, damage)}{ways}.",
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
    return f", so {name}, {first.dtype} on disk, {'is' if one else 'are'} built quantized ({title_of(ctx, first.member.module)}): {first.says}"


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
    entries, statement, fit = entries_of(ctx), ctx.statement, ctx.inventory.fit
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
