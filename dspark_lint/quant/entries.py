"""Exclusion entries one by one: those that match nothing and what they were meant for, those that match too much."""

from __future__ import annotations

import difflib
import os
import re

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.contract.expr import evaluate
from dspark_lint.quant.match import Entry, rewrite, way_of


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from dspark_lint.binding import Binding
    from dspark_lint.inventory import Inventory
    from dspark_lint.quant.modules import Module
    from dspark_lint.quant.statement import Statement


_REGEX = "re:"


class Idle(NamedTuple):
    """An entry that matches no module."""

    at: int
    """Its place in the list."""
    entry: str
    meant: tuple[str, ...]
    """The quantizable modules on disk that it speaks of, read generously."""
    why: str
    """``fused``, ``name`` (it names the module as it lies on disk), ``guess``, or empty where nothing is meant."""


class Entries:
    """The exclusion list of a statement under one release, for one draft whose module names are known."""

    def __init__(self, binding: Binding, statement: Statement, modules: list[Module], inventory: Inventory) -> None:
        self.statement = statement
        self.modules = modules
        self.ways: list[str] = list(statement.clause.get("match", ()))
        offset = evaluate(str(binding.family.get("module_offset", "0")), binding)
        layers = binding.get("num_hidden_layers")
        self.known = bool(self.ways) and isinstance(offset, int) and isinstance(layers, int)
        self._offset = offset if isinstance(offset, int) else 0
        self._layers = layers if isinstance(layers, int) else 0
        steps: list[Mapping[str, Any]] = [
            s for s in binding.family.get("entries", {}).values() if s and statement.backend in s["backends"]
        ]
        self._steps = sorted(steps, key=lambda s: s.get("order", 50))
        self._inside = {h: m for m in modules for h in m.holds}
        self._runtime = {f"{m.name.rpartition('.')[0]}.{h.rpartition('.')[2]}": h for m in modules for h in m.holds}
        """What each would be called at run time, were it not fused."""
        self._owners = sorted({n.rpartition(".")[0] for n in inventory.disk_of})

    def held(self, entry: str) -> list[Entry]:
        """Return what the release makes of one entry."""
        return rewrite([entry], self._steps, offset=self._offset, layers=self._layers)

    def matched(self, entry: str) -> list[Module]:
        """Return the modules that one entry takes out."""
        return [m for m in self.modules if any(way_of(e.held, m.name, self.ways) for e in self._of(entry, m))]

    def _of(self, entry: str, module: Module) -> list[Entry]:
        return [Entry(entry, entry)] if module.clause.get("raw_entries") else self.held(entry)

    def idle(self) -> Iterator[Idle]:
        """Yield every entry that matches no module.

        Entries that name what no quantization of this release reaches (an embedding, a norm, a head that every
        exporter lists) are left alone.
        """
        for index, entry in enumerate(self.statement.entries if self.known else ()):
            if self.matched(entry):
                continue
            meant, exact = self._meant(entry)
            reach = tuple(m for m in meant if m in self._inside)
            if (meant and not reach) or (not meant and entry.strip("*.").rpartition(".")[2] in _ALWAYS_LISTED):
                continue
            fused = bool(reach) and all(self._is_shard(m) for m in reach)
            yield Idle(index, entry, reach, "" if not reach else "fused" if fused else "name" if exact else "guess")

    def _is_shard(self, held: str) -> bool:
        module = self._inside[held]
        return len(module.holds) > 1 and held.rpartition(".")[2] != module.name.rpartition(".")[2]

    def wide(self) -> Iterator[tuple[int, str, list[Module]]]:
        """Yield (index, entry, modules) for each entry that is a piece of names in the middle of a word or a number."""
        if not self.known or "part" not in self.ways:
            return
        for index, entry in enumerate(self.statement.entries):
            caught = [m for m in self.modules if any(_mid_word(e.held, m.name) for e in self._of(entry, m))]
            if caught:
                yield index, entry, caught

    def _meant(self, entry: str) -> tuple[list[str], bool]:
        """Return the modules on disk that an entry speaks of, read generously, and whether it names them exactly."""
        if entry.startswith(_REGEX):
            try:
                search = re.compile(entry[len(_REGEX) :]).search
            except re.error:
                return [], False
            atrun = [h for name, h in self._runtime.items() if search(name)]
            return atrun or [o for o in self._owners if search(o) or search("model." + o)], True
        plain = entry.strip("*").strip(".")
        if not plain:
            return [], False
        if plain in self._runtime:
            return [self._runtime[plain]], True
        exact = [o for o in self._owners if _names(entry, plain, o) or _names(entry, plain, "model." + o)]
        if exact:
            return exact, True
        parts = plain.split(".")
        for start in range(1, len(parts)):
            tail = ".".join(parts[start:])
            found = [o for o in self._owners if o == tail or o.endswith("." + tail) or o.startswith(tail + ".")]
            if found:
                return found, False
        return difflib.get_close_matches(plain, self._owners, n=1, cutoff=0.8), False

    # -- what would match --------------------------------------------------------------------------------------------

    def suggest(self, held: Iterable[str], entry: str = "") -> str | None:
        """Return an entry that takes out exactly the modules that hold these on disk; None when none was found."""
        wanted = [m for m in self.modules if set(m.holds) & set(held)]
        if not self.known or not wanted:
            return None
        names = [m.name for m in wanted]
        for candidate in self._candidates(names, list(held), entry):
            if candidate != entry and [m.name for m in self.matched(candidate)] == names:
                return candidate
        return None

    def _candidates(self, names: list[str], held: list[str], entry: str) -> Iterator[str]:
        if len(names) == 1 and entry and not entry.endswith("*"):
            yield held[0]  # the name as a whole says best what is meant
        if entry and not entry.startswith(_REGEX):
            parts = entry.strip("*").split(".")
            for start in range(len(parts)):
                tail = ".".join(parts[start:])
                star = "*" if entry.endswith("*") else ""
                yield from (tail + star, "*" + tail + star)
        if len(names) == 1:
            yield from (held[0], names[0])
        common = os.path.commonprefix(names)  # noqa: RUF071 - of characters it shall be
        stem = common[: common.rfind(".") + 1] if common and not common.endswith(".") else common
        tails = {n.rpartition(".")[2] for n in names}
        if len(names) > 1 and stem:
            yield stem + "*"
            yield _REGEX + re.escape(stem) + ".*"
        if len(tails) == 1:
            tail = next(iter(tails))
            yield f"*.{tail}"
            yield f"{_REGEX}.*\\.{tail}$"
        yield from names[:1]


#: What exporters put on every list, whatever the model; a draft need not have it.
_ALWAYS_LISTED = frozenset({"lm_head", "embed_tokens"})


def _names(entry: str, plain: str, owner: str) -> bool:
    return owner == plain or owner.startswith(plain + ".") or way_of(entry, owner, ("glob",)) is not None


def _mid_word(entry: str, name: str) -> bool:
    if entry not in name or entry == name:
        return False
    return all(_cuts(entry, name, m.start()) for m in re.finditer(re.escape(entry), name))


def _cuts(entry: str, name: str, at: int) -> bool:
    before, after = name[at - 1 : at] if at else "", name[at + len(entry) : at + len(entry) + 1]
    return (_word(before) and _word(entry[:1])) or (_word(after) and _word(entry[-1:]))


def _word(character: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_")
