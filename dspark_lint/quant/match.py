"""Entries of exclusion lists against module names, by the ways of matching that a contract lists.

An entry is what a file says (``layers.0*``, ``re:.*fc``, ``Linear``); a name is a module's, as the runtime spells it.
"""

from __future__ import annotations

import fnmatch
import re

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.errors import ContractError


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_REGEX = "re:"


class Entry(NamedTuple):
    """One entry, as written and as the release holds it after its rewriting."""

    written: str
    held: str


@lru_cache(maxsize=4096)
def _pattern(text: str) -> Callable[[str], Any] | None:
    try:
        return re.compile(text).match
    except re.error:
        return None


@lru_cache(maxsize=4096)
def _glob(text: str) -> Callable[[str], Any]:
    return re.compile(fnmatch.translate(text)).match


def _equal(entry: str, name: str) -> bool:
    return not entry.startswith(_REGEX) and entry == name


def _plain_equal(entry: str, name: str) -> bool:
    return entry == name


def _part(entry: str, name: str) -> bool:
    return entry in name


def _part_any_case(entry: str, name: str) -> bool:
    return not entry.startswith(_REGEX) and entry.lower() in name.lower()


def _whole_glob(entry: str, name: str) -> bool:
    return _glob(entry)(name) is not None


def _regex(entry: str, name: str) -> bool:
    if not entry.startswith(_REGEX):
        return False
    match = _pattern(entry[len(_REGEX) :])
    return match is not None and match(name) is not None


def _suffix(entry: str, name: str) -> bool:
    return name == entry or name.endswith("." + entry)


#: Ways of matching by the name a contract gives them.
WAYS: dict[str, Callable[[str, str], bool]] = {
    "equal": _plain_equal,
    "equal_name": _equal,
    "part": _part,
    "part_any_case": _part_any_case,
    "glob": _whole_glob,
    "regex": _regex,
    "suffix": _suffix,
}


def way_of(entry: str, name: str, ways: Iterable[str]) -> str | None:
    """Return the first of the `ways` in which an entry matches a name; None when none does.

    Raises ContractError for a way that does not exist.
    """
    for way in ways:
        test = WAYS.get(way)
        if test is None:
            raise ContractError(f"no way of matching is called {way!r}; there are {', '.join(WAYS)}")
        if test(entry, name):
            return way
    return None


def broken_patterns(entries: Iterable[str]) -> list[str]:
    """Return the entries whose regular expression does not compile."""
    return [e for e in entries if e.startswith(_REGEX) and _pattern(e[len(_REGEX) :]) is None]


def rewrite(written: Iterable[str], steps: Iterable[Mapping[str, Any]], *, offset: int, layers: int) -> list[Entry]:
    """Apply a release's rewriting of entries: the steps of a contract, in order, each to all that came of the last.

    ``split``: an entry that ends in it, unless what is before ends in ``not_after``, becomes the two in ``into``.
    ``shift``: a layer number (the last group of the pattern) below `layers` is raised by `offset`; with ``keeps`` the
    entry stays as well. ``sub``: the pattern is replaced.
    """
    held = [Entry(e, e) for e in written]
    for step in steps:
        after: list[Entry] = []
        for entry in held:
            after += [Entry(entry.written, text) for text in _step(entry.held, step, offset, layers)]
        held = after
    return held


def _step(text: str, step: Mapping[str, Any], offset: int, layers: int) -> list[str]:
    if "split" in step:
        mark = step["split"]
        stem = text[: -len(mark)] if text.endswith(mark) else ""
        if stem and not stem.endswith(step.get("not_after", "\0")):
            return [into.replace("{}", stem) for into in step["into"]]
        return [text]
    if "shift" in step:
        if offset == 0:
            return [text]
        moved = re.sub(step["shift"], lambda m: _shifted(m, offset, layers), text)
        return [text, moved] if step.get("keeps") and moved != text else [moved]
    return [re.sub(step["sub"], step["to"], text)]


def _shifted(match: re.Match[str], offset: int, layers: int) -> str:
    last = match.lastindex or 0
    number = int(match.group(last))
    if number >= layers:
        return match.group(0)
    begin, end = match.span(last)
    start = match.start(0)
    whole = match.group(0)
    return whole[: begin - start] + str(number + offset) + whole[end - start :]
