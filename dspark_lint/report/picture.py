"""The tensors of a checkpoint as a picture: expected against found, a row a tensor, a column a layer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.report.escape import clip, safe
from dspark_lint.report.merge import counted


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dspark_lint.report.inventories import Cell, CellState, Inventory, InventoryRow


#: What each state is called; in this order in the legend.
WORDS: dict[CellState, str] = {
    "ok": "as expected",
    "missing": "missing",
    "wrong-shape": "another shape",
    "unexpected": "unexpected",
    "unused": "not used",
}
#: Rows and columns that are drawn; more are counted.
MOST_ROWS = 150
MOST_COLUMNS = 160
_SIDE = 16
_GAP = 3
_STEP = _SIDE + _GAP
#: Width of a character of the labels, in the picture's units; monospaced fonts differ a little.
_CHAR = 7.5
_LABEL = 44
_SHAPES = 52
_HTML = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}


class _Group(NamedTuple):
    """Rows of the inventory that hold the same tensors: the layers, or what stands outside them."""

    labels: list[str]
    lines: dict[str, dict[int, Cell]]
    """By suffix, then by column."""


def picture(inventory: Inventory, ident: str) -> str:
    """Return the inventory as inline SVG, one for each group of like layers; `ident` makes its ids unique."""
    groups = _groups(inventory.rows)
    return "".join(_svg(group, f"{ident}-{i}") for i, group in enumerate(groups))


def sentence(inventory: Inventory) -> str:
    """Return the picture in words: ``40 tensors as expected, 2 missing``."""
    number = Counter(cell.state for row in inventory.rows for cell in row.cells)
    said = [f"{number[state]} {word}" for state, word in WORDS.items() if number[state]]
    return ", ".join(said) or "no tensors"


def key(states: Sequence[CellState]) -> str:
    """Return the legend of the states that occur."""
    items = "".join(
        f'<li><svg width="{_SIDE}" height="{_SIDE}" aria-hidden="true">{_mark(state, 0, 0)}</svg>{word}</li>'
        for state, word in WORDS.items()
        if state in states
    )
    return f'<ul class="key">{items}</ul>'


def _groups(rows: Sequence[InventoryRow]) -> list[_Group]:
    """Put neighbouring rows that share most of their tensors into one group."""
    groups: list[_Group] = []
    for row in rows:
        names = {cell.suffix for cell in row.cells}
        if not names:
            continue
        group = groups[-1] if groups else None
        if group is None or 2 * len(names & group.lines.keys()) < min(len(names), len(group.lines)):
            group = _Group([], {})
            groups.append(group)
        column = len(group.labels)
        group.labels.append(row.label)
        for cell in row.cells:
            group.lines.setdefault(cell.suffix, {})[column] = cell
    return groups


def _svg(group: _Group, ident: str) -> str:
    columns = min(len(group.labels), MOST_COLUMNS)
    # what is wrong is drawn first when not everything is
    lines = list(group.lines.items())
    if len(lines) > MOST_ROWS:
        lines.sort(key=lambda item: all(cell.state == "ok" for cell in item[1].values()))
    drawn = lines[:MOST_ROWS]
    left = round(_CHAR * max(len(_label(suffix)) for suffix, _ in drawn)) + 10
    shapes = [safe(clip(_shapes(cells), _SHAPES)) for _, cells in drawn]
    single = len(group.labels) == 1
    top = 24 if single else 38
    title = group.labels[0] if single else f"{group.labels[0]} to {group.labels[-1]}"
    # the title stands in bold
    width = left + max(columns * _STEP + 10 + round(_CHAR * max(map(len, shapes))), round(1.1 * _CHAR * len(title)))
    height = top + len(drawn) * _STEP + 4
    parts = [
        f'<svg role="img" aria-labelledby="t{ident}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<title id="t{ident}">{_html(title)}: {_html(_words(group))}</title>',
        f'<text x="{0 if single else left}" y="14" class="head">{_html(title)}</text>',
        *("" if single else _numbers(group.labels[:columns], left)),
    ]
    for y, ((suffix, cells), shape) in enumerate(zip(drawn, shapes, strict=True)):
        base = top + y * _STEP
        bad = any(cell.state != "ok" for cell in cells.values())
        parts.append(
            f'<text x="{left - 8}" y="{base + 12}" class="name{" bad" if bad else ""}">{_html(_label(suffix))}</text>'
        )
        for x, cell in cells.items():
            if x < columns:
                tip = f"{group.labels[x]}  {clip(suffix)}: {_tip(cell)}"
                mark = _mark(cell.state, left + x * _STEP, base)
                parts.append(f"<g><title>{_html(tip)}</title>{mark}</g>")
        parts.append(f'<text x="{left + columns * _STEP + 8}" y="{base + 12}" class="shape">{_html(shape)}</text>')
    parts.append("</svg>")
    left_out = []
    if len(lines) > MOST_ROWS:
        left_out.append(f"{len(lines) - MOST_ROWS} more tensors of a layer")
    if len(group.labels) > MOST_COLUMNS:
        left_out.append(f"{len(group.labels) - MOST_COLUMNS} more layers")
    note = f'<p class="muted">{" and ".join(left_out)} not drawn.</p>' if left_out else ""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{_html(title)}">{"".join(parts)}</div>{note}'


def _numbers(labels: Sequence[str], left: int) -> Iterator[str]:
    """Write the layers' numbers above their columns, as many as there is room for."""
    every = 1 if len(labels) <= 20 else 5
    for x, label in enumerate(labels):
        number = label.rpartition(" ")[2]
        if number.isdigit() and int(number) % every == 0:
            middle = left + x * _STEP + _SIDE // 2
            yield f'<text x="{middle}" y="32" class="layer">{number}</text>'


def _words(group: _Group) -> str:
    """Name what is wrong, for those who do not see the picture."""
    number = Counter(cell.state for cells in group.lines.values() for cell in cells.values())
    said = [f"{counted(number[state], 'tensor')} {word}" for state, word in WORDS.items() if number[state]]
    wrong = [suffix for suffix, cells in group.lines.items() if any(c.state != "ok" for c in cells.values())]
    named = f" ({', '.join(clip(one, 80) for one in wrong[:8])}{', …' if len(wrong) > 8 else ''})" if wrong else ""
    return ", ".join(said) + named


def _mark(state: CellState, x: int, y: int) -> str:
    """Return the sign of a state: it differs in form, not in colour alone."""
    box = f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{_SIDE - 1}" height="{_SIDE - 1}" rx="2" class="{state}"/>'
    middle = _SIDE // 2
    if state == "wrong-shape":
        return box + f'<path d="M{x + 4} {y + 6}h8M{x + 4} {y + 10}h8M{x + 6} {y + 13}l4 -10" class="sign"/>'
    if state == "unexpected":
        return box + f'<path d="M{x + middle} {y + 4}v8M{x + 4} {y + middle}h8" class="sign"/>'
    if state == "missing":
        return box + f'<path d="M{x + 5} {y + 5}l6 6M{x + 11} {y + 5}l-6 6" class="gone"/>'
    if state == "unused":
        return box + f'<path d="M{x + 4} {y + middle}h8" class="idle"/>'
    return box


def _label(suffix: str) -> str:
    return safe(clip(suffix, _LABEL))


def _shapes(cells: dict[int, Cell]) -> str:
    """Return the shape of a line; where something is wrong, what was expected and what is there."""
    shown: dict[str, None] = {}
    for cell in cells.values():
        if cell.state != "ok":
            shown[_tip(cell)] = None
    if shown:
        return "; ".join(shown)
    some = next(iter(cells.values()))
    return _dims(some.found if some.found is not None else some.expected)


def _tip(cell: Cell) -> str:
    if cell.state == "ok":
        return _dims(cell.found if cell.found is not None else cell.expected)
    if cell.state == "missing":
        return f"missing, expected {_dims(cell.expected)}".removesuffix(" expected ").rstrip(",")
    if cell.state == "wrong-shape":
        return f"{_dims(cell.found)}, expected {_dims(cell.expected)}"
    return f"{WORDS[cell.state]}, {_dims(cell.found)}".rstrip(", ")


def _dims(shape: Sequence[int | None] | None) -> str:
    if shape is None:
        return ""
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"


def _html(text: str) -> str:
    return safe(text).translate(_HTML)
