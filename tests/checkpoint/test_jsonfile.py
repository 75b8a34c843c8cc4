"""JSON documents: what is read, what is refused, what is said beside the value."""

from __future__ import annotations

import json
import sys

from typing import TYPE_CHECKING, Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_lint.checkpoint import KINDS, open_checkpoint
from dspark_lint.checkpoint.jsonfile import (
    MAX_DEPTH,
    MAX_DOCUMENT,
    count_strings,
    deeper_than,
    parse_document,
    quoted_strings,
)


if TYPE_CHECKING:
    from pathlib import Path


NAME = "config.json"

FATAL: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "empty", "`config.json` is empty"),
    "spaces": (b" \n\t\r\n", "empty", "`config.json` is empty"),
    "byte order mark": (
        b"\xef\xbb\xbf{}",
        "bom",
        "`config.json` begins with a byte order mark, which JSON readers refuse",
    ),
    "UTF-16 with mark": ('{"a": 1}'.encode("utf-16"), "not-utf8", "`config.json` is UTF-16, not UTF-8"),
    "UTF-16 without": (
        '{"a": 1}'.encode("utf-16-le"),
        "not-utf8",
        "`config.json` has a NUL byte at its beginning: UTF-16 or UTF-32 without a byte order mark",
    ),
    "Latin-1": (b'{"a": "\xe9"}', "not-utf8", "`config.json` is not UTF-8: byte 0xe9 at offset 7"),
    "not JSON": (
        b'{"a": 1,\n "b": }',
        "not-json",
        "`config.json` is not JSON: Expecting value at line 2, column 7",
    ),
    "cut off": (
        b'{"a": [1, 2',
        "not-json",
        "`config.json` is not JSON: Expecting ',' delimiter at line 1, column 12",
    ),
    "comment": (
        b'{"a": 1} // so',
        "not-json",
        "`config.json` is not JSON: Extra data at line 1, column 10",
    ),
    "YAML": (b"a: 1\n", "not-json", "`config.json` is not JSON: Expecting value at line 1, column 1"),
    "array": (b"[1]", "not-object", "`config.json` holds an array where a JSON object is expected"),
    "string": (b'"a"', "not-object", "`config.json` holds a string where a JSON object is expected"),
    "null": (b"null", "not-object", "`config.json` holds null where a JSON object is expected"),
    "true": (b"true", "not-object", "`config.json` holds a boolean where a JSON object is expected"),
    "number": (b"1", "not-object", "`config.json` holds a number where a JSON object is expected"),
    "digits": (
        b'{"a": ' + b"1" * 10_000 + b"}",
        "bad-number",
        "`config.json` holds an integer of more than 4,300 digits",
    ),
    "100,000 levels": (
        b'{"a":' * 100_000,
        "too-deep",
        f"`config.json` is nested more than {MAX_DEPTH} levels deep",
    ),
    "100,000 levels, closed": (
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "too-deep",
        f"`config.json` is nested more than {MAX_DEPTH} levels deep",
    ),
    "201 levels": (
        b"[" * 0 + b'{"a":' * 200 + b"{}" + b"}" * 200,
        "too-deep",
        f"`config.json` is nested more than {MAX_DEPTH} levels deep",
    ),
    "Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
        "lfs-pointer",
        "`config.json` is a Git LFS pointer, not the file it stands for; run git lfs pull",
    ),
    "HTML": (
        b"\n<!DOCTYPE html>\n<html>",
        "html",
        "`config.json` is an HTML page, most likely an error page saved in place of the download",
    ),
    "zip": (
        b"PK\x03\x04\x14\x00\xff",
        "zip-or-pickle",
        "`config.json` is a zip archive, which is how torch.save writes",
    ),
    "gzip": (b"\x1f\x8b\x08\x00", "other-format", "`config.json` is gzip data"),
}


@pytest.mark.parametrize(("raw", "kind", "detail"), FATAL.values(), ids=FATAL.keys())
def test_refused(raw: bytes, kind: str, detail: str, tmp_path: Path) -> None:
    """A document that no loader can use is None and one fatal problem."""
    (tmp_path / NAME).write_bytes(raw)

    got = open_checkpoint(tmp_path).config

    assert (got.value, got.exists, got.fatal, got.size) == (None, True, True, len(raw))
    assert [(problem.kind, problem.detail, problem.fatal) for problem in got.problems] == [(kind, detail, True)]
    assert kind in KINDS


READ: dict[str, tuple[bytes, Any, list[tuple[str, str | None, str]]]] = {
    "empty object": (b"{}", {}, []),
    "ordinary": (
        b'{"a": [1, 2.5, null, true], "b": {"c": "\\u00e9"}}',
        {"a": [1, 2.5, None, True], "b": {"c": "é"}},
        [],
    ),
    "200 levels": (
        b'{"a":' * 199 + b"{}" + b"}" * 199,
        json.loads('{"a":' * 199 + "{}" + "}" * 199),
        [],
    ),
    "brackets in strings": (b'{"a": "' + b"[" * 1000 + b'"}', {"a": "[" * 1000}, []),
    "long number": (b'{"a": ' + b"1" * 4000 + b"}", {"a": int("1" * 4000)}, []),
    "duplicate key": (
        b'{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "a": 2}',
        {"a": 2, "b": {"c": 3}},
        [
            ("duplicate-key", "/a", "key `a` is written more than once in one object; the last one counts"),
            ("duplicate-key", "/b/c", "key `c` is written more than once in one object; the last one counts"),
        ],
    ),
    "duplicate key in escapes": (
        b'{"a/~b": 1, "a\\/~b": "\\\\\\""}',
        {"a/~b": '\\"'},
        [("duplicate-key", "/a~1~0b", "key `a/~b` is written more than once in one object; the last one counts")],
    ),
    "duplicate key in an array": (
        b'{"a": [0, {"b": 1, "b": 1}]}',
        {"a": [0, {"b": 1}]},
        [("duplicate-key", "/a/1/b", "key `b` is written more than once in one object; the last one counts")],
    ),
    "duplicate inside what is replaced": (
        b'{"a": {"b": 1, "b": 2}, "a": 3}',
        {"a": 3},
        [("duplicate-key", "/a", "key `a` is written more than once in one object; the last one counts")],
    ),
    "Infinity": (
        b'{"a": {"b": [1, -Infinity]}}',
        {"a": {"b": [1, float("-inf")]}},
        [("nan-literal", "/a/b/1", "-Infinity at `/a/b/1` is not JSON")],
    ),
    "1e999": (b'{"a": 1e999}', {"a": float("inf")}, []),
    "1e999 beside Infinity": (
        b'{"a": -1e999, "b": Infinity}',
        {"a": float("-inf"), "b": float("inf")},
        [("nan-literal", "/b", "Infinity at `/b` is not JSON")],
    ),
    "NaN replaced": (
        b'{"a": NaN, "a": 1}',
        {"a": 1},
        [
            ("duplicate-key", "/a", "key `a` is written more than once in one object; the last one counts"),
            ("nan-literal", None, "NaN is not JSON"),
        ],
    ),
    "half a surrogate pair": (b'{"\\ud800": "\\udfff"}', {"\ud800": "\udfff"}, []),
}


@pytest.mark.parametrize(("raw", "value", "problems"), READ.values(), ids=READ.keys())
def test_read(raw: bytes, value: Any, problems: list[tuple[str, str | None, str]]) -> None:
    """What Python's json reads is read, and oddities are told beside it."""
    got, found = parse_document(raw, NAME)

    assert got == value
    assert [(problem.kind, problem.pointer, problem.detail) for problem in found] == problems
    assert not any(problem.fatal for problem in found)


def test_nan() -> None:
    """NaN is kept, and told with its place."""
    value, problems = parse_document(b'{"rope_theta": NaN}', NAME)

    assert value is not None
    assert value["rope_theta"] != value["rope_theta"]
    assert [(problem.kind, problem.pointer, problem.found) for problem in problems] == [
        ("nan-literal", "/rope_theta", "NaN")
    ]


def test_many_oddities_are_counted() -> None:
    """A thousand NaN are told eight times and counted."""
    _, problems = parse_document(b'{"a": [' + b"NaN, " * 999 + b"NaN]}", NAME)

    assert len(problems) == 9
    assert problems[-1].detail == "NaN at `/a/8` is not JSON (and 991 more like it)"


@pytest.mark.parametrize(
    ("name", "size", "kind"),
    [
        (NAME, 200_000_000, "too-large"),
        (NAME, MAX_DOCUMENT + 1, "too-large"),
        (NAME, MAX_DOCUMENT, "not-utf8"),
        ("model.safetensors.index.json", 200_000_000, "too-large"),
    ],
)
def test_large_document_is_not_read(name: str, size: int, kind: str, tmp_path: Path) -> None:
    """A document of 200 MB is turned down by its size alone."""
    with (tmp_path / name).open("wb") as file:
        file.truncate(size)

    got = open_checkpoint(tmp_path).document(name)

    assert [(problem.kind, problem.fatal) for problem in got.problems] == [(kind, True)]
    assert got.size == size


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"0,", b'"",'])
def test_many_small_values_are_turned_down(unit: bytes) -> None:
    """Thirty megabytes of tiny values cost no more than a look."""
    value, problems = parse_document(b'{"a":[' + unit * (30_000_000 // len(unit)) + b"0]}", NAME)

    assert (value, [problem.kind for problem in problems]) == (None, ["too-large"])


def test_missing_document(tmp_path: Path) -> None:
    """A document that is not there says so, and is no document."""
    got = open_checkpoint(tmp_path).quant_file

    assert (got.value, got.exists, got.size) == (None, False, 0)
    assert [(problem.kind, problem.file, problem.fatal) for problem in got.problems] == [
        ("missing", "hf_quant_config.json", True)
    ]


def test_document_is_read_once(tmp_path: Path) -> None:
    """A second look at a document does not go to the disk again."""
    (tmp_path / NAME).write_text('{"a": 1}')
    checkpoint = open_checkpoint(tmp_path)
    first = checkpoint.config
    (tmp_path / NAME).unlink()

    assert checkpoint.document(NAME) is first


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' + b"[" * 100_000, b'{"a": "\\"[' + b'"' + b"[" * 100_000])
def test_raised_recursion_limit_does_not_crash(raw: bytes) -> None:
    """Where the process has raised Python's recursion limit, depth is found without recursion."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        _, problems = parse_document(raw, NAME)
    finally:
        sys.setrecursionlimit(before)

    assert [problem.kind for problem in problems] == ["too-deep"]


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="this Python has no limit on digits")
def test_lifted_digit_limit_does_not_hang() -> None:
    """Where the process has lifted Python's limit on digits, a long number is refused all the same."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        _, problems = parse_document(b'{"a": ' + b"7" * 5_000_000 + b"}", NAME)
    finally:
        sys.set_int_max_str_digits(before)

    assert [problem.kind for problem in problems] == ["bad-number"]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
def test_strings_are_counted_exactly(value: dict[str, Any], ascii_only: bool) -> None:
    """The two counts that notice a repeated key are equal whenever no key is repeated."""
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert quoted_strings(raw) == count_strings(value)


@pytest.mark.parametrize(
    ("value", "limit", "deeper"),
    [({}, 1, False), ({"a": 1}, 1, False), ({"a": []}, 1, True), ({"a": [{}]}, 2, True), ({"a": [{}]}, 3, False)],
)
def test_deeper_than(value: Any, limit: int, deeper: bool) -> None:
    """A scalar is no level, an empty container is one."""
    assert deeper_than(value, limit) is deeper


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=100))
def test_noise(raw: bytes) -> None:
    """Random bytes end in a value or a fatal problem, never in an exception."""
    value, problems = parse_document(raw, NAME)

    assert (value is None) == any(problem.fatal for problem in problems)
    assert all(problem.kind in KINDS for problem in problems)
