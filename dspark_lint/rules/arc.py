"""ARC: architecture, dialect, method and the routing between them; what the serve flags do to a draft."""

from __future__ import annotations

import difflib

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import evaluate
from dspark_lint.rules.base import Context, Rule, config_file, finding, in_contract
from dspark_lint.rules.serving import serve_flags, unread
from dspark_lint.words import as_json, fill


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding


def _listed(names: Any) -> str:
    return ", ".join(names) if names else "none"


def _hint(ctx: Context) -> str | None:
    """Return the architecture that this file most likely means; None when that is the one it has.

    A name that the release does not know is taken for a misspelt one; of a name that it knows the content decides.
    """
    known = {n: c for n, c in ctx.contract["architectures"].items() if c and c.get("family")}
    written = ctx.binding.written
    for name in written:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75) if name not in known else []
        if close:
            return str(close[0])
    for name, clause in known.items():
        when = clause.get("hint_when")
        if when and evaluate(when, ctx.binding) is True:
            return None if name in written else str(name)
    return None


def _stands(ctx: Context) -> tuple[str, str]:
    """Return what stands under ``architectures``: for a sentence, and in short."""
    binding = ctx.binding
    if binding.written:
        return f"architectures {_listed(binding.written)}", _listed(binding.written)
    raw = binding.config.get("architectures")
    what = "missing" if raw is None else "empty" if raw == [] else f"{as_json(raw)}, no list of names"
    filled = (
        f" ({ctx.contract['missing_architectures']['says']}: {_listed(binding.route.written)})"
        if binding.route.written
        else ""
    )
    return f"architectures is {what}{filled}", "nothing" if raw is None else as_json(raw)


def tells_architectures(ctx: Context) -> bool:
    """Whether ARC001 or ARC002 speaks of ``architectures``, so that nobody else has to."""
    return any(True for check in (unknown_architecture, rerouted) for _ in check(ctx))


def unknown_architecture(ctx: Context) -> Iterator[Finding]:
    """ARC001: no architecture that the release knows, after its own rewriting."""
    binding = ctx.binding
    route = binding.route
    if unread(ctx):
        return
    if route.architecture is not None or (
        not route.resolved and not binding.runtime.complete and binding.mapping is None
    ):
        return
    if binding.serve["given"] and binding.method not in ctx.contract["methods"]["known"]:
        return  # ARC008 says that the release has no such method, let alone its drafts
    clause = ctx.contract["registry"]["unknown"]
    step = route.steps[-1] if route.steps else None
    stands, short = _stands(ctx)
    how = f" ({step['says']})" if step else ""
    resolved = (
        f"; method {binding.method} makes it {_listed(route.resolved)}{how}" if route.resolved != route.written else ""
    )
    hint = _hint(ctx)
    method = _method_that_loads(ctx)
    fix = f"serve it with method {method}" if method else (f'"architectures": ["{hint}"]' if hint else None)
    yield finding(
        ctx,
        "ARC001",
        clause,
        (
            f"vLLM {ctx.release} knows no architecture {short}"
            if binding.written
            else f"{stands}, and vLLM {ctx.release} does not know it as a draft"
        )
        + f"{resolved}: {clause['says']}.",
        file=config_file(ctx),
        pointer="/architectures",
        expected=hint or (f"method {method}" if method else None),
        found=_listed(route.resolved) if route.resolved else "nothing",
        fix=fix,
    )


def _method_that_loads(ctx: Context) -> str | None:
    """Return the method under which the written architecture would reach its own loader."""
    for name in ctx.binding.route.written:
        clause = ctx.contract["architectures"].get(name)
        if clause and clause.get("family") and not ctx.binding.method_inferred:
            method = ctx.contract.family(clause["family"]).get("method")
            if method and method != ctx.binding.method:
                return str(method)
    return None


def rerouted(ctx: Context) -> Iterator[Finding]:
    """ARC002: the release rewrites the architecture and reaches a loader that the draft was not made for."""
    binding = ctx.binding
    if unread(ctx):
        return
    stands, short = _stands(ctx)
    for step in binding.route.steps:
        outcome = step.get("outcome")
        if not outcome or evaluate(str(outcome.get("unless", "false")), binding) is True:
            continue
        hint = _hint(ctx)
        method = None if hint else _method_that_loads(ctx)
        yield finding(
            ctx,
            "ARC002",
            {"source": step.get("source"), **outcome},
            f"{stands}; under method {binding.method} {fill(outcome['says'], binding)}.",
            file=config_file(ctx),
            pointer="/architectures",
            expected=hint or (f"method {method}" if method else None),
            found=short,
            fix=f'"architectures": ["{hint}"]' if hint else (f"serve it with method {method}" if method else None),
        )
        return


def foreign_layout(ctx: Context) -> Iterator[Finding]:
    """ARC003: an exporter's own layout that no loader of this release reads; one finding with the whole conversion."""
    binding = ctx.binding
    for name, clause in ctx.contract.get("layouts", {}).items():
        if not clause or evaluate(clause["when"], binding) is not True:
            continue
        steps = [
            fill(s["do"], binding)
            for s in clause["conversion"]
            if evaluate(str(s.get("when", "true")), binding) is True
        ]
        yield finding(
            ctx,
            "ARC003",
            clause,
            f"{fill(clause['says'], binding)}.",
            file=config_file(ctx),
            pointer="/architectures",
            expected=clause.get("expected"),
            found=clause.get("title", name),
            fix="; ".join(steps),
        )
        return


def method_must_be_said(ctx: Context) -> Iterator[Finding]:
    """ARC004: without serve flags the release would choose another method than the draft was made for."""
    binding = ctx.binding
    if not binding.method_inferred or binding.method not in ctx.contract["methods"]["drafts"]:
        return
    detected, clause = binding.detected()
    if detected == binding.method:
        return
    word = clause.get("word")
    because = f"the path contains {word!r}" if word else "neither the path nor the architecture says it"
    others = binding.family.get("other_method", {})
    then = (
        others.get(detected)
        or others.get("any")
        or (detected == ctx.contract["methods"]["fallback"] and ctx.contract["methods"].get("fallback_outcome"))
        or {}
    ).get("says")
    step_dir = evaluate(str(ctx.contract["methods"].get("step_directory", "false")), binding) is True
    yield finding(
        ctx,
        "ARC004",
        {
            "effect": "silent" if word or step_dir else "advice",
            "severity": "warning" if word or step_dir else "info",
            "source": clause.get("source") or ctx.contract["methods"].get("source"),
        },
        f"served without a method, vLLM {ctx.release} takes this draft for method {detected} ({because}), not {binding.method}{': ' + then if then else ''}.",
        expected=binding.method,
        found=detected,
        fix=f'--speculative-config \'{{"method": "{binding.method}", ...}}\'',
    )


def served_as_something_else(ctx: Context) -> Iterator[Finding]:
    """ARC005: the serve flags, or the path, make the release serve the draft by another method."""
    binding = ctx.binding
    if binding.method_inferred:
        return
    fallback = ctx.contract["methods"].get("fallback_outcome")
    if fallback and binding.method == ctx.contract["methods"]["fallback"] and binding.route.architecture:
        yield finding(
            ctx,
            "ARC005",
            fallback,
            f"served without a method that fits, vLLM {ctx.release} takes this draft for method {binding.method}: {fallback['says']}.",
            expected="a method",
            found=binding.method,
            fix="give the method in --speculative-config",
        )
        return
    if not binding.family:
        return
    wanted = binding.family.get("methods", [binding.family.get("method")])
    if binding.method in wanted or binding.method not in ctx.contract["methods"]["known"]:
        return
    clause = binding.family.get("other_method", {}).get(binding.method) or binding.family.get("other_method", {}).get(
        "any"
    )
    if clause is None:
        return
    yield finding(
        ctx,
        "ARC005",
        clause,
        f"vLLM {ctx.release} serves this draft by method {binding.method}, not {wanted[0]}: {clause['says']}.",
        expected=str(wanted[0]),
        found=binding.method,
        fix=f'--speculative-config \'{{"method": "{wanted[0]}", ...}}\'',
    )


def wrong_dialect(ctx: Context) -> Iterator[Finding]:
    """ARC006: fields of one dialect in a file that is read as the other."""
    binding = ctx.binding
    for clause in ctx.contract.get("dialect_checks", {}).values():
        if clause and evaluate(clause["when"], binding) is True:
            yield finding(
                ctx,
                "ARC006",
                clause,
                f"{fill(clause['says'], binding)}.",
                file=config_file(ctx),
                pointer=clause.get("pointer"),
                expected=clause.get("expected"),
                found=fill(clause["found"], binding) if "found" in clause else None,
                fix=clause.get("fix"),
            )


def unknown_format(ctx: Context) -> Iterator[Finding]:
    """ARC007: a model_type or speculators_model_type that has no reader."""
    for trouble in ctx.binding.runtime.troubles:
        if trouble.kind in ("missing_model_type", "unknown_model_type", "unknown_selector"):
            stands = "missing" if trouble.found is None else as_json(trouble.found)
            yield finding(
                ctx,
                "ARC007",
                trouble.clause,
                f"{trouble.key} is {stands}, where vLLM {ctx.release} expects {trouble.expected}: {trouble.clause.get('says', '')}.",
                file=config_file(ctx),
                pointer=trouble.pointer,
                expected=trouble.expected,
                found=stands,
            )


RULES = (
    Rule(
        "ARC001",
        "The release knows no such architecture",
        "vLLM rewrites the architectures of a draft by method and looks the result up in its registry. A name that is not there stops the engine with a message that names the rewritten form, not yours.",
        "Write an architecture that the release knows, or serve with the method that the name belongs to.",
        "error",
        "refused",
        unknown_architecture,
        ("config",),
        fires='"architectures": ["NoSuchDraftModel"]',
        quiet='"architectures": ["Qwen3DSparkModel"]',
    ),
    Rule(
        "ARC002",
        "The architecture reaches another loader",
        "Under method dspark every architecture outside a short list is taken for a DeepSeek-V4 draft whose weights ship inside the target; the loader then fails on keys you never heard of.",
        "Write the architecture of the loader that the draft was made for.",
        "error",
        "refused",
        rerouted,
        ("config",),
        fires='"architectures": ["DFlashDraftModel"] under method dspark',
        quiet='"architectures": ["Qwen3DSparkModel"]',
    ),
    Rule(
        "ARC003",
        "An exporter's native layout that the release does not read",
        "The file is complete in its own layout, and every difference from the loader's is systematic: one conversion mends all of it.",
        "Convert as the fix says.",
        "error",
        "refused",
        foreign_layout,
        ("config",),
        fires="ModelOpt's DFlashDraftModel with markov_w1.weight",
        quiet="the converted checkpoint",
    ),
    Rule(
        "ARC004",
        "The method has to be said",
        "Without a method vLLM guesses: from words anywhere in the path first, from a few architecture names after that.",
        "Give the method in --speculative-config.",
        "info",
        "advice",
        method_must_be_said,
        ("config",),
        fires="a DFlash draft in a directory called checkpoint-1200",
        quiet='--speculative-config \'{"method": "dflash", ...}\'',
    ),
    Rule(
        "ARC005",
        "The draft is served by another method",
        "The method decides the query layout and which heads are used.",
        "Serve it with its own method.",
        "warning",
        "silent",
        served_as_something_else,
        ("config",),
        fires="a DFlash draft under method draft_model",
        quiet="method dflash",
    ),
    Rule(
        "ARC006",
        "Fields of one dialect in a file read as the other",
        "A model_type makes the file flat, and every speculators field in it is then dead; without one it is the other way round.",
        "Remove model_type from a speculators file, or write the flat keys.",
        "error",
        "silent",
        wrong_dialect,
        ("config",),
        fires="speculators_config beside model_type: qwen3",
        quiet="speculators_config without model_type",
    ),
    Rule(
        "ARC007",
        "No reader for this model_type",
        "Parsing stops before anything else is looked at.",
        "Write a model_type that transformers knows, or the speculators format without one.",
        "error",
        "refused",
        unknown_format,
        ("config",),
        fires='"model_type": "speculator_model"',
        quiet='"model_type": "qwen3"',
    ),
    Rule(
        "ARC008",
        "The speculative config is refused",
        "vLLM validates its own flag against the draft's configuration.",
        "Change the flag as the message says.",
        "error",
        "refused",
        serve_flags,
        ("config",),
        fires='{"method": "dspark", "num_speculative_tokens": 0}',
        quiet='{"method": "dspark", "num_speculative_tokens": 7}',
    ),
    Rule(
        "ARC009",
        "More tokens are drafted than the block was trained for",
        "Most releases never compare num_speculative_tokens with the trained block; positions past it serve noise.",
        "Give a num_speculative_tokens that the block was trained for.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires='{"method": "dflash", "num_speculative_tokens": 16} with block_size 16',
        quiet='{"method": "dflash", "num_speculative_tokens": 15}',
    ),
)
