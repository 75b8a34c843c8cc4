"""Write the next release's contract: what is provably unchanged is inherited, all else is put before a reader.

Unchanged is a cited definition whose fingerprint is the recorded one. A definition that only moved or was only renamed
is re-pointed. Lists that the source keeps are brought up to date. Everything that needs a judgement becomes a review
item with the places of both sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.load import merge
from dspark_lint.provenance.cite import Citation, Located, Lost, Path, citations_in, parse_citation, resolve
from dspark_lint.provenance.draft import ReviewItem, render
from dspark_lint.provenance.lists import Compared, compare_list, declared
from dspark_lint.provenance.newcomers import Newcomer, newcomers
from dspark_lint.provenance.record import Record, cited, place
from dspark_lint.provenance.rereading import around_items, read_items
from dspark_lint.provenance.source import qualnames


if TYPE_CHECKING:
    from dspark_lint.provenance.source import SourceTree


_OWN_PLACE = ("architectures", "registry.other_drafts")


class Scaffold(NamedTuple):
    """The next contract file, and what a maintainer has to decide."""

    yaml_text: str
    """The whole file; the review stands in it as comments."""
    review: tuple[ReviewItem, ...]
    inherited: int
    """Cited definitions that are unchanged, re-pointed ones included."""


def scaffold(
    previous: Mapping[str, Any],
    recorded: Record,
    new_tree: SourceTree,
    new_release: str,
    *,
    previous_tree: SourceTree | None = None,
    diff_lines: int = 30,
) -> Scaffold:
    """Write the contract of `new_release` from the resolved contract and the record of the release before it.

    With the source of the previous release the review shows differences, what is no longer read, and which loader
    serves another class; without it the recorded fingerprints alone decide what changed. A definition is shown with at
    most `diff_lines` lines of its difference.
    """
    work = _Work(previous, recorded, new_tree, old=previous_tree, diff_lines=diff_lines)
    work.move_sources()
    work.citations()
    work.audited()
    work.lists()
    work.review += read_items(work.contract, new_tree, previous_tree, work.old_path)
    if previous_tree is not None:
        seen = {item.subject for item in work.review}
        work.review += around_items(work.contract, new_tree, previous_tree, work.old_path, seen)
    review = tuple(sorted(work.review, key=ReviewItem.rank))
    text = render(
        str(previous["release"]),
        new_release,
        work.additions,
        review,
        inherited=work.inherited,
        cited=work.cited,
    )
    return Scaffold(text, review, work.inherited)


class Cited(NamedTuple):
    """One citation, as it was recorded and as it is found now."""

    text: str
    citation: Citation
    was: Mapping[str, Any]
    found: Located | Lost


class _Work:
    """The state of one scaffold: the sections to write so far, and the review."""

    def __init__(
        self,
        previous: Mapping[str, Any],
        recorded: Record,
        tree: SourceTree,
        *,
        old: SourceTree | None,
        diff_lines: int,
    ) -> None:
        self.previous = previous
        self.recorded = recorded
        self.tree = tree
        self.old = old
        self.diff_lines = diff_lines
        self.additions: dict[str, Any] = {}
        self.review: list[ReviewItem] = []
        self.inherited = 0
        self.cited = 0
        self.repointed: dict[str, str] = {}
        self.places: dict[str, list[Path]] = {}
        for text, path in citations_in({k: v for k, v in previous.items() if k != "transformers"}):
            self.places.setdefault(text, []).append(path)

    @property
    def contract(self) -> dict[str, Any]:
        """The contract of the new release as far as it is written."""
        return merge(self.previous, self.additions)

    def add(self, path: Iterable[str], value: Any) -> None:
        """Put a value at a place of the new file."""
        *outer, last = path
        node = self.additions
        for part in outer:
            node = node.setdefault(part, {})
        node[last] = value

    # -- sources that moved --------------------------------------------------------------------------------------------

    def move_sources(self) -> None:
        """Re-point aliases whose file is gone to the one file that holds most of what is cited there."""
        wanted: dict[str, list[str]] = {}
        for text in cited(self.previous):
            alias = text.partition("::")[0]
            wanted.setdefault(alias, []).append(text)
        for alias, path in self.previous.get("sources", {}).items():
            if self.tree.text(path) is not None or alias not in wanted:
                continue
            votes: dict[str, int] = {}
            for text in wanted[alias]:
                lost = resolve(parse_citation(text, self.previous["sources"]), self.tree)
                for near in lost.near[:1] if isinstance(lost, Lost) else ():
                    votes[near.path] = votes.get(near.path, 0) + 1
            if votes:
                best = max(sorted(votes), key=votes.__getitem__)
                self.add(("sources", alias), best)

    # -- citations -----------------------------------------------------------------------------------------------------

    def citations(self) -> None:
        """Sort every citation: unchanged, re-pointed, changed or lost; the latter two by their definition."""
        aliases = {**self.previous.get("sources", {}), **self.additions.get("sources", {})}
        groups: dict[tuple[str, str], list[Cited]] = {}
        for text in cited(self.previous):
            citation = parse_citation(text, aliases)
            if citation.package != "vllm":
                continue
            self.cited += 1
            was = self.recorded.get(text, {})
            found = resolve(citation, self.tree)
            if isinstance(found, Lost) and (other := self._same_elsewhere(citation, found, was)) is not None:
                citation, found = other
                self._repoint(text, citation, aliases)
            if isinstance(found, Located) and found.fingerprint == was.get("fingerprint"):
                self.inherited += 1
            else:
                groups.setdefault((citation.path, citation.qualname), []).append(Cited(text, citation, was, found))
        lists = [*_texts(self.previous.get("registry", {}).get("source", []))]
        lists += [t for c in self.previous.get("audit", {}).get("lists", {}).values() if c for t in _texts(c["source"])]
        compared = {(c.path, c.qualname) for c in (parse_citation(t, aliases) for t in lists)}
        for (path, qualname), group in groups.items():
            inner = (
                [name for where, name in groups if where == path and name.startswith(f"{qualname}.")]
                if qualname
                else []
            )
            self._differing(path, qualname, group, inner, compared=(path, qualname) in compared)

    def _same_elsewhere(
        self, citation: Citation, lost: Lost, was: Mapping[str, Any]
    ) -> tuple[Citation, Located] | None:
        """Return another place of the very code that was read (moved, or renamed in its file), else of its name."""
        candidates = list(lost.near)
        module = self.tree.module(citation.path)
        if module is not None:
            candidates += [citation._replace(qualname=name) for name, _ in qualnames(module)]
        standing = {c: r for c in candidates if isinstance(r := resolve(c, self.tree, suggest=False), Located)}
        same = [c for c, r in standing.items() if r.fingerprint == was.get("fingerprint")]
        if len(same) == 1:
            return same[0], standing[same[0]]
        # the same name in another file, with other code: a changed definition that also moved
        moved = [c for c in standing if c.qualname == citation.qualname and c.path != citation.path]
        return (moved[0], standing[moved[0]]) if lost.kind != "needle" and moved else None

    def _repoint(self, text: str, citation: Citation, aliases: Mapping[str, str]) -> None:
        replaced = self.repointed[text] = _written(citation, aliases)
        for path in self.places.get(text, ()) if replaced != text else ():
            node: Any = self.previous
            for part in path:
                node = node.get(part) if isinstance(node, Mapping) else None
            member = (*path, "source") if isinstance(node, Mapping) else path
            stated = node.get("source") if isinstance(node, Mapping) else node
            new = [self.repointed.get(s, s) for s in stated] if isinstance(stated, list) else replaced
            self.add(member, new)

    def audited(self) -> None:
        """Re-point what the audit reads, which is recorded nowhere: with its citations, or by its old source."""
        aliases = {**self.previous.get("sources", {}), **self.additions.get("sources", {})}
        for name, clause in self.previous.get("audit", {}).get("definitions", {}).items():
            stated = clause.get("source") if isinstance(clause, Mapping) else clause
            texts = [self._audited(text, aliases) for text in _texts(stated or [])]
            if texts != list(_texts(stated or [])):
                self.add(("audit", "definitions", name, "source"), texts if isinstance(stated, list) else texts[0])

    def _audited(self, text: str, aliases: Mapping[str, str]) -> str:
        citation = parse_citation(text, aliases)
        if text in self.repointed or isinstance(found := resolve(citation, self.tree), Located):
            return self.repointed.get(text, text)
        before = self.old.definition(self.old_path(citation.path), citation.qualname) if self.old is not None else None
        other = self._same_elsewhere(citation, found, {"fingerprint": before.fingerprint} if before else {})
        return _written(other[0], aliases) if other is not None else text

    def _differing(self, path: str, qualname: str, group: list[Cited], inner: list[str], *, compared: bool) -> None:
        """Put a changed or missing definition before the reader, with all that is cited in it."""
        name = qualname or "the module"
        after = self.tree.definition(path, qualname)
        lost = [one for one in group if isinstance(one.found, Lost)]
        lines = []
        for one in group:
            line = one.found.line if isinstance(one.found, Located) else "gone"
            if one.citation.needle or lost:
                lines.append(f"{_short(one.citation.needle) or name}: {one.was.get('line', '?')} -> {line}")
        if after is None:
            message = str(group[0].found)
        elif compared and not lost:
            message = f"{name} is not the code that was read; its entries are compared one by one"
        elif self._only_texts(path, qualname):
            message = f"{name} differs in its messages only"
        else:
            message = f"{name} is not the code that was read"
        kind = "lost" if lost else "texts" if message.endswith("only") else "changed"
        if inner:
            lines.append(f"changed inside it, see there: {', '.join(inner)}")
        elif not compared or lost:
            lines += self._difference(path, qualname)
        old = next((place(one.was) for one in group if one.was), "not recorded")
        new = f"{path}:{after.first}" if after is not None else ""
        self.review.append(
            ReviewItem(
                kind, f"{path}::{qualname}", self._clauses(one.text for one in group), old, new, message, tuple(lines)
            )
        )

    def _clauses(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(".".join(path) for text in texts for path in self.places.get(text, ())))

    def old_path(self, path: str) -> str:
        """Return where a module of the new source stood in the old one."""
        moved = {new: self.previous["sources"][alias] for alias, new in self.additions.get("sources", {}).items()}
        return str(moved.get(path, path))

    def _difference(self, path: str, qualname: str) -> list[str]:
        import difflib  # noqa: PLC0415 - beside its one use

        before = self.old.definition(self.old_path(path), qualname) if self.old is not None else None
        if before is None:
            return []
        after = self.tree.definition(path, qualname)
        new = after.text.splitlines() if after else []
        lines = list(difflib.unified_diff(before.text.splitlines(), new, n=2, lineterm=""))[2:]
        left = len(lines) - self.diff_lines
        return [*lines[: self.diff_lines], f"... and {left} more lines"] if left > 0 else lines

    def _only_texts(self, path: str, qualname: str) -> bool:
        before = self.old.definition(self.old_path(path), qualname) if self.old is not None else None
        after = self.tree.definition(path, qualname)
        return before is not None and after is not None and before.shape == after.shape

    # -- lists ---------------------------------------------------------------------------------------------------------

    def lists(self) -> None:
        """Bring the contract's lists up to date; new draft architectures are sorted by what they are made of."""
        for name, clause in declared(self.contract).items():
            one = compare_list(name, clause, self.contract, self.tree)
            if one.lost:
                self.review.append(ReviewItem("lost", one.citation, (f"audit.lists.{name}",), "", "", one.lost))
            elif name == "architecture":
                self._architectures(one)
            else:
                self._list(one)

    def _architectures(self, one: Compared) -> None:
        added = []
        for newcomer in newcomers(one, self.contract, self.tree):
            entry = {"family": newcomer.family, "source": f"{one.citation}::{newcomer.name}"}
            if newcomer.place == "architectures":
                if newcomer.family is None:
                    entry["out_of_scope"] = f"no family has been written for {newcomer.served_by} yet"
                self.add(("architectures", newcomer.name), entry)
                added.append(newcomer.name)
            else:
                self.add(("registry", "other_drafts", newcomer.name), True)
            self.review.append(_newcomer_item(newcomer, one))
        removed = []
        for name in one.surplus:
            where = next(p for p in one.places if name in _node(self.previous, p))
            self.add((*where.split("."), name), None)
            if where == "architectures":
                removed.append(name)
            self.review.append(
                ReviewItem(
                    "architecture", name, (f"{where}.{name}",), name, "", f"{name} is no longer in {one.citation}"
                )
            )
        says = [f"{_all(names)} known" for names in (added,) if names] + [
            f"{_all(names)} no longer known" for names in (removed,) if names
        ]
        if says:
            kind = "tightens" if removed and not added else "loosens"
            self.add(("changes", "registry"), {"area": "registry", "kind": kind, "says": "; ".join(says)})

    def _list(self, one: Compared) -> None:
        if not one.missing and not one.surplus:
            return
        target = next((p for p in reversed(one.places) if p not in _OWN_PLACE), one.places[-1])
        node = _node(self.previous, target)
        if isinstance(node, list):
            kept = [v for v in node if v not in one.surplus]
            self.add(target.split("."), [*kept, *one.missing])
        else:
            values = {type(v) for v in node.values()} if isinstance(node, Mapping) else set()
            for name in one.missing:
                strings = one.source.get(name, ())
                self.add((*target.split("."), name), strings[-1] if values == {str} and strings else True)
            for name in one.surplus:
                where = next(p for p in one.places if name in _node(self.contract, p))
                self.add((*where.split("."), name), None)
        words = [
            f"new: {', '.join(one.missing)}" if one.missing else "",
            f"gone: {', '.join(one.surplus)}" if one.surplus else "",
        ]
        self.review.append(
            ReviewItem(
                "list", one.name, one.places, "", one.citation, "; ".join(w for w in words if w) + " (written below)"
            )
        )


def _newcomer_item(newcomer: Newcomer, one: Compared) -> ReviewItem:
    if newcomer.family:
        message = f"{newcomer.name} is new, served by {newcomer.served_by} like family {newcomer.family}"
    elif newcomer.place == "architectures":
        message = f"{newcomer.name} is new, served by {newcomer.served_by}; "
        message += "it needs a family, or stays out of scope with a reason"
    else:
        message = f"{newcomer.name} is new, served by {newcomer.served_by}, which has nothing of the families here"
    return ReviewItem(
        "architecture", newcomer.name, (f"{newcomer.place}.{newcomer.name}",), "", one.citation, message, newcomer.hints
    )


def _written(citation: Citation, aliases: Mapping[str, str]) -> str:
    """Return a citation as a clause states it: by the alias of its file, where there is one."""
    names = {path: alias for alias, path in aliases.items()}
    return "::".join([names.get(citation.path, citation.path), citation.qualname, citation.needle]).rstrip(":")


def _all(names: list[str]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last} are" if most else f"{last} is"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _texts(value: Any) -> Iterator[str]:
    yield from value if isinstance(value, list) else [value]


def _node(raw: Mapping[str, Any], place_: str) -> Any:
    node: Any = raw
    for part in place_.split("."):
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node
