"""A header's JSON read with everything kept that Python's reader drops: repeated keys, minus zero, half surrogates."""

from __future__ import annotations

import json
import math
import re

from typing import TYPE_CHECKING, Any, Final

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.jsonfile import too_deep
from dspark_lint.checkpoint.problems import Problem, quote, show


if TYPE_CHECKING:
    from collections.abc import Iterable


#: Levels of objects and arrays that the library's JSON reader goes down.
MAX_DEPTH: Final = 127
_MINUS_ZERO: Final = re.compile(rb"[\[,:\s]-0")
_LONG_INTEGER: Final = re.compile(rb"[0-9]{20}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class Refused(Exception):  # noqa: N818 - no error of ours, a way out of the JSON reader
    """Raised inside the JSON reader at something that ends the reading."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind

    def problem(self, name: str) -> Problem:
        """The same as a problem of the file `name`."""
        return Problem(self.kind, name, detail=f"the header of {quote(name)} holds {self}", fatal=True)


class Pairs(list[tuple[str, Any]]):
    """A JSON object in which a key is written more than once; any other object is a plain dict."""

    __slots__ = ()


_CONTAINERS: Final = (list, dict, Pairs)


def refuse_constant(word: str) -> Any:
    """``parse_constant`` of a header. Raises Refused."""
    raise Refused(p.NAN_LITERAL, f"{word}, which is not JSON")


def needs_care(raw: bytes) -> bool:
    """Whether the bytes hold something that a parsed value no longer shows: minus zero, parts of surrogate pairs."""
    return _has_minus_zero(raw) or _has_surrogate(raw)


def _has_minus_zero(raw: bytes) -> bool:
    # Single bytes are found many times faster than pairs, and pairs than the pattern.
    return b"-" in raw and b"-0" in raw and _MINUS_ZERO.search(raw) is not None


def _has_surrogate(raw: bytes) -> bool:
    return b"\\" in raw and b"\\u" in raw and _SURROGATE.search(raw) is not None


def _integer(text: str) -> int | float:
    if text == "-0":
        return -0.0
    # Beyond 64 bits the library's reader goes over to floating point, as far as that reaches.
    return int(text) if len(text) <= 20 else _real(text)


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise Refused(p.BAD_NUMBER, f"a number out of range, {show(text, 24)[1:-1]}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> Pairs | dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Pairs(pairs)


def read_written(raw: bytes, name: str) -> Pairs | dict[str, Any] | Problem:
    """The object in the header bytes `raw`, which are known to be one in UTF-8, or what makes it unreadable."""
    integers = _has_minus_zero(raw) or _LONG_INTEGER.search(raw)
    try:
        written: Pairs | dict[str, Any] = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer if integers else None,
            parse_float=_real,
            parse_constant=refuse_constant,
        )
    except Refused as refused:
        return refused.problem(name)
    except RecursionError:
        return too_deep(f"the header of {quote(name)}", name, MAX_DEPTH)
    half = _half_pair(written) if _has_surrogate(raw) else None
    if half is not None:
        detail = f"the header of {quote(name)} holds half a surrogate pair in {quote(half)}"
        return Problem(p.HEADER_NOT_JSON, name, detail=detail, fatal=True)
    return written


def pairs_of(written: Pairs | dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The members of an object as they are written."""
    return written if isinstance(written, list) else written.items()


def as_object(value: Any) -> dict[str, Any] | None:
    """`value` as a dict, the last of repeated keys counting, if it is an object."""
    if type(value) is Pairs:
        return dict(value)
    return value if type(value) is dict else None


def nested_too_deep(value: Any, level: int) -> bool:
    """Whether `value`, which stands inside `level` objects and arrays, goes down further than the library reads."""
    containers = [value] if type(value) in _CONTAINERS else []
    while containers:
        level += 1
        if level > MAX_DEPTH:
            return True
        containers = [inner for outer in containers for inner in _values(outer) if type(inner) in _CONTAINERS]
    return False


def _values(container: Any) -> Iterable[Any]:
    if type(container) is list:
        return container
    return [value for _, value in pairs_of(container)]


def _half_pair(written: Any) -> str | None:
    """A string in which half a surrogate pair stands alone."""
    stack: list[Any] = [written]
    while stack:
        top = stack.pop()
        if type(top) is str:
            if not _whole(top):
                return top
        elif type(top) in _CONTAINERS:
            stack.extend(_values(top))
            if type(top) is not list:
                stack.extend(key for key, _ in pairs_of(top))
    return None


def _whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
