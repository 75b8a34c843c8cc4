"""What the release refuses in the speculative config itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.rules.base import Context, finding
from dspark_lint.scope import as_integer
from dspark_lint.words import as_json


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding


def unread(ctx: Context) -> bool:
    """Whether the file has no reader at all, which ARC007 says."""
    return any(
        t.kind in ("missing_model_type", "unknown_model_type", "unknown_selector") for t in ctx.binding.runtime.troubles
    )


def _beyond(value: Any, limit: Mapping[str, Any]) -> str:
    """Return what a field of the speculative config takes, when this value is none of it."""
    if value is None and limit.get("optional"):
        return ""
    if "one_of" in limit:
        return "" if value in limit["one_of"] else f"one of {', '.join(limit['one_of'])}"
    number = as_integer(value)
    return "" if number is not None and number >= limit["minimum"] else f"an integer from {limit['minimum']}"


def serve_flags(ctx: Context) -> Iterator[Finding]:
    """ARC008: what the release refuses in the speculative config itself."""
    serve = ctx.binding.serve
    clause = ctx.contract["serve"]["num_speculative_tokens"]
    tokens = serve.get("num_speculative_tokens")
    if "num_speculative_tokens" in serve and ((number := as_integer(tokens)) is None or number <= 0):
        yield finding(
            ctx,
            "ARC008",
            clause,
            f"num_speculative_tokens is {as_json(tokens)}; vLLM {ctx.release}: {clause['says']}.",
            expected="a positive integer",
            found=as_json(tokens),
        )
    fields = ctx.contract["serve"].get("fields")
    for field in serve if fields and serve["given"] else ():
        if field not in fields and field != "given":
            clause = ctx.contract["serve"]["unknown_field"]
            yield finding(
                ctx,
                "ARC008",
                clause,
                f"the speculative config has a field {as_json(field)} that vLLM {ctx.release} does not know: {clause['says']}.",
                expected="a field of SpeculativeConfig",
                found=as_json(field),
            )
    for field, limit in ctx.contract["serve"].get("limits", {}).items() if fields and serve["given"] else ():
        if field in serve and (expected := _beyond(serve[field], limit)):
            yield finding(
                ctx,
                "ARC008",
                limit,
                f"{field} is {as_json(serve[field])} in the speculative config, where vLLM {ctx.release} takes {expected}: {limit['says']}.",
                expected=expected,
                found=as_json(serve[field]),
            )
    if ctx.binding.method_clause is ctx.contract["methods"].get("undetected"):
        clause = ctx.contract["methods"]["undetected"]
        yield finding(
            ctx,
            "ARC008",
            clause,
            f"method {as_json(ctx.binding.method)} was asked for, and this is no such draft; vLLM {ctx.release}: {clause['says']}.",
            expected="a draft of that method",
            found=as_json(list(ctx.binding.written)),
        )
    if serve["given"] and not unread(ctx) and ctx.binding.method not in ctx.contract["methods"]["known"]:
        clause = ctx.contract["methods"]["unsupported"]
        yield finding(
            ctx,
            "ARC008",
            clause,
            f"method {as_json(ctx.binding.method)} is not one that vLLM {ctx.release} has: {clause['says']}.",
            expected=", ".join(ctx.contract["methods"]["known"]),
            found=as_json(ctx.binding.method),
        )
