"""The header of a safetensors file: 8 + N bytes, whatever the file weighs.

A file is accepted exactly when the safetensors library accepts it. An ordinary header is settled by a
few passes that run in C over all tensors at once (`_is_plain`); anything they do not vouch for goes through
`header_check`, which follows the library step by step and names what is wrong.
"""

from __future__ import annotations

import gc
import json
import os

from itertools import chain, repeat
from math import prod
from operator import itemgetter, mul, sub
from typing import Any, Final, NamedTuple

from dspark_lint.checkpoint import header_check
from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.checkpoint.files import open_regular, read_exactly, reason, sniff
from dspark_lint.checkpoint.jsonfile import not_json, quoted_strings
from dspark_lint.checkpoint.problems import Problem, quote


#: The library's limit, in bytes.
MAX_HEADER: Final = 100_000_000
# What a hundred megabytes of real header cannot exceed, and hostile ones must not: memory follows these counts.
_MAX_CONTAINERS: Final = 6_000_000
_MAX_COMMAS: Final = 16_000_000


class Header(NamedTuple):
    """One safetensors file without its data."""

    file: str
    size: int
    """Bytes of the whole file."""
    tensors: dict[str, dict[str, Any]]
    """Name to ``{"dtype", "shape", "data_offsets"}`` as parsed, in the order of the file; empty when fatal."""
    metadata: dict[str, str] | None
    data_start: int
    """Offset of the first byte of data in the file, 8 + N."""
    problems: tuple[Problem, ...]

    @property
    def fatal(self) -> bool:
        """Whether the safetensors library refuses the file."""
        return any(problem.fatal for problem in self.problems)


def read_header(root: str, name: str) -> Header:
    """Read the header of ``root/name``; never raises for what it finds."""
    opened = open_regular(root, name)
    if isinstance(opened, Problem):
        return _refused(name, 0, opened)
    fd, size = opened
    try:
        head = read_exactly(fd, 0, 8)
        if len(head) < 8:
            kind, what = (p.EMPTY, "is empty") if not head else (p.HEADER_TRUNCATED, f"has only {len(head)} bytes")
            detail = f"{quote(name)} {what}; a safetensors file begins with 8 bytes that give the length of its header"
            return _refused(name, size, Problem(kind, name, detail=detail, fatal=True))
        length = int.from_bytes(head, "little")
        if length > MAX_HEADER or length + 8 > size:
            return _refused(name, size, sniff(name, read_exactly(fd, 0, 512)) or _bad_length(name, length, size))
        raw = read_exactly(fd, 8, length)
    except OSError as error:
        detail = f"{quote(name)} cannot be read: {reason(error)}"
        return _refused(name, size, Problem(p.UNREADABLE, name, detail=detail, fatal=True))
    finally:
        os.close(fd)
    if len(raw) < length:
        return _refused(name, size, _bad_length(name, length, len(raw) + 8))
    return parse_header(raw, size - 8 - length, name)


def parse_header(raw: bytes, data_size: int, name: str) -> Header:
    """Validate the N header bytes `raw` of a file that has `data_size` bytes of data after them."""
    size = 8 + len(raw) + data_size
    parsed = _parse(raw, name)
    if isinstance(parsed, Problem):
        if parsed.kind in (p.HEADER_NOT_JSON, p.NOT_UTF8):
            parsed = sniff(name, len(raw).to_bytes(8, "little") + raw[:504]) or parsed
        return _refused(name, size, parsed, 8 + len(raw))
    metadata = parsed.get("__metadata__")
    strings = 0
    if "__metadata__" in parsed:
        strings = 1
        if type(metadata) is dict:
            strings += 2 * len(metadata)
    tensors = parsed
    if "__metadata__" in tensors:
        tensors = dict(parsed)
        del tensors["__metadata__"]
    plain_metadata = metadata is None or (type(metadata) is dict and set(map(type, metadata.values())) <= {str})
    # Five strings an entry: its name, its three keys and the dtype.
    if (
        plain_metadata
        and quoted_strings(raw) == strings + 5 * len(tensors)
        and not header_check.needs_care(raw)
        and _is_plain(tensors, data_size)
    ):
        return Header(name, size, tensors, metadata, 8 + len(raw), ())
    checked, metadata, problems = header_check.check(raw, data_size, name)
    if any(problem.fatal for problem in problems):
        checked, metadata = {}, None
    return Header(name, size, checked, metadata, 8 + len(raw), problems)


def _parse(raw: bytes, name: str) -> dict[str, Any] | Problem:
    if raw.startswith(b"\xef\xbb\xbf"):
        detail = f"the header of {quote(name)} begins with a byte order mark"
        return Problem(p.HEADER_BOM, name, detail=detail, fatal=True)
    if raw.count(b"{") + raw.count(b"[") > _MAX_CONTAINERS or raw.count(b",") > _MAX_COMMAS:
        detail = (
            f"the header of {quote(name)} holds more objects, arrays and values than any header of its length needs"
        )
        return Problem(p.TOO_LARGE, name, detail=detail, fatal=True)
    enabled = gc.isenabled()
    # Tens of thousands of small containers that all survive: the collector finds nothing and takes half the time.
    gc.disable()
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=header_check.refuse_constant)
    except header_check.Refused as refused:
        return refused.problem(name)
    except UnicodeDecodeError as error:
        detail = (
            f"the header of {quote(name)} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {8 + error.start:,}"
        )
        return Problem(p.NOT_UTF8, name, detail=detail, fatal=True)
    except json.JSONDecodeError as error:
        problem = not_json(error, name, p.HEADER_NOT_JSON)
        return problem._replace(detail=f"the header of {problem.detail}")
    except ValueError as error:
        return Problem(
            p.BAD_NUMBER, name, detail=f"the header of {quote(name)} holds a number out of range: {error}", fatal=True
        )
    except RecursionError:
        return header_check.too_deep(name)
    finally:
        if enabled:
            gc.enable()
    if type(value) is not dict:
        detail = f"the header of {quote(name)} is not a JSON object"
        return Problem(p.NOT_OBJECT, name, detail=detail, expected="an object", found=p.show(value), fatal=True)
    return value


def _is_plain(tensors: dict[str, Any], data_size: int) -> bool:
    """Whether the entries are beyond doubt; False says nothing but that they must be looked at one by one."""
    entries = tensors.values()
    if not entries:
        return data_size == 0
    if set(map(type, entries)) != {dict} or set(map(len, entries)) != {3}:
        return False
    try:
        dtypes = list(map(itemgetter("dtype"), entries))
        shapes = list(map(itemgetter("shape"), entries))
        offsets = list(map(itemgetter("data_offsets"), entries))
        bits = list(map(BITS.__getitem__, dtypes))
    except (KeyError, TypeError):
        return False
    if set(map(type, shapes)) != {list} or set(map(type, offsets)) != {list} or set(map(len, offsets)) != {2}:
        return False
    dims = list(chain.from_iterable(shapes))
    bounds = list(chain.from_iterable(offsets))
    # A dimension of zero hides an overflow of those before it.
    if not set(map(type, dims)) <= {int} or set(map(type, bounds)) != {int} or (dims and min(dims) <= 0):
        return False
    begins, ends = bounds[::2], bounds[1::2]
    sizes = map(sub, ends, begins)
    if list(map(mul, map(prod, shapes), bits)) != list(map(mul, sizes, repeat(8))):
        return False
    if begins[1:] != ends[:-1]:
        begins.sort()
        ends.sort()
    return begins[0] == 0 and begins[1:] == ends[:-1] and ends[-1] == data_size


def _bad_length(name: str, length: int, size: int) -> Problem:
    if length > MAX_HEADER:
        why = f"more than the {MAX_HEADER:,} that safetensors reads"
    else:
        why = f"but the file has only {size:,}"
    detail = f"the first 8 bytes of {quote(name)} announce a header of {length:,} bytes, {why}"
    return Problem(
        p.HEADER_LENGTH,
        name,
        detail=detail,
        expected=f"at most {min(MAX_HEADER, max(size - 8, 0))}",
        found=str(length),
        fatal=True,
    )


def _refused(name: str, size: int, problem: Problem, data_start: int = 0) -> Header:
    return Header(name, size, {}, None, data_start, (problem,))
