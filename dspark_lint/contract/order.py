"""Clauses in the order that a contract gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Mapping


def ordered(clauses: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return clauses by their ``order``, then as they stand in the file."""
    return sorted(((k, v) for k, v in clauses.items() if v), key=lambda kv: kv[1].get("order", 50))
