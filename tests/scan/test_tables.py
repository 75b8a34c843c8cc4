"""The facts of d2t and t2d: the kinds of damage that were seen in public, and what is in order."""

from __future__ import annotations

import math

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from dspark_lint.scan.tables import Found, MaskFacts, TableFacts, table_facts


NONE = Found(0, None)
KEPT = [1, 2, 5, 7]
OFFSETS = [1, 1, 3, 4]


def mask(kept: list[int], size: int = 10) -> list[bool]:
    return [i in kept for i in range(size)]


GOOD = TableFacts(
    entries=4,
    target_vocab=10,
    not_whole=NONE,
    lowest=1,
    highest=7,
    below=NONE,
    beyond=NONE,
    repeated=NONE,
    repeated_earlier=None,
    descending=NONE,
    negative=NONE,
    all_zero=False,
    ascending=False,
    fits_as_absolute=False,
    mask=MaskFacts(10, 4, NONE, NONE, NONE, agrees=True, agrees_with_absolute=False),
)
AMISS = GOOD.mask._replace(agrees=False) if GOOD.mask else None


def amiss(**changes: Any) -> MaskFacts:
    assert AMISS is not None
    return AMISS._replace(**changes)


CASES: dict[str, tuple[list[Any], list[Any] | None, int | None, TableFacts]] = {
    "in order": (OFFSETS, mask(KEPT), 10, GOOD),
    "sizes from the mask": (OFFSETS, mask(KEPT), None, GOOD),
    "no mask": (OFFSETS, None, 10, GOOD._replace(mask=None)),
    "nothing known of the target": (OFFSETS, None, None, GOOD._replace(mask=None, target_vocab=None)),
    "absolute ids": (
        KEPT,
        mask(KEPT),
        10,
        GOOD._replace(
            lowest=1,
            highest=10,
            beyond=Found(1, 3),
            ascending=True,
            fits_as_absolute=True,
            mask=amiss(unmarked=Found(2, 1), unreached=Found(2, 2), agrees_with_absolute=True),
        ),
    ),
    "absolute ids, no mask": (
        KEPT,
        None,
        10,
        GOOD._replace(highest=10, beyond=Found(1, 3), ascending=True, fits_as_absolute=True, mask=None),
    ),
    "zeros over a mask that is no prefix": (
        [0, 0, 0, 0],
        mask(KEPT),
        10,
        GOOD._replace(lowest=0, highest=3, all_zero=True, mask=amiss(unmarked=Found(2, 0), unreached=Found(2, 5))),
    ),
    "identity": (
        [0, 0, 0, 0],
        [True] * 4,
        4,
        GOOD._replace(
            target_vocab=4,
            lowest=0,
            highest=3,
            all_zero=True,
            mask=MaskFacts(4, 4, NONE, NONE, NONE, agrees=True, agrees_with_absolute=False),
        ),
    ),
    "one too many": (
        [2, 2, 4, 5],
        mask(KEPT),
        10,
        GOOD._replace(
            lowest=2, highest=8, mask=amiss(unmarked=Found(3, 1), unreached=Found(3, 1))._replace(agrees=False)
        ),
    ),
    "another mask": (
        OFFSETS,
        mask([1, 2, 5, 8]),
        10,
        GOOD._replace(mask=amiss(unmarked=Found(1, 3), unreached=Found(1, 8))),
    ),
    "mask of another vocabulary": (
        OFFSETS,
        mask([1, 2, 5], 6),
        10,
        GOOD._replace(mask=amiss(entries=6, marked=3, unmarked=Found(1, 3))),
    ),
    "twice the same": (
        [1, 0, 3, 4],
        None,
        10,
        GOOD._replace(mask=None, repeated=Found(1, 1), repeated_earlier=0, fits_as_absolute=True),
    ),
    "below and behind": (
        [-1, 9, 3, -5],
        None,
        10,
        GOOD._replace(
            mask=None,
            lowest=-2,
            highest=10,
            below=Found(2, 0),
            beyond=Found(1, 1),
            descending=Found(2, 2),
            negative=Found(2, 0),
        ),
    ),
    "no order": ([7, 4, 0, -2], None, 10, GOOD._replace(mask=None, descending=Found(3, 1), negative=Found(1, 3))),
    "floats": ([1.0, 1.0, 3.0, 4.0], mask(KEPT), 10, GOOD),
    "broken floats": (
        [1.0, math.nan, 3.0, 4.5],
        None,
        10,
        GOOD._replace(mask=None, not_whole=Found(2, 1), highest=5, ascending=True, fits_as_absolute=True),
    ),
    "no mask at all": (
        OFFSETS,
        [0, 1, 2, 0, 0, 1, 0, 255, 0, 0],
        10,
        GOOD._replace(mask=GOOD.mask._replace(other=Found(2, 2)) if GOOD.mask else None),
    ),
    "empty": (
        [],
        [],
        10,
        GOOD._replace(
            entries=0,
            lowest=None,
            highest=None,
            mask=MaskFacts(0, 0, NONE, NONE, NONE, agrees=True, agrees_with_absolute=True),
        ),
    ),
}


@pytest.mark.parametrize(("d2t", "t2d", "vocabulary", "facts"), CASES.values(), ids=CASES)
def test_facts(d2t: list[Any], t2d: list[Any] | None, vocabulary: int | None, facts: TableFacts) -> None:
    """Every fact of one pair of tables."""
    assert table_facts(d2t, t2d, vocabulary) == facts


@pytest.mark.parametrize(
    ("d2t", "t2d", "vocabulary", "absolute"),
    [
        (OFFSETS, mask(KEPT), 10, False),
        (OFFSETS, None, 10, False),
        (KEPT, mask(KEPT), 10, True),
        (KEPT, mask(KEPT), None, True),
        (KEPT, None, 10, True),
        (KEPT, None, 100, False),
        (KEPT, mask([0, 2, 5, 7]), 100, True),
        ([0, 1, 2, 3], mask([0, 2, 4, 6]), 10, False),
        ([0, 1, 2, 3], mask([0, 1, 2, 3]), 10, True),
        ([0, 0, 0, 0], mask(KEPT), 10, False),
        ([3, 9, 9, 9], None, 10, False),
        ([5, 2, 6, 1], mask(KEPT), 10, False),
        ([7, 2, 5, 1], mask(KEPT), 10, True),
        ([0], mask([0]), 10, False),
        ([], None, 10, False),
    ],
    ids=[
        "offsets",
        "offsets without a mask",
        "ids",
        "ids and only the mask",
        "ids beyond the vocabulary",
        "ids that would do as offsets too",
        "ids beside another mask",
        "offsets that ascend",
        "ids from zero",
        "zeros",
        "offsets out of range",
        "neither",
        "ids in no order",
        "both",
        "empty",
    ],
)
def test_looks_absolute(d2t: list[int], t2d: list[bool] | None, vocabulary: int | None, absolute: bool) -> None:
    """Target ids in the place of offsets are known by the mask, or by where they lead."""
    assert table_facts(d2t, t2d, vocabulary).looks_absolute is absolute


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(61, 80))
def test_every_proper_table(kept: set[int], size: int) -> None:
    """Tables made from a set of target ids, as exporters make them, are in order; the ids themselves are known."""
    ids = sorted(kept)
    marks = mask(ids, size)

    facts = table_facts([target - i for i, target in enumerate(ids)], marks, size)
    wrong = table_facts(ids, marks, size)

    assert (facts.below, facts.beyond, facts.repeated, facts.descending, facts.negative) == (NONE,) * 5
    assert facts.mask is not None
    assert facts.mask.agrees
    assert not facts.looks_absolute
    assert wrong.looks_absolute == (len(ids) > 1)


@given(st.lists(st.integers(-5, 12), max_size=8), st.lists(st.integers(0, 1), max_size=12))
def test_counts_are_counts(d2t: list[int], t2d: list[int]) -> None:
    """Against loops that say the same once more."""
    facts = table_facts(d2t, t2d, len(t2d))
    targets = [i + offset for i, offset in enumerate(d2t)]
    again = [i for i, target in enumerate(targets) if target in targets[:i]]
    unmarked = [i for i, target in enumerate(targets) if not 0 <= target < len(t2d) or not t2d[target]]
    unreached = [i for i, mark in enumerate(t2d) if mark and i not in targets]

    assert facts.repeated == Found(len(again), min(again, default=None))
    assert facts.repeated_earlier == (targets.index(targets[again[0]]) if again else None)
    assert facts.mask is not None
    assert facts.mask.unmarked == Found(len(unmarked), min(unmarked, default=None))
    assert facts.mask.unreached == Found(len(unreached), min(unreached, default=None))
    assert facts.mask.agrees is ({i for i, mark in enumerate(t2d) if mark} == set(targets))
