"""A resolved contract on paper: every clause with the files it comes from and the line it rests on."""

from __future__ import annotations

import difflib
import json

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dspark_lint.contract.load import load_raw
from dspark_lint.contract.model import Contract
from dspark_lint.contract.origin import Marked, marked_contract, marked_family, plain, releases_of
from dspark_lint.errors import UsageError


_WIDTH: Final = 116


class Shown(NamedTuple):
    """What is shown: a whole release, or the part of it that one architecture meets."""

    release: str
    architecture: str | None
    marked: Mapping[str, Any]
    """Sections with every value marked; under ``families`` they are resolved."""
    cite: Callable[[Mapping[str, Any]], str | None]
    """``path:line`` of a plain clause."""


def shown(release: str, architecture: str | None = None, extra: Mapping[str, str] | None = None) -> Shown:
    """Return what there is to show; UsageError for an architecture that the release does not know."""
    contract = Contract(load_raw(release, extra))
    marked = marked_contract(release, extra)
    if architecture is None:
        names = list(marked.get("families", {}))
        return Shown(release, None, {**marked, "families": {n: marked_family(marked, n) for n in names}}, contract.cite)
    known = marked.get("architectures", {})
    entry = known.get(architecture)
    if not entry:
        close = difflib.get_close_matches(architecture, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(k for k, v in known.items() if v))}"
        raise UsageError(f"vLLM {release} knows no draft architecture {architecture}; {hint}")
    part: dict[str, Any] = {"release": marked["release"], "architectures": {architecture: entry}}
    family = plain(entry.get("family"))
    if family:
        part["families"] = {family: marked_family(marked, family)}
        used = {plain(t).get("loader") for t in part["families"][family].get("tensors", {}).values() if t}
        part["parameter_loaders"] = {k: v for k, v in marked.get("parameter_loaders", {}).items() if k in used}
    return Shown(release, architecture, part, contract.cite)


def note(what: Shown, clause: Mapping[str, Any]) -> str:
    """Return where a clause comes from and what it cites: ``0.25.0, changed in 0.29.0 | path:line``."""
    first, *later = releases_of(clause) or ("?",)
    text = first + (f", changed in {', '.join(later)}" if later else "")
    cited = what.cite(plain(clause))
    return f"{text} | {cited}" if cited else text


def _is_clause(node: Any) -> bool:
    return isinstance(node, Mapping) and any(isinstance(v, Marked) for v in node.values())


# -- YAML --------------------------------------------------------------------------------------------------------------


def as_yaml(what: Shown) -> str:
    """Return YAML that loads as the resolved contract, with a comment on every clause."""
    return "\n".join(_yaml(what, what.marked, "", ())) + "\n"


def _yaml(what: Shown, node: Mapping[str, Any], indent: str, above: tuple[str, ...]) -> Iterator[str]:
    for key, value in node.items():
        name = _flow(key)
        if not isinstance(value, Mapping) or not value or _is_set(value):
            yield f"{indent}{name}: {_flow(plain(value), indent)}"
        else:
            releases = releases_of(value)
            # a clause inside a clause says nothing new unless it cites for itself or has a history of its own
            noted = _is_clause(value) and ("source" in value or releases != above)
            yield f"{indent}{name}:" + (f"  # {note(what, value)}" if noted else "")
            yield from _yaml(what, value, indent + "  ", releases if noted else above)


def _is_set(node: Mapping[str, Any]) -> bool:
    return all(isinstance(v, Marked) and v.value is True for v in node.values())


def _flow(value: Any, indent: str = "") -> str:
    import yaml  # noqa: PLC0415 - only to show

    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...").replace("\n", f"\n{indent}    ")


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(what: Shown) -> str:
    """Return the resolved contract as JSON; a clause has ``_from``, the releases that wrote it, and ``_cited``."""
    return (
        json.dumps(
            {
                "runtime": "vllm",
                "release": what.release,
                "architecture": what.architecture,
                "contract": _json(what, what.marked),
            },
            indent=1,
        )
        + "\n"
    )


def _json(what: Shown, node: Any) -> Any:
    if not isinstance(node, Mapping):
        return plain(node)
    result = {key: _json(what, value) for key, value in node.items()}
    if "source" in node:
        result |= {"_from": list(releases_of(node)), "_cited": what.cite(plain(node))}
    return result


# -- Markdown ----------------------------------------------------------------------------------------------------------

Column = tuple[str, Callable[[Mapping[str, Any]], Any]]


def _lookup(clause: Mapping[str, Any]) -> str:
    return " → ".join((s if isinstance(s, str) else s["path"]).rstrip("?+") for s in clause.get("lookup", ()))


def _absent(clause: Mapping[str, Any]) -> Any:
    if "default" in clause:
        return json.dumps(clause["default"])
    return clause.get("default_value") or clause.get("absent", {}).get("effect")


_TABLES: Final[dict[str, tuple[str, tuple[Column, ...]]]] = {
    "keys": ("Keys", (("looked up at", _lookup), ("type", lambda c: c.get("type")), ("absent", _absent))),
    "tensors": (
        "Tensors",
        (("shape", lambda c: c.get("shape")), ("when", lambda c: c.get("when")), ("absent", lambda c: c.get("absent"))),
    ),
    "names": (
        "Other tensor names",
        (
            ("matches", lambda c: c.get("contains") or c.get("prefix") or c.get("leaf") or c.get("matches")),
            ("fate", lambda c: c.get("then") or c.get("effect")),
        ),
    ),
    "checks": (
        "Checks",
        (
            ("rule", lambda c: c.get("rule")),
            ("effect", lambda c: c.get("effect")),
            ("when", lambda c: c.get("when")),
            ("must hold", lambda c: c.get("require")),
        ),
    ),
}


def as_markdown(what: Shown) -> str:
    """Return tables of the architectures and, family by family, of keys, tensors, names and checks."""
    title = f"vLLM {what.release}" + (f", {what.architecture}" if what.architecture else "")
    lines = [f"# Contract of {title}", ""]
    architectures = {k: v for k, v in what.marked.get("architectures", {}).items() if v}
    columns: tuple[Column, ...] = (
        ("family", lambda c: c.get("family") or f"none: {c.get('out_of_scope', 'out of scope')}"),
    )
    lines += _table(what, "architecture", architectures, columns)
    for name, family in what.marked.get("families", {}).items():
        lines += ["", f"## {plain(family).get('title', name)} (`{name}`)"]
        for part, (heading, part_columns) in _TABLES.items():
            clauses = {k: v for k, v in family.get(part, {}).items() if v}
            if clauses:
                lines += ["", f"### {heading}", "", *_table(what, part.removesuffix("s"), clauses, part_columns)]
    return "\n".join(lines) + "\n"


def _table(what: Shown, first: str, clauses: Mapping[str, Any], columns: tuple[Column, ...]) -> Iterator[str]:
    yield "| " + " | ".join([first, *(name for name, _ in columns), "from", "source"]) + " |"
    yield "|" + "---|" * (len(columns) + 3)
    for name, clause in clauses.items():
        stated = plain(clause)
        cells = [
            f"`{name}`",
            *(_cell(read(stated)) for _, read in columns),
            ", ".join(releases_of(clause)),
            what.cite(stated) or "",
        ]
        yield "| " + " | ".join(cells) + " |"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = (
        value
        if isinstance(value, str)
        else "[" + ", ".join(map(str, value)) + "]"
        if isinstance(value, list)
        else json.dumps(value)
    )
    return "`" + text.replace("|", "\\|") + "`"
