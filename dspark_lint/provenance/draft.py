"""The text of a scaffolded contract file: the sections that are certain, and the review as comments."""

from __future__ import annotations

import textwrap

from typing import TYPE_CHECKING, Any, Final, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


#: Kinds of review items in the order in which they are listed, with the heading of each.
KINDS: Final[dict[str, str]] = {
    "lost": "Citations that no longer stand",
    "architecture": "Draft architectures",
    "default": "Defaults",
    "key": "Keys read anew",
    "unread": "Keys no longer read",
    "changed": "Cited definitions that changed",
    "texts": "Cited definitions that differ in their texts only",
    "list": "Lists of the source",
    "around": "What else changed beside the cited code",
}
_WIDTH: Final = 116
_SECTIONS: Final = (
    "changes",
    "sources",
    "architectures",
    "families",
    "registry",
    "serve",
    "target",
    "methods",
    "model_types",
)


class ReviewItem(NamedTuple):
    """One thing that a maintainer has to look at."""

    kind: str
    """One of `KINDS`."""
    subject: str
    """The citation, definition, architecture or key."""
    clauses: tuple[str, ...] = ()
    """Dotted paths of the clauses, or families, that depend on it."""
    old: str = ""
    """``path:line`` in the previous release."""
    new: str = ""
    """``path:line`` in the new one."""
    message: str = ""
    detail: tuple[str, ...] = ()
    """Further lines: the cited lines' old and new numbers, the difference."""

    def rank(self) -> tuple[int, str]:
        """Return the key by which reviews are sorted."""
        return list(KINDS).index(self.kind), self.subject


def render(
    previous: str,
    release: str,
    additions: Mapping[str, Any],
    review: Sequence[ReviewItem],
    *,
    inherited: int,
    cited: int,
) -> str:
    """Return the file: head, what is written, and the review below it as comments."""
    lines = [
        f"# Scaffolded from {previous} by `dspark-lint contracts new {release}`.",
        f"# {inherited} of {cited} citations stand on unchanged code and are inherited. The {len(review)} items",
        "# below the contract want a decision each; delete an item when it is decided.",
        "contract: 1",
        "runtime: vllm",
        f'release: "{release}"',
        f'extends: "{previous}"',
    ]
    sections = dict(additions)
    sections.setdefault(
        "changes",
        {"none": {"area": "files on disk", "kind": "none", "says": "nothing that a draft checkpoint meets changed"}},
    )
    for name in [*(s for s in _SECTIONS if s in sections), *(s for s in sections if s not in _SECTIONS)]:
        lines += ["", *_yaml({name: sections[name]}).splitlines()]
    lines += ["", *_comments(review)]
    return "\n".join(lines).rstrip() + "\n"


def _yaml(value: Mapping[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - maintainers' commands only

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False)
    return text


def _comments(review: Sequence[ReviewItem]) -> Iterator[str]:
    kind = ""
    for number, item in enumerate(review, 1):
        if item.kind != kind:
            kind = item.kind
            count = sum(1 for other in review if other.kind == kind)
            yield f"# {'-' * 20} {KINDS[kind]} ({count})"
        yield from _wrapped(
            f"[{number}] {item.subject}: {item.message}"
            if item.subject not in item.message
            else f"[{number}] {item.message}"
        )
        if item.old or item.new:
            yield f"#     {item.old or '(nothing)'} -> {item.new or '(nothing)'}"
        if item.clauses:
            shown = ", ".join(item.clauses[:8]) + (
                f" and {len(item.clauses) - 8} more" if len(item.clauses) > 8 else ""
            )
            yield from _wrapped(f"for: {shown}", indent="    ")
        for line in item.detail:
            yield f"#     | {line}".rstrip()
        yield "#"


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    for number, line in enumerate(textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)):
        yield f"# {indent}{'    ' if number else ''}{line}"
