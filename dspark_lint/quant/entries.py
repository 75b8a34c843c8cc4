"""Exclusion entries one by one: those that match nothing and what they were meant for, those that match too much."""

from __future__ import annotations

import difflib
import re

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dspark_lint.contract.expr import evaluate
from dspark_lint.quant.match import WAYS, rewrite, way_of


if TYPE_CHECKING:
    from dspark_lint.binding import Binding
    from dspark_lint.inventory import Inventory
    from dspark_lint.quant.match import Entry
    from dspark_lint.quant.modules import Module
    from dspark_lint.quant.statement import Statement


def _held(binding: Binding, statement: Statement) -> list[list[Entry]] | None:
    """Return what each entry becomes; None where the target's depth, and so the names, are unknown."""
    offset = evaluate(str(binding.family.get("module_offset", "0")), binding)
    layers = binding.get("num_hidden_layers")
    if not isinstance(offset, int) or not isinstance(layers, int):
        return None
    steps = [s for s in binding.family.get("entries", {}).values() if s and statement.backend in s["backends"]]
    steps.sort(key=lambda s: s.get("order", 50))
    return [rewrite([entry], steps, offset=offset, layers=layers) for entry in statement.entries]


def idle(
    binding: Binding, statement: Statement, modules: list[Module], inventory: Inventory
) -> Iterator[tuple[int, str, list[str], str]]:
    """Yield (index, entry, modules on disk it was meant for, why it misses) for each entry that matches no module.

    Entries that name a module which no quantization of this release reaches (an embedding, a norm) are left alone.
    """
    held = _held(binding, statement)
    ways = statement.clause.get("match", ())
    if held is None or not ways:
        return
    names = [m.name for m in modules]
    owners = sorted({n.rpartition(".")[0] for n in inventory.disk_of})
    inside = {h: m for m in modules for h in m.holds}
    for index, entry in enumerate(statement.entries):
        if any(way_of(e.held, n, ways) for e in held[index] for n in names):
            continue
        meant, exact = _meant(entry, owners)
        if meant and not any(m in inside for m in meant):
            continue  # it names what is never quantized anyway
        if not meant and _elsewhere(entry):
            continue
        reach = [m for m in meant if m in inside]
        yield index, entry, reach, _why(reach, inside, exact=exact)


def _elsewhere(entry: str) -> bool:
    """Whether an entry is one that exporters write for every model and that a draft need not have."""
    return entry.strip("*.").rpartition(".")[2] in {"lm_head", "embed_tokens"}


def _meant(entry: str, owners: list[str]) -> tuple[list[str], bool]:
    """Return the modules on disk that an entry speaks of, read generously, and whether it names them exactly."""
    if entry.startswith("re:"):
        try:
            search = re.compile(entry[3:]).search
        except re.error:
            return [], False
        return [o for o in owners if search(o) or search("model." + o)], True
    plain = entry.strip("*").strip(".")
    exact = [o for o in owners if o == plain or WAYS["glob"](entry, o) or WAYS["glob"](entry, "model." + o) or ("model." + o) == plain or (plain and (o + ".").startswith(plain + "."))]
    if exact:
        return exact, True
    parts = plain.split(".")
    for start in range(1, len(parts)):
        tail = ".".join(parts[start:])
        found = [o for o in owners if o == tail or o.endswith("." + tail)]
        if found:
            return found, False
    close = difflib.get_close_matches(plain, owners, n=1, cutoff=0.8)
    return close, False


def _why(meant: list[str], inside: dict[str, Module], *, exact: bool) -> str:
    if not meant:
        return ""
    module = inside[meant[0]]
    if len(module.holds) > 1 and meant[0].rpartition(".")[2] not in module.name:
        return f" ({meant[0]} is fused into {module.name})"
    return f" (the module is called {module.name})" if exact else f" (did you mean {module.name}?)"


def wide(binding: Binding, statement: Statement, modules: list[Module]) -> Iterator[tuple[int, str, list[Module]]]:
    """Yield (index, entry, modules) for each entry that is a piece of names in the middle of a word or a number."""
    held = _held(binding, statement)
    if held is None or "part" not in statement.clause.get("match", ()):
        return
    for index, entry in enumerate(statement.entries):
        caught = [m for m in modules if any(_mid_word(e.held, m.name) for e in held[index])]
        if caught:
            yield index, entry, caught


def _mid_word(entry: str, name: str) -> bool:
    if entry not in name or entry == name:
        return False
    places = [m.start() for m in re.finditer(re.escape(entry), name)]
    return all(_word(name, at - 1) and _word(entry, 0) or _word(name, at + len(entry)) and _word(entry, len(entry) - 1) for at in places)


def _word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")
