"""docs/silent-damage.yaml: every line of it holds, of every known way to be served badly."""

from __future__ import annotations

import re

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from rules.build import RELEASES, Told, results, told
from rules.silent_changes import spec
from rules.silent_drafts import DRAFTS, Draft

from dspark_lint.rules import REGISTRY


TABLE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "docs" / "silent-damage.yaml").read_text("utf-8")
)
ROWS: dict[str, dict[str, Any]] = {sid: row for group in TABLE["groups"] for sid, row in group["rows"].items()}
RANK = {"info": 0, "warning": 1, "error": 2}


class Line(NamedTuple):
    """One line under `told`."""

    sid: str
    number: int
    rule: str
    at: str
    answers: dict[str, str]
    """Severity and effect by release."""


def spelt_out(spans: dict[str, str]) -> dict[str, str]:
    """Answers of ranges as one a release."""
    found: dict[str, str] = {}
    for span, answer in spans.items():
        first, _, last = span.partition("..")
        for release in RELEASES[RELEASES.index(first) : RELEASES.index(last or first) + 1]:
            assert release not in found, (release, spans)
            found[release] = answer
    return found


LINES = [
    Line(sid, number, line["rule"], line["at"], spelt_out(line["as"]))
    for sid, row in ROWS.items()
    for number, line in enumerate(row.get("told", ()))
]


def edges(answers: dict[str, str]) -> list[str]:
    """The releases where the answer begins, ends or is another, and their neighbours."""
    all_of_them = [answers.get(release) for release in RELEASES]
    changes = [i for i in range(1, len(RELEASES)) if all_of_them[i] != all_of_them[i - 1]]
    return [RELEASES[i] for i in sorted({0, len(RELEASES) - 1, *changes, *(i - 1 for i in changes)})]


@cache
def _of(draft: Draft, releases: tuple[str, ...]) -> dict[str, tuple[list[Told], list[Told], list[str]]]:
    """By release: what is told of the draft and not of its twin, what is told of the twin, and words of the first."""
    wanted = [f"=={release}" for release in releases]
    broken, sound = (
        {
            release: result.findings
            for one in wanted
            for release, result in results(spec(draft.base, changes), one, deep=draft.deep).items()
        }
        for changes in (draft.broken, draft.sound)
    )
    found = {}
    for release in releases:
        twin = told(sound[release])
        new, rest = [], list(twin)
        for one in told(broken[release]):
            if one in rest:
                rest.remove(one)
            else:
                new.append(one)
        found[release] = new, twin, [f"{f.rule} {f.message}" for f in broken[release]]
    return found


def test_the_table_is_whole() -> None:
    """All 87 numbers stand there once and in order, each with a sentence, and with a rule or the reason for none."""
    spans = ((1, 13), (20, 28), (30, 47), (50, 66), (70, 82), (90, 96), (100, 109))
    wanted = [f"S{n:02}" for first, last in spans for n in range(first, last + 1)]

    assert list(ROWS) == wanted
    assert len(wanted) == 87
    for sid, row in ROWS.items():
        assert set(row) <= {"says", "told", "unseen"}, sid
        assert re.fullmatch(r"[A-Za-z0-9_/\-].*\.", row["says"]), sid
        assert row.get("told") or row.get("unseen"), sid
        assert row.get("unseen", ".").endswith("."), sid


def test_every_line_has_its_draft() -> None:
    """No line goes untested, and no draft is of a line that is not there."""
    assert {sid: len(drafts) for sid, drafts in DRAFTS.items()} == {
        sid: len(row["told"]) for sid, row in ROWS.items() if row.get("told")
    }
    assert {line.rule for line in LINES} <= set(REGISTRY)


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.sid}-{line.number}-{line.rule}")
def test_line(line: Line) -> None:
    """The draft is told by that rule at that place, by nothing as severe beside it, in those releases; its twin never."""
    draft = DRAFTS[line.sid][line.number]
    releases = tuple(edges(line.answers))

    for release, (new, twin, words) in _of(draft, releases).items():
        hits = [t for t in new if (t.rule, t.where) == (line.rule, line.at)]
        answer = line.answers.get(release)
        assert [f"{t.severity} {t.effect}" for t in hits] == ([answer] if answer else []), (release, new, words)
        assert [t for t in twin if (t.rule, t.where) == (line.rule, line.at)] == [], release
        if answer:
            rank = RANK[answer.split()[0]]
            assert [t for t in new if t not in hits and RANK[t.severity] >= rank] == [], (release, words)


def test_severity_follows_certainty() -> None:
    """What is refused is an error, and what is advice is never more than worth knowing."""
    for line in LINES:
        for release, answer in line.answers.items():
            severity, effect = answer.split()
            assert effect != "refused" or severity == "error", (line, release)
            assert effect != "advice" or severity == "info", (line, release)
