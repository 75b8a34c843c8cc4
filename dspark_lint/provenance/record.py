"""Record where every citation of a release stands, and what the cited definition looked like when it was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.load import family_mapping, load_classes
from dspark_lint.errors import ContractError
from dspark_lint.provenance.cite import Lost, Path, citations_in, parse_citation, resolve


if TYPE_CHECKING:
    from dspark_lint.provenance.source import SourceTree

Record = Mapping[str, Mapping[str, Any]]
"""Content of ``contracts/vllm/sources/<release>.json``: ``{citation: {path, line, fingerprint}}``."""


class Recording(NamedTuple):
    """What was recorded, and what could not be."""

    record: dict[str, dict[str, Any]]
    lost: dict[str, Lost]
    unread: tuple[str, ...]
    """Citations of a package whose tree was not given."""


def families_in_use(raw: Mapping[str, Any]) -> list[str]:
    """Return the families that an architecture of the release is served by, in the order of the architectures."""
    return list(dict.fromkeys(a["family"] for a in raw.get("architectures", {}).values() if a and a.get("family")))


def in_use(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the release really says: every family in use resolved, the others left out, nulls with them."""
    live = {k: v for k, v in raw.items() if k != "families"}
    live["families"] = {name: family_mapping(raw, name) for name in families_in_use(raw)}
    if isinstance(raw.get("transformers"), str):
        try:
            live["transformers"] = load_classes(raw["transformers"])
        except ContractError:
            live.pop("transformers")
    return live


def cited(raw: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Return every citation of a resolved contract with the clauses that make it, sorted by its text."""
    found: dict[str, list[Path]] = {}
    for text, path in citations_in(in_use(raw)):
        found.setdefault(text, []).append(path)
    return dict(sorted(found.items()))


def record(
    resolved_contract: Mapping[str, Any], tree: SourceTree, transformers_tree: SourceTree | None = None
) -> Recording:
    """Find every citation of a resolved contract: ``{citation: {path, line, fingerprint}}``, sorted.

    The path is below site-packages without the leading ``vllm/``; one in transformers keeps its package's name.
    """
    aliases = resolved_contract.get("sources", {})
    found: dict[str, dict[str, Any]] = {}
    lost: dict[str, Lost] = {}
    unread: list[str] = []
    for text in cited(resolved_contract):
        citation = parse_citation(text, aliases)
        where = tree if citation.package == "vllm" else transformers_tree
        if where is None:
            unread.append(text)
            continue
        located = resolve(citation, where)
        if isinstance(located, Lost):
            lost[text] = located
        else:
            path = located.path if citation.package == "vllm" else f"{citation.package}/{located.path}"
            found[text] = {"path": path, "line": located.line, "fingerprint": located.fingerprint}
    return Recording(found, lost, tuple(unread))


def dump(entries: Record) -> str:
    """Return the JSON text of a record: one citation a line, so that a diff of two releases reads well."""
    import json  # noqa: PLC0415 - beside the writing

    lines = [f"  {json.dumps(text)}: {json.dumps(dict(entry))}" for text, entry in sorted(entries.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def place(entry: Mapping[str, Any]) -> str:
    """Return ``path:line`` of a recorded citation."""
    return f"{entry['path']}:{entry['line']}"


def written_at(raw: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield citations with the path at which the merged files themselves state them: where an override has to stand."""
    return citations_in({k: v for k, v in raw.items() if k != "transformers"})
