"""The modules a quantization reaches under one release, and how it builds each: quantized by which scheme, or not."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.quant.match import Entry, rewrite, way_of


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.binding import Binding
    from dspark_lint.contract.expr import Scope
    from dspark_lint.quant.statement import Statement


#: Depths of targets that are tried where the target's own is unknown; what all of them agree on is certain.
_DEPTHS = (1, 4, 8, 12, 16, 24, 27, 28, 30, 32, 36, 40, 48, 61, 62, 64, 78, 80, 92, 94, 96, 100, 126, 128)


class Built(NamedTuple):
    """What one module is built as."""

    scheme: Any
    """Name of a scheme; None: unquantized; `UNKNOWN`: it hangs on what is not known here."""
    by: str
    """The entry that decides it, as written; empty where none does."""
    way: str
    """In which way that entry matched."""
    scope: Any = None
    """Where the scheme's own names (group, width, ...) are looked up."""
    refused: Mapping[str, Any] | None = None
    """The clause by which building it raises."""


class Module(NamedTuple):
    """One module of the draft, as the release names it."""

    name: str
    """``model.layers.36.self_attn.qkv_proj``; where the target's depth is unknown ``model.layers.{n}...``."""
    template: str
    clause: Mapping[str, Any]
    holds: tuple[str, ...]
    """Modules on disk, in the family's own names, that make it up."""
    patterns: tuple[str, ...]
    """The same with ``{i}``."""
    number: int | None
    built: Built


def modules_of(binding: Binding, statement: Statement) -> list[Module]:
    """Return every module of the family that a quantization can reach, and how this release builds it."""
    family = binding.family
    offset = evaluate(str(family.get("module_offset", "0")), binding)
    depths = [offset] if isinstance(offset, int) and not isinstance(offset, bool) else list(_DEPTHS)
    known = len(depths) == 1
    layers = binding.get("num_hidden_layers")
    layers = layers if isinstance(layers, int) and not isinstance(layers, bool) and 0 <= layers <= 4096 else 0
    matchers = [Matcher(binding, statement, depth, layers) for depth in depths]
    found: list[Module] = []
    for template, clause in family.get("modules", {}).items():
        if not clause:
            continue
        numbers: list[int | None] = list(range(layers)) if "{n}" in template else [None]
        scope: Scope = binding
        if evaluate(str(clause.get("when", "true")), scope) is False:
            continue
        for number in numbers:
            held = tuple(h.replace("{i}", str(number)) for h in clause["holds"])
            builds = [m.built(_named(template, number, m.offset), clause) for m in matchers]
            built = builds[0]
            if any(b.scheme != built.scheme for b in builds[1:]):
                built = Built(UNKNOWN, "", "")
            name = (
                _named(template, number, depths[0])
                if known
                else template.replace("{n}", "{n}" if number is None else f"{{n+{number}}}")
            )
            found.append(Module(name, template, clause, held, tuple(clause["holds"]), number, built))
    return found


def _named(template: str, number: int | None, offset: int) -> str:
    return template if number is None else template.replace("{n}", str(number + offset))


class Matcher:
    """One statement against module names, for one depth of the target."""

    def __init__(self, binding: Binding, statement: Statement, offset: int, layers: int) -> None:
        self.statement = statement
        self.offset = offset
        self.clause = statement.clause
        steps = [s for s in binding.family.get("entries", {}).values() if s and statement.backend in s["backends"]]
        steps.sort(key=lambda s: s.get("order", 50))
        self._raw = [Entry(e, e) for e in statement.entries]
        self.entries = rewrite(statement.entries, steps, offset=offset, layers=layers)
        mapped = [s for s in steps if s.get("layers", True)]
        self.layers = {
            e.held: (e.written, statement.layers[e.written])
            for e in rewrite(statement.layers, mapped, offset=offset, layers=layers)
        }
        self._groups = list(statement.groups())

    def excluded(self, name: str, *, raw: bool = False) -> tuple[str, str] | None:
        """Return (entry as written, way) of the first entry that takes a module out; None when none does.

        As the releases do: every entry in the first way, then every entry in the next. `raw`: for a module whose
        entries are not rewritten.
        """
        entries = self._raw if raw else self.entries
        for way in self.clause.get("match", ()):
            for entry in entries:
                if way_of(entry.held, name, (way,)):
                    return entry.written, way
        return None

    def built(self, name: str, module: Mapping[str, Any]) -> Built:
        """Return what a module of that name and class is built as."""
        kind = "head" if module.get("head") else "linear"
        if self.statement.backend == "none" or kind not in self.clause.get("classes", ()):
            return Built(None, "", "")
        out = self.excluded(name, raw=bool(module.get("raw_entries")))
        if out:
            return Built(None, *out)
        if "groups" in self.clause:
            return self._by_group(name, str(module["class"]))
        if "layers" in self.clause:
            return self._by_layer(name)
        return Built(evaluate(str(self.clause["scheme"]), self.statement) or None, "", "", self.statement)

    def _by_group(self, name: str, class_name: str) -> Built:
        tests = ((name, self.clause["target_match"]), (class_name, self.clause["class_match"]))
        for subject, ways in tests:
            for target, group in self._groups:
                way = way_of(target, subject, ways)
                if way:
                    refused = group.refused
                    return Built(UNKNOWN if refused else group.scheme, target, way, group, refused)
        return Built(None, "", "")

    def _by_layer(self, name: str) -> Built:
        for way in self.clause["layers_match"]:
            for written, info in self._looked_up(name, way):
                return self._layer(written, info, way, name)
        return Built(None, "", "")

    def _looked_up(self, name: str, way: str) -> Iterator[tuple[str, Any]]:
        if way == "equal" and name in self.layers:
            yield self.layers[name]
        elif way == "child":
            yield from (v for k, v in self.layers.items() if k.startswith(name + "."))
        elif way == "shards":
            parent, _, last = name.rpartition(".")
            yield from (
                self.layers[k]
                for shard in self.clause["shards"].get(last, ())
                if (k := f"{parent}.{shard}") in self.layers
            )

    def _layer(self, written: str, info: Any, way: str, name: str) -> Built:
        scheme = _scheme_of(self.statement, self.clause, info)
        if way == "shards":
            schemes = {_scheme_of(self.statement, self.clause, i) for _, i in self._looked_up(name, way)}
            if len(schemes) > 1:
                return Built(UNKNOWN, written, way, self.statement, self.clause["shards_differ"])
        return Built(scheme, written, way, self.statement)


class _Layer:
    """The statement's scope with one layer's own algorithm."""

    def __init__(self, statement: Statement, info: Mapping[str, Any]) -> None:
        self._statement, self._info = statement, info

    def get(self, name: str) -> Any:
        if name == "layer":
            return self._info
        if name == "algo":
            return evaluate(str(self._statement.clause["layer_algo"]), self)
        return self._statement.get(name)

    def call(self, name: str) -> Any:
        return self._statement.call(name)


def _scheme_of(statement: Statement, clause: Mapping[str, Any], info: Any) -> Any:
    if not isinstance(info, dict):
        return UNKNOWN
    return evaluate(str(clause["scheme"]), _Layer(statement, info)) or None


def generic(name: str) -> str:
    """Return a module's or tensor's name with its first number as ``{i}``."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "{i}", name, count=1)
