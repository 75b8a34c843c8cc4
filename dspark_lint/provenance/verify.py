"""Hold a release's contract against that release's source.

Is the cited code still the code that was read, and does the contract speak of everything that it reads?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.provenance.audit import Gap, gaps
from dspark_lint.provenance.cite import parse_citation
from dspark_lint.provenance.lists import compare_lists
from dspark_lint.provenance.reads import REQUIRED
from dspark_lint.provenance.record import Record, place, record


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.provenance.source import SourceTree

#: Kinds of issues with what each means, in the order in which they are reported.
KINDS: dict[str, str] = {
    "release": "the source is of another release",
    "lost": "a citation does not stand in the source",
    "changed": "the cited definition is not the one that was read",
    "moved": "the cited definition stands at another place than recorded",
    "unrecorded": "nothing is recorded for a citation",
    "stale": "something is recorded that no clause cites",
    "architecture": "the draft architectures differ",
    "list": "a list differs",
    "key": "a key is read that has no clause",
    "default": "a default differs",
}
#: Told, but no fault of the contract: the code is the code that was read.
HARMLESS = frozenset({"moved"})


class Issue(NamedTuple):
    """One thing in which contract and source disagree."""

    kind: str
    """One of `KINDS`."""
    subject: str
    """The citation, architecture, entry or key."""
    message: str
    old: str = ""
    """What the contract or its record says."""
    new: str = ""
    """What the source says."""


def verify(
    resolved_contract: Mapping[str, Any],
    recorded: Record,
    tree: SourceTree,
    transformers_tree: SourceTree | None = None,
) -> list[Issue]:
    """Return every disagreement of a release's contract with its source, by kind; empty when there is none.

    Citations of transformers are checked only with a tree of it.
    """
    issues = [
        *_release(resolved_contract, tree, transformers_tree),
        *_citations(resolved_contract, recorded, tree, transformers_tree),
        *_lists(resolved_contract, tree),
        *(_gap(gap) for gap in gaps(resolved_contract, tree)),
    ]
    order = list(KINDS)
    return sorted(issues, key=lambda i: (order.index(i.kind), i.subject, i.new))


def _release(raw: Mapping[str, Any], tree: SourceTree, transformers_tree: SourceTree | None) -> Iterator[Issue]:
    for stated, where in ((raw.get("release"), tree), (raw.get("transformers"), transformers_tree)):
        found = where.version() if where is not None else None
        if where is not None and found is not None and stated is not None and found != stated:
            yield Issue(
                "release",
                where.package,
                f"the source at {where.path} is {where.package} {found}, and the contract is for {stated}",
                str(stated),
                found,
            )


def _citations(
    raw: Mapping[str, Any], recorded: Record, tree: SourceTree, transformers_tree: SourceTree | None
) -> Iterator[Issue]:
    now = record(raw, tree, transformers_tree)
    for text, lost in now.lost.items():
        yield Issue("lost", text, str(lost), place(recorded[text]) if text in recorded else "")
    for text, entry in now.record.items():
        old = recorded.get(text)
        if old is None:
            yield Issue(
                "unrecorded",
                text,
                "nothing is recorded for this citation; `dspark-lint contracts record` does",
                "",
                place(entry),
            )
        elif old["fingerprint"] != entry["fingerprint"]:
            name = parse_citation(text, {}).qualname or "the module"
            yield Issue(
                "changed",
                text,
                f"{name} is not the code that was read when the contract was written",
                f"{place(old)} {old['fingerprint']}",
                f"{place(entry)} {entry['fingerprint']}",
            )
        elif place(old) != place(entry):
            yield Issue(
                "moved",
                text,
                "the recorded line is out of date; `dspark-lint contracts record` brings it up to date",
                place(old),
                place(entry),
            )
    for text in sorted(set(recorded) - set(now.record) - set(now.lost) - set(now.unread)):
        yield Issue(
            "stale",
            text,
            "no clause of this release cites it; `dspark-lint contracts record` drops it",
            place(recorded[text]),
        )


def _lists(raw: Mapping[str, Any], tree: SourceTree) -> Iterator[Issue]:
    for one in compare_lists(raw, tree):
        kind = "architecture" if one.name == "architecture" else "list"
        where, places = one.citation.partition("::")[2] or one.citation, " and ".join(one.places)
        if one.lost:
            yield Issue("lost", one.citation, f"the list {one.name} cannot be read: {one.lost}")
        for name in one.missing:
            yield Issue(kind, name, f"{where} has {name}, and the contract does not ({places})", "", name)
        for name in one.surplus:
            yield Issue(kind, name, f"the contract has {name} ({places}), and {where} does not", name, "")


def _gap(gap: Gap) -> Issue:
    of = f" of {', '.join(gap.families)}" if gap.families else ""
    if gap.kind == "definition":
        return Issue("lost", gap.key, f"the audit's definition {gap.definition} is not there", gap.where)
    if gap.kind == "default":
        stated = "no default: the key is required" if gap.contract is REQUIRED else repr(gap.contract)
        message = (
            f"{gap.definition} reads {gap.key} with default {gap.source!r} ({gap.where}), and the clause{of} says "
        )
        message += stated
        return Issue("default", gap.key, message, stated, f"{gap.source!r} at {gap.where}")
    message = f"{gap.definition} reads {gap.key} ({gap.where}), and no clause{of} names it"
    message += "; write one, or list it under audit.irrelevant with the reason"
    return Issue("key", gap.key, message, "", gap.where)
