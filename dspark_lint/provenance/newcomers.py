"""New draft architectures of a registry: which of them are drafts of a kind that the contract knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.provenance.audit import receivers_of
from dspark_lint.provenance.cite import parse_citation
from dspark_lint.provenance.lists import ClassIndex, Compared, module_path
from dspark_lint.provenance.reads import Nothing, reads
from dspark_lint.provenance.record import in_use


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.provenance.source import SourceTree


class Newcomer(NamedTuple):
    """An architecture that the contract does not have."""

    name: str
    place: str
    """Section that it belongs to: ``architectures``, or ``registry.other_drafts``."""
    family: str | None
    """The family, where the very class is known to serve one."""
    served_by: str
    """Module and class."""
    hints: tuple[str, ...]
    """What is known of it, a sentence each."""


def newcomers(one: Compared, contract: Mapping[str, Any], tree: SourceTree) -> list[Newcomer]:
    """Return the new entries of the registry of draft architectures.

    An entry belongs to the contract when its class serves a known architecture, derives from a class that does, or
    stands in a module that takes something from a cited loader's; anything else is another kind of draft.
    """
    folder = parse_citation(one.citation, contract.get("sources", {})).path.rpartition("/")[0]
    index = ClassIndex.of(tree)
    known = contract.get("architectures", {})
    served = {one.source[n]: c.get("family") for n, c in known.items() if c and n in one.source}
    other = {one.source[n] for n in contract.get("registry", {}).get("other_drafts", {}) if n in one.source}
    loaders = _loader_classes(contract)
    found = []
    for name in one.missing:
        strings = one.source[name]
        path, class_name = (module_path(strings[0], folder, tree), strings[1]) if len(strings) >= 2 else ("", "")
        by = f"{path} {class_name}".strip()
        if strings in served or strings in other:
            family = served.get(strings)
            found.append(
                Newcomer(name, "architectures" if strings in served else "registry.other_drafts", family, by, ())
            )
            continue
        home, _ = index.origin(path, class_name)
        parents = [c for c in loaders if index.derives(path, class_name, frozenset([c]))]
        taken = sorted({c for c in loaders if any(index.takes(p, c) for p in {path, home})})
        hints = [f"it derives from {c}, which serves {', '.join(loaders[c])}" for c in parents]
        hints += [f"its module takes {c} from the loader of {', '.join(loaders[c])}" for c in taken if c not in parents]
        if hints:
            hints += _read_by(home, contract, tree)
        found.append(Newcomer(name, "architectures" if hints else "registry.other_drafts", None, by, tuple(hints)))
    return found


def _loader_classes(contract: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the classes cited in the loaders' modules, with the families that each serves."""
    aliases = contract.get("sources", {})
    found: dict[str, list[str]] = {}
    for name, family in in_use(contract)["families"].items():
        loader = family.get("loader")
        if not isinstance(loader, str):
            continue
        home = parse_citation(loader, aliases)
        clauses = [*family.get("keys", {}).values(), *family.get("tensors", {}).values()]
        texts = [loader, *(clause.get("source", "") for clause in clauses if clause)]
        for text in texts:
            citation = parse_citation(text, aliases) if isinstance(text, str) else home
            if citation.path == home.path and citation.qualname:
                families = found.setdefault(citation.qualname.split(".")[0], [])
                if name not in families:
                    families.append(name)
    return found


def _read_by(path: str, contract: Mapping[str, Any], tree: SourceTree) -> list[str]:
    module = tree.module(path)
    if module is None:
        return []
    keys: dict[str, set[str]] = {}
    for read in reads(module, receivers_of(contract)):
        default = str(read.default).lower() if isinstance(read.default, Nothing) else repr(read.default)
        keys.setdefault(read.key, set()).add(default)
    return (
        ["it reads " + ", ".join(f"{key} ({'/'.join(sorted(defaults))})" for key, defaults in sorted(keys.items()))]
        if keys
        else []
    )
