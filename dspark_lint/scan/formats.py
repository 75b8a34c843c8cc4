"""How the bytes of every dtype of safetensors are read as numbers."""

from __future__ import annotations

import math

from typing import Final, NamedTuple


class Float(NamedTuple):
    """A floating-point format: sign, exponent and mantissa from the highest bit down.

    Taken as an integer without its sign bit (its magnitude), a greater number of the format has a greater
    magnitude, and all that are not finite lie at the upper end. The whole scan rests on that.
    """

    width: int
    """Bytes."""
    mantissa: int
    """Bits."""
    bias: int
    limit: int
    """The least magnitude that is not finite; out of reach where the format has no such magnitude."""
    infinity: int = -1
    """The magnitude of infinity, -1 where there is none."""
    signed: bool = True
    negative_zero: bool = True
    """False where the pattern of negative zero is the only NaN (the FNUZ formats)."""

    @property
    def sign(self) -> int:
        """The sign bit; 0 for an unsigned format."""
        return 1 << (8 * self.width - 1) if self.signed else 0

    def code(self, raw: int) -> int:
        """Which of `POSITIVE`, `ZERO`, `NEGATIVE`, `INFINITE`, `NAN` the pattern `raw` is."""
        sign = raw & self.sign
        magnitude = raw ^ sign
        if magnitude == self.infinity:
            return INFINITE
        if magnitude >= self.limit or (sign and not magnitude and not self.negative_zero):
            return NAN
        if not magnitude and self.signed:
            return ZERO
        return NEGATIVE if sign else POSITIVE

    def value(self, raw: int) -> float:
        """The number that the pattern `raw` stands for."""
        code = self.code(raw)
        if code == NAN:
            return math.nan
        sign = -1 if raw & self.sign else 1
        if code == INFINITE:
            return sign * math.inf
        exponent, fraction = divmod(raw & ~self.sign, 1 << self.mantissa)
        if exponent or not self.signed:
            fraction |= 1 << self.mantissa
        return sign * math.ldexp(fraction, (max(exponent, 1) if self.signed else exponent) - self.bias - self.mantissa)


class Format(NamedTuple):
    """One dtype."""

    unit: int
    """Bytes of the shortest run of whole elements: 1 where two share a byte, 3 where four share three."""
    signs: bytes
    """For each byte of a unit, the bits that do not matter to being zero."""
    float: Float | None = None
    """What its numbers are; of C64 its real and imaginary parts, which are numbers of their own here."""
    letter: str = ""
    """The letter of `struct` for one number taken as an integer; empty where bytes are shared."""
    whole: bool = True
    """Whether an element is a whole number of bytes."""


POSITIVE, ZERO, NEGATIVE, INFINITE, NAN = range(5)

_F16 = Float(2, 10, 15, 0x7C00, 0x7C00)
_BF16 = Float(2, 7, 127, 0x7F80, 0x7F80)
_F32 = Float(4, 23, 127, 0xFF << 23, 0xFF << 23)
_F64 = Float(8, 52, 1023, 0x7FF << 52, 0x7FF << 52)
_E4M3 = Float(1, 3, 7, 0x7F)
_E5M2 = Float(1, 2, 15, 0x7C, 0x7C)
_E4M3FNUZ = Float(1, 3, 8, 0x80, negative_zero=False)
_E5M2FNUZ = Float(1, 2, 16, 0x80, negative_zero=False)
# 2 to the power of byte - 127: no sign, no mantissa, no zero.
_E8M0 = Float(1, 0, 127, 0xFF, signed=False)

_SIGN = b"\x80"

FORMATS: Final[dict[str, Format]] = {
    "BOOL": Format(1, b"\0", letter="B"),
    # The sign bits of numbers packed from the lowest bit up.
    "F4": Format(1, b"\x88", whole=False),
    "F6_E2M3": Format(3, b"\x20\x08\x82", whole=False),
    "F6_E3M2": Format(3, b"\x20\x08\x82", whole=False),
    "U8": Format(1, b"\0", letter="B"),
    "I8": Format(1, b"\0", letter="b"),
    "F8_E5M2": Format(1, _SIGN, _E5M2, "B"),
    "F8_E4M3": Format(1, _SIGN, _E4M3, "B"),
    "F8_E8M0": Format(1, b"\0", _E8M0, "B"),
    "F8_E4M3FNUZ": Format(1, b"\0", _E4M3FNUZ, "B"),
    "F8_E5M2FNUZ": Format(1, b"\0", _E5M2FNUZ, "B"),
    "I16": Format(2, bytes(2), letter="h"),
    "U16": Format(2, bytes(2), letter="H"),
    "F16": Format(2, bytes(1) + _SIGN, _F16, "H"),
    "BF16": Format(2, bytes(1) + _SIGN, _BF16, "H"),
    "I32": Format(4, bytes(4), letter="i"),
    "U32": Format(4, bytes(4), letter="I"),
    "F32": Format(4, bytes(3) + _SIGN, _F32, "I"),
    "C64": Format(8, (bytes(3) + _SIGN) * 2, _F32, "I"),
    "F64": Format(8, bytes(7) + _SIGN, _F64, "Q"),
    "I64": Format(8, bytes(8), letter="q"),
    "U64": Format(8, bytes(8), letter="Q"),
}
