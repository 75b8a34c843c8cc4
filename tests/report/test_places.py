"""Lines, columns and paths of findings."""

from __future__ import annotations

import json
import os
import sys

from typing import TYPE_CHECKING

import pytest

from report.samples import KEY, SERVED, TENSOR, checkpoint, options, result

from dspark_lint.finding import Finding, Report
from dspark_lint.report import lines as lines_module
from dspark_lint.report.lines import NOWHERE, Lines, Place
from dspark_lint.report.located import ci_base, located, relative
from dspark_lint.report.places import dotted, subject
from dspark_lint.report.snippet import Row, snippet


if TYPE_CHECKING:
    from pathlib import Path


def at(file: str | None, pointer: str | None) -> Finding:
    """A finding at a place."""
    return KEY._replace(file=file, pointer=pointer)


def test_line_and_column(tmp_path: Path) -> None:
    """A pointer into a JSON file of the checkpoint has a line and a column."""
    assert Lines(checkpoint(tmp_path, "a", ())).of(KEY) == Place(7, 5)


@pytest.mark.parametrize(
    ("file", "pointer"),
    [
        (None, None),
        (None, "/a"),
        ("config.json", None),
        ("model.safetensors", "/a"),
        ("absent.json", "/a"),
        ("directory.json", "/a"),
        ("nul\0.json", "/a"),
        ("x" * 5000 + ".json", "/a"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_no_line(file: str | None, pointer: str | None, tmp_path: Path) -> None:
    """Whatever is no place in a readable JSON file has no line, and nothing is raised."""
    where = checkpoint(tmp_path, "a", ())
    (tmp_path / "a" / "directory.json").mkdir()

    assert Lines(where).of(at(file, pointer)) == NOWHERE


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_no_line_in_a_pipe(tmp_path: Path) -> None:
    """A pipe in a file's place is not opened: it would wait for ever."""
    where = checkpoint(tmp_path, "a", ())
    os.mkfifo(tmp_path / "a" / "pipe.json")

    assert Lines(where).of(at("pipe.json", "/a")) == NOWHERE


def test_no_line_in_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the limit is not read."""
    where = checkpoint(tmp_path, "a", ())
    size = (tmp_path / "a" / "config.json").stat().st_size
    monkeypatch.setattr(lines_module, "LARGEST", size - 1)

    assert Lines(where).of(KEY) == NOWHERE
    monkeypatch.setattr(lines_module, "LARGEST", size)
    assert Lines(where).of(KEY) == Place(7, 5)


def test_the_search_has_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many characters findings have no line; what was found stays known."""
    where = checkpoint(tmp_path, "a", ())
    size = len((tmp_path / "a" / "config.json").read_text())
    monkeypatch.setattr(lines_module, "BUDGET", 2 * size)
    places = Lines(where)

    first = [places.of(at("config.json", pointer)) for pointer in ("/hidden_size", "/block_size", "/architectures")]
    again = [places.of(at("config.json", pointer)) for pointer in ("/hidden_size", "/block_size", "/architectures")]

    assert first == [Place(5, 3), Place(14, 3), NOWHERE]
    assert again == first


def test_a_failing_locator_costs_only_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the search raises, the finding is told without a line."""

    def fail(text: str, pointer: str) -> None:
        raise RuntimeError(text + pointer)

    where = checkpoint(tmp_path, "a", ())
    __import__("dspark_lint.checkpoint.locate")
    monkeypatch.setattr(sys.modules["dspark_lint.checkpoint.locate"], "locate", fail)

    assert Lines(where).of(KEY) == NOWHERE


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """A file that changes while we report does not: all lines are of the same text."""
    places = Lines(checkpoint(tmp_path, "a", ()))
    before = places.of(KEY)
    (tmp_path / "a" / "config.json").unlink()

    assert (before, places.of(at("config.json", "/block_size"))) == (Place(7, 5), Place(14, 3))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'\xef\xbb\xbf{"a": 1}', Place(1, 2)),
        (b'{\r\n  "a": 1}', Place(2, 3)),
        (b'{"\xff": 0,\n "a": 1}', Place(2, 2)),
        (b"", NOWHERE),
        (b"not json", Place(1, 1)),
    ],
    ids=["byte order mark", "CRLF", "no UTF-8", "empty", "no JSON"],
)
def test_broken_files_have_lines_too(raw: bytes, expected: Place, tmp_path: Path) -> None:
    """A file that no parser takes is still searched as far as it goes."""
    where = checkpoint(tmp_path, "a", ())
    (tmp_path / "a" / "config.json").write_bytes(raw)

    assert Lines(where).of(at("config.json", "/a")) == expected


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [("/a", "a"), ("/a/b/0", "a.b.0"), ("/a~1b/c~0d/~01", "a/b.c~d.~1"), ("/", ""), ("//x", ".x")],
)
def test_dotted(pointer: str, expected: str) -> None:
    """A pointer is shown as people write keys."""
    assert dotted(pointer) == expected


def test_subject() -> None:
    """A finding is about its key, its tensor or its module, or about the file."""
    assert [subject(one) for one in (KEY, TENSOR, SERVED, at("config.json", None))] == [
        "dflash_config.mask_token_id",
        "layers.{i}.mlp.up_proj.weight",
        "model.layers.36",
        "",
    ]


def test_relative(tmp_path: Path) -> None:
    """Below the base a path is relative, elsewhere absolute, and an address stays one."""
    where = checkpoint(tmp_path, "a/b", ())
    absolute = f"{tmp_path.as_posix()}/a/b"

    assert relative(where, "config.json", str(tmp_path)) == "a/b/config.json"
    assert relative(where, None, str(tmp_path)) == "a/b"
    assert relative(where, None, absolute) == "."
    assert relative(where, "config.json", str(tmp_path / "other")) == f"{absolute}/config.json"
    assert relative(where._replace(path="hf://org/name"), "config.json", str(tmp_path)) == "hf://org/name/config.json"
    assert relative(where._replace(path="./a://b"), None, str(tmp_path)) == "a/b"


def test_relative_through_a_link(tmp_path: Path) -> None:
    """A base that is named through a link is the same base."""
    where = checkpoint(tmp_path / "real", "a", ())
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert relative(where, "config.json", str(tmp_path / "link")) == "a/config.json"


def test_what_has_no_file_is_at_the_config(tmp_path: Path) -> None:
    """Readers that want a file get config.json for what concerns none, the directory where there is no such file."""
    with_config = checkpoint(tmp_path, "a", (result(SERVED),))
    without = checkpoint(tmp_path, "b", (result(SERVED),))
    (tmp_path / "b" / "config.json").unlink()
    found = located(Report((with_config, without), "1"), options(tmp_path))

    assert [(one.path, one.place) for one in found] == [("a/config.json", NOWHERE), ("b", NOWHERE)]


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_ci_base(variable: str, tmp_path: Path) -> None:
    """Paths count from the CI system's workspace when we run inside it, and only then."""
    inside = tmp_path / "work" / "sub"
    inside.mkdir(parents=True)
    environ = {variable: str(tmp_path / "work")}

    assert ci_base(options(inside, environ=environ)) == str(tmp_path / "work")
    assert ci_base(options(tmp_path, environ=environ)) == str(tmp_path)
    assert ci_base(options(inside, environ={variable: "work"})) == str(inside)
    assert ci_base(options(inside, environ={})) == str(inside)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("a\nb\nc\nd\ne\nf\n", Place(3, 1), [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]),
        ("a\nb\nc\n", Place(1, 1), [(1, "a"), (2, "b"), (3, "c")]),
        ("a\nb\nc\n", Place(3, 1), [(1, "a"), (2, "b"), (3, "c")]),
        ("a", Place(1, 1), [(1, "a")]),
        ("\ta\x1b\r\n", Place(1, 2), [(1, "  a\\x1b")]),
        ("a\nb", Place(None, None), []),
    ],
    ids=["middle", "first", "last", "only", "escaped", "nowhere"],
)
def test_snippet(text: str, place: Place, expected: list[tuple[int, str]], tmp_path: Path) -> None:
    """Two lines before and after the place are shown, escaped, with the one that is meant marked."""
    where = checkpoint(tmp_path, "a", ())
    (tmp_path / "a" / "x.json").write_text(text, newline="")

    rows = snippet(Lines(where), "x.json", place)

    assert rows == tuple(Row(number, line, number == place.line) for number, line in expected)


def test_snippet_of_one_line(tmp_path: Path) -> None:
    """A file on one line is cut around the place."""
    where = checkpoint(tmp_path, "a", ())
    text = json.dumps({f"key{i:04}": i for i in range(2000)})
    (tmp_path / "a" / "x.json").write_text(text)
    places = Lines(where)
    (row,) = snippet(places, "x.json", places.of(at("x.json", "/key1000")))

    assert row.text.startswith("…")
    assert row.text.endswith("…")
    assert len(row.text) == 162
    assert '"key1000": 1000' in row.text
