"""A quantization held against the tensors: what each module should keep on disk, and what it keeps instead.

It turns the expected tensors of an inventory into those of the schemes before they are compared, and takes from the
comparison what only a quantization explains: weights left unquantized, scales without a module, scales that lack.
"""

from __future__ import annotations

import re

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate, names_in
from dspark_lint.quant.modules import Built, Module, generic, modules_of


if TYPE_CHECKING:
    from dspark_lint.binding import Binding
    from dspark_lint.finding import Effect
    from dspark_lint.inventory import Expected, Inventory, Mismatch, Stray
    from dspark_lint.quant.statement import Statement


class Member(NamedTuple):
    """One module on disk and the runtime module it is part of."""

    name: str
    pattern: str
    module: Module | None
    """None: no quantization of this release ever reaches it."""


class Unquantized(NamedTuple):
    """A module that is built quantized and whose weight on disk is of another type."""

    member: Member
    dtype: str
    scaled: bool
    """Whether every scale is there: another kind of quantized weight."""
    effect: Effect
    says: str
    clause: Mapping[str, Any]


class Scaled(NamedTuple):
    """A module that is built unquantized and whose scales or packed weight are on disk."""

    member: Member
    tensors: tuple[str, ...]
    """Names on disk."""
    clause: Mapping[str, Any]


class Fit:
    """What a statement makes of one inventory."""

    def __init__(self, binding: Binding, statement: Statement | None) -> None:
        self.binding = binding
        self.statement = statement
        self.section: Mapping[str, Any] = binding.contract["quantization"]
        self.modules: list[Module] = []
        self.members: dict[str, Member] = {}
        self.unquantized: list[Unquantized] = []
        self.scaled: list[Scaled] = []
        self.missing: list[Expected] = []
        self.mismatches: list[Mismatch] = []
        self.indivisible: list[tuple[Module, str, int, int, Mapping[str, Any]]] = []
        """(module, ``in`` or ``out``, its size, the divisor, the clause)."""
        self.unserved: list[tuple[Module, Mapping[str, Any]]] = []
        self.refused: list[tuple[Module, Mapping[str, Any]]] = []
        self.cache_scales: list[Stray] = []
        self._schemed: set[str] = set()
        self._clauses: dict[tuple[str, str, int], dict[str, Any]] = {}

    @property
    def judged(self) -> bool:
        """Whether the family says which modules there are, and the backend what they keep."""
        if "modules" not in self.binding.family:
            return False
        if self.statement is None:
            return True
        return not self.statement.unjudged and not any(
            m.built.scheme is UNKNOWN and m.built.by for m in self.modules if m.built.refused is None
        )

    # -- before the comparison -------------------------------------------------------------------------------------

    def prepare(self, inventory: Inventory) -> None:
        """Replace the weights of quantized modules by what their scheme keeps."""
        if (
            self.statement is not None
            and not self.statement.troubles
            and "modules" in self.binding.family
            and not self.statement.unjudged
        ):
            self.modules = modules_of(self.binding, self.statement)
        for module in self.modules:
            for name, pattern in zip(module.holds, module.patterns, strict=True):
                self.members[name] = Member(name, pattern, module)
                self._replace(inventory, module, name)
        for module in self.modules:
            if module.built.refused is not None:
                self.refused.append((module, module.built.refused))
            if module.built.scheme is not None and module.built.scheme is not UNKNOWN:
                self._served(module)

    def _replace(self, inventory: Inventory, module: Module, name: str) -> None:
        weight = inventory.expected.get(f"{name}.weight")
        if weight is None or module.built.scheme is None:
            return
        if module.built.scheme is UNKNOWN:
            inventory.expected[weight.name] = weight._replace(certain=False, shape=None)
            return
        scheme = self.section["schemes"][module.built.scheme]
        del inventory.expected[weight.name]
        sizes = _texts(weight)
        for leaf, clause in scheme["tensors"].items():
            key = (weight.pattern, leaf, id(module.built.scope))
            if key not in self._clauses:
                self._clauses[key] = self._clause(weight, clause, sizes, module.built)
            if evaluate(str(clause.get("when", "true")), module.built.scope) is False:
                continue
            inventory.add(f"{name}.{leaf}", weight.pattern.rpartition(".")[0] + "." + leaf, self._clauses[key], weight)
            self._schemed.add(f"{name}.{leaf}")
        self._divides(module, weight, scheme)

    def _clause(
        self, weight: Expected, clause: Mapping[str, Any], sizes: Mapping[str, str], built: Built
    ) -> dict[str, Any]:
        own: dict[str, Any] = {"source": weight.clause.get("source"), "scheme": built.scheme}
        if "shape" in clause:
            own["shape"] = [_filled(str(text), sizes, built.scope) for text in clause["shape"]]
        loader = clause.get("loader", "same")
        weights = weight.clause.get("loader", "plain")
        if loader == "rows":
            loader = weights if weights in ("column", "column_alone", "fused_column", "vocab") else "plain"
        own["loader"] = weights if loader == "same" else loader
        own["absent"] = clause.get("absent", weight.clause.get("absent", "optional"))
        if "fused" in weight.clause:
            own["fused"] = weight.clause["fused"].rpartition(".")[0] + "." + "weight"
        return own

    def _divides(self, module: Module, weight: Expected, scheme: Mapping[str, Any]) -> None:
        clause = scheme.get("divides")
        if not clause or weight.shape is None or len(weight.shape) != 2:
            return
        for side, size in zip(("out", "in"), weight.shape, strict=True):
            divisor = clause.get(side)
            if isinstance(divisor, int) and isinstance(size, int) and size % divisor:
                self.indivisible.append((module, side, size, divisor, clause))

    def _served(self, module: Module) -> None:
        clauses = module.clause.get("quantized")
        if not clauses:
            return
        scheme = self.section["schemes"][module.built.scheme]
        same = [m for m in self.modules if m.template == module.template]
        names = {
            "dtype": scheme["dtypes"][0],
            "scheme": module.built.scheme,
            "any_unquantized": any(m.built.scheme is None for m in same),
        }
        for clause in sorted((c for c in clauses.values() if c), key=lambda c: c.get("order", 50)):
            if evaluate(str(clause.get("when", "true")), _Names(names, self.binding)) is True:
                self.unserved.append((module, clause))
                return

    # -- after the comparison --------------------------------------------------------------------------------------

    def settle(self, inventory: Inventory) -> None:
        """Take from the comparison what only the quantization explains."""
        if self.statement is not None and self.statement.backend != "none":
            matches = re.compile(self.section["cache_scales"]["matches"]).search
            self.cache_scales = [s for s in inventory.strays if matches(s.canonical)]
            inventory.strays[:] = [s for s in inventory.strays if not matches(s.canonical)]
        self._left_unquantized(inventory)
        self._scaled_for_nothing(inventory)
        self._packed_for_nothing(inventory)
        self.missing = [e for e in inventory.missing if e.name in self._schemed]
        inventory.missing[:] = [e for e in inventory.missing if e.name not in self._schemed]
        self.mismatches = [m for m in inventory.mismatches if m.expected.name in self._schemed]
        inventory.mismatches[:] = [m for m in inventory.mismatches if m.expected.name not in self._schemed]

    def _left_unquantized(self, inventory: Inventory) -> None:
        for member in list(self.members.values()):
            module = member.module
            if module is None or module.built.scheme in (None, UNKNOWN):
                continue
            scheme = self.section["schemes"][module.built.scheme]
            disk = inventory.disk_of.get(f"{member.name}.weight")
            if disk is None:
                continue
            dtype = inventory.tensors[disk][1]["dtype"]
            if dtype in scheme["dtypes"]:
                continue
            own = tuple(f"{member.name}.{leaf}" for leaf in (*scheme["tensors"], "weight"))
            effect, says, clause = self._outcome(inventory, own, scheme)
            scaled = not any(e.name in own for e in inventory.missing) and dtype in self.section["packed_dtypes"]
            self.unquantized.append(Unquantized(member, dtype, scaled, effect, says, clause))
            inventory.missing[:] = [e for e in inventory.missing if e.name not in own]
            inventory.mismatches[:] = [m for m in inventory.mismatches if m.expected.name not in own]
            inventory.strays[:] = [s for s in inventory.strays if s.canonical not in own]

    def _outcome(
        self, inventory: Inventory, own: tuple[str, ...], scheme: Mapping[str, Any]
    ) -> tuple[Effect, str, Mapping[str, Any]]:
        """Return what becomes of a module whose weight is of another type: the first thing on the way that refuses."""
        loaders = self.binding.contract["parameter_loaders"]
        for stray in inventory.strays:
            if stray.canonical in own and stray.clause.get("effect") == "refused":
                return "refused", str(stray.clause.get("says", "")), stray.clause
        for mismatch in inventory.mismatches:
            if mismatch.expected.name in own and not mismatch.cut:
                loader = loaders[mismatch.expected.clause.get("loader", "plain")]
                return (
                    "refused",
                    f"a weight of {_dims(mismatch.found)} does not fit the module's {_dims(mismatch.expected.shape)}, and loading it raises",
                    loader,
                )
        lacking = [
            e.clause["absent"]
            for e in inventory.missing
            if e.name in own and isinstance(e.clause.get("absent"), Mapping)
        ]
        for clause in lacking:
            if clause.get("effect") == "refused":
                return "refused", str(clause["says"]), clause
        return "silent", str(scheme["cast"]["says"]), scheme["cast"]

    def _scaled_for_nothing(self, inventory: Inventory) -> None:
        leaves = set(self.section["leaves"])
        groups: dict[str, list[Stray]] = {}
        for stray in inventory.strays:
            owner, _, leaf = stray.canonical.rpartition(".")
            if leaf in leaves and (
                f"{owner}.weight" in inventory.expected
                or f"{owner}.weight" in inventory.disk_of
                or owner in self.members
                or self._home(inventory, owner)
            ):
                groups.setdefault(owner, []).append(stray)
        for owner, strays in groups.items():
            member = self.members.get(owner) or Member(owner, generic(owner), None)
            if member.module is not None and member.module.built.scheme is UNKNOWN:
                continue
            worst = next((s for s in strays if s.clause.get("effect") == "refused"), strays[0])
            if worst.clause.get("then") == "ignored":
                continue
            self.scaled.append(Scaled(member, tuple(s.disk for s in strays), worst.clause))
            mine = {s.disk for s in strays}
            inventory.strays[:] = [s for s in inventory.strays if s.disk not in mine]
            inventory.missing[:] = [
                e
                for e in inventory.missing
                if e.name != f"{owner}.weight"
                or not any(s.canonical.endswith("packed") or s.canonical.endswith("qweight") for s in strays)
            ]
            inventory.mismatches[:] = [m for m in inventory.mismatches if m.expected.name != f"{owner}.weight"]

    def _home(self, inventory: Inventory, owner: str) -> bool:
        return any(name.startswith(owner + ".") for name in inventory.expected)

    def _packed_for_nothing(self, inventory: Inventory) -> None:
        packed = set(self.section["packed_dtypes"])
        told = {s.member.name for s in self.scaled}
        short = {m.expected.name for m in inventory.mismatches}
        for name, expected in inventory.expected.items():
            if not name.endswith(".weight") or name in self._schemed or not expected.certain:
                continue
            disk = inventory.disk_of.get(name)
            owner = name[: -len(".weight")]
            if disk is None or owner in told or name in short or inventory.tensors[disk][1]["dtype"] not in packed:
                continue
            member = self.members.get(owner) or Member(owner, generic(owner), None)
            self.scaled.append(Scaled(member, (disk,), self.section["unscaled"]))


class _Names:
    """A few names on top of the binding."""

    def __init__(self, names: Mapping[str, Any], outer: Binding) -> None:
        self._names, self._outer = names, outer

    def get(self, name: str) -> Any:
        return self._names[name] if name in self._names else self._outer.get(name)

    def call(self, name: str) -> Any:
        return self._outer.call(name)


def _texts(weight: Expected) -> dict[str, str]:
    shape = [str(t) for t in weight.clause.get("shape", ("unknown", "unknown"))]
    return {"out": f"({shape[0]})", "in": f"({shape[-1]})"}


def _filled(text: str, sizes: Mapping[str, str], scope: Any) -> str:
    """Put the unquantized sizes, and the values of the scheme's own names, into a size of the scheme."""
    pieces = re.split(r"\b(out|in)\b", text)
    for name in names_in(" ".join("0" if p in sizes else p for p in pieces)):
        value = evaluate(name, scope)
        told = repr(value) if value is None or isinstance(value, int) else "unknown"
        pieces = [p if p in sizes else re.sub(rf"\b{name}\b", told, p) for p in pieces]
    return "".join(sizes.get(p, p) for p in pieces)


def _dims(shape: Any) -> str:
    return "[" + ", ".join("?" if d is UNKNOWN else str(d) for d in shape) + "]" if shape is not None else "(unknown)"


def members_by(findings: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Group what concerns members by their pattern."""
    groups: dict[Any, list[Any]] = {}
    for item in findings:
        groups.setdefault(item.member.pattern, []).append(item)
    yield from groups.items()
