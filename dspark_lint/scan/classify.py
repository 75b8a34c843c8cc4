"""Exact counts over one stretch of data, with the standard library, a stretch at a time and never element by element.

The scan asks here only where a quick test could not clear a stretch, or where every number has to be looked at.
"""

from __future__ import annotations

import functools

from typing import Final, NamedTuple

from dspark_lint.scan.formats import INFINITE, NAN, NEGATIVE, POSITIVE, ZERO, Float, Format


class Classes(NamedTuple):
    """How many numbers of a stretch are of which kind; positions count from its first number, -1 is none."""

    nan: int
    inf: int
    zero: int
    negative: int
    """Finite and below zero."""
    first_bad: int
    """The first NaN or infinity."""
    first_nonpositive: int
    """The first zero or negative number."""


_NANS, _INFINITES, _ZEROS, _NEGATIVES = (bytes([code]) for code in (NAN, INFINITE, ZERO, NEGATIVE))

# What one byte of a wide float says about the number it belongs to; the bits of its bytes are joined by "or".
_SIGN, _FULL, _FULL_BELOW, _EXPONENT, _MANTISSA = (1 << bit for bit in range(5))

_BLANK: Final = bytes(1 << 16)


def classify(data: bytes | bytearray, kind: Float) -> Classes:
    """Count the numbers of `kind` that `data` consists of."""
    codes = data.translate(_codes(kind)) if kind.width == 1 else _wide_codes(data, kind)
    # Most stretches hold none of most kinds, and counting costs more than not finding.
    nan, inf, zero, negative = (codes.find(one) for one in (_NANS, _INFINITES, _ZEROS, _NEGATIVES))
    return Classes(
        codes.count(_NANS) if nan >= 0 else 0,
        codes.count(_INFINITES) if inf >= 0 else 0,
        codes.count(_ZEROS) if zero >= 0 else 0,
        codes.count(_NEGATIVES) if negative >= 0 else 0,
        _first(nan, inf),
        _first(zero, negative),
    )


def _first(one: int, other: int) -> int:
    return max(one, other) if one < 0 or other < 0 else min(one, other)


@functools.cache
def _codes(kind: Float) -> bytes:
    return bytes(kind.code(raw) for raw in range(256))


def _wide_codes(data: bytes | bytearray, kind: Float) -> bytes:
    tables, meaning = _tables(kind)
    joined = 0
    for k, table in enumerate(tables):
        joined |= int.from_bytes(data[k :: kind.width].translate(table), "little")
    return joined.to_bytes(len(data) // kind.width, "little").translate(meaning)


@functools.cache
def _tables(kind: Float) -> tuple[tuple[bytes, ...], bytes]:
    """For each byte of a number its part in the bits above; and what the joined bits mean."""
    mantissa = (1 << kind.mantissa) - 1
    exponent = (kind.sign - 1) ^ mantissa
    top = kind.width - 1
    tables = []
    for k in range(kind.width):
        of_exponent, of_mantissa = exponent >> 8 * k & 0xFF, mantissa >> 8 * k & 0xFF
        full = (_FULL if k == top else _FULL_BELOW) if of_exponent else 0
        tables.append(
            bytes(
                (_SIGN if k == top and byte & 0x80 else 0)
                | (full if byte & of_exponent == of_exponent else 0)
                | (_EXPONENT if byte & of_exponent else 0)
                | (_MANTISSA if byte & of_mantissa else 0)
                for byte in range(256)
            )
        )
    all_ones = _FULL | (_FULL_BELOW if exponent >> 8 * (top - 1) & 0xFF else 0)
    return tuple(tables), bytes(_meaning(bits, all_ones) for bits in range(256))


def _meaning(bits: int, all_ones: int) -> int:
    if bits & all_ones == all_ones:
        return NAN if bits & _MANTISSA else INFINITE
    if not bits & (_EXPONENT | _MANTISSA):
        return ZERO
    return NEGATIVE if bits & _SIGN else POSITIVE


@functools.cache
def suspects(kind: Float) -> tuple[bytes, ...]:
    """The values that the highest byte of a number has if the number is not finite; most numbers have none of them."""
    if kind.width == 1:
        return tuple(bytes([raw]) for raw in range(256) if kind.code(raw) in (NAN, INFINITE))
    full = kind.limit >> 8 * (kind.width - 1)
    # Where the exponent leaves room in the highest byte, the mantissa begins there.
    return tuple(bytes([raw]) for raw in range(256) if raw & full == full)


def is_zero(raw: bytes | bytearray, start: int, stop: int, form: Format) -> bool:
    """Whether all numbers in ``raw[start:stop]`` are zero, of either sign; quick where they are not."""
    size = stop - start
    if all(raw.startswith(_BLANK[: min(len(_BLANK), size - at)], start + at) for at in range(0, size, len(_BLANK))):
        return True
    if not any(form.signs):
        return False
    return not any(
        # The copy is of what follows the first byte that speaks against it.
        raw[start + k : stop : form.unit].strip(_without_meaning(signs))
        for k, signs in enumerate(form.signs)
    )


@functools.cache
def _without_meaning(signs: int) -> bytes:
    return bytes(byte for byte in range(256) if byte & ~signs == 0)
