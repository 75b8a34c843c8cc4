"""How tensors are named in findings: their file, their sizes, one pattern for many layers."""

from __future__ import annotations

import re

from typing import Any

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.rules.base import Context, plural


def file_of(ctx: Context, disk: str) -> str:
    """Return the file that a tensor, by its name on disk, is read from."""
    return ctx.inventory.tensors[disk][0]


def dims(shape: Any) -> str:
    """Return ``[64, 192]``; a size that is not known as ``?``."""
    return "[" + ", ".join("?" if d is UNKNOWN else str(d) for d in shape) + "]"


def layer_names(names: list[str], pattern: str) -> str:
    """Return ``layers.{i}.x in 2 layers (0, 1)`` for a group of names of one pattern."""
    if len(names) == 1:
        return names[0]
    before = pattern.index("{")
    numbers = sorted({int(m.group()) for n in names if (m := re.match(r"\d+", n[before:]))})
    listed = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f"{pattern} in {plural(len(numbers), 'layer')} ({listed})"
