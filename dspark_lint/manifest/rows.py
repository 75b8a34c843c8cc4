"""The rows of a manifest: one tensor each, or one pattern for many.

``[name, dtype, shape]`` is a tensor. ``[name, dtype, shape, {"i": [0, 35], "e": [0, 255]}]`` is every tensor
that comes of putting the numbers of those ranges (both ends included) for ``{i}`` and ``{e}`` in the name.
``{"group": "decoder_layer", "prefix": "layers.3."}`` is a named group of rows with a prefix before each name.
"""

from __future__ import annotations

import re

from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspark_lint.errors import DsparkLintError


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


#: More tensors than this in one manifest is a mistake (or an attack), not a checkpoint.
MAX_TENSORS: Final = 2_000_000
#: What stands for the numbers of a name, from left to right: layer, expert, and what may come after.
LETTERS: Final = ("i", "e", "j", "k", "m", "n")
# A dot-separated part that is a number as Python writes it; "007" is text.
_NUMBER: Final = re.compile(r"(?<![^.])(?:0|[1-9][0-9]{0,8})(?![^.])")


class ManifestError(DsparkLintError):
    """A manifest does not say what a manifest must say; the message names the place."""


class Tensor(NamedTuple):
    """One tensor as a header names it."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def expand(rows: Iterable[Any], groups: Mapping[str, Sequence[Any]], where: str) -> Iterator[Tensor]:
    """Every tensor of `rows`, in their order; `where` is for the message of a ManifestError."""
    for position, row in enumerate(rows):
        place = f"{where}[{position}]"
        if isinstance(row, dict):
            members = groups.get(row.get("group", ""))
            if members is None or not isinstance(row.get("prefix"), str):
                raise ManifestError(f"{place}: a group row needs the name of a group and a prefix, not {row!r}")
            for tensor in expand(members, {}, f"groups/{row['group']}"):
                yield tensor._replace(name=row["prefix"] + tensor.name)
            continue
        name, dtype, shape, ranges = _row(row, place)
        if not ranges:
            yield Tensor(name, dtype, shape)
            continue
        letters = tuple(ranges)
        pieces = re.split("|".join(rf"(\{{{letter}\}})" for letter in letters), name)
        parts = [piece for piece in pieces if piece is not None]
        if {part[1:-1] for part in parts if part[:1] == "{"} < set(letters):
            raise ManifestError(f"{place}: {name!r} does not use every range of {sorted(ranges)}")
        for numbers in product(*(range(first, last + 1) for first, last in ranges.values())):
            known = {f"{{{letter}}}": str(number) for letter, number in zip(letters, numbers, strict=True)}
            yield Tensor("".join([known.get(part, part) for part in parts]), dtype, shape)


def _row(row: Any, place: str) -> tuple[str, str, tuple[int, ...], dict[str, tuple[int, int]]]:
    try:
        name, dtype, shape, *rest = row
        ranges = {str(letter): (int(first), int(last)) for letter, (first, last) in (rest[0] if rest else {}).items()}
        dims = tuple(map(int, shape))
    except (TypeError, ValueError, AttributeError) as error:
        raise ManifestError(f"{place}: not [name, dtype, shape] with optional ranges: {row!r}") from error
    if not isinstance(name, str) or not isinstance(dtype, str) or len(rest) > 1 or any(dim < 0 for dim in dims):
        raise ManifestError(f"{place}: not [name, dtype, shape] with optional ranges: {row!r}")
    count = 1
    for first, last in ranges.values():
        count *= max(last - first + 1, 0)
    if count > MAX_TENSORS:
        raise ManifestError(f"{place}: stands for {count:,} tensors; {MAX_TENSORS:,} is the limit")
    return name, dtype, dims, ranges


def collapse(tensors: Iterable[Tensor]) -> list[list[Any]]:
    """The fewest rows that stand for exactly `tensors`; the order among them is not kept."""
    alike: dict[tuple[str, str, tuple[int, ...], int], set[tuple[int, ...]]] = {}
    for name, dtype, shape in tensors:
        numbers = tuple(map(int, _NUMBER.findall(name)))
        # A name that looks like a pattern already, or has more numbers than there are letters, is left as it is.
        if "{" in name or len(numbers) > len(LETTERS):
            alike.setdefault((name, dtype, shape, -1), {()})
            continue
        letters = iter(LETTERS)
        template = _NUMBER.sub(lambda _: "{" + next(letters) + "}", name)  # noqa: B023 - used at once
        alike.setdefault((template, dtype, shape, len(numbers)), set()).add(numbers)
    rows: list[list[Any]] = []
    for (template, dtype, shape, count), members in alike.items():
        if count <= 0:
            rows.append([template, dtype, list(shape)])
            continue
        for box in _boxes(sorted(members)):
            name, ranges = template, {}
            for letter, (first, last) in zip(LETTERS, box, strict=False):
                if first == last:
                    name = name.replace(f"{{{letter}}}", str(first))
                else:
                    ranges[letter] = [first, last]
            rows.append([name, dtype, list(shape), *([ranges] if ranges else [])])
    return sorted(rows, key=lambda row: (_NUMBER.sub("{", row[0]), row[0]))


def _boxes(members: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, int], ...]]:
    """Cover a sorted set of number tuples by boxes of ranges: equal tails over a run of first numbers are one box."""
    tails: dict[int, list[tuple[int, ...]]] = {}
    for first, *rest in members:
        tails.setdefault(first, []).append(tuple(rest))
    runs: list[tuple[int, int, list[tuple[int, ...]]]] = []
    for number, tail in tails.items():
        if runs and runs[-1][1] == number - 1 and runs[-1][2] == tail:
            runs[-1] = (runs[-1][0], number, tail)
        else:
            runs.append((number, number, tail))
    return [((first, last), *rest) for first, last, tail in runs for rest in (_boxes(tail) if tail[0] else [()])]
