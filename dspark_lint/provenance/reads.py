"""Which configuration keys a piece of source reads by name, and with which default.

``getattr(config, "x", default)``, ``config.x``, ``config.get("x", default)``, ``config["x"]``, ``"x" in config`` and
``hasattr(config, "x")`` are reads. What counts as a configuration is data: the contract's ``audit`` section names the
receivers. A local name that is bound to one, or to a dictionary inside one, is followed, so that
``(getattr(config, "dflash_config", None) or {}).get("causal")`` is a read of ``dflash_config.causal``. The flow of
control is not followed: a name stands for everything that its function binds it to.
"""

from __future__ import annotations

import ast

from typing import TYPE_CHECKING, Any, Final, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Nothing:
    """Marks a read without a literal default."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        """Name it in messages and tests."""
        return self._name


#: The read fails when the key is absent.
REQUIRED: Final = Nothing("REQUIRED")
#: The read only asks whether the key is there.
PRESENCE: Final = Nothing("PRESENCE")
#: There is a default, and it is computed.
COMPUTED: Final = Nothing("COMPUTED")


class Read(NamedTuple):
    """One read of a configuration key."""

    key: str
    """Dotted path from the top of the configuration; the last part is ``*`` where the name is computed."""
    default: Any
    """The literal default, or `REQUIRED`, `PRESENCE`, `COMPUTED`."""
    definition: str
    """Dotted name of the function."""
    line: int


class Receivers(NamedTuple):
    """What counts as a configuration of the draft; all of it stands in the contract."""

    roots: Mapping[str, str]
    """Last part of an expression -> the path it stands for (empty: the configuration itself)."""
    foreign: Sequence[str] = ()
    """Endings of dotted expressions that are somebody else's configuration."""
    transparent: Sequence[str] = ()
    """Functions and methods that hand back the configuration they are given."""
    helpers: Mapping[str, Sequence[str]] = {}
    """Functions that read for their caller: name -> templates of the paths, ``{1}`` the argument at position 1."""
    objects: frozenset[str] = frozenset()
    """Paths of dictionaries inside the configuration; elsewhere ``"x" in value`` asks for an element, not a key."""


def reads(
    tree: ast.AST, receivers: Receivers, constants: Mapping[str, Any] | None = None, prefix: str = ""
) -> list[Read]:
    """Return the reads of a module, class or function, in the order of the source.

    `constants` are the module's literal assignments, `prefix` the dotted name of what encloses `tree`.
    """
    known = {**(constants or {}), **literals(tree)} if isinstance(tree, ast.Module) else dict(constants or {})
    found: list[Read] = []
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found += _Function(tree, f"{prefix}{tree.name}", receivers, known).reads()
    else:
        inner = f"{prefix}{tree.name}." if isinstance(tree, ast.ClassDef) else prefix
        for node in _functions(tree):
            found += reads(node, receivers, known, inner)
    unique = {(read.key, repr(read.default), read.line): read for read in found}
    return sorted(unique.values(), key=lambda r: (r.line, r.key, repr(r.default)))


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
        elif isinstance(child, (ast.If, ast.Try, ast.With)):
            yield from _functions(child)


def literals(tree: ast.AST) -> dict[str, Any]:
    """Return the module-level names that are bound to a literal."""
    found: dict[str, Any] = {}
    for node in getattr(tree, "body", []):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = _literal(node.value, {})
            if value is not COMPUTED:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found[target.id] = value
    return found


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return constants.get(node.id, COMPUTED)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return COMPUTED


Paths = frozenset[str]
_FOREIGN: Final[Paths] = frozenset()


class _Function:
    """One function with its local names; inner functions and comprehensions count as part of it."""

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        name: str,
        receivers: Receivers,
        constants: Mapping[str, Any],
    ) -> None:
        self.node = node
        self.name = name
        self.receivers = receivers
        self.constants = constants
        self.nodes = list(ast.walk(node))
        self.strings: dict[str, tuple[str, ...]] = {}
        self.bound: dict[str, Paths] = {
            arg.arg: frozenset({receivers.roots[arg.arg]})
            for arg in self.nodes
            if isinstance(arg, ast.arg) and arg.arg in receivers.roots
        }
        self.defaults: dict[ast.expr, Any] = {}
        self._bind()

    # -- local names ---------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        for node in self.nodes:
            if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                self._bind_strings(node.target, node.iter)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._bind_strings(node.targets[0], ast.List(elts=[node.value]))
            elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
                # `getattr(config, "x", None) or 3`: what counts as the default is the 3
                last = _literal(node.values[-1], self.constants)
                if last is not COMPUTED:
                    self.defaults.update(dict.fromkeys(node.values[:-1], last))
                else:
                    self.defaults.update(dict.fromkeys(node.values[:-1], COMPUTED))
        for _ in range(4):  # a chain of names longer than this is not written
            before = dict(self.bound)
            for node in self.nodes:
                self._bind_paths(node)
            if self.bound == before:
                return

    def _bind_strings(self, target: ast.expr, values: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        found = (
            _literal(values, self.constants)
            if not isinstance(values, ast.List)
            else [_literal(e, self.constants) for e in values.elts]
        )
        if isinstance(found, (tuple, list, set)) and found and all(isinstance(v, str) for v in found):
            self.strings[target.id] = (*self.strings.get(target.id, ()), *found)

    def _bind_paths(self, node: ast.AST) -> None:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, (ast.For, ast.comprehension)):
            items = (
                node.iter.elts
                if isinstance(node.iter, (ast.Tuple, ast.List))
                else [node.iter]
                if isinstance(node.iter, ast.Name)
                else []
            )
            pairs = [(node.target, item) for item in items]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
            and len(node.args) == 1
        ):
            pairs = [(node.func.value, node.args[0])]
        for target, value in pairs:
            if not isinstance(target, ast.Name):
                continue
            # `config = config.text_config` goes one step down, not one more each time it is looked at
            before = self.bound.get(target.id)
            if before is not None and any(isinstance(n, ast.Name) and n.id == target.id for n in ast.walk(value)):
                root = self.receivers.roots.get(target.id)
                self.bound[target.id] = before if root is None else frozenset({root})
            paths = self.paths(value)
            if before is not None or paths is not None:
                self.bound[target.id] = (before or _FOREIGN) | (paths or _FOREIGN)

    # -- what an expression stands for ---------------------------------------------------------------------------------

    def paths(self, node: ast.expr) -> Paths | None:
        """Return the paths an expression may stand for; empty for a foreign configuration, None for anything else."""
        dotted = _dotted(node)
        if dotted and any(dotted == f or dotted.endswith(f".{f}") for f in self.receivers.foreign):
            return _FOREIGN
        if isinstance(node, ast.Name):
            if node.id in self.bound:
                return self.bound[node.id]
            root = self.receivers.roots.get(node.id)
            return None if root is None else frozenset({root})
        if isinstance(node, ast.Attribute):
            root = self.receivers.roots.get(node.attr)
            inner = self.paths(node.value)
            if inner is None or root == "":
                return None if root is None else frozenset({root})
            return _joined(inner, (node.attr,))
        if isinstance(node, ast.Subscript):
            return self._inside(node.value, node.slice)
        if isinstance(node, ast.Call):
            return self._call_paths(node)
        parts: list[ast.expr] = []
        if isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = node.elts
        found = [p for part in parts if (p := self.paths(part)) is not None]
        return frozenset().union(*found) if found else None

    def _call_paths(self, node: ast.Call) -> Paths | None:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "getattr" and len(node.args) >= 2:
            return self._inside(node.args[0], node.args[1])
        if isinstance(func, ast.Attribute):
            if func.attr in ("get", "pop") and node.args:
                return self._inside(func.value, node.args[0])
            if func.attr in self.receivers.transparent:
                return self.paths(func.value)
        if isinstance(func, ast.Name) and func.id in self.receivers.transparent:
            found = [p for arg in node.args if (p := self.paths(arg)) is not None]
            return frozenset().union(*found) if found else None
        return None

    def _inside(self, receiver: ast.expr, name: ast.expr) -> Paths | None:
        inner = self.paths(receiver)
        if inner is None:
            return None
        names = self.names(name)
        return _joined(inner, names) if names else None

    def names(self, node: ast.expr) -> tuple[str, ...]:
        """Return the strings an expression may be; empty when it is computed."""
        if isinstance(node, ast.Name) and node.id in self.strings:
            return self.strings[node.id]
        value = _literal(node, self.constants)
        return (value,) if isinstance(value, str) else ()

    # -- reads ---------------------------------------------------------------------------------------------------------

    def reads(self) -> list[Read]:
        """Return every read of the function."""
        called = {node.func for node in self.nodes if isinstance(node, ast.Call)}
        found: list[Read] = []
        for node in self.nodes:
            if isinstance(node, ast.Call):
                found += self._call_reads(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node not in called:
                if self.receivers.roots.get(node.attr) != "":
                    found += self._read(node, node.value, (node.attr,), REQUIRED)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                if names := self.names(node.slice):
                    found += self._read(node, node.value, names, REQUIRED)
            elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                receiver = node.comparators[0]
                within = {"", *self.receivers.roots.values(), *self.receivers.objects}
                if (self.paths(receiver) or _FOREIGN) & within and (names := self.names(node.left)):
                    found += self._read(node, receiver, names, PRESENCE)
        return found

    def _call_reads(self, node: ast.Call) -> list[Read]:
        func, args = node.func, node.args
        if isinstance(func, ast.Name) and func.id in ("getattr", "hasattr") and len(args) >= 2:
            default = (
                PRESENCE if func.id == "hasattr" else _literal(args[2], self.constants) if len(args) > 2 else REQUIRED
            )
            return self._read(node, args[0], self.names(args[1]) or ("*",), default)
        if isinstance(func, ast.Attribute) and func.attr in ("get", "pop") and args:
            missing = None if func.attr == "get" else REQUIRED
            default = _literal(args[1], self.constants) if len(args) > 1 else missing
            return self._read(node, func.value, self.names(args[0]) or ("*",), default)
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        found: list[Read] = []
        for template in self.receivers.helpers.get(name, ()):
            # the helper's own default, if any, is read where the helper stands
            found += [Read(key, COMPUTED, self.name, node.lineno) for key in self._filled(template, args)]
        return found

    def _filled(self, template: str, args: Sequence[ast.expr]) -> list[str]:
        filled = [template]
        for number, arg in enumerate(args):
            if f"{{{number}}}" in template:
                filled = [text.replace(f"{{{number}}}", name) for text in filled for name in self.names(arg) or ("*",)]
        return filled

    def _read(self, node: ast.expr, receiver: ast.expr, names: Sequence[str], default: Any) -> list[Read]:
        inner = self.paths(receiver)
        if not inner:
            return []
        if node in self.defaults and default in (None, False, 0, ""):
            default = self.defaults[node]
        return [Read(key, default, self.name, node.lineno) for key in sorted(_joined(inner, names))]


def _joined(inner: Paths, names: Sequence[str]) -> Paths:
    return frozenset(f"{path}.{name}" if path else name for path in inner for name in names)


def _dotted(node: ast.expr) -> str:
    """Return a plain dotted expression as text, empty for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
