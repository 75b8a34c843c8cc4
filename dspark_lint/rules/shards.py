"""Shards: the index and the files that it names, leaves out, or names twice."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dspark_lint.rules.base import Context, finding, plural
from dspark_lint.rules.files import from_problem, index_fatal, named, then


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding


def missing_shard(ctx: Context) -> Iterator[Finding]:
    """FIL006: the index names a file that is not there."""
    selection = ctx.selection
    if selection.index is None:
        return
    listed_files = selection.index.value["weight_map"] if selection.missing else {}
    outside = {listed_files.get(p.tensor) for p in selection.index.problems if p.kind == "index-escapes"}
    missing = [name for name in selection.missing if name not in outside]
    clause = ctx.contract["files"]["index"]["missing_shard"]
    if missing and (selection.files or clause["effect"] == "refused"):
        listed = ", ".join(missing[:4])
        yield finding(
            ctx,
            "FIL006",
            clause,
            f"{selection.index.file} names {plural(len(missing), 'file')} that {'is' if len(missing) == 1 else 'are'} not there ({listed}); vLLM {ctx.release}: {clause['says']}.",
            file=selection.index.file,
            pointer="/weight_map",
            expected=missing[0],
            found="no such file",
            count=len(missing),
            fix="copy the missing shards, or write the index anew",
        )


def unlisted_shard(ctx: Context) -> Iterator[Finding]:
    """FIL007: a weight file that the index does not name, so that it is never opened."""
    selection = ctx.selection
    if not selection.unlisted or selection.index is None or index_fatal(ctx) or not selection.files:
        return
    clause = ctx.contract["files"]["index"]["unlisted"]
    known = set(selection.tensors)
    lost: list[str] = []
    for name in selection.unlisted:
        lost += [t for t in ctx.checkpoint.header(name).tensors if t not in known]
    listed = ", ".join(selection.unlisted[:4])
    one = len(selection.unlisted) == 1
    hurt = (
        f"; {plural(len(lost), 'tensor')} {'stands' if len(lost) == 1 else 'stand'} only there, {lost[0]} first"
        if lost
        else f"; everything in {'it' if one else 'them'} also stands in a listed file"
    )
    needed = ctx.have("weights") and any(e.name in lost for e in ctx.inventory.missing)
    yield finding(
        ctx,
        "FIL007",
        {**clause, "effect": "silent" if lost else "advice", "severity": "error" if needed else "warning"},
        f"{listed} {'is' if one else 'are'} not named by {selection.index.file}{hurt}; vLLM {ctx.release}: {clause['says']}.",
        file=selection.unlisted[0],
        expected=f"an entry in {selection.index.file}",
        found="none",
        count=len(selection.unlisted),
        fix="write the index anew, or delete the stray file",
    )


def index_disagrees(ctx: Context) -> Iterator[Finding]:
    """FIL008: the index says a tensor is in one file and the headers say it is in another, or in none."""
    index = ctx.selection.index
    if index is None or not isinstance(index.value, dict) or not isinstance(index.value.get("weight_map"), dict):
        return
    tensors = ctx.selection.tensors
    listed: Mapping[str, Any] = index.value["weight_map"]
    if dict(zip(tensors, map(itemgetter(0), tensors.values()), strict=True)) == listed:
        return  # by far the most common answer, without looking at every tensor by itself
    held = {h.file: h.tensors for h in ctx.selection.headers if not h.fatal}
    missing = set(ctx.selection.missing)
    wrong = [n for n, f in listed.items() if isinstance(f, str) and f in held and n not in held[f]]
    absent = [n for n in wrong if n not in tensors]
    moved = [n for n in wrong if n in tensors]
    unnamed = [n for n, (f, _) in tensors.items() if n not in listed and f in held]
    clause = {"effect": "advice", "source": ctx.contract["files"]["duplicate"].get("source")}
    loose = f"vLLM {ctx.release} reads listed files whole, other loaders follow the index"
    if absent and not missing:
        yield _index_finding(
            ctx,
            clause,
            absent,
            "named by the index, but in no file",
            f"vLLM {ctx.release} never asks for them, other loaders do",
        )
    if moved:
        yield _index_finding(ctx, clause, moved, "in another file than the index says", loose)
    if unnamed:
        yield _index_finding(ctx, clause, unnamed, "in a listed file, but not in the index", loose)


def _index_finding(ctx: Context, clause: Mapping[str, Any], names: list[str], told: str, then: str) -> Finding:
    assert ctx.selection.index is not None
    return finding(
        ctx,
        "FIL008",
        {**clause, "severity": "info"},
        f"{named(names, 'tensor')} {'is' if len(names) == 1 else 'are'} {told}; {then}.",
        file=ctx.selection.index.file,
        pointer="/weight_map",
        tensor=names[0],
        count=len(names),
        fix="write the index anew from the headers",
    )


def duplicate_tensor(ctx: Context) -> Iterator[Finding]:
    """FIL009: one tensor name in several files that are all read."""
    twice = ctx.selection.duplicates
    if twice:
        clause = ctx.contract["files"]["duplicate"]
        name, files = next(iter(twice.items()))
        stale = sorted({f for fs in twice.values() for f in fs})
        yield finding(
            ctx,
            "FIL009",
            {**clause, "effect": "silent", "severity": "error" if ctx.selection.index else "warning"},
            f"{named(list(twice), 'tensor name')} {'stands' if len(twice) == 1 else 'stand'} in more than one of {', '.join(stale[:4])}; vLLM {ctx.release}: {clause['says']}.",
            file=files[-1],
            tensor=name,
            expected="one file",
            found=", ".join(files),
            count=len(twice),
            fix="delete the stale file",
        )


def index_unusable(ctx: Context) -> Iterator[Finding]:
    """FIL010: an index that cannot be used, or that leads out of the checkpoint."""
    index = ctx.selection.index
    if index is None:
        return
    clauses = ctx.contract["files"]["index"]
    for problem in index.problems:
        if problem.fatal or problem.kind.startswith("index-"):
            if problem.kind == "index-empty":
                continue
            # no file outside the directory is ever among those that were found in it
            clause = clauses["missing_shard" if problem.kind == "index-escapes" else "unusable"]
            yield from_problem(
                ctx, "FIL010", problem, clause, then(ctx, clause), fix="write the index anew from the headers"
            )
            return
