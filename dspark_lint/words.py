"""Values as words of a sentence, and sentences of a contract with their places filled."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN, evaluate


if TYPE_CHECKING:
    from dspark_lint.contract.expr import Scope


def as_json(value: Any, limit: int = 120) -> str:
    """Return a value as it stands in the file, clipped: a string in quotes, so that "4" is told from 4."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= limit else f'{text[: limit - 2]}…"'
    return show(value, limit)


def show(value: Any, limit: int = 120) -> str:
    """Return a value as a word of a sentence, clipped: JSON, and a string without its quotes."""
    if value is UNKNOWN:
        return "(unknown)"
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fill(template: str, binding: Scope) -> str:
    """Fill ``{expression}`` places of a clause's sentence from the binding."""
    out: list[str] = []
    rest = template
    while True:
        before, brace, after = rest.partition("{")
        out.append(before)
        if not brace:
            return "".join(out)
        inner, closing, rest = after.partition("}")
        if not closing:
            return "".join([*out, brace, inner])
        value = evaluate(inner, binding)
        out.append(as_json(value) if inner.startswith("raw(") else show(value))
