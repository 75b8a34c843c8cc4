"""Validation of a resolved contract's ``quantization`` section and of the families' modules: what refers to what."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import compile_expr
from dspark_lint.errors import ContractError


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Place = tuple[str, ...]

#: How a scheme writes its tensors, beside the parameter loaders: as the unquantized weight, or row by row.
_RELATIVE_LOADERS = ("same", "rows")


def quantization(raw: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for every expression that does not parse and every name that is not there."""
    section = raw.get("quantization")
    if not section:
        return
    schemes, backends = section.get("schemes", {}), section.get("backends", {})
    yield from _expressions(("quantization", "let"), section.get("let", {}))
    for name, route in section.get("routes", {}).items():
        place = ("quantization", "routes", name)
        yield from _parses((*place, "when"), route.get("when", "true"))
        if route.get("backend") is not None and route["backend"] not in backends:
            yield (*place, "backend"), _none("backend", route["backend"], backends)
        if not any(route.get(k) for k in ("backend", "unjudged", "effect")):
            yield place, "leads nowhere: needs a backend, an effect or unjudged"
    for name, backend in backends.items():
        yield from _backend(("quantization", "backends", name), backend, schemes)
    for name, scheme in schemes.items():
        yield from _scheme(("quantization", "schemes", name), scheme, raw.get("parameter_loaders", {}))
    for name, family in raw.get("families", {}).items():
        for key, step in ((family or {}).get("entries") or {}).items():
            yield from _step(("families", name, "entries", key), step or {}, backends)


def _backend(place: Place, backend: Mapping[str, Any], schemes: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    from dspark_lint.quant.match import WAYS  # noqa: PLC0415 - only to validate

    for member in ("exclude", "exclude_key", "scheme", "layers", "layer_algo", "groups"):
        if backend.get(member) is not None:
            yield from _parses((*place, member), backend[member])
    for member in ("match", "target_match", "class_match"):
        for way in backend.get(member, ()):
            if way not in WAYS:
                yield (*place, member), _none("way of matching", way, WAYS)
    yield from _expressions((*place, "let"), backend.get("let", {}))
    yield from _expressions((*place, "group_let"), backend.get("group_let", {}))
    for name, clause in backend.get("schemes", {}).items():
        yield from _parses((*place, "schemes", name, "when"), clause.get("when", "true"))
        if not clause.get("unjudged") and clause.get("scheme") not in schemes:
            yield (*place, "schemes", name, "scheme"), _none("scheme", clause.get("scheme"), schemes)
    for name in re.findall(r"'(\w+)'(?= if| *$)", str(backend.get("scheme", ""))):
        if name not in schemes:
            yield (*place, "scheme"), _none("scheme", name, schemes)
    for name, check in backend.get("checks", {}).items():
        for member in ("when", "require"):
            if check and check.get(member) is not None:
                yield from _parses((*place, "checks", name, member), check[member])


def _scheme(place: Place, scheme: Mapping[str, Any], loaders: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for member in ("dtypes", "cast", "tensors"):
        if not scheme.get(member):
            yield place, f"needs a member {member}"
    for leaf, tensor in scheme.get("tensors", {}).items():
        loader = tensor.get("loader")
        if loader not in loaders and loader not in _RELATIVE_LOADERS:
            yield (
                (*place, "tensors", leaf, "loader"),
                _none("parameter loader", loader, {**loaders, **dict.fromkeys(_RELATIVE_LOADERS)}),
            )
        for number, text in enumerate(tensor.get("shape", ())):
            yield from _parses(
                (*place, "tensors", leaf, "shape", str(number)), re.sub(r"\b(out|in)\b", "(1)", str(text))
            )


def _step(place: Place, step: Mapping[str, Any], backends: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for backend in step.get("backends", ()):
        if backend not in backends:
            yield (*place, "backends"), _none("backend", backend, backends)
    for member in ("shift", "sub"):
        if step.get(member) is None:
            continue
        try:
            groups = re.compile(step[member]).groups
        except re.error as e:
            yield (*place, member), f"{step[member]!r} is no pattern: {e}"
            continue
        if member == "shift" and groups < 1:
            yield (*place, member), "needs a group around the layer number"


def _expressions(place: Place, table: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for name, text in table.items():
        if text is not None:
            yield from _parses((*place, name), text)


def _parses(place: Place, text: Any) -> Iterator[tuple[Place, str]]:
    try:
        compile_expr(str(text))
    except (ContractError, SyntaxError) as e:
        yield place, str(e)


def _none(kind: str, name: Any, known: Mapping[str, Any]) -> str:
    return f"no {kind} {name!r}; there are {', '.join(sorted(known))}"
