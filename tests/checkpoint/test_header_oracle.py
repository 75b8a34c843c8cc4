"""A header is accepted exactly when the safetensors library accepts it."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

import pytest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize, safe_open

from dspark_lint.checkpoint import BITS
from dspark_lint.checkpoint.header import parse_header, read_header


if TYPE_CHECKING:
    from pathlib import Path


def entry(dtype: Any = "U8", shape: Any = (4,), offsets: Any = (0, 4), **more: Any) -> str:
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets, **more})


def one(dtype: Any = "U8", shape: Any = (4,), offsets: Any = (0, 4), **more: Any) -> str:
    return f'{{"a": {entry(dtype, shape, offsets, **more)}}}'


def two(first: tuple[int, int], second: tuple[int, int]) -> str:
    a = entry(shape=[first[1] - first[0]], offsets=first)
    return f'{{"a": {a}, "b": {entry(shape=[second[1] - second[0]], offsets=second)}}}'


def extra(text: str) -> str:
    return f'{{"a": {{"dtype": "U8", "shape": [4], "data_offsets": [0, 4], "x": {text}}}}}'


BIG = 1 << 40

#: name -> (header, bytes of data). What the library says is asked, not written down.
CASES: dict[str, tuple[str | bytes, int]] = {
    "no tensors": ("{}", 0),
    "no tensors, trailing bytes": ("{}", 3),
    "one tensor": (one(), 4),
    "nothing at all": ("", 0),
    "spaces only": ("   ", 0),
    "spaces before and after": (f" \t\r\n{one()}\n   ", 4),
    "vertical tab before": (f"\x0b{one()}", 4),
    "no-break space before": (f"\xa0{one()}", 4),
    "form feed after": (f"{one()}\x0c", 4),
    "NUL padding": (f"{one()}\0\0\0", 4),
    "byte order mark": (f"\ufeff{one()}", 4),
    "UTF-16": (one().encode("utf-16"), 4),
    "invalid UTF-8": (one().replace("a", "\xff").encode("latin-1"), 4),
    "encoded surrogate": (b'{"\xed\xa0\x80": ' + entry().encode() + b"}", 4),
    "array": ("[]", 0),
    "array of objects": ('[{"a": "b"}, {}]', 0),
    "null": ("null", 0),
    "number": ("1", 0),
    "string": ('"a"', 0),
    "cut off": (one()[:-1], 4),
    "two objects": ("{}{}", 0),
    "trailing comma": ('{"a": ' + entry() + ",}", 4),
    "comment": (f"/* */{one()}", 4),
    "single quotes": (one().replace('"', "'"), 4),
    "control character in a name": (one().replace("a", "\x01", 1), 4),
    "delete character in a name": (one().replace("a", "\x7f", 1), 4),
    "empty name": (one().replace('"a"', '""', 1), 4),
    "NUL escape in a name": (one().replace("a", "\\u0000", 1), 4),
    "slash escape in a name": (one().replace("a", "\\/", 1), 4),
    "unknown escape in a name": (one().replace("a", "\\x", 1), 4),
    "surrogate pair in a name": (one().replace("a", "\\ud83d\\ude00", 1), 4),
    "high surrogate in a name": (one().replace("a", "\\ud83d", 1), 4),
    "low surrogate in a name": (one().replace("a", "\\uDE00", 1), 4),
    "high surrogate and letter in a name": (one().replace("a", "\\ud83d\\u0041", 1), 4),
    "name in escapes": (one().replace('"a"', '"\\u0061"', 1), 4),
    "field in escapes": (one().replace("dtype", "dt\\u0079pe"), 4),
    "dtype in escapes": (one().replace("U8", "\\u00558"), 4),
    "quotes and backslashes in a name": (one().replace("a", '\\\\\\"\\\\\\\\', 1), 4),
    "colon at the head of a name": (one().replace('"a"', '":a"', 1), 4),
    "minus zero in a name": (one().replace('"a"', '"x,-0"', 1), 4),
    # entries
    "entry null": ('{"a": null}', 0),
    "entry number": ('{"a": 5}', 0),
    "entry string": ('{"a": "U8"}', 0),
    "entry empty": ('{"a": {}}', 0),
    "entry as array": ('{"a": ["U8", [4], [0, 4]]}', 4),
    "entry as array of four": ('{"a": ["U8", [4], [0, 4], 1]}', 4),
    "entry as array of two": ('{"a": ["U8", [4]]}', 4),
    "no dtype": ('{"a": {"shape": [4], "data_offsets": [0, 4]}}', 4),
    "no shape": ('{"a": {"dtype": "U8", "data_offsets": [0, 4]}}', 4),
    "no data_offsets": ('{"a": {"dtype": "U8", "shape": [4]}}', 4),
    "extra keys": (one(extra=[1, {"b": None}], and_more="x"), 4),
    "extra key, float": (extra("1.5"), 4),
    "extra key, float out of range": (extra("1e400"), 4),
    "extra key, tiny float": (extra("1e-400"), 4),
    "extra key, integer of 30 digits": (extra("9" * 30), 4),
    "extra key, integer of 308 digits": (extra("9" * 308), 4),
    "extra key, integer of 400 digits": (extra("9" * 400), 4),
    "extra key, integer of 10,000 digits": (extra("9" * 10_000), 4),
    "extra key, large negative integer": (extra("-" + "9" * 30), 4),
    "extra key, minus zero": (extra("-0"), 4),
    "extra key, NaN": (extra("NaN"), 4),
    "extra key, Infinity": (extra("Infinity"), 4),
    "extra key, -Infinity": (extra("-Infinity"), 4),
    "extra key, half a surrogate pair": (extra('"\\udc00"'), 4),
    "extra key, leading zero": (extra("01"), 4),
    "extra key, 125 levels": (extra("[" * 125 + "]" * 125), 4),
    "extra key, 126 levels": (extra("[" * 126 + "]" * 126), 4),
    "extra key, 125 levels of objects": (extra('{"k":' * 124 + "{}" + "}" * 124), 4),
    "extra key, 126 levels of objects": (extra('{"k":' * 125 + "{}" + "}" * 125), 4),
    "extra key, 5,000 levels": (extra("[" * 5_000 + "]" * 5_000), 4),
    "200 levels": ('{"a":' * 200 + "}" * 200, 0),
    "100,000 levels": ("[" * 100_000, 0),
    # dtypes
    "dtype unknown": (one(dtype="F7"), 4),
    "dtype lower case": (one(dtype="u8"), 4),
    "dtype with a space": (one(dtype="U8 "), 4),
    "dtype number": (one(dtype=1), 4),
    "dtype null": (one(dtype=None), 4),
    "dtype array": (one(dtype=["U8"]), 4),
    "dtype as an object of null": (one(dtype={"U8": None}), 4),
    "dtype as an object of an object": (one(dtype={"U8": {}}), 4),
    "dtype as an object of an array": (one(dtype={"U8": []}), 4),
    "dtype as an object of two": (one(dtype={"U8": None, "I8": None}), 4),
    "dtype as an object twice": (one().replace('"U8"', '{"U8": null, "U8": null}'), 4),
    "dtype as an object, unknown": (one(dtype={"V8": None}), 4),
    "dtype as an empty object": (one(dtype={}), 4),
    **{
        f"dtype {dtype}": (one(dtype, [8], [0, bits]), bits)  # eight elements have as many bytes as one has bits
        for dtype, bits in BITS.items()
    },
    "F4, odd count": (one("F4", [3], [0, 1]), 1),
    "F4, odd count, rounded up": (one("F4", [3], [0, 2]), 2),
    "F4, even count": (one("F4", [2, 1], [0, 1]), 1),
    "F4, scalar": (one("F4", [], [0, 0]), 0),
    "F6, four": (one("F6_E2M3", [4], [0, 3]), 3),
    "F6, three": (one("F6_E3M2", [3], [0, 3]), 3),
    # shapes
    "scalar": (one("F32", [], [0, 4]), 4),
    "shape null": (one(shape=None), 4),
    "shape number": (one(shape=4), 4),
    "shape string": (one(shape="4"), 4),
    "shape empty string of a scalar": (one(shape="", offsets=[0, 1]), 1),
    "shape empty object of a scalar": (one(shape={}, offsets=[0, 1]), 1),
    "shape object": (one(shape={"0": 4}), 4),
    "dimension negative": (one(shape=[-4]), 4),
    "dimensions negative twice": (one(shape=[-2, -2]), 4),
    "dimension and offsets backwards": (one(shape=[-4], offsets=[4, 0]), 4),
    "dimension float": (one(shape=[4.0]), 4),
    "dimension with an exponent": (one().replace("[4]", "[4e0]"), 4),
    "dimension true": (one(shape=[True], offsets=[0, 1]), 1),
    "dimension false": (one(shape=[False], offsets=[0, 0]), 0),
    "dimension null": (one(shape=[None]), 4),
    "dimension string": (one(shape=["4"]), 4),
    "dimension array": (one(shape=[[4]]), 4),
    "dimension minus zero": (one().replace("[4]", "[-0]").replace("[0, 4]", "[0, 0]"), 0),
    "dimension minus zero after a space": (one().replace("[4]", "[1, -0]").replace("[0, 4]", "[0, 0]"), 0),
    "dimension zero": (one(shape=[0], offsets=[0, 0]), 0),
    "dimension zero among others": (one("F32", [3, 0, 5], [0, 0]), 0),
    "overflow of the elements": (one(shape=[BIG, BIG], offsets=[0, 0]), 0),
    "overflow, wrapping to the right size": (one(shape=[1 << 62, 4, 4], offsets=[0, 0]), 0),
    "overflow before a zero": (one(shape=[BIG, BIG, 0], offsets=[0, 0]), 0),
    "overflow after a zero": (one(shape=[0, BIG, BIG], offsets=[0, 0]), 0),
    "overflow of the bits": (one("F64", [1 << 61], [0, 0]), 0),
    "largest dimension beside a zero": (one(shape=[0, (1 << 64) - 1], offsets=[0, 0]), 0),
    "dimension of 65 bits beside a zero": (one(shape=[0, 1 << 64], offsets=[0, 0]), 0),
    "dimension of 400 digits": (one(shape=[10**400], offsets=[0, 0]), 0),
    "a thousand dimensions": (one(shape=[1] * 999 + [4]), 4),
    # offsets
    "offsets null": (one(offsets=None), 4),
    "offsets of three": (one(offsets=[0, 4, 4]), 4),
    "offsets of one": (one(offsets=[4]), 4),
    "offsets as an object": (one(offsets={"0": 0, "1": 4}), 4),
    "offsets as a string": (one(offsets="04"), 4),
    "offsets float": (one(offsets=[0, 4.0]), 4),
    "offsets bool": (one(shape=[1], offsets=[False, True]), 1),
    "offsets end true": (one(shape=[1], offsets=[0, True]), 1),
    "offsets begin false": (one(offsets=[False, 4]), 4),
    "offsets minus zero": (one().replace("[0, 4]", "[-0, 4]"), 4),
    "offsets negative": (one(offsets=[-4, 0]), 4),
    "offsets backwards": (one(offsets=[4, 0]), 4),
    "offsets of 65 bits": (one(offsets=[0, 1 << 64]), 4),
    "offsets far": (one(shape=[1 << 62], offsets=[0, 1 << 62]), 4),
    "size too small": (one(shape=[5]), 4),
    "size too large": (one(shape=[3]), 4),
    "two in order": (two((0, 4), (4, 8)), 8),
    "two out of order": (two((4, 8), (0, 4)), 8),
    "two out of order, one broken": (two((4, 8), (0, 4)).replace('"U8"', '"U9"', 1), 8),
    "gap": (two((0, 4), (6, 8)), 8),
    "gap at the beginning": (one(offsets=[2, 6]), 6),
    "overlap": (two((0, 4), (2, 8)), 8),
    "the same place twice": (two((0, 4), (0, 4)), 4),
    "empty tensor at the end": (two((0, 4), (4, 4)), 4),
    "empty tensor at the beginning": (two((0, 4), (0, 0)), 4),
    "empty tensor in the middle of another": (two((0, 4), (2, 2)), 4),
    "empty tensor beyond the end": (two((0, 4), (6, 6)), 4),
    "trailing bytes": (one(), 5),
    "truncated data": (one(), 3),
    "no data": (one(), 0),
    # metadata
    "metadata": ('{"__metadata__": {"format": "pt"}, ' + one()[1:], 4),
    "metadata at the end": (one()[:-1] + ', "__metadata__": {"format": "pt"}}', 4),
    "metadata only": ('{"__metadata__": {"format": "pt"}}', 0),
    "metadata null": ('{"__metadata__": null}', 0),
    "metadata empty": ('{"__metadata__": {}}', 0),
    "metadata array": ('{"__metadata__": []}', 0),
    "metadata string": ('{"__metadata__": "pt"}', 0),
    "metadata number": ('{"__metadata__": {"n": 1}}', 0),
    "metadata null inside": ('{"__metadata__": {"n": null}}', 0),
    "metadata nested": ('{"__metadata__": {"n": {"m": "x"}}}', 0),
    "metadata nested number": ('{"__metadata__": {"n": {"m": 1}}}', 0),
    "metadata nested array": ('{"__metadata__": {"n": ["m"]}}', 0),
    "metadata twice": ('{"__metadata__": {"a": "b"}, "__metadata__": {"a": "b"}}', 0),
    "metadata null twice": ('{"__metadata__": null, "__metadata__": null}', 0),
    "metadata key twice": ('{"__metadata__": {"a": "b", "a": "c"}}', 0),
    "metadata key twice, first a number": ('{"__metadata__": {"a": 1, "a": "c"}}', 0),
    "metadata in escapes": ('{"__meta\\u0064ata__": {"a": "b"}}', 0),
    "metadata as a tensor": (one().replace('"a"', '"__metadata__"'), 4),
    "metadata holding JSON": ('{"__metadata__": {"c": "{\\"a\\": [1, -0]}"}, ' + one()[1:], 4),
    "metadata with half a surrogate pair": ('{"__metadata__": {"a": "\\ud800"}}', 0),
    # duplicates
    "duplicate, equal": (f'{{"a": {entry()}, "a": {entry()}}}', 4),
    "duplicate, equal, beside another": (f'{{"a": {entry()}, "b": {entry(offsets=[4, 8])}, "a": {entry()}}}', 8),
    "duplicate, in escapes": (f'{{"a": {entry()}, "\\u0061": {entry()}}}', 4),
    "duplicate, the last one right": (f'{{"a": {entry(shape=[2], offsets=[0, 2])}, "a": {entry()}}}', 4),
    "duplicate, the last one wrong": (f'{{"a": {entry()}, "a": {entry(shape=[2], offsets=[0, 2])}}}', 4),
    "duplicate, first one in a gap": (f'{{"a": {entry(offsets=[8, 12])}, "a": {entry()}}}', 4),
    "duplicate, first one no entry": (f'{{"a": 5, "a": {entry()}}}', 4),
    "duplicate, first one an array": (f'{{"a": ["U8", [4], [0, 4]], "a": {entry()}}}', 4),
    "duplicate, first one of unknown dtype": (f'{{"a": {entry("U9")}, "a": {entry()}}}', 4),
    "duplicate, first one overflowing": (f'{{"a": {entry(shape=[BIG, BIG])}, "a": {entry()}}}', 4),
    "duplicate, first one without shape": ('{"a": {"dtype": "U8", "data_offsets": [0, 4]}, ' + one()[1:], 4),
    "duplicate dtype": (one().replace('"shape"', '"dtype": "U8", "shape"'), 4),
    "duplicate shape": (one().replace('"shape"', '"shape": [4], "shape"'), 4),
    "duplicate data_offsets": (one().replace('"shape"', '"data_offsets": [0, 4], "shape"'), 4),
    "duplicate members beside an entry as array": (
        '{"a": ["U8", [4], [0, 4]], "b": {"shape": [4], "shape": [4], "shape": [4], ' + entry(offsets=[4, 8])[1:] + "}",
        8,
    ),
    "extra keys beside an entry as array": (
        '{"a": ["U8", [4], [0, 4]], "b": {"x": 1e400, "y": 1, "z": 1, ' + entry(offsets=[4, 8])[1:] + "}",
        8,
    ),
    "duplicate extra key": (one().replace('"shape"', '"x": 1, "x": 2, "shape"'), 4),
}


def blob(header: str | bytes, data: int) -> bytes:
    raw = header.encode() if isinstance(header, str) else header
    return len(raw).to_bytes(8, "little") + raw + bytes(data)


def library_accepts(content: bytes) -> bool:
    try:
        deserialize(content)
    except SafetensorError:
        return False
    return True


def we_accept(content: bytes, directory: Path) -> bool:
    (directory / "x.safetensors").write_bytes(content)
    return not read_header(str(directory), "x.safetensors").fatal


@pytest.mark.parametrize(("header", "data"), CASES.values(), ids=CASES.keys())
def test_accepts_what_the_library_accepts(header: str | bytes, data: int, tmp_path: Path) -> None:
    """Every hand-made file is accepted or refused as the library does, by both of its ways to read."""
    content = blob(header, data)
    (tmp_path / "x.safetensors").write_bytes(content)
    try:
        with safe_open(tmp_path / "x.safetensors", "np") as file:
            names = sorted(file.keys())
        opened = True
    except SafetensorError:
        names, opened = [], False

    got = read_header(str(tmp_path), "x.safetensors")

    assert (opened, library_accepts(content)) == (not got.fatal, not got.fatal)
    assert sorted(got.tensors) == names


def test_the_table_has_both_sides() -> None:
    """The table would be no oracle if nearly all of it were accepted, or refused."""
    accepted = sum(library_accepts(blob(*case)) for case in CASES.values())

    assert len(CASES) > 150
    assert 60 < accepted < len(CASES) - 60


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x02",
        b"\x02\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0",
        b"\x02\0\0\0\0\0\0\0{",
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x03\0\0\0\0\0\0\0{}",
        b"\0\0\0\0\0\0\0\0{}",
        b"\0\0\0\0\0\0\0\x80{}",
        b"\xff\xff\xff\xff\xff\xff\xff\xff{}",
        (100_000_001).to_bytes(8, "little") + b"{}",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        b"<!DOCTYPE html><html></html>",
        b"PK\x03\x04" + bytes(60),
        b"\x80\x02}q\x00." + bytes(60),
    ],
    ids=repr,
)
def test_accepts_frames_the_library_accepts(content: bytes, tmp_path: Path) -> None:
    """The eight bytes in front are judged as the library judges them."""
    assert we_accept(content, tmp_path) == library_accepts(content)


@pytest.mark.parametrize(("length", "accepted"), [(100_000_000, True), (100_000_001, False)])
def test_limit_of_the_header(length: int, accepted: bool, tmp_path: Path) -> None:
    """A header of a hundred million bytes is the last one that is read."""
    content = blob(b"{}" + b" " * (length - 2), 0)

    assert (we_accept(content, tmp_path), library_accepts(content)) == (accepted, accepted)


NAMES = st.sampled_from(["a", "b", "layers.0.w", 'q"', "back\\slash", "é", "", ":", "__metadata__"])
NUMBERS = st.one_of(
    st.integers(0, 9),
    st.sampled_from([-1, 2**32, 2**63, 2**64 - 1, 2**64, 1.0, 0.5, True, False, None, "1", []]),
)


def _laid_out(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    header: dict[str, Any] = {}
    offset = 0
    for name in draw(st.lists(NAMES.filter(lambda n: n != "__metadata__"), max_size=4, unique=True)):
        dtype = draw(st.sampled_from(sorted(BITS)))
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        bits = BITS[dtype]
        for dim in shape:
            bits *= dim
        size = -(-bits // 8)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    if draw(st.booleans()):
        header["__metadata__"] = draw(
            st.one_of(st.none(), st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2), NUMBERS)
        )
    order = draw(st.permutations(list(header)))
    return {name: header[name] for name in order}, offset


@st.composite
def nearly_valid(draw: st.DrawFn) -> bytes:
    """A file that is right, or has a member, a number or a few bytes changed."""
    header, size = _laid_out(draw)
    entries = [value for name, value in header.items() if name != "__metadata__"]
    if entries and draw(st.booleans()):
        chosen = draw(st.sampled_from(entries))
        action = draw(st.sampled_from(["dim", "offset", "member", "drop", "more", "dtype"]))
        if action == "dim" and chosen["shape"]:
            chosen["shape"][draw(st.integers(0, len(chosen["shape"]) - 1))] = draw(NUMBERS)
        elif action == "offset":
            chosen["data_offsets"][draw(st.integers(0, 1))] = draw(NUMBERS)
        elif action == "member":
            chosen[draw(st.sampled_from(["dtype", "shape", "data_offsets"]))] = draw(NUMBERS)
        elif action == "drop":
            del chosen[draw(st.sampled_from(["dtype", "shape", "data_offsets"]))]
        elif action == "more":
            chosen["more"] = draw(NUMBERS)
        else:
            chosen["dtype"] = draw(st.sampled_from([*sorted(BITS), "u8", "F8"]))
    raw = json.dumps(header, ensure_ascii=draw(st.booleans())).encode()
    if draw(st.booleans()):
        # Duplicates: the same members once more, perhaps under another entry's content.
        again, _ = _laid_out(draw)
        inner = json.dumps(again).encode()[1:-1]
        if inner and raw != b"{}":
            raw = raw[:-1] + b", " + inner + b"}"
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(raw)))
        cut = draw(st.integers(0, 2))
        raw = (
            raw[:at]
            + draw(st.sampled_from([b"", b" ", b"-", b"0", b"1", b"\\", b'"', b"\xff", b"e1", b","]))
            + raw[at + cut :]
        )
    length = len(raw) + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1]))
    return max(length, 0).to_bytes(8, "little") + raw + bytes(max(size + draw(st.sampled_from([0, 0, 0, 0, 1, -1])), 0))


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(nearly_valid())
def test_mutations(content: bytes) -> None:
    """Whatever is changed in a valid file, the library and the reader agree about the result."""
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        assert not library_accepts(content)
        return
    got = parse_header(content[8 : 8 + length], len(content) - 8 - length, "x.safetensors")

    assert (not got.fatal) == library_accepts(content)
    if not got.fatal:
        want = {name: (info["shape"], info["dtype"]) for name, info in deserialize(content)}
        assert {name: (info["shape"], info["dtype"]) for name, info in got.tensors.items()} == want


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise(raw: bytes) -> None:
    """Random bytes in the header's place end in a problem wherever the library refuses them."""
    got = parse_header(raw, 0, "x.safetensors")

    assert (not got.fatal) == library_accepts(len(raw).to_bytes(8, "little") + raw)
