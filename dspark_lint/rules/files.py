"""What the rules on files share: a problem of reading made a finding, and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.rules.base import Context, finding, plural


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dspark_lint.checkpoint import Problem
    from dspark_lint.finding import Finding


#: Bytes that are no weights at all: the header's length field is text of something else.
NOT_WEIGHTS = frozenset(
    {"lfs-pointer", "html", "zip-or-pickle", "missing", "not-a-file", "unreadable", "empty", "too-large"}
)
#: What a strict reader calls ambiguous and a lenient one swallows.
AMBIGUOUS = frozenset({"duplicate-key", "nan-literal"})


def from_problem(
    ctx: Context, rule: str, problem: Problem, clause: Mapping[str, Any], consequence: str, *, fix: str | None = None
) -> Finding:
    """Make a problem of reading a finding, with what the release makes of it."""
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


FIXES = {
    "lfs-pointer": "run `git lfs pull`, so that the weights stand in place of the pointer",
    "html": "download the file again; this is a web page",
    "zip-or-pickle": "convert the weights to safetensors; this is a pickle or zip under another name",
    "bom": "write the file without a byte order mark",
    "truncated-data": "copy the file again; its end is missing",
    "duplicate-key": "write the key once",
    "nan-literal": "write a finite number, or leave the key out",
}


def then(ctx: Context, clause: Mapping[str, Any]) -> str:
    """Return what the release does, by a clause's words."""
    return f"vLLM {ctx.release}: {clause['says']}"


def named(names: Sequence[str], noun: str) -> str:
    """Return ``1 tensor (a)``, ``2 tensors (a, …)``, with the verb left to the caller."""
    return f"{plural(len(names), noun)} ({names[0]}{', …' if len(names) > 1 else ''})"


def index_fatal(ctx: Context) -> bool:
    """Whether the index cannot be used at all."""
    index = ctx.selection.index
    return index is not None and any(p.fatal for p in index.problems)
