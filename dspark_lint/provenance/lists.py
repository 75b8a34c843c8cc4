"""Lists that the source keeps and the contract repeats: registry names, fields of the serve flag, methods, model types.

Which list of the source stands where in the contract is data (``audit.lists``). A list is compared in both directions.
"""

from __future__ import annotations

import ast
import fnmatch

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.errors import ContractError
from dspark_lint.provenance.cite import Citation, parse_citation
from dspark_lint.provenance.source import find, statements, targets


if TYPE_CHECKING:
    from dspark_lint.provenance.source import SourceTree

Entries = dict[str, tuple[str, ...]]
"""Names of a list; for a table, with the plain strings of each entry (module and class of a registry)."""


class Compared(NamedTuple):
    """One list of the contract beside the source's."""

    name: str
    citation: str
    """First citation of the list."""
    missing: tuple[str, ...]
    """In the source only."""
    surplus: tuple[str, ...]
    """In the contract only."""
    source: Entries
    places: tuple[str, ...]
    """Dotted places of the contract that make up the list."""
    lost: str = ""
    """Why the source's list could not be read."""


def compare_lists(raw: Mapping[str, Any], tree: SourceTree) -> list[Compared]:
    """Compare every list of ``audit.lists``, and the draft architectures of ``registry.source`` first of all."""
    return [compare_list(name, clause, raw, tree) for name, clause in declared(raw).items()]


def declared(raw: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the declared lists by name; the registry's draft architectures are one without being declared."""
    found: dict[str, Mapping[str, Any]] = {}
    registry = raw.get("registry", {})
    if registry.get("source"):
        found["architecture"] = {
            "of": "keys",
            "source": registry["source"],
            "in": ["architectures", "registry.other_drafts"],
        }
    found.update({k: v for k, v in raw.get("audit", {}).get("lists", {}).items() if v})
    return found


def compare_list(name: str, clause: Mapping[str, Any], raw: Mapping[str, Any], tree: SourceTree) -> Compared:
    """Compare one declared list with the source's, in both directions."""
    texts = clause["source"] if isinstance(clause["source"], list) else [clause["source"]]
    places = tuple(clause["in"] if isinstance(clause["in"], list) else [clause["in"]])
    try:
        entries = read_list(clause, raw, tree)
    except LookupError as e:
        return Compared(name, texts[0], (), (), {}, places, str(e.args[0]))
    stated = {key for place in places for key in at(raw, place)}
    excepted = tuple(clause.get("except", ()))
    missing = tuple(sorted(n for n in set(entries) - stated if not any(fnmatch.fnmatchcase(n, e) for e in excepted)))
    surplus = tuple(sorted(n for n in stated - set(entries) if not any(fnmatch.fnmatchcase(n, e) for e in excepted)))
    return Compared(name, texts[0], missing, surplus, entries, places)


def read_list(clause: Mapping[str, Any], raw: Mapping[str, Any], tree: SourceTree) -> Entries:
    """Return the entries of a declared list as the source has them; LookupError when it is not there."""
    kind = clause.get("of", "keys")
    if kind not in _READERS:
        raise ContractError(f"audit.lists: `of: {kind}` is none of {', '.join(_READERS)}")
    found: Entries = {}
    for text in clause["source"] if isinstance(clause["source"], list) else [clause["source"]]:
        citation = parse_citation(text, raw.get("sources", {}))
        module = tree.module(citation.path)
        node = find(module, citation.qualname) if module is not None else None
        if module is None or node is None:
            raise LookupError(
                f"{citation.path} has no {citation.qualname}" if module is not None else f"{citation.path} is not there"
            )
        found.update(_READERS[kind](node, _Context(module, clause, citation, tree)))
    return found


def at(raw: Mapping[str, Any], place: str) -> list[str]:
    """Return the names at a dotted place of the contract: the keys of a mapping, the items of a list."""
    node: Any = raw
    for part in place.split("."):
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return [str(v) for v in node]


class _Context(NamedTuple):
    """What a reader of one list may need beside its syntax."""

    module: ast.Module
    clause: Mapping[str, Any]
    citation: Citation
    tree: SourceTree


def _strings(node: ast.expr | None) -> tuple[str, ...]:
    return (
        tuple(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
        if node is not None
        else ()
    )


def _keys(node: ast.AST, context: _Context) -> Entries:
    """Keys of a dict literal, of the dicts it unpacks, and of the dict or the keywords given to a call."""
    value = getattr(node, "value", node)
    found: Entries = {}
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found[key.value] = _strings(inner)
            elif key is None and isinstance(inner, ast.Name) and (other := find(context.module, inner.id)) is not None:
                found.update(_keys(other, context))
    elif isinstance(value, ast.Call):
        for arg in [*value.args, *(k.value for k in value.keywords if k.arg is None)]:
            found.update(_keys(arg, context))
        found.update({k.arg: _strings(k.value) for k in value.keywords if k.arg})
    return found


def _fields(node: ast.AST, context: _Context) -> Entries:  # noqa: ARG001 - the signature of every reader
    """Annotated attributes of a class body that are no ClassVar and not private: the fields of a dataclass."""
    found: Entries = {}
    for child in getattr(node, "body", []):
        names = targets(child) if isinstance(child, ast.AnnAssign) else []
        if names and not names[0].startswith("_") and "ClassVar" not in ast.unparse(child.annotation):
            found[names[0]] = ()
    return found


def _literals(node: ast.AST, context: _Context) -> Entries:
    """Strings of ``Literal[...]``, names of other such types in it followed."""
    found: Entries = {}
    for inner in ast.walk(getattr(node, "value", node)):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found[inner.value] = ()
        elif (
            isinstance(inner, ast.Name)
            and inner.id != "Literal"
            and (other := find(context.module, inner.id)) is not None
        ):
            found.update(_literals(other, context))
    return found


def _implementers(node: ast.AST, context: _Context) -> Entries:
    """Registry entries whose class derives from one of the clause's ``base`` classes, followed over the imports."""
    folder = context.citation.path.rpartition("/")[0]
    stated = context.clause["base"]
    bases = frozenset([stated] if isinstance(stated, str) else stated)
    known = ClassIndex.of(context.tree)
    found: Entries = {}
    for name, strings in _keys(node, context).items():
        if len(strings) >= 2 and known.derives(module_path(strings[0], folder, context.tree), strings[1], bases):
            found[name] = strings
    return found


def module_path(name: str, folder: str, tree: SourceTree) -> str:
    """Return the file of a registry's module: one of the package by its full name, else one beside the registry."""
    dotted = (
        name.removeprefix(f"{tree.package}.").replace(".", "/")
        if name.startswith(f"{tree.package}.")
        else f"{folder}/{name}"
    )
    return f"{dotted}.py" if tree.text(f"{dotted}.py") is not None else f"{dotted}/__init__.py"


class ClassIndex:
    """Classes and their bases over a whole tree, by the text of its imports."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._memo: dict[tuple[str, str, frozenset[str]], bool] = {}
        self._imports: dict[str, dict[str, tuple[str, str]]] = {}

    @classmethod
    def of(cls, tree: SourceTree) -> ClassIndex:
        """Return the one index of a tree."""
        found = tree.memo.setdefault("classes", cls(tree))
        assert isinstance(found, ClassIndex)
        return found

    def derives(self, path: str, name: str, bases: frozenset[str]) -> bool:
        """Whether a class is one of `bases` or derives from one, followed over the imports."""
        key = (path, name, bases)
        if key not in self._memo:
            self._memo[key] = False  # a circle of imports ends here
            self._memo[key] = self._derives(path, name, bases)
        return self._memo[key]

    def _derives(self, path: str, name: str, bases: frozenset[str]) -> bool:
        if name in bases:
            return True
        module = self.tree.module(path)
        if module is None:
            return False
        node = find(module, name)
        if isinstance(node, ast.ClassDef):
            return any(self.derives(path, base, bases) for base in _base_names(node))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            return self.derives(path, node.value.id, bases)
        if origin := self.imports(path).get(name):
            return self.derives(*origin, bases)
        return path.endswith("__init__.py") and self._lazily(path, module, name, bases)

    def _lazily(self, path: str, module: ast.Module, name: str, bases: frozenset[str]) -> bool:
        """A package that imports by the platform: inside a function, under a branch, or by ``__getattr__``."""
        return any(self.derives(p, n, bases) for p, n in self._anywhere(path, module, name))

    def _anywhere(self, path: str, module: ast.Module, name: str) -> list[tuple[str, str]]:
        found = [n for n in ast.walk(module) if isinstance(n, ast.ImportFrom)]
        return [(self._resolve(path, n), a.name) for n in found for a in n.names if name in (a.asname, a.name)]

    def origin(self, path: str, name: str) -> tuple[str, str]:
        """Return the module and the name under which a class is defined, an import followed to its end."""
        seen = set()
        while (path, name) not in seen:
            seen.add((path, name))
            module = self.tree.module(path)
            if module is None or find(module, name) is not None:
                break
            origins = self._anywhere(path, module, name)
            if not origins:
                break
            path, name = origins[0]
        return path, name

    def takes(self, path: str, name: str) -> bool:
        """Whether a module imports a class of that name."""
        return name in {original for _, original in self.imports(path).values()}

    def imports(self, path: str) -> dict[str, tuple[str, str]]:
        """Return what a module imports by name: the name here -> (module, name there)."""
        if path not in self._imports:
            module = self.tree.module(path)
            found: dict[str, tuple[str, str]] = {}
            for node in statements(module) if module is not None else ():
                if isinstance(node, ast.ImportFrom):
                    found.update({a.asname or a.name: (self._resolve(path, node), a.name) for a in node.names})
            self._imports[path] = found
        return self._imports[path]

    def _resolve(self, path: str, node: ast.ImportFrom) -> str:
        parts = path.removesuffix(".py").split("/")
        if node.level:
            parts = parts[: len(parts) - node.level]
            dotted = "/".join([*parts, *(node.module or "").split(".")]).strip("/")
        else:
            dotted = (node.module or "").removeprefix(f"{self.tree.package}.").replace(".", "/")
        return f"{dotted}.py" if self.tree.text(f"{dotted}.py") is not None else f"{dotted}/__init__.py"


def _base_names(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Call):  # a factory of mixed-in classes keeps what it is given
            yield from (a.id for a in inner.args if isinstance(a, ast.Name))


Reader = Callable[[ast.AST, _Context], Entries]
_READERS: dict[str, Reader] = {"keys": _keys, "fields": _fields, "literals": _literals, "implementers": _implementers}
