"""Escaping, clipping, wrapping, colour: the small parts of the formats for people."""

from __future__ import annotations

import io
import re

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from dspark_lint.report.color import want_color
from dspark_lint.report.escape import clip, name, safe, sentence, whole
from dspark_lint.report.layout import cells, wrap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain layers.0.weight", "plain layers.0.weight"),
        ("größe 日本 🙂", "größe 日本 🙂"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x00\x1b[31m\x7f\x9b", "\\x00\\x1b[31m\\x7f\\x9b"),
        ("\u202e\u2066\u200b\ufeff", "\\u202e\\u2066\\u200b\\ufeff"),
        ("\ud800\udcff", "\\ud800\\udcff"),
        ("\u3164\u2800", "\\u3164\\u2800"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u2028b", "a\\u2028b"),
    ],
    ids=repr,
)
def test_safe(text: str, expected: str) -> None:
    """What a terminal would interpret or not show is written out."""
    assert safe(text) == expected


@given(st.text(st.characters(exclude_categories=[])))
def test_safe_is_printable_and_encodes(text: str) -> None:
    """Whatever comes in, what comes out shows and encodes, and doing it twice changes nothing."""
    out = safe(text)

    assert out.isprintable()
    out.encode("utf-8")
    assert safe(out) == out


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "lon…r"),
        ("abcdefghijkl", 9, "abcde…jkl"),
    ],
)
def test_clip(text: str, limit: int, expected: str) -> None:
    """A long text keeps both of its ends and never exceeds the limit."""
    assert clip(text, limit) == expected
    assert len(expected) <= limit


def test_name_clips_before_it_escapes() -> None:
    """A name is clipped by its own characters; an escape is never cut in two."""
    assert name("\x1b" * 20, 9) == "\\x1b" * 5 + "…" + "\\x1b" * 3


def test_sentence_keeps_its_end() -> None:
    """A long name inside a sentence is clipped, and the sentence goes on behind it."""
    said = sentence(f"{'x' * 10_000} is missing; vLLM 0.32.0 raises.")

    assert said.endswith("xxx is missing; vLLM 0.32.0 raises.")
    assert len(said) == 160 + len(" is missing; vLLM 0.32.0 raises.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\x00", "a\nb\x00"),
        ("日本", "日本"),
        ("x\ud800y\udc80", "x\\ud800y\\udc80"),
        ("\U0001f642", "\U0001f642"),
    ],
    ids=repr,
)
def test_whole(text: str, expected: str) -> None:
    """Strict readers get everything but lone surrogates as it is."""
    assert whole(text) == expected


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", None, ["> one two three"]),
        ("one two three", 15, ["> one two three"]),
        ("one two three four five", 19, ["> one two three", "  four five"]),
        ("one  two three four five", 21, ["> one  two three four", "  five"]),
        ("x" * 40, 22, ["> " + "x" * 20, "  " + "x" * 20]),
        ("ab " + "x" * 25, 22, ["> ab", "  " + "x" * 20, "  xxxxx"]),
        ("日本" * 10, 22, ["> " + "日本" * 5, "  " + "日本" * 5]),
        ("", 20, ["> "]),
    ],
    ids=repr,
)
def test_wrap(text: str, width: int | None, expected: list[str]) -> None:
    """Lines break at blanks, continue under the text, and cut words only when they must."""
    assert wrap(text, width, "> ", "  ") == expected


@given(
    st.lists(st.text(st.sampled_from("abé日🙂\u0301-"), min_size=1, max_size=60), min_size=1, max_size=12),
    st.integers(min_value=26, max_value=90),
)
def test_wrap_loses_nothing_and_keeps_to_the_width(words: list[str], width: int) -> None:
    """No character is lost and no line is wider than asked."""
    lines = wrap(" ".join(words), width, " " * 8, " " * 10)

    assert re.sub(r"\s", "", "".join(lines)) == "".join(words)
    assert max(map(cells, lines)) <= width


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Closed(io.StringIO):
    """A stream that was closed."""

    def isatty(self) -> bool:
        """Raise what a closed stream raises."""
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize(
    ("flag", "stream", "environ", "expected"),
    [
        pytest.param("auto", Terminal(), {}, True, id="terminal"),
        pytest.param("auto", io.StringIO(), {}, False, id="pipe"),
        pytest.param("auto", Closed(), {}, False, id="closed"),
        pytest.param("always", io.StringIO(), {"NO_COLOR": "1"}, True, id="the flag wins over NO_COLOR"),
        pytest.param("never", Terminal(), {"FORCE_COLOR": "1"}, False, id="the flag wins over FORCE_COLOR"),
        pytest.param("auto", Terminal(), {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param("auto", Terminal(), {"NO_COLOR": "0"}, False, id="NO_COLOR means its presence"),
        pytest.param("auto", Terminal(), {"NO_COLOR": ""}, True, id="an empty NO_COLOR is none"),
        pytest.param("auto", io.StringIO(), {"FORCE_COLOR": "1"}, True, id="FORCE_COLOR"),
        pytest.param("auto", io.StringIO(), {"FORCE_COLOR": "0"}, False, id="FORCE_COLOR=0 forces nothing"),
        pytest.param("auto", io.StringIO(), {"FORCE_COLOR": ""}, False, id="an empty FORCE_COLOR is none"),
        pytest.param("auto", io.StringIO(), {"CLICOLOR_FORCE": "1"}, True, id="CLICOLOR_FORCE"),
        pytest.param("auto", io.StringIO(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, id="NO_COLOR wins"),
        pytest.param("auto", Terminal(), {"TERM": "dumb"}, False, id="a dumb terminal"),
        pytest.param("auto", Terminal(), {"TERM": "dumb", "FORCE_COLOR": "1"}, True, id="FORCE_COLOR on a dumb one"),
        pytest.param("auto", Terminal(), {"CLICOLOR": "0"}, False, id="CLICOLOR=0"),
        pytest.param("auto", Terminal(), {"CLICOLOR": "1"}, True, id="CLICOLOR=1 on a terminal"),
        pytest.param("auto", io.StringIO(), {"CLICOLOR": "1"}, False, id="CLICOLOR=1 in a pipe"),
    ],
)
def test_want_color(flag: str, stream: Any, environ: dict[str, str], *, expected: bool) -> None:
    """Colour follows the flag, then the environment, then the stream."""
    assert want_color(flag, stream, environ) is expected
