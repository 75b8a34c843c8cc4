"""What is taken for granted for want of flags, in words: the method, and what the draft's own file says of its target."""

from __future__ import annotations

import contextlib
import os

from typing import TYPE_CHECKING

from dspark_lint.contract.expr import evaluate
from dspark_lint.contract.order import ordered
from dspark_lint.words import fill


if TYPE_CHECKING:
    from dspark_lint.binding import Binding


def notes_of(binding: Binding) -> tuple[str, ...]:
    """Return a sentence for each thing that was taken for granted, and where the target may lie."""
    notes = list(binding.notes)
    if not binding.family:
        return tuple(notes)
    if binding.method_inferred:
        notes.append(f"method {binding.method} inferred from the content (no --speculative-config)")
    if not binding.get("target").get("known"):
        clause = binding.contract.get("target", {})
        told = [
            fill(part["says"], binding)
            for _, part in ordered(clause.get("assumed", {}))
            if evaluate(part["when"], binding) is True
        ]
        if told:
            notes.append(f"no --target: {', '.join(told)}")
        named = evaluate(clause.get("named", "null"), binding)
        if isinstance(named, str) and (found := _here(named, binding.path)):
            notes.append(f"the file names its target, and it is here: --target {found} checks the pair")
    return tuple(notes)


def _here(named: str, draft: str) -> str | None:
    """Return the path of a target that a file names, from here or from the draft, when a config.json stands there."""
    for path in (named, os.path.join(draft, named)):
        with contextlib.suppress(OSError, ValueError):  # no path at all
            if os.path.isfile(os.path.join(path, "config.json")) and not os.path.samefile(path, draft):
                return path
    return None
