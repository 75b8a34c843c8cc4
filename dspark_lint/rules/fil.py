"""FIL: files, headers, shards and the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.rules.base import Context, Rule, config_file, finding, in_contract, plural


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dspark_lint.checkpoint import Problem
    from dspark_lint.finding import Finding


#: Bytes that are no weights at all: the header's length field is text of something else.
NOT_WEIGHTS = frozenset(
    {"lfs-pointer", "html", "zip-or-pickle", "missing", "not-a-file", "unreadable", "empty", "too-large"}
)
#: What a strict reader calls ambiguous and a lenient one swallows.
AMBIGUOUS = frozenset({"duplicate-key", "nan-literal"})


def _from_problem(
    ctx: Context, rule: str, problem: Problem, clause: Mapping[str, Any], consequence: str, *, fix: str | None = None
) -> Finding:
    told = problem.detail if problem.file and problem.file in problem.detail else f"{problem.file}: {problem.detail}"
    return finding(
        ctx,
        rule,
        clause,
        f"{told}; {consequence}.",
        file=problem.file,
        pointer=problem.pointer,
        tensor=problem.tensor,
        expected=problem.expected,
        found=problem.found,
        fix=fix,
    )


_FIXES = {
    "lfs-pointer": "run `git lfs pull`, so that the weights stand in place of the pointer",
    "html": "download the file again; this is a web page",
    "zip-or-pickle": "convert the weights to safetensors; this is a pickle or zip under another name",
    "bom": "write the file without a byte order mark",
    "truncated-data": "copy the file again; its end is missing",
    "duplicate-key": "write the key once",
    "nan-literal": "write a finite number, or leave the key out",
}


def _then(ctx: Context, clause: Mapping[str, Any]) -> str:
    return f"vLLM {ctx.release}: {clause['says']}"


def _named(names: Sequence[str], noun: str) -> str:
    """Return ``1 tensor (a)``, ``2 tensors (a, …)``, with the verb left to the caller."""
    return f"{plural(len(names), noun)} ({names[0]}{', …' if len(names) > 1 else ''})"


def config_unusable(ctx: Context) -> Iterator[Finding]:
    """FIL001: config.json is not there or cannot be parsed."""
    clause = ctx.contract["files"]["config_unusable"]
    for problem in ctx.checkpoint.config.problems:
        if problem.fatal:
            yield _from_problem(ctx, "FIL001", problem, clause, _then(ctx, clause), fix=_FIXES.get(problem.kind))
            return
    if ctx.checkpoint.config.exists and not isinstance(ctx.checkpoint.config.value, dict):
        yield finding(
            ctx,
            "FIL001",
            clause,
            f"{config_file(ctx)} is a JSON {type(ctx.checkpoint.config.value).__name__}, not an object; {_then(ctx, clause)}.",
            file=config_file(ctx),
            pointer="",
            expected="a JSON object",
            found=type(ctx.checkpoint.config.value).__name__,
        )


def ambiguous_json(ctx: Context) -> Iterator[Finding]:
    """FIL002: JSON that says two things, or a thing JSON does not have."""
    documents = [ctx.checkpoint.config, ctx.checkpoint.quant_file]
    for document in documents:
        for problem in document.problems:
            if not problem.fatal:
                clause = {
                    "effect": "advice",
                    "severity": "warning",
                    "source": ctx.contract["files"]["config_unusable"].get("source"),
                }
                told = (
                    f"vLLM {ctx.release} reads that one, and readers that keep the first see another value"
                    if problem.kind == "duplicate-key"
                    else f"Python's reader, and with it vLLM {ctx.release}, takes it; others refuse the file"
                )
                yield _from_problem(ctx, "FIL002", problem, clause, told, fix=_FIXES.get(problem.kind))


def header_broken(ctx: Context) -> Iterator[Finding]:
    """FIL003: a safetensors header that the library refuses."""
    clause = ctx.contract["files"]["unreadable"]
    for header in ctx.selection.headers:
        for problem in header.problems:
            if problem.fatal and problem.kind not in NOT_WEIGHTS:
                yield _from_problem(ctx, "FIL003", problem, clause, _then(ctx, clause), fix=_FIXES.get(problem.kind))
                break


def not_weights(ctx: Context) -> Iterator[Finding]:
    """FIL004: a file in a shard's place that holds no weights."""
    clause = ctx.contract["files"]["unreadable"]
    for header in ctx.selection.headers:
        for problem in header.problems:
            if problem.fatal and problem.kind in NOT_WEIGHTS:
                yield _from_problem(ctx, "FIL004", problem, clause, _then(ctx, clause), fix=_FIXES.get(problem.kind))
                break


def nothing_to_load(ctx: Context) -> Iterator[Finding]:
    """FIL005: no file that the release would load."""
    selection = ctx.selection
    clause = ctx.contract["files"]["none"]
    tolerated = ctx.contract["files"]["index"]["missing_shard"]["effect"] != "refused"
    emptied = (
        selection.kind is not None
        and not selection.files
        and (tolerated or not selection.missing)
        and not _index_fatal(ctx)
    )
    if selection.kind is None or emptied:
        patterns = ", ".join(s["pattern"] for s in ctx.contract["files"]["sets"].values())
        why = "the index names none of the weight files that are here" if emptied else f"no file matches {patterns}"
        yield finding(
            ctx,
            "FIL005",
            clause,
            f"{why}; vLLM {ctx.release}: {clause['says']}.",
            file=selection.index.file if emptied and selection.index else None,
            expected=patterns,
            found="nothing",
        )


def _index_fatal(ctx: Context) -> bool:
    index = ctx.selection.index
    return index is not None and any(p.fatal for p in index.problems)


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
    if not selection.unlisted or selection.index is None or _index_fatal(ctx) or not selection.files:
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
        f"{_named(names, 'tensor')} {'is' if len(names) == 1 else 'are'} {told}; {then}.",
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
            f"{_named(list(twice), 'tensor name')} {'stands' if len(twice) == 1 else 'stand'} in more than one of {', '.join(stale[:4])}; vLLM {ctx.release}: {clause['says']}.",
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
            yield _from_problem(
                ctx, "FIL010", problem, clause, _then(ctx, clause), fix="write the index anew from the headers"
            )
            return


def hidden_set(ctx: Context) -> Iterator[Finding]:
    """FIL011: weight files that another set of files hides."""
    selection = ctx.selection
    if selection.kind and selection.clause.get("says") and selection.passed_over:
        listed = ", ".join(selection.passed_over[:4])
        yield finding(
            ctx,
            "FIL011",
            {**selection.clause, "effect": "advice", "severity": "info"},
            f"{', '.join(selection.files[:3])} hides {listed}; vLLM {ctx.release}: {selection.clause['says']}.",
            file=selection.files[0] if selection.files else None,
            found=listed,
            fix="keep one of the two sets",
        )


def pickled(ctx: Context) -> Iterator[Finding]:
    """FIL012: the release would load pickled weights, which are not opened here."""
    selection = ctx.selection
    if selection.reads == "pickle":
        yield finding(
            ctx,
            "FIL012",
            {**selection.clause, "effect": "advice", "severity": "warning"},
            f"the weights that vLLM {ctx.release} would load are in {', '.join(selection.files[:3])}, a pickle, which is never opened here: nothing about the tensors was checked.",
            file=selection.files[0],
            expected="*.safetensors",
            found=selection.files[0],
            fix="convert the weights to safetensors",
        )


RULES = (
    Rule(
        "FIL001",
        "config.json cannot be used",
        "Without a configuration nothing can be loaded.",
        "Write a valid JSON object in UTF-8 without a byte order mark.",
        "error",
        "refused",
        config_unusable,
        (),
        fires="a trailing comma",
        quiet="valid JSON",
    ),
    Rule(
        "FIL002",
        "JSON that readers understand differently",
        "Python keeps the last of two equal keys and takes NaN; other readers keep the first or refuse the file.",
        "Write each key once and finite numbers only.",
        "warning",
        "advice",
        ambiguous_json,
        (),
        fires='"markov_rank" twice',
        quiet="once",
    ),
    Rule(
        "FIL003",
        "A safetensors header is broken",
        "The safetensors library refuses the file; the engine stops while it loads.",
        "Copy or export the file again.",
        "error",
        "refused",
        header_broken,
        ("files",),
        fires="two tensors whose bytes overlap",
        quiet="a file that safetensors wrote",
    ),
    Rule(
        "FIL004",
        "A file in a shard's place holds no weights",
        "Git LFS pointers, web pages, pickles and empty files pass for shards by their name.",
        "Fetch the real file.",
        "error",
        "refused",
        not_weights,
        ("files",),
        fires="a Git LFS pointer called model.safetensors",
        quiet="the file after `git lfs pull`",
    ),
    Rule(
        "FIL005",
        "No weights that the release would load",
        "The loader picks files by fixed patterns and an index; nothing was left.",
        "Name the file model.safetensors, or write an index that names it.",
        "error",
        "refused",
        nothing_to_load,
        ("files",),
        fires="a directory with config.json alone",
        quiet="model.safetensors beside it",
    ),
    Rule(
        "FIL006",
        "The index names a file that is not there",
        "Every file that the index names is opened; with a shard that was lost or renamed its tensors are gone.",
        "Copy it, or write the index anew.",
        "error",
        "refused",
        missing_shard,
        ("files",),
        fires="model-00002-of-00002.safetensors gone",
        quiet="both shards present",
    ),
    Rule(
        "FIL007",
        "A weight file that the index does not name",
        "The index decides which files are opened; what stands only in another is never read.",
        "Write the index anew, or delete the stray file.",
        "warning",
        "silent",
        unlisted_shard,
        ("files",),
        fires="an index that names shard 1 of 2",
        quiet="an index that names both",
    ),
    Rule(
        "FIL008",
        "The index and the headers disagree",
        "Loaders that follow the index entry by entry will not find the tensor; this one reads listed files whole.",
        "Write the index anew from the headers.",
        "info",
        "advice",
        index_disagrees,
        ("files",),
        fires="a weight_map entry for a tensor that is nowhere",
        quiet="a weight_map of exactly the tensors",
    ),
    Rule(
        "FIL009",
        "One tensor name in several files",
        "Stale shards are read along with the fresh ones, and the last file wins.",
        "Delete the stale file.",
        "warning",
        "silent",
        duplicate_tensor,
        ("files",),
        fires="a stale model.safetensors beside shards without an index",
        quiet="the shards alone",
    ),
    Rule(
        "FIL010",
        "The index cannot be used",
        "The loader parses it before it opens a shard.",
        "Write it anew.",
        "error",
        "refused",
        index_unusable,
        ("files",),
        fires='{"weight_map": }',
        quiet="a valid index",
    ),
    Rule(
        "FIL011",
        "One set of weight files hides another",
        "A consolidated*.safetensors switches the loader to another file set.",
        "Keep one of the two.",
        "info",
        "advice",
        hidden_set,
        ("files",),
        fires="consolidated.safetensors beside model.safetensors",
        quiet="model.safetensors alone",
    ),
    Rule(
        "FIL012",
        "The weights are pickled",
        "A pickle can run code when it is opened, so nothing here opens one.",
        "Convert to safetensors.",
        "warning",
        "advice",
        pickled,
        ("files",),
        fires="pytorch_model.bin alone",
        quiet="model.safetensors",
    ),
    Rule(
        "FIL013",
        "A mask embedding by itself that is not read, or does not fit",
        "The embedding of the mask token may ship by itself. DFlash loaders read it from vLLM 0.25 on where the configuration names the token; all others embed masked slots through the table. The file is never unpickled here: its zip directory tells how many bytes of numbers it holds.",
        "Serve it with a release that reads it, or export an embedding of hidden_size numbers.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="mask_embedding.pt beside a DSpark draft",
        quiet="mask_embedding.pt beside a DFlash draft with dflash_config.mask_token_id",
    ),
)
