"""What a scan has to say, computed element by element from the definitions of the formats."""

from __future__ import annotations

import math
import struct

from typing import TYPE_CHECKING, Any

from dspark_lint.scan.rows import RowSet
from dspark_lint.scan.tally import TensorStats


if TYPE_CHECKING:
    from collections.abc import Sequence

    from dspark_lint.scan.tally import TensorSlice


INTEGERS = {"BOOL": "B", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i", "U64": "Q", "I64": "q"}
STRUCT = {"F16": "e", "F32": "f", "F64": "d", "C64": "f"}
# Bits of the exponent, bits of the mantissa, bias, whether the highest exponent is IEEE's, whether 0x80 is the NaN.
SMALL = {
    "F8_E4M3": (4, 3, 7, False, False),
    "F8_E5M2": (5, 2, 15, True, False),
    "F8_E4M3FNUZ": (4, 3, 8, False, True),
    "F8_E5M2FNUZ": (5, 2, 16, False, True),
}
# Bits of one number that shares bytes.
PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
DTYPES = (*INTEGERS, *STRUCT, "BF16", *SMALL, "F8_E8M0", *PACKED)


def small(byte: int, dtype: str) -> float:
    """One number of eight bits."""
    exponent_bits, mantissa_bits, bias, ieee, unsigned_zero = SMALL[dtype]
    if unsigned_zero and byte == 0x80:
        return math.nan
    sign = -1.0 if byte & 0x80 else 1.0
    exponent = (byte & 0x7F) >> mantissa_bits
    mantissa = byte & ((1 << mantissa_bits) - 1)
    if ieee and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if not ieee and not unsigned_zero and byte & 0x7F == 0x7F:
        return math.nan
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def numbers(data: bytes, dtype: str) -> list[Any]:
    """The numbers of `data`; of C64 both parts of each."""
    if dtype in SMALL:
        return [small(byte, dtype) for byte in data]
    if dtype == "F8_E8M0":
        return [math.nan if byte == 0xFF else 2.0 ** (byte - 127) for byte in data]
    if dtype == "BF16":
        data = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
        dtype = "F32"
    if dtype in PACKED:
        bits, width = int.from_bytes(data, "little"), PACKED[dtype]
        # The lower bits are the magnitude, and only whether that is zero is ever asked.
        patterns = (bits >> i & ((1 << width) - 1) for i in range(0, 8 * len(data), width))
        return [float(pattern & ~(1 << (width - 1))) for pattern in patterns]
    return [one for (one,) in struct.iter_unpack("<" + (STRUCT.get(dtype) or INTEGERS[dtype]), data)]


def reference(entry: TensorSlice, data: bytes) -> TensorStats:
    """The statistics of a tensor whose bytes are `data`."""
    all_numbers = numbers(data, entry.dtype)
    want, elements = entry.want, math.prod(entry.shape)
    stats = TensorStats(entry.name, elements)
    floats = entry.dtype not in INTEGERS and entry.dtype not in PACKED
    ordered = entry.dtype not in PACKED and entry.dtype != "C64"
    if want & ({"nonfinite", "positive"} if ordered else {"nonfinite"}) and floats:
        bad = [i for i, x in enumerate(all_numbers) if not math.isfinite(x)]
        stats = stats._replace(
            nan=sum(math.isnan(x) for x in all_numbers),
            inf=sum(math.isinf(x) for x in all_numbers),
            first_bad_index=bad[0] * elements // len(all_numbers) if bad else None,
        )
    if "zero" in want:
        blank = not any(data) if entry.dtype == "F8_E8M0" else all(x == 0 for x in all_numbers)
        stats = stats._replace(all_zero=elements > 0 and blank)
    if "positive" in want and ordered:
        low = [i for i, x in enumerate(all_numbers) if x == 0 or -math.inf < x < 0]
        stats = stats._replace(
            zero=sum(x == 0 for x in all_numbers),
            negative=sum(-math.inf < x < 0 for x in all_numbers),
            first_nonpositive_index=low[0] if low else None,
        )
    if "minmax" in want and ordered:
        proper = [x for x in all_numbers if x == x]  # noqa: PLR0124 - that is what NaN is not
        stats = stats._replace(min=min(proper, default=None), max=max(proper, default=None))
    if "rows" in want and len(entry.shape) > 1 and entry.shape[-1] > 1 and entry.dtype not in PACKED and elements:
        stats = _rows(stats, entry, data)
    elif "rows" in want and len(entry.shape) > 1 and entry.shape[-1] > 1 and entry.dtype not in PACKED:
        none = RowSet(0, ())
        stats = stats._replace(zero_rows=none, constant_rows=none, repeated_rows=none)
    return stats


def _rows(stats: TensorStats, entry: TensorSlice, data: bytes) -> TensorStats:
    row = len(data) // (stats.elements // entry.shape[-1])
    width = row // entry.shape[-1]
    zero, constant, repeated = [], [], []
    for number, at in enumerate(range(0, len(data), row)):
        line = data[at : at + row]
        if not any(line) or (entry.dtype != "F8_E8M0" and all(x == 0 for x in numbers(line, entry.dtype))):
            zero.append(number)
        elif line == line[:width] * entry.shape[-1]:
            constant.append(number)
        if at and line == data[at - row : at]:
            repeated.append(number)
    return stats._replace(zero_rows=_set(zero), constant_rows=_set(constant), repeated_rows=_set(repeated))


def _set(rows: Sequence[int]) -> RowSet:
    return RowSet(len(rows), tuple(rows[:5]))
