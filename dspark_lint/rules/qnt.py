"""QNT: the quantization that the checkpoint states, the modules it reaches, the scales they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.rules.base import Context, Rule, finding, plural
from dspark_lint.rules.qnt_entries import idle_entries, wide_entries
from dspark_lint.rules.qnt_modules import (
    cache_scales,
    left_unquantized,
    missing_scales,
    scaled_for_nothing,
    sizes,
    unserved,
)
from dspark_lint.words import show


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding


def refused_statement(ctx: Context) -> Iterator[Finding]:
    """QNT001: the release raises over the statement itself."""
    statement = ctx.statement
    if statement is None:
        return
    for trouble in statement.troubles:
        clause = trouble.clause
        place = trouble.pointer.rpartition("/")[2] or trouble.file
        found = trouble.found
        yield finding(
            ctx,
            "QNT001",
            clause,
            f"{place} in {trouble.file} is {found}, where vLLM {ctx.release} expects {clause.get('expected', 'something else')}: {clause['says']}.",
            file=trouble.file,
            pointer=trouble.pointer,
            expected=clause.get("expected"),
            found=found,
            fix=clause.get("fix"),
        )


def no_method(ctx: Context) -> Iterator[Finding]:
    """QNT002: a statement that the release reads and takes for none."""
    statement = ctx.statement
    if statement is None or statement.route.get("backend") != "none" or not statement.place.value:
        return
    clause: dict[str, Any] = {"effect": "silent", "severity": "warning", **statement.route}
    damage = ctx.inventory.fit.scaled if ctx.have("weights") and ctx.inventory.fit is not None else []
    so = ""
    if damage:
        worst = next((s for s in damage if s.clause.get("effect") == "refused"), damage[0])
        clause |= {"effect": worst.clause.get("effect", "silent"), "severity": "error"}
        so = f" {plural(len(damage), 'module')} {'keeps' if len(damage) == 1 else 'keep'} quantized data on disk: {worst.clause.get('says', '')}."
    yield finding(
        ctx,
        "QNT002",
        clause,
        f"the quantization stated in {statement.place.file} names no quant_method; vLLM {ctx.release}: {statement.route['says']}.{so}",
        file=statement.place.file,
        pointer=f"{statement.place.pointer}/quant_method",
        expected="a quant_method",
        found="nothing",
        fix='write "quant_method" ("modelopt", "compressed-tensors", ...), or remove the statement',
    )


def two_statements(ctx: Context) -> Iterator[Finding]:
    """DRF007: two quantization statements that say different things; one of them is not read."""
    statement = ctx.statement
    if statement is None or not statement.others or not isinstance(statement.place.value, dict):
        return
    from dspark_lint.quant.statement import summary  # noqa: PLC0415 - only for a quantized draft

    ours = summary(statement, statement.place)
    for other in statement.others:
        theirs = summary(statement, other)
        differ = {k: (ours[k], theirs[k]) for k in ours if k in theirs and ours[k] != theirs[k]}
        if not differ:
            continue
        told = "; ".join(f"{k} {_short(a)} against {_short(b)}" for k, (a, b) in differ.items())
        yield finding(
            ctx,
            "DRF007",
            {"effect": "silent", "severity": "warning", "source": other.clause.get("source")},
            f"{statement.place.file} and {other.file} state different quantizations ({told}); vLLM {ctx.release} obeys {statement.place.file}: {other.clause.get('says', statement.place.clause.get('says', ''))}.",
            file=other.file,
            pointer=other.pointer or "",
            expected="the same statement in both",
            found=", ".join(differ),
            fix="write both from one source, or leave the second out",
        )


def _short(value: Any) -> str:
    if isinstance(value, frozenset):
        listed = sorted(value)
        return show(listed[:6]) if len(listed) <= 6 else f"{len(listed)} entries"
    return show(value, 60)


RULES = (
    Rule(
        "DRF007",
        "Two quantization statements disagree",
        "config.json and hf_quant_config.json both state the quantization; a release reads one of them.",
        "Write both from one source.",
        "warning",
        "silent",
        two_statements,
        ("config",),
        fires='"ignore": ["lm_head"] beside "exclude_modules": ["lm_head", "fc"]',
        quiet="the same list in both",
    ),
    Rule(
        "QNT001",
        "The quantization statement is refused",
        "The statement is read before a weight is; an unknown algorithm, a missing field or a wrong type stops the engine.",
        "Write what the release reads.",
        "error",
        "refused",
        refused_statement,
        ("config",),
        fires='"quant_algo": "FP9"',
        quiet='"quant_algo": "FP8"',
    ),
    Rule(
        "QNT002",
        "A quantization statement that counts for nothing",
        "Without quant_method every module is built unquantized, whatever else the statement says.",
        "Write quant_method.",
        "warning",
        "silent",
        no_method,
        ("config",),
        fires='a quantization_config without "quant_method"',
        quiet='"quant_method": "compressed-tensors"',
    ),
    Rule(
        "QNT003",
        "An exclusion entry matches nothing",
        "Entries are held against the names that the modules have at run time: prefixed, renumbered past the target's layers, projections fused. An entry that matches none is passed over in silence.",
        "Write the name that the release builds.",
        "warning",
        "silent",
        idle_entries,
        ("family", "weights"),
        fires='"dflash_module.markov_w2" in exclude_modules',
        quiet='"markov_head.markov_w2"',
    ),
    Rule(
        "QNT004",
        "An exclusion entry matches more than it says",
        "An entry counts wherever it is a piece of a module's name: layers.3 takes out layers 30 to 39.",
        "End the entry at a dot.",
        "warning",
        "silent",
        wide_entries,
        ("family", "weights"),
        fires='"layers.3" with a target of 30 layers',
        quiet='"layers.3."',
    ),
    Rule(
        "QNT005",
        "Quantized by the statement, unquantized on disk",
        "The module is built with a quantized weight; what lies on disk is cast into it without a scale, or does not fit.",
        "Exclude the module by its run-time name, or quantize it.",
        "error",
        "silent",
        left_unquantized,
        ("family", "weights"),
        fires="a BF16 fc.weight under FP8 without an entry for fc",
        quiet='"fc" in exclude_modules',
    ),
    Rule(
        "QNT006",
        "Quantized on disk, unquantized by the statement",
        "The module is built unquantized, so its scales have no place, and packed values count as they stand.",
        "Take the module out of the exclusion list, or export it unquantized.",
        "error",
        "refused",
        scaled_for_nothing,
        ("family", "weights"),
        fires='fc.weight_scale with "fc" in exclude_modules',
        quiet="fc.weight alone, BF16",
    ),
    Rule(
        "QNT007",
        "A scale is missing",
        "Most schemes never notice that a scale was not loaded and multiply with whatever the memory holds.",
        "Export the scales along with the weight.",
        "error",
        "silent",
        missing_scales,
        ("family", "weights"),
        fires="an FP8 weight without its weight_scale",
        quiet="both",
    ),
    Rule(
        "QNT008",
        "A packed weight or a scale of the wrong size",
        "Block and group scales follow from the unquantized sizes and the group; sizes that the group does not divide cannot be built.",
        "Quantize again with the group that the statement gives.",
        "error",
        "refused",
        sizes,
        ("family", "weights"),
        fires="a weight_scale of 64 numbers under FP8 with one scale a tensor",
        quiet="a weight_scale of one number",
    ),
    Rule(
        "QNT009",
        "A module that this release does not serve quantized",
        "Some projections are multiplied outside their quantization in some releases.",
        "Leave them unquantized, or serve with a release that takes them.",
        "error",
        "refused",
        unserved,
        ("family", "weights"),
        fires="a quantized q_proj under vLLM 0.30",
        quiet="the same under vLLM 0.31",
    ),
    Rule(
        "QNT010",
        "Scales of the K/V cache in a draft",
        "They count only where the engine keeps the draft's K/V cache quantized.",
        "Nothing, if that is meant.",
        "info",
        "advice",
        cache_scales,
        ("family", "weights"),
        fires="layers.0.self_attn.k_proj.k_scale under a quantization",
        quiet="no such tensor",
    ),
)
