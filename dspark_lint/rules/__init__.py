"""The rules: one module a family, and the registry that holds them all."""

from __future__ import annotations

from dspark_lint.rules import arc, drf, fil, key, qnt, qnt_embedded, ten, tgt, val, val_deep, val_fused
from dspark_lint.rules.base import Rule


#: Every rule by its id, in the order in which they run and are listed.
REGISTRY: dict[str, Rule] = {
    rule.id: rule
    for module in (fil, arc, key, drf, qnt, qnt_embedded, ten, tgt, val, val_deep, val_fused)
    for rule in module.RULES
}

__all__ = ["REGISTRY", "Rule"]
