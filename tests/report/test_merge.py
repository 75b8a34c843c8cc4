"""One fault over several releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from report.samples import KEY, SERVED, TENSOR, checkpoint, result

from dspark_lint.finding import Report
from dspark_lint.report.merge import Merged, all_releases, counted, grouped, merge, ranges, tally, unjudged


if TYPE_CHECKING:
    from pathlib import Path

    from dspark_lint.finding import Finding


RELEASES = ["0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.33.0"]


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        ([], ""),
        (["0.26.0"], "0.26.0"),
        (["0.25.0", "0.25.1"], "0.25.0-0.25.1"),
        (["0.25.1", "0.26.0", "0.27.0"], "0.25.1-0.27.0"),
        (["0.33.0", "0.25.0", "0.25.1"], "0.25.0-0.25.1, 0.33.0"),
        (["0.25.0", "0.26.0", "0.33.0"], "0.25.0, 0.26.0, 0.33.0"),
        (RELEASES, "0.25.0-0.33.0"),
        (["9.9.9"], ""),
    ],
    ids=str,
)
def test_ranges(releases: list[str], expected: str) -> None:
    """Neighbours are joined, others listed, in the order of the run."""
    assert ranges(releases, RELEASES) == expected


def test_merge_joins_wording_and_source() -> None:
    """The same subject is one fault: worded as in the newest release, citing each."""
    old = TENSOR._replace(message="old words", source="a.py:1")
    new = TENSOR._replace(message="new words", source="a.py:2")

    assert merge([result(old, release="0.31.0"), result(new, release="0.32.0")]) == [
        Merged(new, "vllm", ("0.31.0", "0.32.0"), (("0.31.0", "a.py:1"), ("0.32.0", "a.py:2")))
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(TENSOR, TENSOR._replace(severity="warning"), id="severity"),
        pytest.param(TENSOR, TENSOR._replace(effect="silent"), id="effect"),
        pytest.param(TENSOR, TENSOR._replace(tensor="other"), id="subject"),
        pytest.param(TENSOR, TENSOR._replace(rule="TEN004"), id="rule"),
    ],
)
def test_merge_keeps_apart(first: Finding, second: Finding) -> None:
    """What means something else in another release is another fault."""
    merged = merge([result(first, release="0.31.0"), result(second, release="0.32.0")])

    assert [(one.finding, one.releases) for one in merged] == [(first, ("0.31.0",)), (second, ("0.32.0",))]


def test_merge_keeps_two_of_one_release() -> None:
    """Two faults of one release about the same subject stay two, and each finds its like in the next release."""
    first, second = SERVED._replace(message="one"), SERVED._replace(message="two")
    merged = merge([result(first, second, release="0.31.0"), result(first, second, release="0.32.0")])

    assert [(one.finding.message, one.releases) for one in merged] == [
        ("one", ("0.31.0", "0.32.0")),
        ("two", ("0.31.0", "0.32.0")),
    ]


def test_merge_puts_the_most_severe_first() -> None:
    """An error of the last release stands before a note of the first."""
    merged = merge([result(SERVED, release="0.31.0"), result(KEY, release="0.32.0"), result(TENSOR, release="0.33.0")])

    assert [one.finding.severity for one in merged] == ["error", "warning", "info"]


def test_source_of_the_newest_that_cites() -> None:
    """The source shown is of the newest release that cites any; none is None."""
    cited, silent = TENSOR._replace(source="a.py:1"), TENSOR._replace(source=None)

    assert merge([result(cited, release="0.31.0"), result(silent, release="0.32.0")])[0].source == "vLLM 0.31.0 a.py:1"
    assert merge([result(silent)])[0].source is None


def test_grouped() -> None:
    """What was not checked is grouped by its reason, with the releases of each."""
    results = [
        result(release="0.31.0", unchecked=(("TGT001", "needs --target"), ("VAL001", "needs --deep"))),
        result(release="0.32.0", unchecked=(("TGT001", "needs --target"),)),
    ]

    assert grouped(results) == {
        "needs --target": {"TGT001": ["0.31.0", "0.32.0"]},
        "needs --deep": {"VAL001": ["0.31.0"]},
    }


def test_unjudged(tmp_path: Path) -> None:
    """Releases that judged nothing are named with the reason; a refusal or a checkpoint that was judged is not."""
    blind = result(release="0.31.0", judged=False, unchecked=(("X", "no draft"),))
    refused = result(TENSOR, release="0.32.0", judged=False)

    assert unjudged(checkpoint(tmp_path, "a", (blind, refused))) == "nothing was judged under vLLM 0.31.0: no draft"
    assert unjudged(checkpoint(tmp_path, "a", (refused,))) is None
    assert unjudged(checkpoint(tmp_path, "a", (blind._replace(unchecked=()),))) == (
        "nothing was judged under vLLM 0.31.0: no reason was given"
    )


def test_counting(tmp_path: Path) -> None:
    """Numbers agree with their nouns, and releases are listed once."""
    report = Report(
        (
            checkpoint(tmp_path, "a", (result(release="0.31.0"), result(release="0.32.0"))),
            checkpoint(tmp_path, "b", (result(release="0.32.0"), result(release="0.33.0"))),
        ),
        "1",
    )

    assert all_releases(report) == ["0.31.0", "0.32.0", "0.33.0"]
    assert [counted(1, "error"), counted(2, "error"), counted(2, "info")] == ["1 error", "2 errors", "2 info"]
    assert tally([SERVED, TENSOR, TENSOR, KEY]) == "2 errors, 1 warning, 1 info"
    assert tally([]) == ""
