"""A package's Python source, from an unpacked wheel, a wheel file, a site-packages or the package itself."""

from __future__ import annotations

import ast
import re
import warnings
import zipfile

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.errors import UsageError
from dspark_lint.provenance.fingerprint import fingerprint


if TYPE_CHECKING:
    from collections.abc import Iterator


Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign

_VERSION = re.compile(r"^__version__\s*=\s*(?:\w+\s*=\s*)?['\"](\d[^'\"+]*)", re.MULTILINE)
_TOP_LEVEL = re.compile(r"^(?:class|def|async def)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)


class Definition(NamedTuple):
    """One class, function, method or assignment, or a whole module."""

    path: str
    """Path of the module inside the package."""
    qualname: str
    first: int
    """1-based line of the ``class``, ``def`` or the assignment; decorators stand above it."""
    start: int
    """1-based line of the first decorator, else `first`."""
    last: int
    """1-based last line."""
    text: str
    """The lines from `start` to `last`."""
    fingerprint: str
    shape: str
    """Fingerprint without the words of messages."""


class SourceTree:
    """The modules of one package below a path, read when they are asked for and never imported."""

    def __init__(self, path: str | Path, package: str = "vllm") -> None:
        """Open a tree: an unpacked wheel or a site-packages, a wheel file, a checkout, or the package's own directory.

        Raises UsageError when the package is not there.
        """
        self.path = str(path)
        self.package = package
        self._zip: zipfile.ZipFile | None = None
        self._folder = Path(self.path)
        """The package's own folder, where it lies on disk."""
        self._names: frozenset[str] = frozenset()
        self._texts: dict[str, str | None] = {}
        self._modules: dict[str, ast.Module | None] = {}
        self._definitions: dict[tuple[str, str], Definition | None] = {}
        self._index: dict[str, list[str]] | None = None
        self.memo: dict[str, object] = {}
        """What others derive from the tree and want to derive once."""
        if self._folder.is_file():
            self._open_wheel()
            return
        for folder in (self._folder / package, self._folder / "src" / package, self._folder):
            if (folder / "__init__.py").is_file():
                self._folder = folder
                return
        raise UsageError(
            f"{self.path}: no package {package} there; give an unpacked wheel, a wheel file or a site-packages"
        )

    def _open_wheel(self) -> None:
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError) as e:
            raise UsageError(f"{self.path}: no wheel: {e}") from e
        self._names = frozenset(self._zip.namelist())
        if f"{self.package}/__init__.py" not in self._names:
            raise UsageError(f"{self.path}: no package {self.package} in this wheel")

    # -- text ----------------------------------------------------------------------------------------------------------

    def text(self, path: str) -> str | None:
        """Return a module's source by its path inside the package; None when there is no such file."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        try:
            if self._zip is not None:
                name = f"{self.package}/{path}"
                return self._zip.read(name).decode("utf-8", "replace") if name in self._names else None
            return (self._folder / path).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError, zipfile.BadZipFile):
            return None

    def modules(self) -> list[str]:
        """Return the path of every module inside the package, sorted."""
        if self._zip is not None:
            start = f"{self.package}/"
            return sorted(n.removeprefix(start) for n in self._names if n.startswith(start) and n.endswith(".py"))
        return sorted(p.relative_to(self._folder).as_posix() for p in self._folder.rglob("*.py"))

    def defining(self, name: str) -> list[str]:
        """Return the modules with a top-level definition of that name; the whole package is read once for it."""
        if self._index is None:
            self._index = {}
            for path in self.modules():
                for match in _TOP_LEVEL.finditer(self.text(path) or ""):
                    self._index.setdefault(match[1] or match[2], []).append(path)
        return list(dict.fromkeys(self._index.get(name, ())))

    def version(self) -> str | None:
        """Return the version that the tree states of itself, without a local part; None when it states none."""
        for path in ("_version.py", "__init__.py"):
            match = _VERSION.search(self.text(path) or "")
            if match:
                return match[1]
        pattern = re.compile(r"^[\w.]+-(\d[\w.!]*)(?:\+[\w.]+)?\.dist-info/?")
        for name in self._beside():
            match = pattern.match(name)
            if match and self._installs(name):
                return match[1]
        return None

    def _beside(self) -> list[str]:
        """Return the names beside the package: the top of the wheel or of the site-packages."""
        if self._zip is not None:
            return sorted({n.split("/", 1)[0] for n in self._names})
        try:
            return sorted(p.name for p in self._folder.absolute().parent.iterdir())
        except OSError:
            return []

    def _installs(self, dist_info: str) -> bool:
        """Whether the distribution of that metadata folder brought the package."""
        if self._zip is not None:
            return True
        try:
            record = (self._folder.absolute().parent / dist_info / "RECORD").read_text(encoding="utf-8")
        except OSError:
            return False
        return any(line.startswith(f"{self.package}/__init__.py,") for line in record.splitlines())

    # -- syntax --------------------------------------------------------------------------------------------------------

    def module(self, path: str) -> ast.Module | None:
        """Return a module's syntax; None when it is not there or does not parse."""
        if path not in self._modules:
            text = self.text(path)
            self._modules[path] = None if text is None else _parse(text)
        return self._modules[path]

    def functions(self, path: str) -> dict[str, str]:
        """Return the fingerprints of a module's functions and methods by dotted name; empty without the module."""
        module = self.module(path)
        found = qualnames(module) if module is not None else ()
        return {name: fingerprint(node) for name, node in found if not isinstance(node, ast.ClassDef)}

    def definition(self, path: str, qualname: str) -> Definition | None:
        """Return a definition by its dotted name (empty: the whole module); None when it is not there."""
        key = (path, qualname)
        if key not in self._definitions:
            self._definitions[key] = self._define(path, qualname)
        return self._definitions[key]

    def _define(self, path: str, qualname: str) -> Definition | None:
        text, tree = self.text(path), self.module(path)
        if text is None or tree is None:
            return None
        lines = text.splitlines()
        if not qualname:
            return Definition(path, "", 1, 1, len(lines), text, fingerprint(tree), fingerprint(tree, texts=False))
        node = find(tree, qualname)
        if node is None:
            return None
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        last = node.end_lineno or node.lineno
        return Definition(
            path,
            qualname,
            node.lineno,
            start,
            last,
            "\n".join(lines[start - 1 : last]),
            fingerprint(node),
            fingerprint(node, texts=False),
        )


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are not ours to report
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def find(tree: ast.AST, qualname: str) -> Named | None:
    """Find a class, function or assignment by its dotted name; one under ``if``, ``try`` or ``with`` counts."""
    name, _, rest = qualname.partition(".")
    for node in statements(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name != name or _overload(node):
                continue
            found = find(node, rest) if rest else node
            if found is not None:
                return found
        elif not rest and name in targets(node):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            return node
    return None


def targets(node: ast.stmt) -> list[str]:
    """Return the plain names that an assignment or an annotation binds; empty for any other statement."""
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a body in order, those under ``if``, ``try``, ``with`` and loops included.

    The bodies of inner definitions are left alone.
    """
    bodies = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
    bodies += [h.body for h in getattr(node, "handlers", [])]
    for body in bodies:
        if not isinstance(body, list):
            continue
        for child in body:
            yield child
            if isinstance(child, (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.AsyncWith, ast.AsyncFor)):
                yield from statements(child)


def qualnames(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every class and function with its dotted name, outer before inner."""
    for node in statements(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node
            yield from qualnames(node, f"{prefix}{node.name}.")


def _overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(d, (ast.Name, ast.Attribute)) and (d.id if isinstance(d, ast.Name) else d.attr) == "overload"
        for d in node.decorator_list
    )
