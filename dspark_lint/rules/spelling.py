"""Keys of config.json that nobody reads and that are spelt almost like one that a release misses."""

from __future__ import annotations

import difflib

from typing import TYPE_CHECKING, Any

from dspark_lint.runtime_config import accepts


if TYPE_CHECKING:
    from dspark_lint.binding import Key
    from dspark_lint.rules.base import Context


#: How alike two names are of which one is taken for the other misspelt.
_SLIP = 0.92
#: By how many letters they may differ in length, as they are written.
_APART = 4


def wanted_names(key: Key) -> list[str]:
    """Return the last names of the places a key is looked up at."""
    return [step.rpartition(".")[2] for step in _steps(key)]


def _steps(key: Key) -> list[str]:
    """Return the dotted places a key is looked up at."""
    return [(s if isinstance(s, str) else s["path"]).rstrip("?+") for s in key.clause["lookup"]]


def misspelt_as(ctx: Context, key: Key) -> tuple[str, Any] | None:
    """Return a key of the file that nobody reads and that is spelt almost like the wanted one.

    A key that the loader cannot do without is looked for further afield than one whose default it takes.
    """
    stray = _unread(ctx)
    for name in key.clause.get("alike", []):
        if name in stray:
            return stray[name]
    for name in wanted_names(key):
        if key.trouble:
            close = difflib.get_close_matches(name, stray, n=3, cutoff=0.85)
        else:
            close = [other for other in stray if _one_slip(name, other) and other not in _fields(ctx)]
            close = [other for other in close if _beside(ctx, key, stray[other][0])]
        if close:
            return stray[close[0]]
    return None


def _unread(ctx: Context) -> dict[str, tuple[str, Any]]:
    """Return the keys of the file, two levels deep, that no key of the family is looked up as, with place and value."""
    if ctx.unread is None:
        known = {name for key in ctx.binding.keys.values() for name in wanted_names(key)}
        found: dict[str, tuple[str, Any]] = {}
        for outer, value in ctx.binding.config.items():
            if outer not in known:
                found.setdefault(outer, (f"/{outer}", value))
            if isinstance(value, dict):
                for inner, deep in value.items():
                    if inner not in known:
                        found.setdefault(inner, (f"/{outer}/{inner}", deep))
        ctx.unread = found
    return ctx.unread


def _one_slip(wanted: str, other: str) -> bool:
    """Whether two names differ by a letter or two, or in how their words are set apart."""
    # comparing is dear, and of most names it is plain that they differ
    if wanted[:1] != other[:1] or abs(len(wanted) - len(other)) > _APART:
        return False
    one, two = (name.replace("_", "").replace("-", "").lower() for name in (wanted, other))
    if one == two:
        return wanted != other
    if abs(len(one) - len(two)) > 2 or len(set(one) ^ set(two)) > 2:
        return False
    return difflib.SequenceMatcher(None, wanted, other).ratio() >= _SLIP


def _beside(ctx: Context, key: Key, pointer: str) -> bool:
    """Whether a place is of the same mapping as one of those where a key is looked up."""
    places = (ctx.binding.pointer_of(step)[0] for step in _steps(key))
    return any((place or "").rpartition("/")[0] == pointer.rpartition("/")[0] for place in places)


def fits(key: Key, value: Any) -> bool:
    """Whether a value is of the kind that the key takes; what takes anything is meant for the kind of its default."""
    accepted = key.clause.get("type", "any")
    if accepted == "truthy":
        return isinstance(value, bool)
    if accepted in ("to_int", "to_float"):
        return accepts("number", value)
    return accepted == "any" or accepts(accepted, value)


def _fields(ctx: Context) -> set[str]:
    """Return the fields of every configuration class: names that mean something to somebody."""
    classes = ctx.binding.classes.get("config_classes", {}).values()
    return {name for fields in classes if fields for name in fields.get("keys", {})}
