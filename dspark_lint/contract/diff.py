"""What changed between two releases, in words that a release note can use.

First what the files say of themselves (``changes``), then what a comparison of their clauses shows. Both are sorted by
what they mean for a file on disk: it loads now and did not before, the reverse, or it loads as before and serves
differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from dspark_lint.contract.load import chain_files, family_mapping, layer_of, load_raw, release_of


Kind = Literal["loosens", "tightens", "semantics", "other"]
TITLES: Final[dict[Kind, str]] = {
    "loosens": "Loosens: refused before, loads now",
    "tightens": "Tightens: loaded before, refused now",
    "semantics": "Changes meaning silently: the same file is served differently",
    "other": "Other",
}
_KINDS: Final[dict[str, Kind]] = {"loosens": "loosens", "tightens": "tightens", "semantics": "semantics"}
_REVERSED: Final[dict[Kind, Kind]] = {
    "loosens": "tightens",
    "tightens": "loosens",
    "semantics": "semantics",
    "other": "other",
}


class Stated(NamedTuple):
    """One clause of a file's ``changes``."""

    kind: Kind
    area: str
    says: str
    release: str
    """The release whose file says it."""
    own_kind: str
    """What the clause itself calls it: ``new``, ``fix``, ``message`` are other here."""


class Row(NamedTuple):
    """One difference of the resolved clauses."""

    kind: Kind
    area: str
    """``architecture``, or the families, by name."""
    says: str


class Diff(NamedTuple):
    """Everything between two releases."""

    older: str
    newer: str
    backwards: bool
    """Whether the first release given is the newer one: then loosening and tightening have changed places."""
    stated: tuple[Stated, ...]
    rows: tuple[Row, ...]


def diff(first: str, second: str, extra: Mapping[str, str] | None = None) -> Diff:
    """Compare two full release numbers; raises ContractError for one without a contract.

    When `second` is an ancestor of `first`, the way back is described.
    """
    chain = [release_of(path) for path in chain_files(second, extra)]
    backwards = first not in chain and second in [release_of(path) for path in chain_files(first, extra)]
    older, newer = (second, first) if backwards else (first, second)
    stated = list(_stated(older, newer, extra))
    rows = list(_collapsed(_rows(load_raw(older, extra), load_raw(newer, extra))))
    if backwards:
        stated = [s._replace(kind=_REVERSED[s.kind], says=f"undone: {s.says}") for s in stated]
        rows = [r._replace(kind=_REVERSED[r.kind], says=f"undone: {r.says}") for r in rows]
    return Diff(older, newer, backwards, tuple(stated), tuple(rows))


def _stated(older: str, newer: str, extra: Mapping[str, str] | None) -> Iterator[Stated]:
    """Yield the changes of every file after `older` up to `newer`, the oldest first."""
    between = False
    for path in chain_files(newer, extra):
        release = release_of(path)
        if between:
            for clause in layer_of(path).get("changes", {}).values():
                if clause and clause.get("kind") != "none":
                    kind = _KINDS.get(clause["kind"], "other")
                    yield Stated(kind, str(clause["area"]), str(clause["says"]), release, str(clause["kind"]))
        between = between or release == older


# -- the clauses themselves --------------------------------------------------------------------------------------------


def _rows(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    before, after = _served(old), _served(new)
    for name in sorted(after.keys() - before.keys()):
        yield Row("loosens", "architecture", f"{name} is known{_by(after[name])}")
    for name in sorted(before.keys() - after.keys()):
        yield Row("tightens", "architecture", f"{name} is no longer known")
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Row(
                "semantics", "architecture", f"{name} is served by family {after[name]}, before by {before[name]}"
            )
    for name in sorted({f for f in before.values() if f} & {f for f in after.values() if f}):
        yield from _family(name, family_mapping(old, name), family_mapping(new, name))

    yield from _sections(old, new)


#: Sections outside the families whose clauses decide how a file is read; a dot leads inside.
_SECTIONS: Final = (
    "files",
    "dialects",
    "speculators",
    "methods",
    "methods.detect",
    "routes",
    "layouts",
    "flat",
    "flat.checks",
    "dialect_checks",
)
#: Members that explain a clause and change nothing.
_WORDS: Final = frozenset({"source", "says", "title", "order", "expected", "found", "message", "fix"})


def _sections(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    for section in _SECTIONS:
        before, after = _at(old, section), _at(new, section)
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if f"{section}.{name}" in _SECTIONS or was == now:
                continue
            if was is None or now is None:
                yield Row("semantics", section, f"{name} {'is new' if was is None else 'is gone'}{_reason(now or was)}")
            elif not isinstance(was, Mapping) or not isinstance(now, Mapping):
                yield Row("semantics", section, _member(name, before, after))
            else:
                members = [m for m in sorted(was.keys() | now.keys()) if was.get(m) != now.get(m) and m not in _WORDS]
                if members:
                    yield Row("semantics", section, f"{name}: {', '.join(_member(m, was, now) for m in members)}")


def _at(raw: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    node: Any = raw
    for part in section.split("."):
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node if isinstance(node, Mapping) else {}


def _reason(clause: Any) -> str:
    says = clause.get("says") if isinstance(clause, Mapping) else None
    return f": {says}" if says else ""


def _member(member: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    old, new = was.get(member), now.get(member)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return (
            f"{member}.{{{', '.join(sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k)))}}} changed"
        )
    if isinstance(old, list) and isinstance(new, list):
        gained, lost = [v for v in new if v not in old], [v for v in old if v not in new]
        return f"{member}" + "".join(f" {sign}{v}" for sign, vs in (("+", gained), ("-", lost)) for v in vs)
    words = f"{member} {_json(new)}, before {_json(old)}"
    return words if len(words) <= 120 else f"{member} changed"


def _served(raw: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: clause.get("family") for name, clause in raw.get("architectures", {}).items() if clause}


def _by(family: str | None) -> str:
    return f" (family {family})" if family else " (out of scope here)"


def _family(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    for part, compare in (("keys", _keys), ("tensors", _tensors), ("names", _names), ("checks", _checks)):
        before = {k: v for k, v in old.get(part, {}).items() if v}
        after = {k: v for k, v in new.get(part, {}).items() if v}
        for row in compare(before, after):
            yield row._replace(area=name)
    changed = sorted(k for k in old.get("let", {}).keys() & new.get("let", {}).keys() if old["let"][k] != new["let"][k])
    if changed:
        yield Row("semantics", name, f"computed differently: {', '.join(changed)}")


def _lookup(clause: Mapping[str, Any]) -> str:
    return ", then ".join((s if isinstance(s, str) else s["path"]).rstrip("?+") for s in clause.get("lookup", ()))


def _absent(clause: Mapping[str, Any]) -> str:
    if "default" in clause:
        return f"default {_json(clause['default'])}"
    return "required" if clause.get("absent", {}).get("effect") == "refused" else "no default"


def _keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Row]:
    for name in after.keys() - before.keys():
        clause = after[name]
        yield Row(
            "tightens" if _absent(clause) == "required" else "semantics",
            "",
            f"key {name} is read at {_lookup(clause) or name}; {_absent(clause)}",
        )
    for name in before.keys() - after.keys():
        yield Row("semantics", "", f"key {name} ({_lookup(before[name]) or name}) is no longer read")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if _lookup(old) != _lookup(new):
            yield Row("semantics", "", f"key {name} is looked up at {_lookup(new)}; before at {_lookup(old)}")
        if _absent(old) != _absent(new):
            kind: Kind = (
                "tightens" if _absent(new) == "required" else "loosens" if _absent(old) == "required" else "semantics"
            )
            yield Row(kind, "", f"key {name}: {_absent(new)}; before {_absent(old)}")
        if old.get("type") != new.get("type"):
            yield Row("semantics", "", f"key {name} is taken as {_type(new)}; before as {_type(old)}")


def _type(clause: Mapping[str, Any]) -> str:
    accepted = clause.get("type", "any")
    return accepted if isinstance(accepted, str) else " or ".join(accepted)


def _tensors(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Row]:
    for name in after.keys() - before.keys():
        yield Row("loosens", "", f"tensor {name} is loaded{_when(after[name])}")
    for name in before.keys() - after.keys():
        yield Row("semantics", "", f"tensor {name} is no longer loaded")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        for member in ("shape", "when", "absent"):
            if old.get(member) != new.get(member):
                yield Row(
                    "semantics",
                    "",
                    f"tensor {name}: {member} {_json(new.get(member))}; before {_json(old.get(member))}",
                )


def _when(clause: Mapping[str, Any]) -> str:
    return f" when {clause['when']}" if clause.get("when") else ""


def _names(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Row]:
    for name in before.keys() | after.keys():
        old, new = _fate(before.get(name)), _fate(after.get(name))
        if old != new:
            kind: Kind = "tightens" if new == "refused" else "loosens" if old == "refused" else "semantics"
            yield Row(kind, "", f"tensors named like {name}: {new}; before {old}")


def _fate(clause: Mapping[str, Any] | None) -> str:
    if clause is None:
        return "no rule of their own"
    return str(clause.get("then") or clause.get("effect") or "nothing said")


def _checks(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Row]:
    for name in after.keys() - before.keys():
        kind: Kind = "tightens" if after[name].get("effect") == "refused" else "other"
        yield Row(kind, "", f"check {name} ({after[name].get('rule')}) is new: {_gist(after[name])}")
    for name in before.keys() - after.keys():
        kind = "loosens" if before[name].get("effect") == "refused" else "other"
        yield Row(kind, "", f"check {name} ({before[name].get('rule')}) no longer applies: {_gist(before[name])}")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if old.get("effect") != new.get("effect"):
            kind = (
                "tightens"
                if new.get("effect") == "refused"
                else "loosens"
                if old.get("effect") == "refused"
                else "other"
            )
            yield Row(kind, "", f"check {name} ({new.get('rule')}): {new.get('effect')}; before {old.get('effect')}")
        elif (old.get("when"), old.get("require")) != (new.get("when"), new.get("require")):
            yield Row("other", "", f"check {name} ({new.get('rule')}) asks for something else: {new.get('require')}")


def _gist(clause: Mapping[str, Any]) -> str:
    return str(clause.get("says") or clause.get("expected") or clause.get("require", ""))


def _json(value: Any) -> str:
    import json  # noqa: PLC0415 - imported anyway by whoever prints

    return json.dumps(value) if not isinstance(value, str) else value


def _collapsed(rows: Iterator[Row]) -> Iterator[Row]:
    """One row for a difference that several families share by inheritance."""
    families: dict[tuple[Kind, str], list[str]] = {}
    for row in rows:
        families.setdefault((row.kind, row.says), []).append(row.area)
    for (kind, says), areas in sorted(families.items(), key=lambda kv: (kv[1][0] != "architecture", kv[1], kv[0][1])):
        yield Row(kind, ", ".join(areas), says)


# -- rendering ---------------------------------------------------------------------------------------------------------


def render_diff(found: Diff, fmt: str) -> str:
    """Return a difference as ``text``, ``markdown`` or ``json``."""
    if fmt == "json":
        import json  # noqa: PLC0415 - for this format only

        return (
            json.dumps(
                {
                    **found._asdict(),
                    "stated": [s._asdict() for s in found.stated],
                    "rows": [r._asdict() for r in found.rows],
                },
                indent=2,
            )
            + "\n"
        )
    first, second = (found.newer, found.older) if found.backwards else (found.older, found.newer)
    mark = fmt == "markdown"
    lines = [f"{'# ' if mark else ''}vLLM {first} to {second}, for draft checkpoints"]
    for kind, title in TITLES.items():
        stated = [s for s in found.stated if s.kind == kind]
        rows = [r for r in found.rows if r.kind == kind]
        if not stated and not rows:
            continue
        lines += ["", f"## {title}" if mark else title, *([""] if mark else [])]
        for one in stated:
            note = f" ({one.release}" + (f", {one.own_kind})" if kind == "other" else ")")
            lines.append(f"- **{one.area}**: {one.says}{note}" if mark else f"  {one.area}: {one.says}{note}")
        for row in rows:
            lines.append(f"  - {row.area}: {row.says}" if mark else f"      [{row.area}] {row.says}")
    if len(lines) == 1:
        lines += ["", "nothing that a draft checkpoint meets changed"]
    return "\n".join(lines) + "\n"
