"""The target model's config.json: its text configuration with the class's defaults, or what the draft says of it."""

from __future__ import annotations

import json
import os

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint import runtime_config as rc
from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.errors import ContractError, UsageError


if TYPE_CHECKING:
    from dspark_lint.binding import Binding


_LIMIT = 32 * 1024 * 1024


class Target(NamedTuple):
    """The target as given with --target."""

    path: str
    config: Mapping[str, Any]


def read_target(path: str) -> Target:
    """Read a target's config.json (the directory or the file).

    Raises UsageError when it is not there or not a JSON object: without a target there is nothing to pair with, and
    passing that over in silence would claim a check that was not made.
    """
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    try:
        if not os.path.isfile(file):
            raise UsageError(f"--target {path}: no config.json there")
        if os.path.getsize(file) > _LIMIT:
            raise UsageError(f"--target {path}: config.json is larger than {_LIMIT} bytes")
        with open(file, encoding="utf-8") as handle:
            config = json.load(handle)
    except (OSError, ValueError, RecursionError) as e:
        raise UsageError(f"--target {path}: config.json cannot be read: {e}") from e
    if not isinstance(config, dict):
        raise UsageError(f"--target {path}: config.json is not a JSON object")
    return Target(path, config)


def _text_config(config: Mapping[str, Any], places: list[str]) -> Mapping[str, Any]:
    """Return the text part of a multimodal configuration, by the contract's list of places."""
    for place in places:
        node: Any = config
        for name in place.split("."):
            node = node.get(name) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping):
            return node
    return config


def names_of(target: Target | None, contract: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    """Return the ``target`` namespace: ``known`` and the target's values, or the draft's own word for them."""
    clause = contract.get("target", {})
    if target is None:
        assumed: dict[str, Any] = {"known": False, "given": False, "captures": clause.get("captures", {})}
        for key, text in clause.get("assume", {}).items():
            try:
                assumed[key] = evaluate(text, binding)
            except (KeyError, ContractError):  # noqa: PERF203 - a handful of names
                assumed[key] = UNKNOWN  # no family is bound yet, or it has no such key
        return _Target(assumed)
    text = _text_config(target.config, clause.get("text_configs", []))
    names: dict[str, Any] = {}
    model_type = text.get("model_type")
    class_name = binding.classes.get("model_types", {}).get(model_type)
    fields = binding.classes.get("config_classes", {}).get(class_name, {}) if class_name else {}
    for key, field in fields.get("keys", {}).items():
        if "default" in field:
            names[key] = field["default"]
    names.update(text)
    for key, text_expr in clause.get("derive", {}).items():
        names[key] = evaluate(text_expr, rc.PlainScope({"text": _Target(dict(names)), "whole": target.config}))
    names.update(
        {
            "known": True,
            "given": True,
            "text": text,
            "whole": target.config,
            "path": os.path.abspath(target.path),
            "captures": clause.get("captures", {}),
        }
    )
    names.setdefault("multimodal", text is not target.config)
    return _Target(names)


class _Target(dict[str, Any]):
    """What the target's file does not say is unknown, not null."""

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002 - a missing member is UNKNOWN, whatever the default
        return dict.get(self, key, UNKNOWN)
