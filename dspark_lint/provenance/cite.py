"""Citations: ``alias::definition::needle``, found in a source tree or told why not."""

from __future__ import annotations

import difflib

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dspark_lint.provenance.source import qualnames


if TYPE_CHECKING:
    from dspark_lint.provenance.source import Definition, SourceTree

Package = Literal["vllm", "transformers"]
Path = tuple[str, ...]
"""Where a clause stands in the contract: its keys from the top."""

_OTHER: Package = "transformers"
#: Sections that cite nothing of their own release: what was looked up, what changed once, what the audit reads.
_NOT_CITING = frozenset({"lines", "changes", "audit"})


class Citation(NamedTuple):
    """One citation, split."""

    package: Package
    path: str
    """Path of the module inside the package."""
    qualname: str
    """Dotted name of the definition; empty for the whole module."""
    needle: str
    """A piece of the cited line; empty for the definition itself."""

    def __str__(self) -> str:
        """Write it out with its path, as it would stand without an alias."""
        head = f"{_OTHER}:{self.path}" if self.package == _OTHER else self.path
        return f"{head}::{self.qualname}::{self.needle}".rstrip(":")


class Located(NamedTuple):
    """Where a citation stands in a tree."""

    path: str
    line: int
    """1-based line of the needle, or of the definition."""
    fingerprint: str


class Lost(NamedTuple):
    """Why a citation does not stand in a tree."""

    kind: Literal["file", "definition", "needle"]
    message: str
    near: tuple[Citation, ...] = ()
    """What may be meant instead, the most likely first."""

    def __str__(self) -> str:
        """Say it in one sentence, with the likeliest other place."""
        return self.message + (f"; did you mean {self.near[0]}?" if self.near else "")


def parse_citation(text: str, aliases: Mapping[str, str]) -> Citation:
    """Split a citation.

    A first part that is no key of `aliases` is a path itself; ``transformers:`` before it means that package.
    """
    head, _, rest = text.partition("::")
    qualname, _, needle = rest.partition("::")
    package: Package = "vllm"
    if head.startswith(f"{_OTHER}:"):
        package, head = _OTHER, head.removeprefix(f"{_OTHER}:")
    return Citation(package, aliases.get(head, head), qualname, needle)


def resolve(citation: Citation, tree: SourceTree, *, suggest: bool = True) -> Located | Lost:
    """Find a citation in a tree, or return what is missing: the file, the definition, or the line.

    With `suggest` a missing definition is looked for elsewhere in the package, which reads all of it.
    """
    definition = tree.definition(citation.path, citation.qualname)
    if definition is not None:
        line = line_of(definition, citation.needle)
        if line is not None:
            return Located(citation.path, line, definition.fingerprint)
        name = citation.qualname or "the module"
        return Lost(
            "needle",
            f"{citation.path}: no line of {name} holds {citation.needle!r}",
            _needle_near(citation, definition, tree) if suggest else (),
        )
    near = _elsewhere(citation, tree) if suggest else ()
    if tree.text(citation.path) is None:
        return Lost("file", f"{citation.path} is not there", near)
    return Lost("definition", f"{citation.path} has no {citation.qualname or 'syntax that parses'}", near)


def line_of(definition: Definition, needle: str) -> int | None:
    """Return the 1-based line of a needle in a definition, the definition's own for an empty one; None without one."""
    if not needle:
        return definition.first
    for number, line in enumerate(definition.text.splitlines(), definition.start):
        if needle in line:
            return number
    return None


def _elsewhere(citation: Citation, tree: SourceTree) -> tuple[Citation, ...]:
    """Look for a definition of the same dotted name in other modules, the nearest in the folders first."""
    if not citation.qualname:
        name = citation.path.rpartition("/")[2]
        paths = [p for p in tree.modules() if p.rpartition("/")[2] == name and p != citation.path]
    else:
        paths = [p for p in tree.defining(citation.qualname.split(".", 1)[0]) if p != citation.path]
    found = [
        citation._replace(path=p)
        for p in sorted(paths, key=lambda p: (-_shared(p, citation.path), p))
        if tree.definition(p, citation.qualname)
    ]
    module = tree.module(citation.path)
    if module is not None:
        names = [name for name, _ in qualnames(module)]
        found += [
            citation._replace(qualname=n) for n in difflib.get_close_matches(citation.qualname, names, n=2, cutoff=0.75)
        ]
    # whatever also holds the needle comes first
    return tuple(
        sorted(
            found, key=lambda c: line_of(d, c.needle) is None if (d := tree.definition(c.path, c.qualname)) else True
        )
    )


def _needle_near(citation: Citation, definition: Definition, tree: SourceTree) -> tuple[Citation, ...]:
    """Return other definitions of the module with that line, else the most similar lines of the cited one."""
    module = tree.module(citation.path)
    assert module is not None
    around = citation.qualname.rpartition(".")[0]
    holding = [
        citation._replace(qualname=name)
        for name, _ in qualnames(module)
        if name != citation.qualname
        and (d := tree.definition(citation.path, name))
        and line_of(d, citation.needle) is not None
    ]
    # the innermost definition says it best; the method of the same class first
    inner = [c for c in holding if not any(o.qualname.startswith(c.qualname + ".") for o in holding)]
    inner.sort(key=lambda c: (-_shared(c.qualname.replace(".", "/"), around.replace(".", "/")), c.qualname))
    lines = [line.strip() for line in definition.text.splitlines()]
    close = difflib.get_close_matches(citation.needle, lines, n=1, cutoff=0.6)
    return (*inner, *(citation._replace(needle=c) for c in close))


def _shared(one: str, other: str) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one.split("/"), other.split("/"), strict=False))
    return sum(1 for _ in same)


def citations_in(node: Any, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Yield every citation of a contract mapping with the path of its clause, in order of appearance.

    A citation is the value, or one of the values, of a member ``source``, ``..._source`` or ``loader``.
    """
    if isinstance(node, Mapping):
        for key, value in node.items():
            name = str(key)
            if name in ("source", "loader") or name.endswith("_source"):
                for one in value if isinstance(value, list) else [value]:
                    # `loader: column` names a clause of the contract, not a place in the source
                    if isinstance(one, str) and (name == "source" or "::" in one):
                        yield one, path if name == "source" else (*path, name)
            if isinstance(value, (Mapping, list)) and not (not path and name in _NOT_CITING):
                yield from citations_in(value, (*path, name))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            if isinstance(value, (Mapping, list)):
                yield from citations_in(value, (*path, str(number)))
