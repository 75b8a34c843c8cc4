"""VAL with --deep: what all the tensors hold. Without it these rules are said to be unchecked, and nothing is imported."""

from __future__ import annotations

import re

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.order import ordered
from dspark_lint.rules.base import Context, Rule, finding, plural


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding
    from dspark_lint.scan.store import Asked
    from dspark_lint.scan.tally import TensorStats


#: Tables of integers, which have rules of their own.
TABLES = frozenset({"d2t", "t2d"})
#: Names that a message lists before it only counts.
_LISTED = 3


def statistics(ctx: Context) -> Mapping[str, TensorStats]:
    """Return what every tensor holds that the release loads, by its name on disk; empty without --deep."""
    if ctx.deep is None:
        return {}
    if ctx.statistics is None:
        asked = list(_asked(ctx))
        ctx.statistics = dict(zip((one.entry.name for one in asked), ctx.deep.stats(asked), strict=True))
    return ctx.statistics


def _asked(ctx: Context) -> Iterator[Asked]:
    from dspark_lint.scan.store import Asked  # noqa: PLC0415 - only with --deep
    from dspark_lint.scan.tally import TensorSlice  # noqa: PLC0415

    clauses = ctx.contract["values"]
    is_table = re.compile(clauses["rows"]["matches"]).search
    passed = dropped(ctx)
    for canonical, disk in ctx.inventory.disk_of.items():
        if disk in passed or canonical in TABLES:
            continue
        file, entry = ctx.inventory.tensors[disk]
        want = {"nonfinite", "zero"}
        dtype = entry["dtype"]
        if is_scale(ctx, canonical):
            want.add("positive")
            if dtype == "U8" and _scheme_of(ctx, canonical) in clauses["scales"]["exponents"]:
                dtype = "F8_E8M0"
        elif is_table(canonical):
            want.add("rows")
        start = ctx.checkpoint.header(file).data_start
        begin, end = entry["data_offsets"]
        yield Asked(file, TensorSlice(disk, dtype, entry["shape"], start + begin, start + end, frozenset(want)))


def dropped(ctx: Context) -> set[str]:
    """Return the tensors that the loader passes over or refuses; what they hold changes nothing."""
    fit = ctx.inventory.fit
    if fit is not None and not fit.judged:
        return set()
    return {stray.disk for stray in ctx.inventory.strays} - ({s.disk for s in fit.cache_scales} if fit else set())


def is_scale(ctx: Context, canonical: str) -> bool:
    """Whether a tensor is what a quantized weight is multiplied by."""
    return (
        re.search(ctx.contract["values"]["scales"]["matches"], canonical) is not None
        and _scheme_of(ctx, canonical) is not None
    )


def _scheme_of(ctx: Context, canonical: str) -> str | None:
    expected = ctx.inventory.expected.get(canonical)
    scheme = expected.clause.get("scheme") if expected is not None else None
    return scheme if isinstance(scheme, str) else None


def listed(names: list[str]) -> str:
    """Return ``a``, ``a and b``, or ``36 tensors (a, b, c, …)``."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{plural(len(names), 'tensor')} ({', '.join(names[:_LISTED])}{', …' if len(names) > _LISTED else ''})"


def _file(ctx: Context, disk: str) -> str:
    return ctx.inventory.tensors[disk][0]


def _canonical(ctx: Context) -> dict[str, str]:
    return {disk: name for name, disk in ctx.inventory.disk_of.items()}


def broken_numbers(ctx: Context) -> Iterator[Finding]:
    """VAL003, of everything: NaN or infinity in any tensor but a scale, and data that cannot be read at all."""
    found = statistics(ctx)
    names = _canonical(ctx)
    lost = [s for s in found.values() if s.problem is not None]
    if lost:
        yield finding(
            ctx,
            "VAL003",
            {**ctx.contract["values"]["nonfinite"], "effect": "refused"},
            f"{listed([s.name for s in lost])}: {lost[0].problem}; vLLM {ctx.release} reads the same bytes.",
            file=_file(ctx, lost[0].name),
            tensor=lost[0].name,
            expected="readable data",
            found=lost[0].problem,
            count=len(lost),
            fix="copy the file again",
        )
    bad = [s for s in found.values() if (s.nan or s.inf) and not is_scale(ctx, names[s.name])]
    if bad:
        clause = ctx.contract["values"]["nonfinite"]
        first = bad[0]
        numbers = _numbers(sum(s.nan for s in bad), sum(s.inf for s in bad))
        where = f"the first is element {first.first_bad_index:,} of {first.elements:,}" + (
            f" of {first.name}" if len(bad) > 2 else ""
        )
        yield finding(
            ctx,
            "VAL003",
            clause,
            f"{listed([s.name for s in bad])} {'holds' if len(bad) == 1 else 'hold'} {numbers} ({where}); vLLM {ctx.release}: {clause['says']}.",
            file=_file(ctx, first.name),
            tensor=first.name,
            expected="finite numbers",
            found=numbers,
            count=len(bad),
            fix="export the weights again",
        )


def _numbers(nan: int, inf: int) -> str:
    told = [f"{nan:,} NaN"] if nan else []
    if inf:
        told.append("1 infinity" if inf == 1 else f"{inf:,} infinities")
    return " and ".join(told)


def all_zero(ctx: Context) -> Iterator[Finding]:
    """VAL004: tensors in which every number is zero, one finding for each thing that comes of it."""
    names = _canonical(ctx)
    clauses = [(clause, re.compile(clause["matches"]).search) for _, clause in ordered(ctx.contract["values"]["zero"])]
    groups: dict[int, list[TensorStats]] = {}
    for stats in statistics(ctx).values():
        name = names[stats.name]
        if not stats.all_zero or is_scale(ctx, name):
            continue
        number = next(i for i, (_, matches) in enumerate(clauses) if matches(name))
        groups.setdefault(number, []).append(stats)
    for number, group in groups.items():
        clause = clauses[number][0]
        if clause.get("then") == "fine":
            continue
        one = len(group) == 1
        yield finding(
            ctx,
            "VAL004",
            clause,
            f"every number of {listed([s.name for s in group])} is zero; vLLM {ctx.release} loads {'it' if one else 'them'} as {'it is' if one else 'they are'}: {clause['says']}.",
            file=_file(ctx, group[0].name),
            tensor=group[0].name,
            expected="trained weights",
            found="zeros",
            count=len(group),
            fix="export the weights again" if clause.get("effect") != "advice" else None,
        )


def dead_rows(ctx: Context) -> Iterator[Finding]:
    """VAL005: rows of a table that tokens look up which hold one number throughout, or are the row before again."""
    clause = ctx.contract["values"]["rows"]
    for stats in statistics(ctx).values():
        zero, constant, repeated = stats.zero_rows, stats.constant_rows, stats.repeated_rows
        if zero is None or constant is None or repeated is None or stats.all_zero or stats.nan == stats.elements:
            continue
        rows = ctx.inventory.tensors[stats.name][1]["shape"][0]
        told: tuple[str, str, int, bool] | None = None
        if constant.total:
            told = (
                "one number throughout, other than zero",
                _first(constant.first, constant.total),
                constant.total,
                True,
            )
        elif repeated.total * 2 > rows and repeated.total > zero.total:
            told = (
                "what the row before holds, bit for bit",
                _first(repeated.first, repeated.total),
                repeated.total,
                True,
            )
        elif zero.total * 2 > rows:
            told = "zeros only", _first(zero.first, zero.total), zero.total, True
        elif zero.total > 1:  # one is what an embedding keeps for padding
            told = "zeros only", _first(zero.first, zero.total), zero.total, False
        if told is None:
            continue
        what, which, count, certain = told
        reason = clause["says"] if certain else f"harmless where it pads the vocabulary; elsewhere {clause['says']}"
        yield finding(
            ctx,
            "VAL005",
            clause,
            f"{plural(count, 'row')} of the {rows:,} of {stats.name} {'holds' if count == 1 else 'hold'} {what} ({which}); vLLM {ctx.release} looks {'it' if count == 1 else 'them'} up by token: {reason}.",
            effect="silent" if certain else "advice",
            severity=clause["severity"] if certain else "info",
            file=_file(ctx, stats.name),
            tensor=stats.name,
            expected="a row of its own for every token",
            found=f"{plural(count, 'row')} of {what}",
            count=count,
            fix="export the table again" if certain else None,
        )


def _first(rows: tuple[int, ...], total: int) -> str:
    return f"{'row' if total == 1 else 'rows'} {', '.join(map(str, rows))}{', …' if total > len(rows) else ''}"


class Scale(NamedTuple):
    """A tensor of scales and how many of them are of which kind."""

    disk: str
    elements: int
    broken: int
    """NaN or infinite."""
    negative: int
    zero: int


def broken_scales(ctx: Context) -> Iterator[Finding]:
    """VAL006, of everything: scales that are no positive numbers."""
    names = _canonical(ctx)
    scales = [
        Scale(s.name, s.elements, s.nan + s.inf, s.negative, s.zero)
        for s in statistics(ctx).values()
        if is_scale(ctx, names[s.name])
    ]
    yield from scale_faults(
        ctx,
        [s for s in scales if s.broken],
        [s for s in scales if s.negative and not s.broken],
        [s for s in scales if s.zero and not s.negative and not s.broken],
    )


def scale_faults(ctx: Context, broken: list[Scale], negative: list[Scale], zero: list[Scale]) -> Iterator[Finding]:
    """Tell of scales that are no positive numbers, one finding for each way in which they are none."""
    clause = ctx.contract["values"]["scales"]
    for kind, scales, count in (
        ("NaN or infinite", broken, sum(s.broken for s in broken)),
        ("below zero", negative, sum(s.negative for s in negative)),
        ("zero", zero, sum(s.zero for s in zero)),
    ):
        if not scales:
            continue
        # a block of zeros may keep a scale of zero; a tensor, or all blocks of it, may not
        some = kind == "zero" and all(s.zero < s.elements for s in scales)
        total = sum(s.elements for s in scales)
        share = f"{count:,} of the {total:,} numbers of " if total > len(scales) else ""
        verb = "is" if count == 1 or (not share and len(scales) == 1) else "are"
        first = scales[0].disk
        yield finding(
            ctx,
            "VAL006",
            clause,
            f"{share}{listed([s.disk for s in scales])} {verb} {kind}; vLLM {ctx.release}: {clause['says']}.",
            severity="warning" if some else "error",
            file=_file(ctx, first),
            tensor=first,
            expected="positive numbers",
            found=f"{count:,} {kind}",
            count=len(scales),
            fix="quantize the weights again, and export the scales that come of it",
        )


def _rule(
    number: str, title: str, rationale: str, remedy: str, check: Any, *, warning: bool = False, fires: str, quiet: str
) -> Rule:
    return Rule(
        number,
        title,
        rationale,
        remedy,
        "warning" if warning else "error",
        "silent",
        check,
        ("family", "weights", "deep"),
        fires=fires,
        quiet=quiet,
    )


RULES = (
    _rule(
        "VAL004",
        "A tensor of zeros",
        "No loader looks at what it copies. A norm, a projection or a head of zeros is data that was never written or a module that was never trained. Needs --deep.",
        "Export the weights again.",
        all_zero,
        fires="fc.weight of zeros",
        quiet="trained weights, zero biases",
    ),
    _rule(
        "VAL005",
        "Rows of a table that carry nothing",
        "An embedding is looked up row by row; rows of one number, or most rows alike, are memory that was allocated and not filled. A few rows of zeros are common padding and only mentioned. Needs --deep.",
        "Export the table again.",
        dead_rows,
        warning=True,
        fires="ten rows of markov_head.markov_w1.weight of ones",
        quiet="one row of zeros for the padding token",
    ),
)
