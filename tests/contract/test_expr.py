"""The expression language: values, what is unknown, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.contract.expr import UNKNOWN, compile_expr, evaluate, names_in
from dspark_lint.errors import ContractError


if TYPE_CHECKING:
    from collections.abc import Callable


class Names:
    """A scope of plain names; `missing` does not exist, `u` is unknown."""

    def __init__(self, **names: Any) -> None:
        self.names = {"u": UNKNOWN, "n": 6, "word": "Vanilla", "items": [3, 1, 2], "config": {"a": {"b": 7}}, **names}
        self.asked: list[str] = []

    def get(self, name: str) -> Any:
        """Return a name's value and remember that it was asked for."""
        self.asked.append(name)
        return self.names[name]

    def call(self, name: str) -> Callable[..., Any] | None:
        """Return the one function of this scope."""
        return {"has_tensor": lambda tensor: tensor == "fc.weight"}.get(name)


def value(text: str, **names: Any) -> Any:
    return evaluate(text, Names(**names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4 - 1", 13),
        ("-n // 4", -2),
        ("n % 4", 2),
        ("1 < n <= 6", True),
        ("1 < n < 6", False),
        ("'a' in ['a', 'b'] and 3 not in items", False),
        ("null is None", True),
        ("true and not false", True),
        ("0 or 'second'", "second"),
        ("n and 0", 0),
        ("'yes' if n > 5 else 'no'", "yes"),
        ("[i * 2 for i in items if i > 1]", [6, 4]),
        ("sorted(items)", [1, 2, 3]),
        ("unique([2, 1, 2])", [1, 2]),
        ("range(2, 5)", [2, 3, 4]),
        ("len(items) + min(items) + max(items) + sum(items) + abs(-1)", 14),
        ("ceil_div(7, 2)", 4),
        ("config.a.b", 7),
        ("config['a']['b']", 7),
        ("items[-1]", 2),
        ("items[9]", None),
        ("config.no.such.member", None),
        ("word.anything", None),
        ("lower(word)", "vanilla"),
        ("starts(word, 'Van') and ends(word, 'lla') and contains(word, 'nil')", True),
        ("glob('layers.3.q', 'layers.*.q')", True),
        ("basename('/a/b/')", "b"),
        ("has(config, 'a') and not has(config, 'b') and not has(3, 'a')", True),
        ("keys(config.a)", ["b"]),
        ("keys(3)", []),
        ("to_int('255')", 255),
        ("to_int(255.9)", 255),
        ("to_int('x')", None),
        ("to_float('1e3')", 1000.0),
        ("is_int(true) or is_num(true) or is_int('1')", False),
        ("is_int(1) and is_num(1.5) and is_bool(false) and is_str('') and is_list([]) and is_dict(config)", True),
        ("numbered(layers, 3)", "third"),
        ("numbered(layers, 4)", None),
        ("has_tensor('fc.weight')", True),
        ("any([i > 2 for i in items])", True),
        ("all([i > 2 for i in items])", False),
        ("all([])", True),
    ],
)
def test_values(text: str, expected: Any) -> None:
    """What the language computes, as a loader's Python would."""
    assert value(text, layers={"003": "third", "x": 1}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u", UNKNOWN),
        ("u + 1", UNKNOWN),
        ("not u", UNKNOWN),
        ("u == u", UNKNOWN),
        ("u and false", False),
        ("false and u", False),
        ("u and true", UNKNOWN),
        ("u or true", True),
        ("true or u", True),
        ("u or false", UNKNOWN),
        ("u or 'a default'", UNKNOWN),
        ("1 if u else 1", UNKNOWN),
        ("u.member", UNKNOWN),
        ("items[u]", UNKNOWN),
        ("len(u)", UNKNOWN),
        ("[i for i in u]", UNKNOWN),
        ("[i for i in items if u]", UNKNOWN),
        ("all([u, false])", False),
        ("all([u, true])", UNKNOWN),
        ("any([u, true])", True),
        ("any([u, false])", UNKNOWN),
        ("known(u)", False),
        ("known(null)", True),
        ("n + 'text'", UNKNOWN),
        ("n // 0", UNKNOWN),
        ("n < 'text'", UNKNOWN),
        ("'ab' * n", UNKNOWN),
        ("9223372036854775807 * 9223372036854775807", UNKNOWN),
        ("range(0, 10000000)", UNKNOWN),
        ("max([])", UNKNOWN),
        ("len(3)", UNKNOWN),
        ("sorted([1, 'a'])", UNKNOWN),
    ],
)
def test_unknown(text: str, expected: Any) -> None:
    """What cannot be known decides nothing, unless the other side alone decides; a mistake inside is unknown."""
    result = value(text)

    assert result is expected


def test_unknown_is_no_boolean() -> None:
    """Taking the unknown for true or false is a fault of the tool, not a silent false."""
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(UNKNOWN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "invalid syntax"),
        ("lambda: 1", "Lambda is not part of the language"),
        ("{'a': 1}", "Dict is not part of the language"),
        ("f'{n}'", "JoinedStr is not part of the language"),
        ("n ** 2", "operator Pow is not part of the language"),
        ("n / 2", "operator Div is not part of the language"),
        ("~n", "operator Invert is not part of the language"),
        ("b'x'", "a bytes literal is not part of the language"),
        ("1j", "a complex literal is not part of the language"),
        ("[i for i in items for j in items]", "one `for name in list` at a time"),
        ("[a for a, b in items]", "one `for name in list` at a time"),
        ("word.upper()", "only plain calls"),
        ("len(obj=items)", "only plain calls"),
        ("(n := 3)", "NamedExpr is not part of the language"),
        ("__import__('os')", "no function is called '__import__'"),
        ("missing + 1", "no key, variable or namespace is called 'missing'"),
        ("open('x')", "no function is called 'open'"),
    ],
)
def test_errors_name_the_text(text: str, message: str) -> None:
    """What the language does not have is an error that quotes the expression."""
    with pytest.raises(ContractError) as raised:
        value(text)

    assert repr(text) in str(raised.value)
    assert message in str(raised.value)


def test_members_are_data_only() -> None:
    """A member of a value is looked up in JSON, never in Python."""
    assert value("word.__class__") is None
    assert value("config.__class__.__mro__") is None


def test_what_is_not_needed_is_not_asked() -> None:
    """The other side of a decided condition is never evaluated."""
    scope = Names()

    assert evaluate("true or missing", scope) is True
    assert evaluate("1 if true else missing", scope) == 1
    assert scope.asked == []


def test_comprehension_variable_ends_with_it() -> None:
    """The variable of a comprehension covers a name of the same spelling inside it only."""
    assert value("[n for n in items] + [n]") == [3, 1, 2, 6]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.b + c[d]", {"a", "c", "d"}),
        ("[i + n for i in items if i in other]", {"n", "items", "other"}),
        ("has_tensor('x') and len(y)", {"y"}),
        ("true", {"true"}),
    ],
)
def test_free_names(text: str, names: set[str]) -> None:
    """The names that an expression depends on, without functions and its own variables."""
    assert names_in(text) == names


def test_compiled_once() -> None:
    """One text is compiled once, however often it is evaluated."""
    assert compile_expr("n + 41") is compile_expr("n + 41")
