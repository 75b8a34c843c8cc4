"""TEN004: tensors of another size than the configuration says, and the key that explains many of them at once."""

from __future__ import annotations

import fnmatch

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import evaluate, names_in
from dspark_lint.rules.base import Context, config_file, finding, key_place, plural, violated
from dspark_lint.rules.naming import dims, file_of, layer_names
from dspark_lint.words import show


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding
    from dspark_lint.inventory import Mismatch


class KeyFault(NamedTuple):
    """One key of the configuration that explains a set of size mismatches."""

    key: str
    implied: int
    mismatches: list[Mismatch]


def key_faults(ctx: Context) -> list[KeyFault]:
    """Find the keys whose value, were it another, would make mismatched tensors fit and break none that fits.

    One wrong number in config.json shows in every layer; it is one fault.
    """
    inventory = ctx.inventory
    left = list(inventory.mismatches)
    faults: list[KeyFault] = []
    mismatched = {m.disk for m in left}
    while left:
        votes: dict[tuple[str, int], list[Mismatch]] = {}
        for mismatch in left:
            for key, implied in _implied(ctx, mismatch):
                votes.setdefault((key, implied), []).append(mismatch)
        best: KeyFault | None = None
        for (key, implied), group in votes.items():
            if (best is None or len(group) > len(best.mismatches)) and not _contradicted(ctx, key, implied, mismatched):
                best = KeyFault(key, implied, group)
        if best is None or (len(best.mismatches) < 2 and not _only_witness(ctx, best)):
            return faults
        faults.append(best)
        left = [m for m in left if m not in best.mismatches]
    return faults


def _only_witness(ctx: Context, fault: KeyFault) -> bool:
    """Whether one mismatch may accuse a key: the key is a default, or the tensor is the only one that shows it."""
    origin = ctx.binding.keys[fault.key].origin
    return origin in ("default", "absent")


def _keys_of(ctx: Context, text: str, *, lists: bool = False) -> set[str]:
    """Return the integer keys of the family that a dimension is made of; with `lists` also those it counts."""
    found: set[str] = set()
    todo = list(names_in(text))
    let = ctx.binding.family.get("let", {})
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in ctx.binding.keys:
            value = ctx.binding.keys[name].value
            if (isinstance(value, int) and not isinstance(value, bool)) or (lists and isinstance(value, list)):
                found.add(name)
        elif name in let and name not in seen:
            seen.add(name)
            todo += names_in(let[name])
    return found


class _With:
    """The family's scope with one key set to another value."""

    def __init__(self, ctx: Context, key: str, value: int) -> None:
        self._binding, self._key, self._value = ctx.binding, key, value

    def get(self, name: str) -> Any:
        """Return a name, the replaced key first; derived values are computed anew."""
        if name == self._key:
            return self._value
        let = self._binding.family.get("let", {})
        if name in let:
            return evaluate(let[name], self)
        return self._binding.get(name)

    def call(self, name: str) -> Any:
        """Return the binding's functions."""
        return self._binding.call(name)


def _implied(ctx: Context, mismatch: Mismatch) -> Iterator[tuple[str, int]]:
    """Yield (key, value) pairs that would make every mismatched dimension of this tensor fit."""
    shape = mismatch.expected.clause.get("shape", ())
    candidates: dict[str, int] | None = None
    for axis in mismatch.dims:
        text = str(shape[axis])
        here: dict[str, int] = {}
        for key in _keys_of(ctx, text):
            value = _solve(ctx, text, key, mismatch.found[axis])
            if value is not None:
                here[key] = value
        candidates = here if candidates is None else {k: v for k, v in candidates.items() if here.get(k) == v}
    yield from (candidates or {}).items()


def _solve(ctx: Context, text: str, key: str, wanted: int) -> int | None:
    """Solve a dimension, linear in the key, for the key."""
    low, high = evaluate(text, _With(ctx, key, 1)), evaluate(text, _With(ctx, key, 2))
    if not (isinstance(low, int) and isinstance(high, int)) or high == low:
        return None
    value, rest = divmod(wanted - low, high - low)
    return value + 1 if rest == 0 and value + 1 > 0 and evaluate(text, _With(ctx, key, value + 1)) == wanted else None


def _contradicted(ctx: Context, key: str, implied: int, mismatched: set[str]) -> bool:
    """Whether a tensor that fits today would not with the key's implied value."""
    scope = _With(ctx, key, implied)
    variables = set(ctx.binding.family.get("loops", {}))
    for name, exp in ctx.inventory.expected.items():
        disk = ctx.inventory.disk_of.get(name)
        if disk is None or disk in mismatched or exp.shape is None:
            continue
        for text, have in zip(map(str, exp.clause.get("shape", ())), exp.shape, strict=True):
            if key in _keys_of(ctx, text) and (names_in(text) & variables or evaluate(text, scope) != have):
                return True
    return False


def accused(ctx: Context) -> dict[str, str]:
    """Return the keys that size mismatches show to be wrong, with what becomes of it: ``refused`` or ``silent``."""
    if ctx.accused is None:
        ctx.accused = {f.key: "silent" if all(m.cut for m in f.mismatches) else "refused" for f in key_faults(ctx)}
    return ctx.accused


def told_by_checks(ctx: Context) -> set[str]:
    """Return the tensors, as names or patterns, that a violated check of the family accounts for."""
    told: set[str] = set()
    for clause in ctx.binding.family.get("checks", {}).values():
        if clause and "explains" in clause and violated(ctx, clause):
            told.update(clause["explains"])
    return told


def among(patterns: set[str], name: str) -> bool:
    """Whether a name matches any of the patterns."""
    return bool(patterns) and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def misshapen(ctx: Context) -> Iterator[Finding]:
    """TEN004: a tensor of another size than the configuration gives it."""
    faults = key_faults(ctx)
    told = {m.disk for f in faults for m in f.mismatches}
    spoken = told_by_checks(ctx) if ctx.inventory.mismatches else set()
    yield from (_key_finding(ctx, fault) for fault in faults)
    groups: dict[tuple[str, bool, tuple[int, ...]], list[Mismatch]] = {}
    for mismatch in ctx.inventory.mismatches:
        if mismatch.disk not in told and not among(spoken, mismatch.expected.name):
            groups.setdefault((mismatch.expected.pattern, mismatch.cut, mismatch.found), []).append(mismatch)
    if len(groups) > 8:
        yield _many_mismatches(ctx, [m for group in groups.values() for m in group])
        return
    for (pattern, cut, found), group in groups.items():
        clause = _loader_clause(ctx, group[0])
        shape = group[0].expected.shape
        assert shape is not None
        where = layer_names([m.expected.name for m in group], group[0].expected.pattern)
        verb = "is" if len(group) == 1 else "are"
        outcome = (
            f"vLLM {ctx.release} cuts it to {dims(shape)} without a word"
            if cut
            else f"vLLM {ctx.release} refuses it; {clause.get('refuses', clause.get('says', ''))}"
        )
        yield finding(
            ctx,
            "TEN004",
            clause,
            f"{where} {verb} {dims(found)}, where the configuration gives {dims(shape)}: {outcome}.",
            effect="silent" if cut else "refused",
            file=file_of(ctx, group[0].disk),
            tensor=group[0].disk if len(group) == 1 else pattern,
            expected=dims(shape),
            found=dims(found),
            count=len(group),
            fix=_made_of(ctx, group[0]),
        )


def _many_mismatches(ctx: Context, mismatches: list[Mismatch]) -> Finding:
    worst = next((m for m in mismatches if not m.cut), mismatches[0])
    sample = ", ".join(f"{m.disk} is {dims(m.found)} and not {dims(m.expected.shape)}" for m in mismatches[:3])
    outcome = "cuts them to size without a word" if worst.cut else "refuses them"
    return finding(
        ctx,
        "TEN004",
        _loader_clause(ctx, worst),
        f"{len(mismatches)} tensors have other sizes than the configuration gives them ({sample}, …); vLLM {ctx.release} {outcome}.",
        effect="silent" if worst.cut else "refused",
        file=file_of(ctx, worst.disk),
        tensor=worst.disk,
        expected=dims(worst.expected.shape),
        found=dims(worst.found),
        count=len(mismatches),
        fix=_made_of(ctx, worst),
    )


def _made_of(ctx: Context, mismatch: Mismatch) -> str:
    """Say which expression gives the expected size, so that the reader can tell which side is wrong."""
    parts = []
    for axis in mismatch.dims or range(len(mismatch.expected.clause.get("shape", ()))):
        text = str(mismatch.expected.clause["shape"][axis])
        keys = sorted(_keys_of(ctx, text, lists=True))
        values = ", ".join(f"{key_place(ctx.binding.keys[k])} = {show(ctx.binding.keys[k].value)}" for k in keys)
        if values:
            parts.append(f"dimension {axis} follows from {values}")
    return "correct the tensor or the keys: " + "; ".join(parts) if parts else "export the tensor again"


def _loader_clause(ctx: Context, mismatch: Mismatch) -> Mapping[str, Any]:
    loader: Mapping[str, Any] = ctx.contract["parameter_loaders"][mismatch.expected.clause.get("loader", "plain")]
    return loader


def _key_finding(ctx: Context, fault: KeyFault) -> Finding:
    key = ctx.binding.keys[fault.key]
    cut = all(m.cut for m in fault.mismatches)
    worst = next((m for m in fault.mismatches if not m.cut), fault.mismatches[0])
    clause = _loader_clause(ctx, worst)
    shape = worst.expected.shape
    assert shape is not None
    filled = key.origin in ("default", "absent")
    stands = (
        f"{key_place(key)} is not in the file and {key.says or f'counts as {show(key.value)}'}"
        if filled
        else f"{key_place(key)} is {show(key.value)}"
    )
    outcome = "cuts them to size without a word" if cut else "refuses them"
    return finding(
        ctx,
        "TEN004",
        clause,
        f"{stands}, but {plural(len(fault.mismatches), 'tensor')} say {fault.implied} ({worst.disk} is {dims(worst.found)}, expected {dims(shape)});"
        f" vLLM {ctx.release} {outcome}.",
        effect="silent" if cut else "refused",
        file=config_file(ctx),
        pointer=key.pointer,
        tensor=worst.disk,
        expected=dims(shape),
        found=dims(worst.found),
        count=len(fault.mismatches),
        fix=f'"{key_place(key)}": {fault.implied}, if the weights are right',
    )
