"""Words about what was found: printable, short, and without walking further than they show."""

from __future__ import annotations

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from dspark_lint.checkpoint import problems
from dspark_lint.checkpoint.problems import KINDS, count, pointer_to, quote, show


def test_kinds_are_the_constants() -> None:
    """Every constant of the module is in `KINDS`, and nothing else is."""
    constants = {value for name, value in vars(problems).items() if name.isupper() and isinstance(value, str)}

    assert constants == KINDS


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("plain", "`plain`"),
        ("", "``"),
        ("é 漢 😀", "`é 漢 😀`"),
        ("a\nb\x1b[0m", "`a\\nb\\x1b[0m`"),
        ("\ud800", "`\\ud800`"),
        ("\u202e\u200b", "`\\u202e\\u200b`"),
        ("x" * 121, f"`{'x' * 60}…{'x' * 59}`"),
        ([1], "`[1]`"),
    ],
)
def test_quote(text: Any, want: str) -> None:
    """Names come between backquotes, escaped and clipped in the middle."""
    assert quote(text) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        (10**39, "1" + "0" * 39),
        (10**40, "an integer of more than 40 digits"),
        (-(10**5000), "an integer of more than 40 digits"),
        ("a\tb", '"a\\tb"'),
        ([], "[]"),
        ({}, "{}"),
        ([1, "a", None], '[1, "a", null]'),
        ({"a": [1], "b": {}}, '{"a": [1], "b": {}}'),
        ("x" * 100, '"' + "x" * 76 + '…"'),
        (list(range(100)), "[" + ", ".join(map(str, range(21))) + ", …]"),
    ],
    ids=map(str, range(16)),
)
def test_show(value: Any, want: str) -> None:
    """Values come as JSON would write them, clipped."""
    assert show(value) == want


def test_show_does_not_walk() -> None:
    """A deep or an endless value is shown as far as there is room."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)

    assert len(show(deep)) <= 80
    assert len(show(endless)) <= 80


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@given(JSON, st.integers(20, 200))
def test_shown_is_short_and_printable(value: Any, limit: int) -> None:
    """Whatever the value, what is shown of it is short and can be printed."""
    shown = show(value, limit)

    assert shown.isprintable()
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("number", "want"), [(0, "0 bytes"), (1, "1 byte"), (2, "2 bytes"), (1234567, "1,234,567 bytes")]
)
def test_count(number: int, want: str) -> None:
    """Numbers agree with their nouns."""
    assert count(number, "byte") == want


@pytest.mark.parametrize(
    ("parts", "want"), [((), ""), (("a", 0), "/a/0"), (("",), "/"), (("a/b~c", "~1"), "/a~1b~0c/~01")]
)
def test_pointer(parts: tuple[object, ...], want: str) -> None:
    """Pointers escape as RFC 6901 says."""
    assert pointer_to(*parts) == want
