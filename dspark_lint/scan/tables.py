"""Facts about the small integer tables that tie a draft's vocabulary to its target's.

``d2t`` holds offsets: draft id `i` stands for target id ``i + d2t[i]``. ``t2d`` marks the target ids that some draft
id stands for. Nothing here says what is wrong; it counts.
"""

from __future__ import annotations

import math

from itertools import compress, count
from operator import add, gt, lt, not_
from typing import TYPE_CHECKING, NamedTuple, cast


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Found(NamedTuple):
    """Some entries of a table."""

    total: int
    first: int | None
    """The index of the first one."""


_NONE = Found(0, None)


class MaskFacts(NamedTuple):
    """A ``t2d``, and how it goes with the ``d2t`` beside it."""

    entries: int
    """Its length; the size of the target's vocabulary if it is whole."""
    marked: int
    other: Found
    """Entries that are neither 0 nor 1."""
    unmarked: Found
    """Draft ids whose target id the mask does not mark or does not reach; by draft id."""
    unreached: Found
    """Marked target ids that no draft id stands for; by target id."""
    agrees: bool
    """Whether it marks exactly the target ids that the draft ids stand for."""
    agrees_with_absolute: bool
    """Whether it marks exactly the entries of ``d2t``, taken as target ids."""


class TableFacts(NamedTuple):
    """A ``d2t``; indices are draft ids."""

    entries: int
    target_vocab: int | None
    """What it was held against."""
    not_whole: Found
    """Entries that are no whole numbers (a table of floats); they are left out of everything below."""
    lowest: int | None
    """The least target id, None if there are no entries."""
    highest: int | None
    below: Found
    """Entries that lead to a target id below 0."""
    beyond: Found
    """Entries that lead to a target id behind the vocabulary; none if its size is not known."""
    repeated: Found
    """Entries that lead to a target id to which an earlier entry leads."""
    repeated_earlier: int | None
    """That earlier entry, of the first of `repeated`."""
    descending: Found
    """Entries that lead to a lower target id than the entry before."""
    negative: Found
    """Offsets below 0."""
    all_zero: bool
    """Whether every draft id stands for the target id of the same number; not if empty."""
    ascending: bool
    """Whether the entries themselves ascend strictly from 0 or more, as target ids do and offsets seldom."""
    fits_as_absolute: bool
    """Whether the entries themselves, taken as target ids, are distinct and inside the vocabulary."""
    mask: MaskFacts | None

    @property
    def looks_absolute(self) -> bool:
        """Whether the entries speak for being target ids rather than offsets."""
        if self.mask is not None:
            return not self.mask.agrees and (self.mask.agrees_with_absolute or (self.ascending and self.entries > 1))
        return self.beyond.total > 0 and self.fits_as_absolute


def table_facts(
    d2t: Sequence[float], t2d: Sequence[float] | None = None, target_vocab: int | None = None
) -> TableFacts:
    """Look through ``d2t``, against ``t2d`` (the mask, one entry a target id) and the target's vocabulary if known.

    Without `target_vocab` the length of ``t2d`` stands in for it.
    """
    if target_vocab is None and t2d is not None:
        target_vocab = len(t2d)
    end = math.inf if target_vocab is None else target_vocab
    ids, offsets, not_whole = _whole(d2t)
    targets = list(map(add, ids, offsets))
    lowest, highest = min(targets, default=None), max(targets, default=None)
    least, most = min(offsets, default=0), max(offsets, default=0)
    repeated, earlier = _repeats(ids, targets)
    # Tables are large and mostly in order: what is quick to rule out is not counted.
    return TableFacts(
        entries=len(d2t),
        target_vocab=target_vocab,
        not_whole=not_whole,
        lowest=lowest,
        highest=highest,
        below=_NONE if lowest is None or lowest >= 0 else _found(ids, [target < 0 for target in targets]),
        beyond=_NONE if highest is None or highest < end else _found(ids, [target >= end for target in targets]),
        repeated=repeated,
        repeated_earlier=earlier,
        descending=_NONE if sorted(targets) == targets else _found(ids[1:], list(map(gt, targets, targets[1:]))),
        negative=_NONE if least >= 0 else _found(ids, [offset < 0 for offset in offsets]),
        all_zero=bool(offsets) and not least and not most,
        ascending=bool(offsets) and least >= 0 and all(map(lt, offsets, offsets[1:])),
        fits_as_absolute=bool(offsets) and least >= 0 and most < end and len(set(offsets)) == len(offsets),
        mask=None if t2d is None else _mask(t2d, ids, targets, offsets),
    )


def _whole(d2t: Sequence[float]) -> tuple[Sequence[int], Sequence[int], Found]:
    """The draft ids whose entry is a whole number, and those entries."""
    if set(map(type, d2t)) <= {int}:
        return range(len(d2t)), cast("Sequence[int]", d2t), _NONE
    good = [isinstance(number, int) or number.is_integer() for number in d2t]
    ids = list(compress(count(), good))
    return ids, [int(d2t[i]) for i in ids], _found(count(), list(map(not_, good)))


def _found(indices: Iterable[int], which: Sequence[bool]) -> Found:
    return Found(sum(which), next(compress(indices, which), None))


def _repeats(ids: Sequence[int], targets: Sequence[int]) -> tuple[Found, int | None]:
    """The entries that lead where an earlier one leads, and the earlier one of the first of them."""
    if len(set(targets)) == len(targets):
        return _NONE, None
    owner: dict[int, int] = {}
    again = [owner.setdefault(target, i) != i for i, target in zip(ids, targets, strict=True)]
    return _found(ids, again), owner[targets[again.index(True)]]


def _mask(t2d: Sequence[float], ids: Sequence[int], targets: Sequence[int], offsets: Sequence[int]) -> MaskFacts:
    marked = set(compress(count(), t2d))
    reached = set(targets)
    unreached = marked - reached
    return MaskFacts(
        entries=len(t2d),
        marked=len(marked),
        other=_NONE if set(t2d) <= {0, 1} else _found(count(), [number not in (0, 1) for number in t2d]),
        unmarked=_NONE if reached <= marked else _found(ids, [target not in marked for target in targets]),
        unreached=Found(len(unreached), min(unreached, default=None)),
        agrees=marked == reached,
        agrees_with_absolute=marked == set(offsets),
    )
