"""A draft inside its target's checkpoint that no family describes: the exclusion list against names as they lie on disk.

The names that such a loader builds its modules under are not known here, so this says only what the list and the
files tell of each other: a weight that the list leaves in and that is not quantized, one that it takes out and that is.
"""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dspark_lint.contract.expr import UNKNOWN
from dspark_lint.quant.match import way_of


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.quant.statement import Statement


class Disagreement(NamedTuple):
    """One module whose weight on disk is not what the statement makes of it."""

    owner: str
    tensor: str
    kind: Literal["unquantized", "excluded", "scales"]
    dtype: str
    by: str
    """The entry that takes it out; empty for others."""
    missing: tuple[str, ...] = ()
    """Scales that its scheme keeps and that are not there, or are of another type."""


def disagreements(statement: Statement, tensors: Mapping[str, tuple[str, dict[str, Any]]]) -> list[Disagreement]:
    """Return the modules of the embedded draft (and the head) that the statement and the files disagree about."""
    clause = statement.section.get("embedded")
    ways = statement.clause.get("match", ())
    if not clause or not ways or statement.troubles:
        return []
    wanted, plain = re.compile(clause["owners"]).search, re.compile(clause["unquantized"]).search
    packed, leaves = set(statement.section["packed_dtypes"]), statement.section["leaves"]
    found: list[Disagreement] = []
    for name, (_, entry) in tensors.items():
        owner, _, leaf = name.rpartition(".")
        if leaf not in ("weight", "weight_packed") or len(entry["shape"]) != 2 or not wanted(owner) or plain(owner):
            continue
        scales = tuple(s for s in leaves if f"{owner}.{s}" in tensors and s not in ("weight_packed", "weight_shape"))
        is_quantized = entry["dtype"] in packed or bool(scales)
        by = next((e for way in ways for e in statement.entries if way_of(e, owner, (way,))), None)
        scheme = _scheme(statement, owner, str(clause["class"])) if by is None else None
        if by is not None and is_quantized:
            found.append(Disagreement(owner, name, "excluded", entry["dtype"], by))
        elif by is None and scheme is not None and not is_quantized:
            if owner != "lm_head":  # a head is quantized by few loaders
                found.append(Disagreement(owner, name, "unquantized", entry["dtype"], ""))
        elif isinstance(scheme, str) and is_quantized:
            lacking = _lacking(statement, scheme, owner, tensors)
            if lacking:
                found.append(Disagreement(owner, name, "scales", entry["dtype"], "", lacking))
    return found


def _scheme(statement: Statement, owner: str, class_name: str) -> Any:
    """Return the scheme that a statement gives a module of that name; None for none, `UNKNOWN` for one not described."""
    from dspark_lint.contract.expr import evaluate  # noqa: PLC0415 - one use

    clause = statement.clause
    if "groups" in clause:
        for subject, ways in ((owner, clause["target_match"]), (class_name, clause["class_match"])):
            for target, group in statement.groups():
                if way_of(target, subject, ways):
                    return group.scheme
        return None
    if "layers" in clause:
        info = statement.layers.get(owner)
        return UNKNOWN if info is not None else None
    return evaluate(str(clause["scheme"]), statement)


def _lacking(
    statement: Statement, scheme: str, owner: str, tensors: Mapping[str, tuple[str, dict[str, Any]]]
) -> tuple[str, ...]:
    """Return the scales of a scheme that are not there; a block scale of exponents alone is none of NVFP4's."""
    stated = statement.section["schemes"][scheme]
    out: list[str] = []
    for leaf, tensor in stated["tensors"].items():
        if leaf.startswith(("weight_scale", "weight_global")) and tensor.get("absent") != "optional":
            there = tensors.get(f"{owner}.{leaf}")
            types = tensor.get("dtypes")
            if there is None or (types and there[1]["dtype"] not in types):
                out.append(leaf)
    return tuple(out)
