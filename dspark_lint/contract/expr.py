"""The small, safe expression language of the contracts.

Names, literals, lists, arithmetic, comparisons, ``and``/``or``/``not``, ``a if b else c``, list comprehensions,
attribute and index access into JSON values, and a fixed set of functions. An expression is parsed with `ast` and
turned into closures once; nothing is ever given to ``eval``.

A value that cannot be known here (the target was not given, the key is broken and already reported) is `UNKNOWN`.
It spreads through everything except where the other operand alone decides (``unknown or true``), so that a clause
whose premises are unknown concludes nothing instead of something wrong.
"""

from __future__ import annotations

import ast
import fnmatch
import operator

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, Protocol

from dspark_lint.errors import ContractError


class Unknown:
    """The value of what cannot be known; there is one, `UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Name it in messages and tests."""
        return "UNKNOWN"

    def __bool__(self) -> bool:
        """Refuse to be taken for true or false."""
        raise TypeError("UNKNOWN is neither true nor false")


UNKNOWN: Final = Unknown()


class Scope(Protocol):
    """Where an expression finds its names."""

    def get(self, name: str) -> Any:
        """Return the value of a name; raise KeyError for a name that does not exist."""

    def call(self, name: str) -> Callable[..., Any] | None:
        """Return a function that depends on the checkpoint (``has_tensor``), or None."""


Compiled = Callable[[Scope], Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
#: A product or a repeated list larger than this is a slip or an attack, not a size.
_LARGEST: Final = 1 << 62


def _strict_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _to_int(value: Any) -> Any:
    """Python's own ``int()``, as loaders use it: accepts ``"255"``, 255.0 and true; None when it would raise."""
    if isinstance(value, (bool, int, float, str)):
        try:
            return int(value)
        except (ValueError, OverflowError):
            return None
    return None


def _to_float(value: Any) -> Any:
    """Python's own ``float()``, as loaders use it; None when it would raise."""
    if isinstance(value, (bool, int, float, str)):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def _numbered(value: Any, number: int) -> Any:
    """Return the member of a JSON object under that number, written with or without leading zeros; None without one."""
    if not isinstance(value, dict):
        return None
    return next((v for k, v in value.items() if k.isdecimal() and int(k) == number), None)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "sum": sum,
    "sorted": sorted,
    "unique": lambda xs: sorted(set(xs)),
    "range": lambda *a: list(range(*a)) if max(abs(x) for x in a) < 100_000 else UNKNOWN,
    "all": lambda xs: _kleene(xs, decisive=False),
    "any": lambda xs: _kleene(xs, decisive=True),
    "truthy": bool,
    "to_int": _to_int,
    "to_float": _to_float,
    "is_int": _strict_int,
    "is_num": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "is_bool": lambda v: isinstance(v, bool),
    "is_str": lambda v: isinstance(v, str),
    "is_list": lambda v: isinstance(v, list),
    "is_dict": lambda v: isinstance(v, dict),
    "has": lambda d, k: isinstance(d, dict) and k in d,
    "keys": lambda d: list(d) if isinstance(d, dict) else [],
    "numbered": _numbered,
    "starts": lambda s, p: isinstance(s, str) and s.startswith(p),
    "ends": lambda s, p: isinstance(s, str) and s.endswith(p),
    "contains": lambda s, p: isinstance(s, str) and p in s,
    "values": lambda d: list(d.values()) if isinstance(d, dict) else [],
    "lower": lambda s: s.lower() if isinstance(s, str) else s,
    "upper": lambda s: str(s).upper() if s is not None else None,
    "glob": lambda s, p: isinstance(s, str) and fnmatch.fnmatchcase(s, p),
    "basename": lambda s: s.rstrip("/").rpartition("/")[2] if isinstance(s, str) else s,
    "ceil_div": lambda a, b: -(-a // b),
    "known": lambda v: v is not UNKNOWN,
}


def _kleene(values: Iterable[Any], *, decisive: bool) -> Any:
    unknown = False
    for value in values:
        if value is UNKNOWN:
            unknown = True
        elif bool(value) is decisive:
            return decisive
    return UNKNOWN if unknown else not decisive


@cache
def compile_expr(text: str) -> Compiled:
    """Compile one expression of a contract.

    Raises ContractError when it does not parse or uses something the language does not have.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        raise ContractError(f"expression {text!r}: {e.msg}") from e
    return _node(tree.body, text)


@cache
def names_in(text: str) -> frozenset[str]:
    """Return the free names of an expression (without functions and comprehension variables)."""
    tree = ast.parse(text.strip(), mode="eval")
    bound = {n.target.id for n in ast.walk(tree) if isinstance(n, ast.comprehension) and isinstance(n.target, ast.Name)}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return frozenset(
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in bound and n.id not in called
    )


def evaluate(text: str, scope: Scope) -> Any:
    """Evaluate an expression; what goes wrong inside (a type, a missing member) makes it UNKNOWN."""
    return compile_expr(text)(scope)


class _Local:
    """A scope with one comprehension variable on top."""

    __slots__ = ("_name", "_outer", "value")

    def __init__(self, name: str, outer: Scope) -> None:
        self._name, self._outer = name, outer
        self.value: Any = None

    def get(self, name: str) -> Any:
        return self.value if name == self._name else self._outer.get(name)

    def call(self, name: str) -> Callable[..., Any] | None:
        return self._outer.call(name)


def _node(node: ast.expr, text: str) -> Compiled:
    maker = _MAKERS.get(type(node))
    if maker is None:
        raise ContractError(f"expression {text!r}: {type(node).__name__} is not part of the language")
    return maker(node, text)


def _constant(node: ast.Constant, text: str) -> Compiled:
    value = node.value
    if not isinstance(value, (int, float, str, bool, type(None))):
        raise ContractError(f"expression {text!r}: a {type(value).__name__} literal is not part of the language")
    return lambda _scope: value


_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None, "unknown": UNKNOWN}


def _name(node: ast.Name, text: str) -> Compiled:
    name = node.id
    if name in _LITERALS:
        literal = _LITERALS[name]
        return lambda _scope: literal

    def run(scope: Scope) -> Any:
        try:
            return scope.get(name)
        except KeyError:
            raise ContractError(f"expression {text!r}: no key, variable or namespace is called {name!r}") from None

    return run


def _member(value: Any, key: Any) -> Any:
    """JSON member access: what is not there, or is no container, is null."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, (list, tuple)) and _strict_int(key) and -len(value) <= key < len(value):
        return value[key]
    return None


def _attribute(node: ast.Attribute, text: str) -> Compiled:
    base, key = _node(node.value, text), node.attr
    return lambda scope: _member(base(scope), key)


def _subscript(node: ast.Subscript, text: str) -> Compiled:
    base, index = _node(node.value, text), _node(node.slice, text)

    def run(scope: Scope) -> Any:
        key = index(scope)
        return UNKNOWN if key is UNKNOWN else _member(base(scope), key)

    return run


def _list(node: ast.List | ast.Tuple, text: str) -> Compiled:
    items = [_node(n, text) for n in node.elts]
    return lambda scope: [item(scope) for item in items]


def _binary(node: ast.BinOp, text: str) -> Compiled:
    op = _BINARY.get(type(node.op))
    if op is None:
        raise ContractError(f"expression {text!r}: operator {type(node.op).__name__} is not part of the language")
    left, right = _node(node.left, text), _node(node.right, text)

    def run(scope: Scope) -> Any:
        a, b = left(scope), right(scope)
        if a is UNKNOWN or b is UNKNOWN:
            return UNKNOWN
        try:
            if op is operator.mul and not (_number(a) and _number(b) and abs(a * b) < _LARGEST):
                return UNKNOWN
            return op(a, b)
        except (TypeError, ZeroDivisionError, ValueError, OverflowError):
            return UNKNOWN

    return run


def _number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _unary(node: ast.UnaryOp, text: str) -> Compiled:
    inner = _node(node.operand, text)
    if isinstance(node.op, ast.Not):
        return lambda scope: UNKNOWN if (v := inner(scope)) is UNKNOWN else not v
    if isinstance(node.op, ast.USub):
        return lambda scope: -v if _number(v := inner(scope)) else UNKNOWN
    raise ContractError(f"expression {text!r}: operator {type(node.op).__name__} is not part of the language")


def _bool(node: ast.BoolOp, text: str) -> Compiled:
    parts = [_node(n, text) for n in node.values]
    is_or = isinstance(node.op, ast.Or)

    def run(scope: Scope) -> Any:
        # the value itself is returned, as in Python, so that `a or b` picks a default
        unknown = False
        value: Any = not is_or
        for part in parts:
            value = part(scope)
            if value is UNKNOWN:
                unknown = True
            elif bool(value) is is_or:
                return UNKNOWN if unknown and not isinstance(value, bool) else value
        return UNKNOWN if unknown else value

    return run


def _compare(node: ast.Compare, text: str) -> Compiled:
    first = _node(node.left, text)
    rest: list[tuple[Callable[[Any, Any], Any], Compiled]] = []
    for op, right in zip(node.ops, node.comparators, strict=True):
        rest.append((_COMPARE[type(op)], _node(right, text)))

    def run(scope: Scope) -> Any:
        left = first(scope)
        for op, part in rest:
            right = part(scope)
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            try:
                if not op(left, right):
                    return False
            except TypeError:
                return UNKNOWN
            left = right
        return True

    return run


def _if(node: ast.IfExp, text: str) -> Compiled:
    test, body, other = _node(node.test, text), _node(node.body, text), _node(node.orelse, text)

    def run(scope: Scope) -> Any:
        condition = test(scope)
        if condition is UNKNOWN:
            return UNKNOWN
        return body(scope) if condition else other(scope)

    return run


def _comprehension(node: ast.ListComp | ast.GeneratorExp, text: str) -> Compiled:
    if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
        raise ContractError(f"expression {text!r}: one `for name in list` at a time")
    generator = node.generators[0]
    assert isinstance(generator.target, ast.Name)
    name, source = generator.target.id, _node(generator.iter, text)
    element, tests = _node(node.elt, text), [_node(n, text) for n in generator.ifs]

    def run(scope: Scope) -> Any:
        values = source(scope)
        if not isinstance(values, (list, tuple)):
            return UNKNOWN
        local = _Local(name, scope)
        found = []
        for value in values:
            local.value = value
            verdicts = [test(local) for test in tests]
            if any(v is UNKNOWN for v in verdicts):
                return UNKNOWN
            if all(verdicts):
                found.append(element(local))
        return found

    return run


def _call(node: ast.Call, text: str) -> Compiled:
    if not isinstance(node.func, ast.Name) or node.keywords:
        raise ContractError(f"expression {text!r}: only plain calls of the language's functions")
    name, parts = node.func.id, [_node(n, text) for n in node.args]
    fixed = _FUNCTIONS.get(name)
    keeps_unknown = name in {"known", "all", "any"}

    def run(scope: Scope) -> Any:
        function = fixed or scope.call(name)
        if function is None:
            raise ContractError(f"expression {text!r}: no function is called {name!r}")
        values = [part(scope) for part in parts]
        if not keeps_unknown and any(v is UNKNOWN for v in values):
            return UNKNOWN
        try:
            return function(*values)
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN

    return run


_MAKERS: dict[type[ast.expr], Callable[[Any, str], Compiled]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.List: _list,
    ast.Tuple: _list,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.IfExp: _if,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Call: _call,
}
