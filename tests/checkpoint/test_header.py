"""What a header's problems say, and what a good header holds."""

from __future__ import annotations

import gc
import json
import tracemalloc

from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.checkpoint import KINDS, open_checkpoint
from dspark_lint.checkpoint.header import parse_header
from dspark_lint.checkpoint.problems import MAX_REPEATS


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def u8(begin: int, end: int) -> dict[str, Any]:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


def told(header: Any, data: int) -> list[tuple[str, str | None, str, bool]]:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    got = parse_header(raw, data, "m.safetensors")
    return [(problem.kind, problem.tensor, problem.detail, problem.fatal) for problem in got.problems]


TOLD: dict[str, tuple[Any, int, list[tuple[str, str | None, str, bool]]]] = {
    "entry": (
        {"a": 5},
        0,
        [("bad-entry", "a", "the entry of tensor `a` is 5, not an object with dtype, shape and data_offsets", True)],
    ),
    "member missing": (
        {"a": {"dtype": "U8"}},
        0,
        [("bad-entry", "a", "tensor `a` has no shape and no data_offsets", True)],
    ),
    "dtype": (
        {"a": {"dtype": "bf16", "shape": [1], "data_offsets": [0, 2]}},
        2,
        [("bad-dtype", "a", 'tensor `a` has dtype "bf16", which safetensors does not know; write BF16', True)],
    ),
    "shape": (
        {"a": {"dtype": "U8", "shape": 4, "data_offsets": [0, 4]}},
        4,
        [("bad-shape", "a", "the shape of tensor `a` is 4, not an array", True)],
    ),
    "dimension": (
        {"a": {"dtype": "U8", "shape": [2, 1.5], "data_offsets": [0, 4]}},
        4,
        [("bad-shape", "a", "tensor `a` has the shape [2, 1.5], in which 1.5 is no size", True)],
    ),
    "offsets": (
        {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, "4"]}},
        4,
        [("bad-offsets", "a", 'tensor `a` has the data_offsets [0, "4"], not two integers from 0 on', True)],
    ),
    "offsets backwards": (
        {"a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 0]}},
        4,
        [("bad-offsets", "a", "tensor `a` ends at byte 0 of the data, before it begins at 4", True)],
    ),
    "overflow": (
        {"a": {"dtype": "U8", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]}},
        4,
        [
            (
                "shape-overflow",
                "a",
                "tensor `a` of shape [1099511627776, 1099511627776] and dtype U8 has a size that does not fit 64 bits",
                True,
            )
        ],
    ),
    "overflow of the bits alone": (
        {"a": {"dtype": "U8", "shape": [1 << 62], "data_offsets": [0, 1 << 62]}},
        4,
        [
            (
                "shape-overflow",
                "a",
                "tensor `a` of shape [4611686018427387904] and dtype U8 has a size that does not fit 64 bits",
                True,
            ),
        ],
    ),
    "size": (
        {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 12]}},
        12,
        [
            (
                "size-mismatch",
                "a",
                "tensor `a` of shape [2, 3] and dtype F32 needs 24 bytes, but its data_offsets give it 12",
                True,
            )
        ],
    ),
    "size, which displaces the next": (
        {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 6]}, "b": u8(4, 8)},
        8,
        [
            (
                "size-mismatch",
                "a",
                "tensor `a` of shape [4] and dtype U8 needs 4 bytes, but its data_offsets give it 6",
                True,
            )
        ],
    ),
    "half a byte": (
        {"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}},
        2,
        [
            (
                "size-mismatch",
                "a",
                "tensor `a` of shape [3] and dtype F4 takes 12 bits, which is no whole number of bytes",
                True,
            )
        ],
    ),
    "gap": (
        {"a": u8(0, 4), "b": u8(10, 12)},
        12,
        [("gap", "b", "tensor `b` begins at byte 10 of the data, 6 bytes late: tensor `a` ends at 4", True)],
    ),
    "gap at the beginning": (
        {"a": u8(2, 4)},
        4,
        [("gap", "a", "tensor `a` begins at byte 2 of the data, 2 bytes late: the data begins at 0", True)],
    ),
    "overlap": (
        {"a": u8(0, 4), "b": u8(2, 8)},
        8,
        [("overlap", "b", "tensor `b` begins at byte 2 of the data, inside another: tensor `a` ends at 4", True)],
    ),
    "trailing": (
        {"a": u8(0, 4)},
        5,
        [("trailing-bytes", None, "`m.safetensors` has 1 byte after the data of its last tensor", True)],
    ),
    "truncated": (
        {"a": u8(0, 4), "b": u8(4, 2000), "c": u8(2000, 4000)},
        1000,
        [
            (
                "truncated-data",
                "b",
                (
                    "`m.safetensors` ends 3,000 bytes before the data of its tensors does; `b` is the first tensor "
                    "that is cut"
                ),
                True,
            )
        ],
    ),
    "metadata": (
        {"__metadata__": {"a": 1}},
        0,
        [("bad-metadata", None, "`a` of `__metadata__` is 1, not a string", True)],
    ),
    "metadata no object": (
        {"__metadata__": "pt"},
        0,
        [("bad-metadata", None, '`__metadata__` is "pt", not an object', True)],
    ),
    "not JSON": (
        b"{'a'}",
        0,
        [
            (
                "header-not-json",
                None,
                (
                    "the header of `m.safetensors` is not JSON: Expecting property name enclosed in double quotes at "
                    "line 1, column 2"
                ),
                True,
            )
        ],
    ),
    "control character": (
        b'{"\x01": 1}',
        0,
        [
            (
                "header-not-json",
                None,
                "the header of `m.safetensors` is not JSON: Invalid control character at line 1, column 3",
                True,
            )
        ],
    ),
    "not UTF-8": (
        b'{"\xff": 1}',
        0,
        [("not-utf8", None, "the header of `m.safetensors` is not UTF-8: byte 0xff at offset 10", True)],
    ),
    "byte order mark": (
        b"\xef\xbb\xbf{}",
        0,
        [("header-bom", None, "the header of `m.safetensors` begins with a byte order mark", True)],
    ),
    "array": (b"[]", 0, [("not-object", None, "the header of `m.safetensors` is not a JSON object", True)]),
    "NaN": (
        b'{"a": NaN}',
        0,
        [("nan-literal", None, "the header of `m.safetensors` holds NaN, which is not JSON", True)],
    ),
    "digits": (
        b'{"a": ' + b"1" * 10_000 + b"}",
        0,
        [("bad-number", None, "the header of `m.safetensors` holds an integer of more than 4,300 digits", True)],
    ),
    "exponent": (
        b'{"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1], "x": 1e400}}',
        1,
        [("bad-number", None, "the header of `m.safetensors` holds a number out of range, 1e400", True)],
    ),
    "depth": (
        b"[" * 100_000,
        0,
        [("too-deep", None, "the header of `m.safetensors` is nested more than 127 levels deep", True)],
    ),
    "surplus depth": (
        b'{"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1], "x": ' + b"[" * 130 + b"]" * 130 + b"}}",
        1,
        [("too-deep", "a", "the entry of tensor `a` is nested more than 127 levels deep", True)],
    ),
    "depth where no depth belongs": (
        b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}",
        0,
        [
            (
                "bad-entry",
                "a",
                f"the entry of tensor `a` is {'[' * 38}…{']' * 38}, not an object with dtype, shape and data_offsets",
                True,
            )
        ],
    ),
    "minus zero": (
        b'{"a": {"dtype": "U8", "shape": [-0], "data_offsets": [0, 0]}}',
        0,
        [("bad-shape", "a", "tensor `a` has the shape [-0.0], in which -0.0 is no size", True)],
    ),
    "very many dimensions": (
        b'{"a": {"dtype": "U8", "shape": [' + b"2, " * 100_000 + b'2], "data_offsets": [0, 1]}}',
        1,
        [
            (
                "shape-overflow",
                "a",
                f"tensor `a` of shape [{'2, ' * 25}…] and dtype U8 has a size that does not fit 64 bits",
                True,
            )
        ],
    ),
    "surrogate": (
        b'{"\\ud800": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}',
        1,
        [("header-not-json", None, "the header of `m.safetensors` holds half a surrogate pair in `\\ud800`", True)],
    ),
    "duplicate, equal": (
        (
            b'{"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]},'
            b' "a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}'
        ),
        1,
        [("duplicate-key", "a", "tensor `a` stands twice in the header with the same content", False)],
    ),
    "duplicate, different": (
        (
            b'{"a": {"dtype": "I8", "shape": [], "data_offsets": [0, 1]},'
            b' "a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}'
        ),
        1,
        [("duplicate-key", "a", "tensor `a` stands twice in the header and differs; the last one counts", False)],
    ),
    "duplicate member": (
        b'{"a": {"dtype": "I8", "dtype": "U8", "shape": [], "data_offsets": [0, 1]}}',
        1,
        [("duplicate-key", "a", "tensor `a` has `dtype` twice", True)],
    ),
    "escaped and clipped": (
        {"\x1b[31m" + "x" * 300: 5},
        0,
        [
            (
                "bad-entry",
                "\x1b[31m" + "x" * 300,
                (
                    f"the entry of tensor `\\x1b[31m{'x' * 55}…{'x' * 59}` is 5, not an object with dtype, shape and "
                    "data_offsets"
                ),
                True,
            )
        ],
    ),
}


@pytest.mark.parametrize(("header", "data", "want"), TOLD.values(), ids=TOLD.keys())
def test_problems(header: Any, data: int, want: list[tuple[str, str | None, str, bool]]) -> None:
    """Each fault is told once, with the tensor and the numbers."""
    assert told(header, data) == want


def test_kinds_are_documented() -> None:
    """No problem of the table is of a kind that `KINDS` does not have."""
    assert {problem[0] for _, _, problems in TOLD.values() for problem in problems} <= KINDS


def test_several_faults_are_told_together() -> None:
    """Entries are judged one by one; where the data lies is only judged once all entries can be read."""
    header = {
        "a": {"dtype": "U8", "shape": [4], "data_offsets": [8, 12]},
        "b": {"dtype": "V8", "shape": [-1], "data_offsets": [0, 4]},
        "c": None,
    }

    assert [(kind, tensor) for kind, tensor, _, _ in told(header, 0)] == [
        ("bad-dtype", "b"),
        ("bad-shape", "b"),
        ("bad-entry", "c"),
    ]


def test_many_faults_of_one_kind_are_counted() -> None:
    """A hundred broken entries make a handful of problems, the last of which counts the others."""
    problems = told({f"t{i}": i for i in range(100)}, 0)

    assert len(problems) == MAX_REPEATS
    assert problems[-1][2] == (
        "the entry of tensor `t7` is 7, not an object with dtype, shape and data_offsets (and 92 more like it)"
    )


def test_good_header(write: Callable[..., Path]) -> None:
    """A good header comes back as it was written, without its metadata among the tensors."""
    tensors = {"b": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [4, 12]}, "a": u8(0, 4)}
    path = write("m.safetensors", {"__metadata__": {"format": "pt"}, **tensors}, 12)

    got = open_checkpoint(path).header("m.safetensors")

    assert (got.tensors, got.metadata, got.problems, got.fatal) == (tensors, {"format": "pt"}, (), False)
    assert list(got.tensors) == ["b", "a"]
    assert (got.file, got.size, got.data_start) == ("m.safetensors", path.stat().st_size, path.stat().st_size - 12)


def test_long_forms_come_back_in_the_ordinary_one() -> None:
    """What the library accepts in other forms is handed on in the form everybody else expects."""
    header = (
        b'{"a": ["U8", [4], [0, 4]], "b": {"dtype": {"U8": null}, "shape": [4], "data_offsets": [4, 8], "x": {"y": 1}}}'
    )

    got = parse_header(header, 8, "m.safetensors")

    assert not got.problems
    assert got.tensors["a"] == u8(0, 4)
    assert {key: got.tensors["b"][key] for key in ("dtype", "shape", "data_offsets")} == u8(4, 8)


def test_refused_header_shows_no_tensors() -> None:
    """Nothing of a refused header is handed on, so that nobody judges half of it."""
    got = parse_header(json.dumps({"__metadata__": {"a": "b"}, "a": u8(0, 4)}).encode(), 5, "m.safetensors")

    assert (got.tensors, got.metadata, got.fatal) == ({}, None, True)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("raw", [b"{}", b"{", b"[" * 100_000, b'{"a": NaN}', b'{"a": 5}'])
def test_collector_is_left_as_it_was(raw: bytes, enabled: bool) -> None:
    """Reading switches the garbage collector off for itself only, however it ends."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        parse_header(raw, 0, "m.safetensors")

        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_header_is_read_once(write: Callable[..., Path]) -> None:
    """A second look at a header does not go to the disk again."""
    path = write("m.safetensors", {"a": u8(0, 4)}, 4)
    checkpoint = open_checkpoint(path.parent)
    first = checkpoint.header("m.safetensors")
    path.unlink()

    assert checkpoint.header("m.safetensors") is first


def test_a_million_tensors() -> None:
    """A million tensors are read, and cost what the parsed header costs."""
    entries = (f'"t{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(1_000_000))
    raw = ("{" + ",".join(entries) + "}").encode()

    got = parse_header(raw, 1_000_000, "m.safetensors")

    assert (got.problems, len(got.tensors)) == ((), 1_000_000)


@pytest.mark.parametrize(
    "unit",
    [b"[],", b"{},", b'{"dtype":[]},', b'"",'],
    ids=["arrays", "objects", "entries", "strings"],
)
def test_hostile_header_is_bounded(unit: bytes) -> None:
    """Ninety megabytes of tiny values are turned down before they become objects."""
    raw = b'{"a":[' + unit * (90_000_000 // len(unit)) + b"0]}"
    tracemalloc.start()
    try:
        got = parse_header(raw, 0, "m.safetensors")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert [problem.kind for problem in got.problems] == ["too-large"]
    assert peak < 1_000_000
