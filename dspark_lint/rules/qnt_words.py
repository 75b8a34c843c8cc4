"""What the rules on quantization share: names of modules, lists and schemes as a finding says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.rules.base import Context, plural


if TYPE_CHECKING:
    from collections.abc import Iterable

    from dspark_lint.quant.entries import Entries
    from dspark_lint.quant.fit import Member
    from dspark_lint.quant.modules import Module
    from dspark_lint.quant.statement import Statement


def numbers(members: Iterable[Member]) -> str:
    """Return `` in 36 layers (0, 1, 2, ...)`` for members of one pattern; nothing for a module outside the layers."""
    numbers = sorted({m.module.number for m in members if m.module is not None and m.module.number is not None})
    if not numbers:
        return ""
    listed = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f" of {plural(len(numbers), 'layer')} ({listed})"


def subject_of(members: list[Member]) -> str:
    """Return the one module's name, or the pattern with its layers."""
    return members[0].name if len(members) == 1 else members[0].pattern + numbers(members)


def file_of(ctx: Context, disk: str) -> str | None:
    """Return the file that a tensor stands in."""
    entry = ctx.inventory.tensors.get(disk)
    return entry[0] if entry else None


def title_of(ctx: Context, module: Module) -> str:
    """Return what the scheme is called that a module is built by."""
    return str(ctx.contract["quantization"]["schemes"][module.built.scheme]["title"])


def list_of(statement: Statement) -> str:
    """Return the key of the exclusion list as this statement spells it."""
    pointer, _ = statement.at("exclude")
    return pointer.rpartition("/")[2] or str(statement.clause.get("entries", "the list"))


def why_of(ctx: Context, module: Module) -> str:
    """Return by what a module is quantized: the group, the entry of the map, or the want of an exclusion."""
    statement = ctx.statement
    assert statement is not None
    if module.built.by and "groups" in statement.clause:
        return f"the target {module.built.by!r} reaches it"
    if module.built.by:
        return f"the key {module.built.by!r} of quantized_layers names it"
    return f"no entry of {list_of(statement)} matches {module.name}"


def entries_of(ctx: Context) -> Entries | None:
    """Return the exclusion list applied to the modules; None where nothing is quantized."""
    fit, statement = ctx.inventory.fit, ctx.statement
    if fit is None or statement is None or not fit.modules:
        return None
    from dspark_lint.quant.entries import Entries  # noqa: PLC0415 - only for a quantized draft

    return Entries(ctx.binding, statement, fit.modules, ctx.inventory)
