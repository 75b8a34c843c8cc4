"""JSON documents: config.json, hf_quant_config.json, the index.

Python's reader decides what is JSON, as it does for the loaders. What it accepts and other readers do not,
or what it decides silently, is reported beside the value.
"""

from __future__ import annotations

import json
import math
import os
import sys

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.files import open_regular, read_exactly, reason, sniff
from dspark_lint.checkpoint.index import check_index
from dspark_lint.checkpoint.problems import MAX_REPEATS, Problem, pointer_to, quote


if TYPE_CHECKING:
    from collections.abc import Iterator


#: Bytes read of a document at most; an index lists every tensor and may be larger than a configuration.
MAX_DOCUMENT = 32 * 1024 * 1024
MAX_INDEX = 128 * 1024 * 1024
#: Levels of nesting; beyond it, code that walks a value by recursion gets into trouble.
MAX_DEPTH = 200
#: Objects, arrays and their members together: what bounds the memory that a document costs.
MAX_VALUES = 4_000_000
_LARGE = 8_000_000
# Python's own guards, as they are set unless somebody has moved them.
_RECURSION = 3_000
_DIGITS = 4_300


class Document(NamedTuple):
    """One JSON document of the checkpoint."""

    file: str
    value: Any
    """The parsed object; None when a problem is fatal."""
    problems: tuple[Problem, ...]
    exists: bool
    """False only when nothing at all stands under that name."""
    size: int
    """Bytes on disk."""

    @property
    def fatal(self) -> bool:
        """Whether the document cannot be used (absent ones included)."""
        return any(problem.fatal for problem in self.problems)


def read_document(root: str, name: str) -> Document:
    """Read ``root/name``; never raises for what it finds."""
    opened = open_regular(root, name)
    if isinstance(opened, Problem):
        return Document(name, None, (opened,), opened.kind != p.MISSING, 0)
    limit = MAX_INDEX if name.endswith(".index.json") else MAX_DOCUMENT
    try:
        if opened.size > limit:
            detail = f"{quote(name)} has {opened.size:,} bytes; more than {limit:,} are not read"
            head = sniff(name, read_exactly(opened.fd, 0, 512))
            problem = head or Problem(
                p.TOO_LARGE, name, detail=detail, expected=f"at most {limit} bytes", found=str(opened.size), fatal=True
            )
            return Document(name, None, (problem,), exists=True, size=opened.size)
        raw = read_exactly(opened.fd, 0, opened.size)
    except OSError as error:
        problem = Problem(p.UNREADABLE, name, detail=f"{quote(name)} cannot be read: {reason(error)}", fatal=True)
        return Document(name, None, (problem,), exists=True, size=opened.size)
    finally:
        os.close(opened.fd)
    value, problems = parse_document(raw, name)
    if name.endswith(".index.json") and value is not None:
        problems += check_index(value, name, root)
    if any(problem.fatal for problem in problems):
        value = None
    return Document(name, value, problems, exists=True, size=opened.size)


def parse_document(raw: bytes, name: str) -> tuple[dict[str, Any] | None, tuple[Problem, ...]]:
    """The object written in `raw`, or None and the fatal problem; further problems are about what it says oddly."""
    text = decode(raw, name)
    if isinstance(text, Problem):
        return None, (text,)
    containers = raw.count(b"{") + raw.count(b"[")
    if len(raw) > _LARGE and containers + raw.count(b",") > MAX_VALUES:
        detail = f"{quote(name)} holds more than {MAX_VALUES:,} values"
        return None, (Problem(p.TOO_LARGE, name, detail=detail, fatal=True),)
    unguarded = refuse_unguarded(raw, name, MAX_DEPTH)
    if unguarded:
        return None, (unguarded,)
    odd: list[str] = []

    def note(word: str) -> float:
        odd.append(word)
        return float(word)

    try:
        value = json.loads(text, parse_constant=note)
    except json.JSONDecodeError as error:
        return None, (sniff(name, raw[:512]) or not_json(error, name, p.NOT_JSON),)
    except ValueError:
        return None, (long_number(quote(name), name),)
    except RecursionError:
        return None, (too_deep(quote(name), name, MAX_DEPTH),)
    if not isinstance(value, dict):
        what = {list: "an array", str: "a string", type(None): "null", bool: "a boolean"}.get(type(value), "a number")
        detail = f"{quote(name)} holds {what} where a JSON object is expected"
        return None, (Problem(p.NOT_OBJECT, name, "", detail=detail, expected="an object", found=what, fatal=True),)
    if containers > MAX_DEPTH and deeper_than(value, MAX_DEPTH):
        return None, (too_deep(quote(name), name, MAX_DEPTH),)
    problems: list[Problem] = []
    if quoted_strings(raw) != count_strings(value):
        problems += _duplicates(text, name)
    if odd:
        problems += _nan_literals(value, name, odd)
    return value, tuple(problems)


def decode(raw: bytes, name: str) -> str | Problem:
    """`raw` as text, or why it is none that a JSON reader takes."""
    # Stripping copies: only what begins with space can be nothing else.
    if not raw or (raw[0] in b" \t\r\n" and not raw.strip(b" \t\r\n")):
        return Problem(p.EMPTY, name, detail=f"{quote(name)} is empty", fatal=True)
    if raw.startswith(b"\xef\xbb\xbf"):
        detail = f"{quote(name)} begins with a byte order mark, which JSON readers refuse"
        return Problem(
            p.BOM, name, detail=detail, expected="UTF-8 without a byte order mark", found="EF BB BF", fatal=True
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = sniff(name, raw[:512])
        if problem:
            return problem
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            detail = f"{quote(name)} is UTF-16, not UTF-8"
        else:
            detail = f"{quote(name)} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start:,}"
        return Problem(p.NOT_UTF8, name, detail=detail, expected="UTF-8", fatal=True)
    if "\0" in text[:4]:
        detail = f"{quote(name)} has a NUL byte at its beginning: UTF-16 or UTF-32 without a byte order mark"
        return Problem(p.NOT_UTF8, name, detail=detail, expected="UTF-8", fatal=True)
    return text


def not_json(error: json.JSONDecodeError, name: str, kind: str) -> Problem:
    """The reader's complaint, with the place."""
    where = f"line {error.lineno}, column {error.colno}"
    return Problem(
        kind, name, detail=f"{quote(name)} is not JSON: {error.msg.removesuffix(' at')} at {where}", fatal=True
    )


def refuse_unguarded(raw: bytes, name: str, max_depth: int) -> Problem | None:
    """What Python's own limits on recursion and digits turn down, for processes that have raised or lifted them.

    Without the limits a deep document ends in a crash and a long number in hours.
    """
    if sys.getrecursionlimit() > _RECURSION and _depth_written(raw) > max_depth:
        return too_deep(quote(name), name, max_depth)
    digits = getattr(sys, "get_int_max_str_digits", int)()
    if not 0 < digits <= 10 * _DIGITS:
        import re  # noqa: PLC0415 - see above

        if re.search(rb"[0-9]{%d}" % (_DIGITS + 1), raw):
            return long_number(quote(name), name)
    return None


def _depth_written(raw: bytes) -> int:
    """How deep objects and arrays are nested, in text that need not be JSON."""
    import re  # noqa: PLC0415 - see refuse_unguarded

    deepest = depth = 0
    inside = False
    for token in re.finditer(rb'\\.|["\[\]{}]', raw, re.DOTALL):
        char = raw[token.start()]
        if char == 0x22:
            inside = not inside
        elif inside or char == 0x5C:
            continue
        elif char in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def deeper_than(value: Any, limit: int) -> bool:
    """Whether objects and arrays of a parsed value are nested more than `limit` levels deep."""
    level = [value]
    for _ in range(limit):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def quoted_strings(raw: bytes) -> int:
    """Number of strings, keys included, in a text that is valid JSON."""
    if b"\\" in raw:
        # Backslashes stand inside strings only; without the pairs, one before a quote escapes it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return raw.count(b'"') // 2


def count_strings(value: Any) -> int:
    """Number of strings, keys included, in a parsed value; fewer than were written means a key was written twice."""
    count = 0
    stack = [value]
    while stack:
        top = stack.pop()
        if type(top) is dict:
            count += len(top)
            items: Any = top.values()
        elif type(top) is list:
            items = top
        else:
            count += type(top) is str
            continue
        types = list(map(type, items))
        strings = types.count(str)
        count += strings
        if strings != len(types):
            stack += [item for item in items if type(item) is dict or type(item) is list]
    return count


class _Pairs(dict[str, Any]):
    """An object that remembers which of its keys were written more than once."""

    repeated: tuple[str, ...] = ()


def _with_repeats(pairs: list[tuple[str, Any]]) -> _Pairs:
    made = _Pairs(pairs)
    if len(made) != len(pairs):
        counts: dict[str, int] = {}
        for key, _ in pairs:
            counts[key] = counts.get(key, 0) + 1
        made.repeated = tuple(key for key, count in counts.items() if count > 1)
    return made


def _duplicates(text: str, name: str) -> list[Problem]:
    found: list[Problem] = []
    # Only values that survive can be pointed at; repeats inside one that was overwritten go with it.
    for value, pointer in walk(json.loads(text, object_pairs_hook=_with_repeats)):
        for key in getattr(value, "repeated", ()):
            detail = f"key {quote(key)} is written more than once in one object; the last one counts"
            found.append(Problem(p.DUPLICATE_KEY, name, pointer + pointer_to(key), detail=detail))
    return _clipped(found, name)


def _nan_literals(value: Any, name: str, odd: list[str]) -> list[Problem]:
    found = [
        Problem(
            p.NAN_LITERAL, name, pointer, detail=f"{_word(item)} at {quote(pointer)} is not JSON", found=_word(item)
        )
        for item, pointer in walk(value)
        # 1e999 reads as infinity too, but is JSON as it stands.
        if type(item) is float and not math.isfinite(item) and _word(item) in odd
    ]
    if not found:
        # It stood under a key that a later one of the same name replaced.
        found = [Problem(p.NAN_LITERAL, name, detail=f"{odd[0]} is not JSON", found=odd[0])]
    return _clipped(found, name)


def _word(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124


def _clipped(found: list[Problem], name: str) -> list[Problem]:
    if len(found) <= MAX_REPEATS:
        return found
    more = len(found) - MAX_REPEATS
    last = found[MAX_REPEATS]
    return [
        *found[:MAX_REPEATS],
        Problem(last.kind, name, last.pointer, detail=f"{last.detail} (and {more - 1:,} more like it)"),
    ]


def walk(value: Any) -> Iterator[tuple[Any, str]]:
    """Every value inside `value`, itself first, with its pointer."""
    stack = [(value, "")]
    while stack:
        top, pointer = stack.pop()
        yield top, pointer
        if isinstance(top, dict):
            stack.extend((item, pointer + pointer_to(key)) for key, item in reversed(top.items()))
        elif isinstance(top, list):
            stack.extend((item, f"{pointer}/{i}") for i, item in reversed(list(enumerate(top))))


def too_deep(what: str, name: str, limit: int) -> Problem:
    """`what`, the document or header of the file `name`, is nested more than `limit` levels deep."""
    detail = f"{what} is nested more than {limit} levels deep"
    return Problem(p.TOO_DEEP, name, detail=detail, expected=f"at most {limit} levels", fatal=True)


def long_number(what: str, name: str) -> Problem:
    """`what`, the document or header of the file `name`, holds an integer that Python refuses to convert."""
    detail = f"{what} holds an integer of more than {_DIGITS:,} digits"
    return Problem(p.BAD_NUMBER, name, detail=detail, expected="a number", fatal=True)
