"""Where reports go: standard output, a file for it, a file for each format, and what is refused."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING

import pytest

from dspark_lint.cli.output import Wanted, wanted
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Ran


REFUSED = "demo/exported"


@pytest.mark.parametrize(
    ("formats", "outputs", "expected"),
    [
        ((), (), [("text", None)]),
        (("json",), (), [("json", None)]),
        (("json=a",), (), [("json", "a")]),
        (("json=a", "sarif"), (), [("sarif", None), ("json", "a")]),
        ((), ("a",), [("text", "a")]),
        (("json",), ("a",), [("json", "a")]),
        (("json", "junit=b"), ("a",), [("json", "a"), ("junit", "b")]),
        ((), ("sarif=a",), [("text", None), ("sarif", "a")]),
        ((), ("auto=a",), [("text", None), ("text", "a")]),
        (("json",), ("sarif=a", "junit=b"), [("json", None), ("sarif", "a"), ("junit", "b")]),
        (("json",), ("a", "junit=b"), [("json", "a"), ("junit", "b")]),
        (("json",), ("json=a",), [("json", None), ("json", "a")]),
        (("json=a",), ("json=b",), [("json", "a"), ("json", "b")]),
        ((), ("./a=b",), [("text", "./a=b")]),
        ((), ("sarif=a=b",), [("text", None), ("sarif", "a=b")]),
    ],
    ids=str,
)
def test_where_a_format_goes(
    formats: tuple[str, ...],
    outputs: tuple[str, ...],
    expected: list[tuple[str, str | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every form of the two flags, in any mixture, comes to a format for each place."""
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)

    assert sorted(wanted(formats, outputs), key=str) == sorted((Wanted(*pair) for pair in expected), key=str)


@pytest.mark.parametrize(
    ("formats", "outputs", "message"),
    [
        (("json", "sarif"), (), "several formats for standard output"),
        ((), ("a", "b"), "several files for one format; say which"),
        ((), ("",), "--output: no file named"),
        ((), ("json=",), "--format json=: no file after the equals sign"),
        ((), ("xml=a",), "--format xml: not one of auto, text"),
        ((), ("a=b",), "--format a: not one of auto, text"),
        (("json=a",), ("b",), "every format has a file of its own already"),
        (("json=a",), ("sarif=./a",), "two formats for one file"),
        ((), ("json=a", "sarif=b/../a"), "two formats for one file"),
    ],
    ids=str,
)
def test_what_is_refused(formats: tuple[str, ...], outputs: tuple[str, ...], message: str) -> None:
    """Two documents never share a place, and no place is without a format."""
    with pytest.raises(UsageError) as told:
        wanted(formats, outputs)

    assert message in str(told.value)


def test_one_run_writes_them_all(place: Path, run: Callable[..., Ran]) -> None:
    """Standard output is exactly the document of --format; each file is the document it would have been alone."""
    alone = {fmt: run(REFUSED, "--vllm", "0.32", "--format", fmt) for fmt in ("json", "sarif", "junit", "text")}

    ran = run(
        REFUSED, "--vllm", "0.32", "--format", "json",
        "--output", "sarif=out.sarif", "--output", "junit=out.xml", "--output", "text=out.txt",
    )  # fmt: skip

    assert ran == alone["json"]
    assert {
        "sarif": (place / "out.sarif").read_text("utf-8"),
        "junit": (place / "out.xml").read_text("utf-8"),
        "text": (place / "out.txt").read_text("utf-8"),
    } == {fmt: alone[fmt].out for fmt in ("sarif", "junit", "text")}


def test_a_file_that_cannot_be_written(place: Path, run: Callable[..., Ran]) -> None:
    """Code 2, and nothing on standard output that would read as the whole of the run."""
    ran = run(REFUSED, "--format", "json", "--output", "sarif=no/such/out.sarif", "--output", "junit=out.xml")

    assert ran == (2, "", "dspark-lint: no/such/out.sarif cannot be written: No such file or directory\n")
    assert not (place / "out.xml").exists()


def test_what_is_held_back_is_in_no_document(place: Path, run: Callable[..., Ran]) -> None:
    """Baseline and ignores are applied before anything is rendered: every document says the same."""
    run(REFUSED, "--vllm", "0.32", "--write-baseline", "known.json")

    ran = run(
        REFUSED, "--vllm", "0.32", "--baseline", "known.json", "--format", "json",
        "--output", "sarif=out.sarif", "--output", "gitlab=out.json",
    )  # fmt: skip

    sarif = json.loads((place / "out.sarif").read_text("utf-8"))
    assert ran.code == 0
    assert json.loads(ran.out)["checkpoints"][0]["results"][0]["findings"] == []
    assert sarif["runs"][0]["results"] == []
    assert json.loads((place / "out.json").read_text("utf-8")) == []
