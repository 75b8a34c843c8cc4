"""The values of one small tensor, decoded with the standard library."""

from __future__ import annotations

import os
import struct

from math import prod
from typing import TYPE_CHECKING, Any, Final

from dspark_lint.checkpoint.files import open_regular, read_exactly
from dspark_lint.checkpoint.problems import Problem


if TYPE_CHECKING:
    from collections.abc import Sequence

    from dspark_lint.checkpoint.header import Header


# Letters of `struct`, whose sizes are the same everywhere when the byte order is given.
_LETTERS: Final = {
    "U8": "B",
    "I8": "b",
    "U16": "H",
    "I16": "h",
    "U32": "I",
    "I32": "i",
    "U64": "Q",
    "I64": "q",
    "F16": "e",
    "F32": "f",
    "F64": "d",
}
_NARROW: Final = {"BOOL", "BF16", *_LETTERS}


def read_values(root: str, header: Header, tensor: str, limit: int) -> tuple[int | float | bool, ...] | None:
    """All elements of `tensor`, in order; None if there are more than `limit`, the dtype is none of those decoded
    here (sub-byte, FP8, complex) or the data cannot be read."""  # noqa: D205, D209
    entry = header.tensors.get(tensor)
    if entry is None or entry["dtype"] not in _NARROW or prod(entry["shape"]) > limit:
        return None
    begin, end = entry["data_offsets"]
    opened = open_regular(root, header.file)
    if isinstance(opened, Problem):
        return None
    try:
        raw = read_exactly(opened.fd, header.data_start + begin, end - begin)
    except OSError:
        return None
    finally:
        os.close(opened.fd)
    return tuple(decode_values(raw, entry["dtype"])) if len(raw) == end - begin else None


def decode_values(raw: bytes, dtype: str) -> Sequence[Any]:
    """Little-endian `raw` as numbers. Raises KeyError for a dtype that is not decoded here."""
    if dtype == "BOOL":
        return [byte != 0 for byte in raw]
    if dtype == "BF16":
        # A BF16 is the upper half of an F32.
        wide = bytearray(2 * len(raw))
        wide[2::4] = raw[::2]
        wide[3::4] = raw[1::2]
        return struct.unpack(f"<{len(raw) // 2}f", wide)
    letter = _LETTERS[dtype]
    return struct.unpack(f"<{len(raw) // struct.calcsize('<' + letter)}{letter}", raw)
