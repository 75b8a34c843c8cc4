"""FIL: files, headers, shards and the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.checkpoint.problems import LFS_POINTER, MISSING, NOT_A_FILE
from dspark_lint.rules.base import Context, Rule, config_file, finding, in_contract
from dspark_lint.rules.files import FIXES, NOT_WEIGHTS, from_problem, index_fatal, then
from dspark_lint.rules.shards import duplicate_tensor, index_disagrees, index_unusable, missing_shard, unlisted_shard


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding


def config_unusable(ctx: Context) -> Iterator[Finding]:
    """FIL001: config.json is not there or cannot be parsed, or hf_quant_config.json cannot that would be read too."""
    clause = ctx.contract["files"]["config_unusable"]
    for problem in ctx.checkpoint.config.problems:
        if problem.fatal:
            yield from_problem(ctx, "FIL001", problem, clause, then(ctx, clause), fix=FIXES.get(problem.kind))
            return
    if ctx.checkpoint.config.exists and not isinstance(ctx.checkpoint.config.value, dict):
        yield finding(
            ctx,
            "FIL001",
            clause,
            f"{config_file(ctx)} is a JSON {type(ctx.checkpoint.config.value).__name__}, not an object; {then(ctx, clause)}.",
            file=config_file(ctx),
            pointer="",
            expected="a JSON object",
            found=type(ctx.checkpoint.config.value).__name__,
        )
        return
    yield from _quant_file_unusable(ctx)


def _quant_file_unusable(ctx: Context) -> Iterator[Finding]:
    document = ctx.checkpoint.quant_file
    if ctx.checkpoint.config.value.get("quantization_config") is not None:
        return  # the file is not asked
    clause = ctx.contract["quantization"]["unusable"]
    for problem in document.problems:
        # what is no file counts as absent, and null as nothing stated
        if problem.fatal and problem.kind not in (MISSING, NOT_A_FILE) and problem.found != "null":
            yield from_problem(ctx, "FIL001", problem, clause, then(ctx, clause), fix=FIXES.get(problem.kind))
            return


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
                yield from_problem(ctx, "FIL002", problem, clause, told, fix=FIXES.get(problem.kind))


def header_broken(ctx: Context) -> Iterator[Finding]:
    """FIL003: a safetensors header that the library refuses."""
    clause = ctx.contract["files"]["unreadable"]
    for header in ctx.selection.headers:
        for problem in header.problems:
            if problem.fatal and problem.kind not in NOT_WEIGHTS:
                yield from_problem(ctx, "FIL003", problem, clause, then(ctx, clause), fix=FIXES.get(problem.kind))
                break


def not_weights(ctx: Context) -> Iterator[Finding]:
    """FIL004: a file in a shard's place that holds no weights."""
    clause = ctx.contract["files"]["unreadable"]
    for header in ctx.selection.headers:
        for problem in header.problems:
            if problem.fatal and problem.kind in NOT_WEIGHTS:
                if problem.kind == LFS_POINTER and ctx.pointers_allowed:
                    told = "Git LFS pointers are allowed here, and nothing about its tensors was checked"
                    advice = {**clause, "effect": "advice", "severity": "info"}
                    yield from_problem(ctx, "FIL004", problem, advice, told, fix=FIXES.get(problem.kind))
                else:
                    yield from_problem(ctx, "FIL004", problem, clause, then(ctx, clause), fix=FIXES.get(problem.kind))
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
        and not index_fatal(ctx)
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
        "A configuration cannot be used",
        "Without config.json nothing can be loaded, and a broken hf_quant_config.json stops the engine where config.json states no quantization.",
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
