"""The values of small tensors."""

from __future__ import annotations

import math
import struct

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from dspark_lint.checkpoint import BITS, open_checkpoint
from dspark_lint.checkpoint.values import decode_values


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


DECODED = {
    "BOOL": ("?", [True, False, True]),
    "U8": ("B", [0, 1, 255]),
    "I8": ("b", [0, -128, 127]),
    "U16": ("H", [0, 1, 65535]),
    "I16": ("h", [0, -32768, 32767]),
    "U32": ("I", [0, 1, 2**32 - 1]),
    "I32": ("i", [0, -(2**31), 2**31 - 1]),
    "U64": ("Q", [0, 1, 2**64 - 1]),
    "I64": ("q", [0, -(2**63), 2**63 - 1]),
    "F16": ("e", [0.0, -1.5, 65504.0]),
    "F32": ("f", [0.0, -1.5, math.inf]),
    "F64": ("d", [0.0, -1.5, 1e300]),
}


@pytest.mark.parametrize(("dtype", "letter", "values"), [(k, *v) for k, v in DECODED.items()], ids=DECODED)
def test_decoded(dtype: str, letter: str, values: list[Any], write: Callable[..., Path]) -> None:
    """Every dtype with an exact counterpart in Python is read as it was written, past other tensors."""
    raw = struct.pack(f"<3{letter}", *values)
    header = {
        "before": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]},
        "t": {"dtype": dtype, "shape": [3], "data_offsets": [5, 5 + len(raw)]},
    }
    path = write("m.safetensors", header, b"\xff" * 5 + raw)

    got = open_checkpoint(path.parent).int_values("m.safetensors", "t")

    assert got == tuple(values)
    assert [type(x) for x in got or ()] == [type(x) for x in values]


@pytest.mark.parametrize("dtype", sorted({*BITS} - {*DECODED, "BF16"}))
def test_not_decoded(dtype: str, write: Callable[..., Path]) -> None:
    """Types without an exact counterpart are not read at all."""
    header = {"t": {"dtype": dtype, "shape": [8], "data_offsets": [0, BITS[dtype]]}}
    path = write("m.safetensors", header, BITS[dtype])

    assert open_checkpoint(path.parent).int_values("m.safetensors", "t") is None


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=20))
def test_bf16(values: list[float]) -> None:
    """A BF16 is a float of which the lower half is gone."""
    raw = b"".join(struct.pack("<f", value)[2:] for value in values)
    want = [struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0] for value in values]

    assert list(decode_values(raw, "BF16")) == want


def test_bf16_nan() -> None:
    """A BF16 that is no number is read as one that is none."""
    assert math.isnan(decode_values(b"\xc0\x7f", "BF16")[0])


def test_written_by_the_library(tmp_path: Path) -> None:
    """A table written by safetensors is read back, whatever its shape."""
    table = np.arange(12, dtype=np.int64).reshape(3, 4)
    save_file(
        {"d2t": table, "scalar": np.array(7, dtype=np.int32), "none": np.zeros((0, 3), np.int8)},
        tmp_path / "m.safetensors",
    )
    checkpoint = open_checkpoint(tmp_path)

    assert checkpoint.int_values("m.safetensors", "d2t") == tuple(range(12))
    assert checkpoint.int_values("m.safetensors", "scalar") == (7,)
    assert checkpoint.int_values("m.safetensors", "none") == ()


@pytest.mark.parametrize(("limit", "read"), [(3, True), (2, False), (0, False)])
def test_limit(limit: int, read: bool, write: Callable[..., Path]) -> None:
    """A tensor of more elements than the limit is not read."""
    path = write("m.safetensors", {"t": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}}, 24)

    assert (open_checkpoint(path.parent).int_values("m.safetensors", "t", limit) is not None) is read


def test_what_cannot_be_read(write: Callable[..., Path]) -> None:
    """No file, no such tensor, a refused header and data that went away all give no values."""
    entry = {"t": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}
    root = write("m.safetensors", entry, 3).parent
    write("short.safetensors", entry, 2)
    path = write("gone.safetensors", entry, 3)
    write("cut.safetensors", entry, 3)
    checkpoint = open_checkpoint(root)
    checkpoint.header("gone.safetensors")
    checkpoint.header("cut.safetensors")
    path.unlink()
    with (root / "cut.safetensors").open("r+b") as file:
        file.truncate(path.with_name("cut.safetensors").stat().st_size - 1)

    assert [
        checkpoint.int_values(file, tensor)
        for file, tensor in (
            ("nothing.safetensors", "t"),
            ("m.safetensors", "u"),
            ("short.safetensors", "t"),
            ("gone.safetensors", "t"),
            ("cut.safetensors", "t"),
        )
    ] == [None] * 5
