"""QNT011: the exclusion list of a target against the draft that lies in its checkpoint, by the names on disk."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING

from dspark_lint.rules.base import Context, Rule, finding, plural


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding
    from dspark_lint.quant.embedded import Disagreement


def embedded(ctx: Context) -> Iterator[Finding]:
    """QNT011: the statement leaves a module of the embedded draft in, or takes it out, and its weight says otherwise."""
    statement = ctx.statement
    if statement is None or ctx.have("family"):
        return
    if ctx.binding.method not in ctx.contract["methods"]["known"]:
        return  # such a draft is never built there, which ARC008 says
    from dspark_lint.quant.embedded import disagreements  # noqa: PLC0415 - only for a quantized target

    groups: dict[tuple[str, str], list[Disagreement]] = {}
    for item in disagreements(statement, ctx.selection.tensors):
        groups.setdefault((item.kind, re.sub(r"\d+", "{i}", item.owner)), []).append(item)
    clause = ctx.contract["quantization"]["embedded"]
    what = statement.clause.get("entries", "the list")
    for (kind, pattern), items in groups.items():
        first = items[0]
        subject = first.owner if len(items) == 1 else f"{pattern} ({plural(len(items), 'module')})"
        if kind == "unquantized":
            told = f"{subject} is {first.dtype} on disk, and no entry of {what} matches it, so it counts as quantized"
            outcome, fix = clause, f"add {first.owner!r} to {what}"
        elif kind == "excluded":
            told = f"{subject} is quantized on disk ({first.dtype}), and {first.by!r} of {what} takes it out of the quantization"
            outcome, fix = {**clause, **clause["scales"]}, f"remove {first.by!r} from {what}, or export it unquantized"
        else:
            told = f"{subject} is {first.dtype} on disk and lacks what the stated quantization keeps beside it ({', '.join(first.missing)})"
            outcome, fix = {**clause, **clause["scales"]}, "quantize it as stated, or state what it is"
        file = ctx.selection.tensors[first.tensor][0]
        yield finding(
            ctx,
            "QNT011",
            {**outcome, "severity": "error"},
            f"{told}; vLLM {ctx.release}: {outcome['says']}.",
            file=file,
            tensor=first.tensor,
            found=first.dtype,
            count=len(items),
            fix=fix,
        )


RULES = (
    Rule(
        "QNT011",
        "A target's exclusion list and the draft inside it disagree",
        "A draft that lies in its target's checkpoint is quantized, or not, by the target's list. No family here describes such a loader's names; the list is held against the names on disk.",
        "List the draft's modules exactly where they are unquantized.",
        "error",
        "refused",
        embedded,
        ("config", "files"),
        fires="a BF16 mtp.layers.0.mlp.down_proj with NVFP4 and no mtp entry",
        quiet='"mtp.layers.0*" in exclude_modules',
    ),
)
