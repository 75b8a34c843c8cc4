"""Expected tensors against found ones: names after the loader's renames, shapes after its expressions.

The comparison itself, without judgement: what is missing, what has no place, what has another size and whether the
loader would refuse it or cut it.
"""

from __future__ import annotations

import re

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate, names_in
from dspark_lint.contract.order import ordered


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dspark_lint.binding import Binding
    from dspark_lint.quant.fit import Fit


#: More layers than any model has; a larger number in a config is a slip, and expanding it would not end.
MOST_LAYERS = 4096

Dim = Any
"""A dimension: an int, or `UNKNOWN`."""


class Expected(NamedTuple):
    """One tensor that the loader has a place for."""

    name: str
    pattern: str
    clause: Mapping[str, Any]
    shape: tuple[Dim, ...] | None
    certain: bool
    """False when the clause's condition could not be known: neither missing nor unexpected."""


class Mismatch(NamedTuple):
    """A found tensor whose size differs from the expected one."""

    expected: Expected
    disk: str
    found: tuple[int, ...]
    cut: bool
    """True: the loader takes a slice without a word. False: it raises."""
    dims: tuple[int, ...]
    """The dimensions that differ; empty when the ranks do."""


class Stray(NamedTuple):
    """A found tensor that has no place, and the clause that says what the loader does with it."""

    disk: str
    canonical: str
    key: str
    clause: Mapping[str, Any]


class Inventory:
    """The tensors of one checkpoint under one family; also the functions expressions call about tensors."""

    def __init__(self, binding: Binding, tensors: Mapping[str, tuple[str, dict[str, Any]]]) -> None:
        self.binding = binding
        self.tensors = tensors
        renames = [(c["from"], c["to"], c.get("regex", False)) for _, c in ordered(binding.family.get("renames", {}))]
        only = binding.family.get("only")
        """Prefix of the draft's own tensors where they lie inside the target's checkpoint."""
        self.disk_of: dict[str, str] = {}
        for disk in tensors:
            if only is None or disk.startswith(only):
                self.disk_of[_renamed(disk, renames)] = disk
        self.expected: dict[str, Expected] = {}
        self.missing: list[Expected] = []
        self.mismatches: list[Mismatch] = []
        self.strays: list[Stray] = []
        self.untold: list[str] = []
        """Names that no clause speaks of."""
        self._unsettled: list[re.Pattern[str]] = []
        """Names of a pattern whose loop has no known end: neither expected nor out of place."""
        self.fused_found: tuple[str, ...] = ()
        """Canonical names of fused tensors on disk that stand for their parts."""
        self.fit: Fit | None = None
        """The quantization, where there is one to hold against the tensors."""
        self._shapes: dict[tuple[str, tuple[int, ...]], tuple[bool, bool, tuple[Dim, ...] | None]] = {}

    # -- functions of the expression language --------------------------------------------------------------------

    def has_tensor(self, name: str) -> bool:
        """Whether a tensor of that (canonical) name is in the files."""
        return name in self.disk_of

    def shape(self, name: str) -> Any:
        """Return the shape of a tensor; `UNKNOWN` when it is not there."""
        disk = self.disk_of.get(name)
        return list(self.tensors[disk][1]["shape"]) if disk is not None else UNKNOWN

    def dim(self, name: str, axis: int) -> Any:
        """Return one dimension of a tensor; `UNKNOWN` when it is not there."""
        shape = self.shape(name)
        return shape[axis] if shape is not UNKNOWN and -len(shape) <= axis < len(shape) else UNKNOWN

    def dtype(self, name: str) -> Any:
        """Return the dtype of a tensor in safetensors' spelling; `UNKNOWN` when it is not there."""
        disk = self.disk_of.get(name)
        return self.tensors[disk][1]["dtype"] if disk is not None else UNKNOWN

    # -- the comparison ------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Fill `expected`, `missing`, `mismatches` and `strays`; a quantization changes what is expected."""
        self._expand()
        if self.fit is not None:
            self.fit.prepare(self)
        fused = self._expand_fused()
        accounted = set(self.expected) | set(fused)
        self.fused_found = tuple(fused)
        for name, exp in self.expected.items():
            disk = self.disk_of.get(name)
            if disk is not None:
                self._size(exp, disk)
            elif (
                exp.certain
                and exp.clause.get("absent", "optional") != "optional"
                and not (exp.shape and 0 in exp.shape)
            ):
                stand_in = _substitute(exp.clause["fused"], exp) if "fused" in exp.clause else None
                if stand_in is None or stand_in not in self.disk_of:
                    self.missing.append(exp)
        for name, exp in fused.items():
            self._size(exp, self.disk_of[name])
        self._strays(accounted)
        if self.fit is not None:
            self.fit.settle(self)

    def add(self, name: str, pattern: str, clause: Mapping[str, Any], like: Expected) -> None:
        """Expect one more tensor, with the loop variables of another."""
        texts = (*map(str, clause.get("shape", ())), str(clause.get("when", "true")))
        loops = self.binding.family.get("loops", {})
        names = _numbers(like) if any(v in names_in(t) for t in texts for v in loops) else {}
        key = (pattern, tuple(names.values()))
        if key not in self._shapes:
            self._shapes[key] = self._bound(clause, names)
        active, certain, shape = self._shapes[key]
        if active:
            self.expected[name] = Expected(name, pattern, clause, shape, certain and like.certain)

    def _scope_with(self, names: Mapping[str, int]) -> Any:
        return _Loop(self.binding, names) if names else self.binding

    def _expand(self) -> None:
        loops = self.binding.family.get("loops", {})
        counts: dict[str, Any] = {}
        for var, text in loops.items():
            count = evaluate(text, self.binding)
            counts[var] = max(count, 0) if isinstance(count, int) and count <= MOST_LAYERS else UNKNOWN
        for pattern, clause in self.binding.family.get("tensors", {}).items():
            inside = [v for v in loops if "{" + v + "}" in pattern]
            if not inside:
                self._add(pattern, pattern, clause, {})
            elif all(counts[v] is not UNKNOWN for v in inside):
                self._add_loop(pattern, clause, inside, counts)
            else:
                self._unsettled.append(re.compile(re.sub(r"\\{\w+\\}", r"\\d+", re.escape(pattern))))

    def _add_loop(self, pattern: str, clause: Mapping[str, Any], inside: list[str], counts: Mapping[str, int]) -> None:
        """Add every tensor of a pattern; condition and shape are evaluated once where no loop variable is in them."""
        texts = (*map(str, clause.get("shape", ())), str(clause.get("when", "true")))
        varies = any(v in names_in(t) for t in texts for v in inside)
        shared: tuple[bool, bool, tuple[Dim, ...] | None] | None = None
        for numbers in product(*(range(counts[v]) for v in inside)):
            here = dict(zip(inside, numbers, strict=True))
            if shared is None or varies:
                shared = self._bound(clause, here)
            active, certain, shape = shared
            if active:
                name = pattern
                for var, number in here.items():
                    name = name.replace("{" + var + "}", str(number))
                self.expected[name] = Expected(name, pattern, clause, shape, certain)

    def _bound(self, clause: Mapping[str, Any], names: Mapping[str, int]) -> tuple[bool, bool, tuple[Dim, ...] | None]:
        scope = self._scope_with(names)
        when = evaluate(str(clause.get("when", "true")), scope)
        if when is not UNKNOWN and not when:
            return False, True, None
        shape = tuple(_dimension(evaluate(str(t), scope)) for t in clause["shape"]) if "shape" in clause else None
        return True, when is not UNKNOWN, shape

    def _add(self, name: str, pattern: str, clause: Mapping[str, Any], names: Mapping[str, int]) -> None:
        active, certain, shape = self._bound(clause, names)
        if active:
            self.expected[name] = Expected(name, pattern, clause, shape, certain)

    def _expand_fused(self) -> dict[str, Expected]:
        """Fused tensors on disk stand for their parts; only what is there is looked at."""
        found: dict[str, Expected] = {}
        clauses = self.binding.family.get("fused", {})
        for exp in list(self.expected.values()):
            pattern = exp.clause.get("fused")
            if pattern is None:
                continue
            name = _substitute(pattern, exp)
            if name in self.disk_of and name not in found:
                clause = clauses.get(pattern, {})
                _, certain, shape = self._bound(clause, {})
                found[name] = Expected(name, pattern, clause, shape, certain)
        return found

    def _size(self, exp: Expected, disk: str) -> None:
        found = tuple(self.tensors[disk][1]["shape"])
        if exp.shape is None:
            return
        loader = self.binding.contract["parameter_loaders"][exp.clause.get("loader", "plain")]
        if loader.get("one_element") and _one(found) and _one(exp.shape):
            return
        if len(found) != len(exp.shape):
            if UNKNOWN not in exp.shape:
                self.mismatches.append(Mismatch(exp, disk, found, cut=False, dims=()))
            return
        wrong: list[int] = []
        cut_only = True
        for axis, (have, want) in enumerate(zip(found, exp.shape, strict=True)):
            if want is UNKNOWN or have == want:
                continue
            if loader.get("rows") and axis > 0 and have == 1:
                continue
            wrong.append(axis)
            if not (loader.get("cut") == axis and have > want >= 0):
                cut_only = False
        if wrong:
            self.mismatches.append(Mismatch(exp, disk, found, cut_only, tuple(wrong)))

    def _strays(self, accounted: set[str]) -> None:
        modules = {name.rpartition(".")[0] for name in self.expected}
        clauses = ordered(self.binding.family.get("names", {}))
        tests = [(key, clause, _name_test(clause)) for key, clause in clauses]
        for canonical, disk in self.disk_of.items():
            if canonical in accounted or any(p.fullmatch(canonical) for p in self._unsettled):
                continue
            for key, clause, test in tests:
                if not test(disk, canonical, modules):
                    continue
                if "when" in clause and evaluate(clause["when"], self.binding) is not True:
                    continue
                self.strays.append(Stray(disk, canonical, key, clause))
                break
            else:
                self.untold.append(disk)


class _Loop:
    """The family's scope with the layer number on top."""

    __slots__ = ("_names", "_outer")

    def __init__(self, outer: Binding, names: Mapping[str, int]) -> None:
        self._outer, self._names = outer, names

    def get(self, name: str) -> Any:
        return self._names[name] if name in self._names else self._outer.get(name)

    def call(self, name: str) -> Callable[..., Any] | None:
        return self._outer.call(name)


def _dimension(value: Any) -> Dim:
    return value if isinstance(value, int) and not isinstance(value, bool) else UNKNOWN


def _one(shape: tuple[Dim, ...]) -> bool:
    return all(d == 1 for d in shape)


def _substitute(pattern: str, exp: Expected) -> str:
    """Put the layer number of an expanded name into another pattern with the same loop variable."""
    if "{" not in pattern:
        return pattern
    before = exp.pattern.index("{")
    after = exp.pattern.index("}")
    number = re.match(r"\d+", exp.name[before:])
    assert number is not None
    return pattern.replace(exp.pattern[before : after + 1], number.group())


def _numbers(exp: Expected) -> dict[str, int]:
    """Return the loop variables of an expanded name."""
    found = re.fullmatch(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\d+)", re.escape(exp.pattern)), exp.name)
    return {k: int(v) for k, v in found.groupdict().items()} if found else {}


def _renamed(name: str, renames: list[tuple[str, str, bool]]) -> str:
    for old, new, is_regex in renames:
        if is_regex:
            name = re.sub(old, new, name)
        elif old in name:
            name = name.replace(old, new)
    return name


def _name_test(clause: Mapping[str, Any]) -> Callable[[str, str, set[str]], bool]:
    if "contains" in clause:
        part = clause["contains"]
        return lambda disk, _canonical, _modules: part in disk
    if "prefix" in clause:
        prefix = clause["prefix"]
        return lambda _disk, canonical, _modules: canonical.startswith(prefix)
    if "matches" in clause:
        search = re.compile(clause["matches"]).search
        return lambda _disk, canonical, _modules: search(canonical) is not None
    if "leaf" in clause:
        leaves = tuple(clause["leaf"]) if isinstance(clause["leaf"], list) else (clause["leaf"],)
        return lambda _disk, canonical, modules: (
            canonical.rpartition(".")[2] in leaves and canonical.rpartition(".")[0] in modules
        )
    return lambda _disk, _canonical, _modules: True
