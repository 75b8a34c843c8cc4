"""The reader audit.

Every key that the cited loaders read by name has a clause with the same default, or a reason for none.

The contract's ``audit`` section says what a configuration is called in the source (``receivers``), which definitions
are audited beside the loaders of its families (``definitions``), and which keys concern nothing on disk
(``irrelevant``). All of it is data, so that a new release needs no change here.
"""

from __future__ import annotations

import fnmatch
import re

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.provenance.cite import Citation, parse_citation
from dspark_lint.provenance.reads import COMPUTED, PRESENCE, REQUIRED, Read, Receivers, reads
from dspark_lint.provenance.record import families_in_use, in_use


if TYPE_CHECKING:
    from dspark_lint.provenance.source import SourceTree

#: ``config.x`` and ``own.x`` in the contract's expressions name keys of the file.
_MENTION = re.compile(r"\b(?:config|own)\.((?:\w+\.)*\w+)")
#: Parts of a family whose expressions say what is made of a key; the messages of checks do not.
_EXPRESSIONS = ("let", "loops", "tensors", "names", "renames", "tables")


class Audited(NamedTuple):
    """One definition to audit, for the families that it loads."""

    citation: Citation
    families: tuple[str, ...]
    """Families of which at least one must have the key; empty: any of the contract's."""
    name: str
    """What the contract calls it."""
    receivers: Mapping[str, str] = {}
    """What else is called a configuration in this definition only."""


class Gap(NamedTuple):
    """A key that the source reads and the contract does not know, or knows with another default."""

    kind: str
    """``key``, ``default`` or ``definition``."""
    key: str
    where: str
    """``path:line`` of the read."""
    definition: str
    contract: Any
    source: Any
    families: tuple[str, ...]


def receivers_of(raw: Mapping[str, Any]) -> Receivers:
    """Return what the contract calls a configuration."""
    audit = raw.get("audit", {})
    helpers = {
        name: (texts,) if isinstance(texts, str) else tuple(texts) for name, texts in audit.get("helpers", {}).items()
    }
    return Receivers(
        roots=audit.get("receivers", {}),
        foreign=tuple(audit.get("foreign", ())),
        transparent=tuple(audit.get("transparent", ())),
        helpers=helpers,
        objects=frozenset(audit.get("objects", ())),
    )


def audited(raw: Mapping[str, Any]) -> list[Audited]:
    """Return what is audited: the module of every family's loader, and the definitions that the contract lists."""
    aliases = raw.get("sources", {})
    live = in_use(raw)["families"]
    loaders: dict[str, list[str]] = {}
    for name in families_in_use(raw):
        loader = live[name].get("loader")
        if isinstance(loader, str):
            loaders.setdefault(parse_citation(loader, aliases).path, []).append(name)
    found = [
        Audited(Citation("vllm", path, "", ""), tuple(names), f"the loader of {', '.join(names)}")
        for path, names in loaders.items()
    ]
    for name, stated in raw.get("audit", {}).get("definitions", {}).items():
        clause = {"source": stated} if isinstance(stated, (str, list)) else stated or {}
        texts = clause.get("source", [])
        families = tuple(f for f in clause.get("families", ()) if f in live)
        if clause.get("families") and not families:
            continue
        receivers: Mapping[str, str] = clause.get("receivers", {})  # type: ignore[assignment]
        found += [
            Audited(parse_citation(t, aliases), families, name, receivers)
            for t in ([texts] if isinstance(texts, str) else texts)
        ]
    return found


def reads_of(one: Audited, raw: Mapping[str, Any], tree: SourceTree) -> list[Read] | None:
    """Return the reads of an audited definition; None when it is not in the tree."""
    module = tree.module(one.citation.path)
    if module is None or tree.definition(one.citation.path, one.citation.qualname) is None:
        return None
    receivers = receivers_of(raw)
    receivers = receivers._replace(roots={**receivers.roots, **one.receivers})
    # what has an entry of its own inside this definition is audited there
    apart = [
        a.citation.qualname
        for a in audited(raw)
        if a.citation.path == one.citation.path and len(a.citation.qualname) > len(one.citation.qualname)
    ]
    return [
        read
        for read in reads(module, receivers)
        if _within(read.definition, one.citation.qualname)
        and not any(_within(read.definition, name) for name in apart)
        and read.definition.rpartition(".")[2] not in receivers.helpers
    ]


def _within(definition: str, qualname: str) -> bool:
    return not qualname or definition == qualname or definition.startswith(f"{qualname}.")


def gaps(raw: Mapping[str, Any], tree: SourceTree) -> Iterator[Gap]:
    """Yield every key without a clause, every default that differs, and every audited definition that is not there."""
    live = in_use(raw)["families"]
    audit = raw.get("audit", {})
    irrelevant = tuple(audit.get("irrelevant", {}))
    shared = _shared_names(raw)
    named = {name: shared | names_of(family, audit) for name, family in live.items()}
    told: set[tuple[str, str, str]] = set()
    everything = [(one, reads_of(one, raw, tree)) for one in audited(raw)]
    literal: dict[str, list[Any]] = {}
    for read in (r for _, found in everything for r in found or ()):
        literal.setdefault(read.key, []).append(read.default)
    for one, found in everything:
        families = one.families or tuple(live)
        if found is None:
            yield Gap("definition", str(one.citation), one.citation.path, one.name, None, None, families)
            continue
        for read in found:
            where = f"{one.citation.path}:{read.line}"
            clauses = [
                (name, step, clause) for name in families for step, clause in lookups(live[name]) if step == read.key
            ]
            if (
                not clauses
                and not any(_covered(read.key, named[name]) for name in families)
                and not any(fnmatch.fnmatchcase(read.key, p) for p in irrelevant)
            ):
                if ("key", read.key, one.citation.path) not in told:
                    told.add(("key", read.key, one.citation.path))
                    default = read.default if read.default not in (REQUIRED, PRESENCE, COMPUTED) else None
                    yield Gap("key", read.key, where, read.definition, None, default, one.families)
                continue
            # two clauses may speak of one place, each of its own use of it
            if (
                clauses
                and all(_differs(read, clause, audit, literal[read.key]) for _, _, clause in clauses)
                and ("default", read.key, where) not in told
            ):
                told.add(("default", read.key, where))
                yield Gap(
                    "default",
                    read.key,
                    where,
                    read.definition,
                    clauses[0][2].get("default", REQUIRED),
                    read.default,
                    tuple(dict.fromkeys(name for name, _, _ in clauses)),
                )


def lookups(family: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every dotted path that a family's keys are looked up at, with the clause."""
    for name, clause in family.get("keys", {}).items():
        for step in clause.get("lookup", [name]):
            text = step if isinstance(step, str) else step["path"]
            yield text.rstrip("?+"), clause


def names_of(family: Mapping[str, Any], audit: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys that a family says something about: looked up, or part of an expression.

    A check of one of the ``unread_rules`` says that a key is not read: it is no clause for a release that reads it.
    """
    found = {path for path, _ in lookups(family)}
    for part in _EXPRESSIONS:
        found |= _mentions(family.get(part, {}))
    unread = audit.get("unread_rules", ())
    for check in family.get("checks", {}).values():
        if check and check.get("rule") not in unread:
            found |= _mentions([check.get("when", ""), check.get("require", "")])
            if str(check.get("at", "")).startswith("/"):
                found.add(str(check["at"])[1:].replace("/", "."))
    return frozenset(found)


def _mentions(node: Any) -> set[str]:
    if isinstance(node, str):
        return {m[1] for m in _MENTION.finditer(node)}
    inner = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return set().union(*(_mentions(v) for v in inner))


def _shared_names(raw: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys named outside the families; those of a dialect's own file carry the dialect's name."""
    found: set[str] = set()
    for part in ("dialects", "methods", "routes", "layouts", "flat"):
        found |= _mentions(raw.get(part, {}))
    for dialect, clause in raw.get("dialects", {}).items():
        selector = (clause or {}).get("selector")
        if not selector:
            continue
        names = {selector, clause.get("base", "")}
        for mapping in raw.get(dialect, {}).values():
            if mapping and not mapping.get("out_of_scope"):
                names |= {*mapping.get("required", {}), *mapping.get("copy", ()), *mapping.get("copy_if_set", ())}
                names |= set(_origins(mapping.get("set", {}))) | _mentions(mapping.get("set", {}))
        found |= {f"{dialect}.{name}" for name in names}
    return frozenset(found)


def _origins(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "from" and isinstance(value, str):
                yield value
            else:
                yield from _origins(value)


def _covered(key: str, names: frozenset[str]) -> bool:
    """Whether a key is named, or anything inside it is."""
    return key in names or any(name.startswith(f"{key}.") for name in names)


def _differs(read: Read, clause: Mapping[str, Any], audit: Mapping[str, Any], elsewhere: list[Any]) -> bool:
    if read.default in (REQUIRED, PRESENCE, COMPUTED) or "default_value" in clause:
        return False
    if read.default in audit.get("defaults", {}).get(read.key, ()):
        return False
    found, stated = _plain(read.default), _plain(clause.get("default"))
    last = [step if isinstance(step, str) else step["path"] for step in clause.get("lookup", [read.key])][-1].rstrip(
        "?+"
    )
    if found is None and (read.key != last or "default" not in clause or stated in elsewhere):
        return (
            False  # the next place is looked at, the code complains further down, or only asks whether there is a value
        )
    if clause.get("type") == "truthy":
        return bool(found) != bool(stated)
    return found != stated or isinstance(found, bool) != isinstance(stated, bool)


def _plain(value: Any) -> Any:
    """Return a default as the contract writes it: an empty collection counts as none."""
    if isinstance(value, (tuple, list, set, dict)) and not value:
        return None
    return list(value) if isinstance(value, (tuple, set)) else value
