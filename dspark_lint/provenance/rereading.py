"""What the audited code of the next release reads otherwise, and what else changed beside the cited code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.provenance.audit import Audited, Gap, audited, gaps, lookups, reads_of
from dspark_lint.provenance.draft import ReviewItem
from dspark_lint.provenance.reads import REQUIRED, Nothing
from dspark_lint.provenance.record import in_use


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dspark_lint.provenance.reads import Read
    from dspark_lint.provenance.source import SourceTree


def read_items(
    contract: Mapping[str, Any], tree: SourceTree, old: SourceTree | None, old_path: Callable[[str], str]
) -> Iterator[ReviewItem]:
    """Yield the keys that are read anew, no longer, or with another default than the clause, or than before, says.

    `old_path` tells where a module of `tree` stood in `old`; without `old` only the contract is compared.
    """
    told: set[str] = set()
    for gap in gaps(contract, tree):
        yield _gap_item(gap)
        told.add(gap.key)
    if old is None:
        return
    families = in_use(contract)["families"]
    for one in audited(contract):
        known = {path for name in one.families or families for path, _ in lookups(families[name])}
        before = reads_of(one._replace(citation=one.citation._replace(path=old_path(one.citation.path))), contract, old)
        after = reads_of(one, contract, tree)
        if before is not None and after is not None:
            yield from _compared(one, (before, after), known, told, old_path(one.citation.path))


def _gap_item(gap: Gap) -> ReviewItem:
    if gap.kind == "definition":
        message = f"the audit's definition {gap.definition} is not there"
        return ReviewItem("lost", gap.key, (f"audit.definitions.{gap.definition}",), gap.where, "", message)
    if gap.kind == "key":
        message = f"{gap.definition} reads {gap.key}, default {gap.source!r}, and no clause names it"
        return ReviewItem("key", gap.key, gap.families, "", gap.where, message)
    stated = "none (required)" if gap.contract is REQUIRED else repr(gap.contract)
    message = f"{gap.definition} reads {gap.key} with default {gap.source!r}, and the clause says {stated}"
    return ReviewItem("default", gap.key, gap.families, stated, gap.where, message)


def _compared(
    one: Audited, reads: tuple[list[Read], list[Read]], known: set[str], told: set[str], old_path: str
) -> Iterator[ReviewItem]:
    then, now = _by_key(reads[0]), _by_key(reads[1])
    path = one.citation.path
    for key in sorted(set(then) - set(now)):
        message = f"{path} no longer reads {key}" + ("; its clause may be out of date" if key in known else "")
        yield ReviewItem("unread", key, one.families, f"{old_path}:{then[key][0].line}", path, message)
    for key in sorted(set(now) - set(then) - told):
        message = f"{path} reads {key} now, default {_defaults(now[key])}; a clause names it"
        yield ReviewItem("key", key, one.families, "", f"{path}:{now[key][0].line}", message)
    for key in sorted(set(now) & set(then) - told):
        if _defaults(now[key]) != _defaults(then[key]):
            message = f"{key} is read with {_defaults(now[key])}, before with {_defaults(then[key])}"
            places = f"{old_path}:{then[key][0].line}", f"{path}:{now[key][0].line}"
            yield ReviewItem("default", key, one.families, *places, message)


def around_items(
    contract: Mapping[str, Any], tree: SourceTree, old: SourceTree, old_path: Callable[[str], str], seen: set[str]
) -> Iterator[ReviewItem]:
    """Yield what else changed in the audited modules: code that no clause cites and that perhaps one should."""
    for path in dict.fromkeys(one.citation.path for one in audited(contract)):
        before, after = old.functions(old_path(path)), tree.functions(path)
        words = [
            (name, "new" if name not in before else "gone" if name not in after else "changed")
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name) and f"{path}::{name}" not in seen
        ]
        if words:
            detail = tuple(f"{name} ({word})" for name, word in words)
            message = f"{path} also differs in {len(words)} functions that no clause cites"
            yield ReviewItem("around", path, (), "", "", message, detail)


def _by_key(found: Iterable[Read]) -> dict[str, list[Read]]:
    keys: dict[str, list[Read]] = {}
    for read in found:
        keys.setdefault(read.key, []).append(read)
    return keys


def _defaults(found: Iterable[Read]) -> str:
    shown = {str(r.default).lower() if isinstance(r.default, Nothing) else repr(r.default) for r in found}
    return ", ".join(sorted(shown))
