"""What a checkpoint states about its quantization, and what one release makes of the statement.

The contract's ``quantization`` section applied: the place that counts, the backend it leads to, the checks on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.contract.order import ordered
from dspark_lint.words import fill, show


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dspark_lint.checkpoint import Checkpoint
    from dspark_lint.contract.expr import Scope


class Place(NamedTuple):
    """One place in which a quantization is stated."""

    key: str
    clause: Mapping[str, Any]
    file: str
    pointer: str
    value: Any


class Trouble(NamedTuple):
    """Something about the statement itself that a release refuses, or passes over."""

    clause: Mapping[str, Any]
    file: str
    pointer: str
    found: str


def places(checkpoint: Checkpoint, contract: Mapping[str, Any]) -> list[Place]:
    """Return every place that states a quantization, in the release's order; nulls state nothing."""
    found: list[Place] = []
    for key, clause in ordered(contract["quantization"]["places"]):
        document = checkpoint.document(clause["file"])
        value = document.value
        for part in clause["pointer"].split("/")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found.append(Place(key, clause, clause["file"], clause["pointer"], value))
    return found


class Statement:
    """One statement under one release; the scope of the quantization section's expressions."""

    def __init__(
        self, contract: Mapping[str, Any], place: Place, others: list[Place], outer: Scope | None = None
    ) -> None:
        self.section: Mapping[str, Any] = contract["quantization"]
        self.place = place
        self.others = others
        self._outer = outer
        self._memo: dict[str, Any] = {"q": place.value}
        self.troubles: list[Trouble] = []
        self.route: Mapping[str, Any] = {}
        self.backend = "none"
        self.clause: Mapping[str, Any] = {}
        self.unjudged = ""
        if not isinstance(place.value, dict):
            self.troubles.append(
                Trouble(self.section["unusable"], place.file, place.pointer, type(place.value).__name__)
            )
            return
        self._choose()
        if self.backend != "none" and not self.unjudged and not self.troubles:
            self._merge_layers()
        if self.backend != "none" and not self.unjudged and not self.troubles:
            self._check()

    # -- the scope -------------------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Return a name of the section: ``q``, a member of ``let``, ``excluded``, ``layers``, ``methods``."""
        if name in self._memo:
            return self._memo[name]
        text = self.clause.get("let", {}).get(name) or self.section["let"].get(name)
        if text is not None:
            value = evaluate(str(text), self)
        elif name == "methods":
            value = self.section["methods"]
        elif name == "excluded":
            value = evaluate(str(self.clause.get("exclude", "null")), self)
        elif name == "layers":
            value = evaluate(str(self.clause.get("layers", "null")), self)
        elif self._outer is not None:
            return self._outer.get(name)
        else:
            raise KeyError(name)
        self._memo[name] = value
        return value

    def call(self, name: str) -> Callable[..., Any] | None:
        """Return a function over the checkpoint, where there is a binding to ask."""
        return self._outer.call(name) if self._outer is not None else None

    # -- route and checks --------------------------------------------------------------------------------------------

    def _choose(self) -> None:
        for _, clause in ordered(self.section["routes"]):
            if evaluate(str(clause["when"]), self) is not True:
                continue
            self.route = clause
            if "effect" in clause:
                self._trouble(clause)
            elif "unjudged" in clause:
                self.unjudged = str(clause["unjudged"])
                self.backend = clause.get("backend", "unjudged")
                self.clause = self.section["backends"].get(self.backend, {})
            else:
                self.backend = clause["backend"]
                self.clause = self.section["backends"][self.backend]
            return

    def _merge_layers(self) -> None:
        """Where the statement lacks what the backend needs, take the file's instead, as the release does."""
        elsewhere = self.clause.get("elsewhere")
        if not elsewhere or evaluate(str(elsewhere["when"]), self) is not True:
            return
        place = next(
            (p for p in (self.place, *self.others) if p.file == elsewhere["file"] and isinstance(p.value, dict)), None
        )
        if place is None:
            self._trouble({"at": "quantized_layers", **elsewhere["missing"]})
            return
        self.others = [p for p in (self.place, *self.others) if p is not place]
        self.place, self._memo = place, {"q": place.value}
        if evaluate(str(elsewhere["require"]), self) is not True:
            self._trouble({"at": "producer", **elsewhere["foreign"]})

    def _check(self) -> None:
        for clause in self.clause.get("checks", {}).values():
            if not clause:
                continue
            when = evaluate(str(clause.get("when", "true")), self)
            if when is not True:
                continue
            if evaluate(str(clause["require"]), self) is False:
                self._trouble(clause)

    def _trouble(self, clause: Mapping[str, Any]) -> None:
        pointer, value = self.at(str(clause.get("at", "")))
        found = "nothing" if value is None else show(value)
        if "found" in clause:
            found = fill(str(clause["found"]), self)
        self.troubles.append(Trouble(clause, self.place.file, pointer, found))

    def at(self, name: str) -> tuple[str, Any]:
        """Return (pointer, value) of a member of the statement; its place in the style of this statement."""
        base = self.place.pointer
        if name == "exclude":
            name = str(evaluate(str(self.clause.get("exclude_key", "null")), self) or "")
        if not name:
            return base, None
        inner = self.get("inner")
        if inner is not self.place.value and name != "quantization" and isinstance(inner, dict):
            return f"{base}/quantization/{name}", inner.get(name)
        return f"{base}/{name}", self.place.value.get(name)

    # -- what it says --------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[str]:
        """The exclusion list as written; members that are no strings match nothing and are left out."""
        value = self.get("excluded")
        return [e for e in value if isinstance(e, str)] if isinstance(value, list) else []

    @property
    def layers(self) -> Mapping[str, Any]:
        """The mapping of quantized layers; empty where the backend has none."""
        value = self.get("layers") if self.clause.get("layers") else None
        return value if isinstance(value, dict) else {}

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Yield (target, group) in the order in which a release tries them; a repeated target keeps its first place."""
        value = evaluate(str(self.clause["groups"]), self) if "groups" in self.clause else None
        held: dict[str, Group] = {}
        for key, group in value.items() if isinstance(value, dict) else ():
            if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
                continue
            targets = [t for t in group["targets"] if isinstance(t, str)]
            unread = self.clause.get("unread_targets")
            if unread and len(targets) == 1 and targets[0].endswith(unread):
                continue
            for target in targets:
                held[target] = Group(self, str(key), group)
        yield from held.items()


class Group:
    """One group of compressed-tensors: its parameters are the scope of the clauses about it."""

    def __init__(self, statement: Statement, key: str, value: Mapping[str, Any]) -> None:
        self.statement, self.key, self.value = statement, key, value
        self._memo: dict[str, Any] = {"g": value}

    def get(self, name: str) -> Any:
        """Return a name of the group, else of the statement."""
        if name in self._memo:
            return self._memo[name]
        text = self.statement.clause.get("group_let", {}).get(name)
        if text is None:
            return self.statement.get(name)
        self._memo[name] = evaluate(str(text), self)
        return self._memo[name]

    def call(self, name: str) -> Callable[..., Any] | None:
        """Return the statement's functions."""
        return self.statement.call(name)

    @property
    def scheme(self) -> Any:
        """The name of the scheme; None when no scheme fits, `UNKNOWN` when what it keeps is not described."""
        if self.value.get("weights") is None:
            return UNKNOWN
        for _, clause in ordered(self.statement.clause["schemes"]):
            if evaluate(str(clause["when"]), self) is True:
                return UNKNOWN if clause.get("unjudged") else clause["scheme"]
        return None

    @property
    def refused(self) -> Mapping[str, Any] | None:
        """The clause by which building a module of this group raises: weights that no scheme fits."""
        clause: Mapping[str, Any] = self.statement.clause["no_scheme"]
        return clause if self.scheme is None else None


def statement_of(checkpoint: Checkpoint, contract: Mapping[str, Any], outer: Scope | None = None) -> Statement | None:
    """Return the statement that counts under a release; None when the checkpoint states no quantization."""
    found = places(checkpoint, contract)
    return Statement(contract, found[0], found[1:], outer) if found else None


def summary(statement: Statement, place: Place) -> dict[str, Any]:
    """Return what a place states, in terms that both styles share; only what it states at all."""
    other = statement if place is statement.place else _peek(statement, place)
    told: dict[str, Any] = {}
    algo = other.get("algo")
    if algo:
        told["quant_algo"] = algo
    if other.clause.get("exclude"):
        told["exclusions"] = frozenset(other.entries)
    value = other.get("inner")
    if isinstance(value, dict):
        if value.get("group_size") is not None:
            told["group_size"] = value["group_size"]
        if other.layers:
            told["quantized_layers"] = frozenset(other.layers)
    cache = evaluate(str(statement.section["cache_algo"]), other)
    if cache is not UNKNOWN:
        told["kv_cache"] = cache
    return told


def _peek(statement: Statement, place: Place) -> Statement:
    return Statement({"quantization": statement.section}, place, [], statement._outer)  # noqa: SLF001 - the same class
