"""What a definition says, as a short name that neither comments nor formatting nor the Python that reads it change."""

from __future__ import annotations

import ast
import hashlib


#: Positions of names, spellings of literals, comments with types: nothing that changes what is executed.
_IGNORED = frozenset({"ctx", "kind", "type_comment"})
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(node: ast.AST, *, texts: bool = True) -> str:
    """Return 16 hex digits of the sha256 of a definition's syntax.

    Bare strings (docstrings, described fields) are left out, and so is the definition's own name, which a citation
    states anyway: a class that was only renamed keeps its fingerprint. `ast.dump` is of no use here, because its text
    differs from one Python to the next. Without `texts` sentences (strings with a blank) do not count either: what is
    left is the shape of the code, names of keys included.
    """
    parts: list[str] = []
    _write(node, parts, top=True, texts=texts)
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def _write(value: object, out: list[str], *, top: bool = False, texts: bool = True) -> None:
    if isinstance(value, ast.JoinedStr):
        out.append("JoinedStr(")
        _write(_joined(value.values), out, texts=texts)
        out.append(")")
    elif isinstance(value, ast.Constant):
        shown = value.value if texts or not isinstance(value.value, str) or " " not in value.value else "..."
        out.append(f"{type(value.value).__name__} {shown!a} ")
    elif isinstance(value, ast.AST):
        out.append(f"{type(value).__name__}(")
        for field in value._fields:
            inner = getattr(value, field, None)
            # newer Pythons add fields (type_params), which are empty in code that older ones can read
            if field in _IGNORED or inner is None or inner == []:
                continue
            if top and ((isinstance(value, _DEFINITIONS) and field == "name") or field in ("target", "targets")):
                continue
            out.append(f"{field}=")
            _write(inner, out, texts=texts)
        out.append(")")
    elif isinstance(value, list):
        out.append("[")
        for one in value:
            if not _bare_string(one):
                _write(one, out, texts=texts)
                out.append(",")
        out.append("]")
    else:
        out.append(ascii(value))


def _bare_string(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Return an f-string's parts in the one form that all Pythons agree on: neighbouring texts joined, none empty."""
    joined: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if not value.value:
                continue
            if joined and isinstance(last := joined[-1], ast.Constant):
                joined[-1] = ast.Constant(str(last.value) + value.value)
                continue
        joined.append(value)
    return joined
