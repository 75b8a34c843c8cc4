"""The header of a safetensors file: 8 + N bytes, whatever the file weighs.

A file is accepted exactly when the safetensors library accepts it. An ordinary header is settled by
one flat loop (`_is_plain`); anything they do not vouch for goes through
`header_check`, which follows the library step by step and names what is wrong.
"""

from __future__ import annotations

import gc
import json
import os

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dspark_lint.checkpoint import header_json
from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.checkpoint.files import open_regular, read_exactly, reason, sniff
from dspark_lint.checkpoint.header_check import check
from dspark_lint.checkpoint.jsonfile import long_number, not_json, quoted_strings, refuse_unguarded, too_deep
from dspark_lint.checkpoint.problems import Problem, count, quote


if TYPE_CHECKING:
    from collections.abc import Iterable


#: The library's limit, in bytes.
MAX_HEADER: Final = 100_000_000
# What a hundred megabytes of real header cannot exceed, and hostile ones must not: memory follows these counts.
_LARGE: Final = 8_000_000
_MAX_CONTAINERS: Final = 6_000_000
_MAX_COMMAS: Final = 16_000_000
# Below this many bytes of data no size in bits leaves 64 bits.
_FAR: Final = 1 << 60
_DECODER: Final = json.JSONDecoder(parse_constant=header_json.refuse_constant)


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
            kind, what = (
                (p.EMPTY, "is empty") if not head else (p.HEADER_TRUNCATED, f"has only {count(len(head), 'byte')}")
            )
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
    enabled = gc.isenabled()
    # Tens of thousands of small containers that all survive: the collector finds nothing and takes half the time.
    gc.disable()
    try:
        return _parse_header(raw, data_size, name)
    finally:
        if enabled:
            gc.enable()


def _parse_header(raw: bytes, data_size: int, name: str) -> Header:
    size, data_start = 8 + len(raw) + data_size, 8 + len(raw)
    parsed = _parse(raw, name)
    if isinstance(parsed, Problem):
        if parsed.kind in (p.HEADER_NOT_JSON, p.NOT_UTF8):
            parsed = sniff(name, len(raw).to_bytes(8, "little") + raw[:504]) or parsed
        return _refused(name, size, parsed, data_start)
    given = "__metadata__" in parsed
    metadata = parsed.pop("__metadata__", None)
    whole = _is_whole(raw, parsed, metadata, given=given)
    if whole and _is_plain(parsed, data_size):
        return Header(name, size, parsed, metadata, data_start, ())
    # Other forms of an entry have other numbers of strings, which might make up for those of a repeated key.
    whole = whole and all(type(entry) is dict and type(entry.get("dtype")) is str for entry in parsed.values())
    if given:
        parsed["__metadata__"] = metadata
    tensors, metadata, problems = check(parsed, data_size, name)
    if not whole and not any(problem.fatal for problem in problems):
        # The first reading may hide something. It must be out of memory before the second.
        parsed = tensors = {}
        written = header_json.read_written(raw, name)
        if isinstance(written, Problem):
            return _refused(name, size, written, data_start)
        tensors, metadata, problems = check(written, data_size, name)
    if any(problem.fatal for problem in problems):
        tensors, metadata = {}, None
    return Header(name, size, tensors, metadata, data_start, problems)


def _is_whole(raw: bytes, tensors: dict[str, Any], metadata: Any, *, given: bool) -> bool:
    """Whether all that is written in `raw` is in what was parsed.

    A repeated key leaves fewer strings than were written. Extra members of an entry are not vouched for.
    """
    try:
        if sum(map(len, tensors.values())) != 3 * len(tensors) or header_json.needs_care(raw):
            return False
    except TypeError:
        return False
    strings = 1 if given else 0
    if type(metadata) is dict:
        strings += 2 * len(metadata)
        if not set(map(type, metadata.values())) <= {str}:
            return False
    elif metadata is not None:
        return False
    # Five strings an entry: the name, three keys and the dtype.
    return quoted_strings(raw) == strings + 5 * len(tensors)


def _parse(raw: bytes, name: str) -> dict[str, Any] | Problem:
    if raw.startswith(b"\xef\xbb\xbf"):
        detail = f"the header of {quote(name)} begins with a byte order mark"
        return Problem(p.HEADER_BOM, name, detail=detail, fatal=True)
    if len(raw) > _LARGE and (raw.count(b"{") + raw.count(b"[") > _MAX_CONTAINERS or raw.count(b",") > _MAX_COMMAS):
        detail = (
            f"the header of {quote(name)} holds more objects, arrays and values than any header of its length needs"
        )
        return Problem(p.TOO_LARGE, name, detail=detail, fatal=True)
    unguarded = refuse_unguarded(raw, name, header_json.MAX_DEPTH)
    if unguarded:
        return unguarded
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except header_json.Refused as refused:
        return refused.problem(name)
    except UnicodeDecodeError as error:
        detail = (
            f"the header of {quote(name)} is not UTF-8: byte 0x{raw[error.start]:02x} at offset {8 + error.start:,}"
        )
        return Problem(p.NOT_UTF8, name, detail=detail, fatal=True)
    except json.JSONDecodeError as error:
        problem = not_json(error, name, p.HEADER_NOT_JSON)
        return problem._replace(detail=f"the header of {problem.detail}")
    except ValueError:
        return long_number(f"the header of {quote(name)}", name)
    except RecursionError:
        return too_deep(f"the header of {quote(name)}", name, header_json.MAX_DEPTH)
    if type(value) is not dict:
        detail = f"the header of {quote(name)} is not a JSON object"
        return Problem(p.NOT_OBJECT, name, detail=detail, expected="an object", found=p.show(value), fatal=True)
    return value


def _is_plain(tensors: dict[str, Any], data_size: int) -> bool:
    """Whether the entries are beyond doubt; False says nothing but that they must be looked at one by one."""
    entries = tensors.values()
    try:
        if data_size > _FAR:
            return False
        if _covers(entries, data_size):
            return True
        return _covers(sorted(entries, key=itemgetter("data_offsets")), data_size)
    except (KeyError, TypeError, ValueError):
        return False


def _covers(entries: Iterable[dict[str, Any]], data_size: int) -> bool:
    """Whether `entries`, well formed, lie one after the other in `data_size` bytes.

    Written flat: this is the one loop over every tensor. Raises KeyError, TypeError or ValueError for what is
    not well formed.
    """
    position = 0
    integer = int
    sizes = BITS
    for entry in entries:
        begin, end = entry["data_offsets"]
        bits = sizes[entry["dtype"]]
        shape = entry["shape"]
        # Products of many dimensions are left to those who stop at 64 bits.
        if type(shape) is not list or len(shape) > 32:
            return False
        for dim in shape:
            # No bool, no float; and a zero may hide an overflow, which is not for here to find out.
            if type(dim) is not integer or dim <= 0:
                return False
            bits *= dim
        if begin != position or (end - begin) << 3 != bits or type(begin) is not integer or type(end) is not integer:
            return False
        position = end
    return position == data_size


def _bad_length(name: str, length: int, size: int) -> Problem:
    if length > MAX_HEADER:
        why = f"more than the {MAX_HEADER:,} that safetensors reads"
    else:
        why = f"but the file has only {size:,}"
    detail = f"the first 8 bytes of {quote(name)} announce a header of {count(length, 'byte')}, {why}"
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
