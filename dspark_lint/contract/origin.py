"""Which file each part of a resolved contract comes from.

The chain is merged once more with every value marked by the releases that set it, so that `contracts show` can say of a
clause where it was written and where it was changed. The hot path has no use for this and does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dspark_lint.contract.load import chain_files, layer_of, merge, release_of
from dspark_lint.errors import ContractError


class Marked(NamedTuple):
    """A value that is no mapping, and the releases whose files set it, the oldest first."""

    value: Any
    releases: tuple[str, ...]


def mark(node: Any, release: str) -> Any:
    """Mark every value of a layer; a null stays one, because it removes."""
    if isinstance(node, Mapping):
        return {key: mark(value, release) for key, value in node.items()}
    return None if node is None else Marked(node, (release,))


def marked_contract(release: str, extra: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a release's contract with every value a `Marked`, families not resolved; raises like `load_raw`."""
    resolved: dict[str, Any] = {}
    for path in chain_files(release, extra):
        layer = layer_of(path)
        layer.pop("extends", None)
        resolved.pop("changes", None)
        resolved = _merge(resolved, mark(layer, release_of(path)))
    return resolved


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as the loader does, and let a replaced value remember who set it before."""
    merged = merge(base, over)
    for key, value in over.items():
        before = base.get(key)
        if isinstance(value, Marked) and isinstance(before, Marked):
            merged[key] = Marked(value.value, (*before.releases, *value.releases))
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = _merge(before, value)
    return merged


def marked_family(marked: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a family of a marked contract with what it is ``like`` underneath; ContractError for an unknown one."""
    layers: list[Mapping[str, Any]] = []
    current: str | None = name
    while current and len(layers) < len(marked.get("families", {})) + 1:
        family = marked.get("families", {}).get(current)
        if family is None:
            raise ContractError(f"no family {current!r} in the contract")
        layers.append(family)
        current = plain(family.get("like"))
    resolved: dict[str, Any] = {}
    for layer in reversed(layers):
        replaced = plain(layer.get("replaces")) or ()
        inherited = {k: v for k, v in resolved.items() if k not in replaced}
        resolved = _merge(inherited, {k: v for k, v in layer.items() if k not in ("like", "replaces")})
    return resolved


def plain(node: Any) -> Any:
    """Return a marked node without its marks."""
    if isinstance(node, Marked):
        return node.value
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.items()}
    return node


def releases_of(node: Any) -> tuple[str, ...]:
    """Return every release that had a hand in a node, in order of first appearance from the oldest."""
    found: dict[str, None] = {}
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Marked):
            found.update(dict.fromkeys(current.releases))
        elif isinstance(current, Mapping):
            todo += current.values()
    return tuple(sorted(found, key=_numbers))


def _numbers(release: str) -> tuple[tuple[int, str], ...]:
    """Sort releases by number; one of a fork may carry words."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in release.split("."))
