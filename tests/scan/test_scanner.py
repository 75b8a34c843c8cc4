"""The scan of whole files: with numpy, without, and number by number must be the same."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import tracemalloc

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st
from scan.reference import DTYPES, reference, small

from dspark_lint.checkpoint import BITS
from dspark_lint.scan import reader, scanner, tally
from dspark_lint.scan.formats import FORMATS
from dspark_lint.scan.reader import CHUNK
from dspark_lint.scan.rows import RowSet
from dspark_lint.scan.scanner import scan_file
from dspark_lint.scan.tally import WANTS, TensorSlice, TensorStats


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


EVERYTHING = frozenset(WANTS)
SHAPES = ((0,), (1,), (7,), (150,), (3, 1), (2, 3), (9, 4), (40, 2), (2, 3, 4), (5, 90), (0, 4))
# Bytes that stand near the edges of some format, in either place of a number.
EDGES = bytes.fromhex("00 01 3c 3f 40 7b 7c 7d 7e 7f 80 81 bf c0 f0 ef fb fc fd fe ff")


@pytest.fixture(params=[True, False], ids=["numpy", "stdlib"])
def numpy(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers and batches so small that everything is cut, and a thread for every scan with numpy."""
    shrink(monkeypatch)


def shrink(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scanner, "CHUNK", 192)
    patch.setattr(tally, "_UNPACKED", 5)
    patch.setattr(scanner, "_WORTH_THREAD", 0)
    patch.setattr(scanner, "_processors", lambda: 2)


def put(path: Path, tensors: Sequence[tuple[str, tuple[int, ...], bytes, frozenset[str]]]) -> list[TensorSlice]:
    """Write the data of (dtype, shape, bytes, want) one behind the other, after a few bytes of something else."""
    entries, content = [], b"\xff\x7f\xff"
    for i, (dtype, shape, data, want) in enumerate(tensors):
        entries.append(TensorSlice(f"t{i}", dtype, shape, len(content), len(content) + len(data), want))
        content += data
    path.write_bytes(content)
    return entries


@st.composite
def tensor(draw: st.DrawFn) -> tuple[str, tuple[int, ...], bytes, frozenset[str]]:
    """A tensor of any dtype, poor in different bytes so that zeros, NaN, and equal rows and numbers are common."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(
        st.sampled_from([(0,), (1,), (7,), (150,), (3, 1), (2, 3), (9, 4), (40, 2), (2, 3, 4), (5, 90), (0, 4)])
    )
    if prod(shape) * BITS[dtype] % 8 or BITS[dtype] == 6:
        shape = (*shape[:-1], shape[-1] * 4)
    size = prod(shape) * BITS[dtype] // 8
    unit = FORMATS[dtype].unit
    pattern = st.one_of(
        st.sampled_from([bytes(unit), bytes(unit - 1) + b"\x80", bytes(unit - 1) + b"\x3c"]),
        st.lists(st.sampled_from(EDGES), min_size=unit, max_size=unit).map(bytes),
        st.binary(min_size=unit, max_size=unit),
    )
    row = unit * shape[-1] if len(shape) > 1 else size
    lines: list[bytes] = []
    data = b""
    while len(data) < size:
        kind = draw(st.integers(0, 3))
        if kind == 0 and lines:
            line = draw(st.sampled_from(lines))
        elif kind == 1:
            line = draw(pattern) * (row // unit)
        else:
            few = draw(st.lists(pattern, min_size=1, max_size=6))
            line = (b"".join(few) * (row // len(few) + 1))[:row]
        lines.append(line[: max(row, unit)])
        data += lines[-1]
    return dtype, shape, data[:size], draw(st.sets(st.sampled_from(sorted(WANTS))).map(frozenset))


@settings(max_examples=300, deadline=None)
@given(st.lists(tensor(), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_both_ways_agree_with_the_definition(tmp_path_factory: pytest.TempPathFactory, tensors, random) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    """Whatever the dtype, the data, the place in the file and where buffers end, three computations agree."""
    path = tmp_path_factory.mktemp("scan") / "f"
    entries = put(path, tensors)
    random.shuffle(entries)
    content = path.read_bytes()
    want = [reference(entry, content[entry.begin : entry.end]) for entry in entries]

    assert scan_file(path, entries, numpy=True) == want
    assert scan_file(path, entries, numpy=False) == want
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        assert scan_file(path, entries, numpy=True) == want
        assert scan_file(path, entries, numpy=False) == want


@pytest.mark.parametrize("dtype", [name for name in DTYPES if BITS[name] in (8, 16)])
def test_every_pattern(dtype: str, numpy: bool, tmp_path: Path) -> None:
    """Each pattern of eight bits, and each high byte over the low ones that matter, is told for what it is."""
    lows = [bytes([low]) for low in EDGES] if BITS[dtype] == 16 else [b""]
    patterns = [low + bytes([high]) for high in range(256) for low in lows]
    entries = put(tmp_path / "f", [(dtype, (1,), pattern, EVERYTHING) for pattern in patterns])

    got = scan_file(tmp_path / "f", entries, numpy=numpy)

    assert got == [reference(entry, pattern) for entry, pattern in zip(entries, patterns, strict=True)]


def test_known_numbers() -> None:
    """The greatest and least numbers that the papers on the small formats give."""
    assert [small(0x7E, "F8_E4M3"), small(0x01, "F8_E4M3")] == [448, 2**-9]
    assert [small(0x7B, "F8_E5M2"), small(0x01, "F8_E5M2")] == [57344, 2**-16]
    assert [small(0x7F, "F8_E4M3FNUZ"), small(0x01, "F8_E4M3FNUZ")] == [240, 2**-10]
    assert [small(0x7F, "F8_E5M2FNUZ"), small(0x01, "F8_E5M2FNUZ")] == [57344, 2**-17]


@pytest.mark.parametrize("at", [0, 5, CHUNK // 2 - 1, CHUNK // 2, CHUNK - 1, CHUNK, CHUNK + 1023])
def test_one_number_among_millions(at: int, numpy: bool, tmp_path: Path) -> None:
    """A single NaN is found and placed, whichever buffer it falls into."""
    data = bytearray(b"\x80\xbc\x00\x3c" * (CHUNK // 2 + 512))
    data[2 * at : 2 * at + 2] = b"\xc0\xff"
    entries = put(tmp_path / "f", [("BF16", (CHUNK + 1024,), bytes(data), frozenset({"nonfinite", "zero"}))])

    got = scan_file(tmp_path / "f", entries, numpy=numpy)

    assert got == [TensorStats("t0", CHUNK + 1024, nan=1, first_bad_index=at)]


def test_large_finite_numbers_are_finite(numpy: bool, tmp_path: Path) -> None:
    """The bytes of a huge finite BF16 begin as those of infinity do, and it is none."""
    entries = put(tmp_path / "f", [("BF16", (2,), b"\x7f\x7f\x7f\xff", EVERYTHING - {"rows"})])

    (got,) = scan_file(tmp_path / "f", entries, numpy=numpy)

    assert (got.nan, got.inf, got.min, got.max) == (0, 0, -3.3895313892515355e38, 3.3895313892515355e38)


@pytest.mark.usefixtures("small_steps")
def test_rows(numpy: bool, tmp_path: Path) -> None:
    """Rows of zeros, of one value, and copies of the one before are counted, across the ends of buffers too."""
    plain, zero, one, minus = b"\x01\x3c\x02\x3c" * 8, bytes(32), b"\x01\x3c" * 16, b"\0\x80\0\0" * 8
    rows = [plain, one, one, zero, minus, plain, plain, *([zero] * 9)]
    entries = put(tmp_path / "f", [("BF16", (16, 16), b"".join(rows), frozenset({"rows"}))])

    (got,) = scan_file(tmp_path / "f", entries, numpy=numpy)

    assert got.zero_rows == RowSet(11, (3, 4, 7, 8, 9))
    assert got.constant_rows == RowSet(2, (1, 2))
    assert got.repeated_rows == RowSet(10, (2, 6, 8, 9, 10))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("BF16", (4,)), ("BF16", (4, 1)), ("F4", (2, 4)), ("F32", (1, 1 << 20)), ("F32", ())],
    ids=["vector", "column", "shared bytes", "too wide", "scalar"],
)
def test_no_rows(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    """Where there are no rows to speak of, or none that fit in memory, nothing is said of them."""
    data = b"\x01" * (prod(shape) * BITS[dtype] // 8)
    entries = put(tmp_path / "f", [(dtype, shape, data, frozenset({"rows"}))])

    assert scan_file(tmp_path / "f", entries) == [TensorStats("t0", prod(shape))]


def test_order_of_answers(tmp_path: Path) -> None:
    """Answers come in the order of the questions, also where the file has another."""
    entries = put(tmp_path / "f", [("U8", (1,), bytes([i]), frozenset({"minmax"})) for i in range(5)])
    entries = [entries[i] for i in (3, 0, 4, 1, 2)]

    assert [stats.max for stats in scan_file(tmp_path / "f", entries)] == [3, 0, 4, 1, 2]


class TestDamage:
    """Files that cannot be read to the end."""

    @pytest.mark.usefixtures("small_steps")
    @pytest.mark.parametrize("lost", [1, 2, 199, 200, 203, 400])
    def test_cut(self, lost: int, numpy: bool, tmp_path: Path) -> None:
        """A file that ends early says so for the tensors it lost bytes of, and counts what is there."""
        data = b"\x00\x7e" * 100
        entries = put(tmp_path / "f", [("F16", (100,), data, frozenset({"nonfinite", "zero"}))] * 2)
        with (tmp_path / "f").open("r+b") as file:
            file.truncate(entries[-1].end - lost)

        got = scan_file(tmp_path / "f", entries, numpy=numpy)

        def expected(name: str, gone: int) -> TensorStats:
            kept = (200 - gone) // 2
            problem = f"the file ends {gone} bytes before the tensor does" if gone else None
            return TensorStats(name, 100, nan=kept, first_bad_index=0 if kept else None, problem=problem)

        assert got == [expected("t0", max(lost - 200, 0)), expected("t1", min(lost, 200))]

    def test_zeros_that_end_early(self, numpy: bool, tmp_path: Path) -> None:
        """A tensor is not called all zero for the part of it that is."""
        entries = put(tmp_path / "f", [("BF16", (4,), bytes(8), frozenset({"zero"}))])
        with (tmp_path / "f").open("r+b") as file:
            file.truncate(7)

        assert [stats.all_zero for stats in scan_file(tmp_path / "f", entries, numpy=numpy)] == [False]

    @pytest.mark.parametrize(
        ("make", "says"),
        [(lambda _: None, "`f` does not exist"), (Path.mkdir, "`f` is a directory"), (os.mkfifo, "`f` is a FIFO")],
        ids=["missing", "directory", "fifo"],
    )
    def test_no_file(self, make: Callable[[Path], None], says: str, tmp_path: Path) -> None:
        """What cannot be opened, or is no file, is a problem of every tensor; the bytes are accounted for."""
        make(tmp_path / "f")
        entries = [TensorSlice(name, "U8", (4,), 0, 4, EVERYTHING) for name in "ab"]
        seen: list[int] = []

        got = scan_file(tmp_path / "f", entries, progress=seen.append)

        assert [stats.problem for stats in got] == [says] * 2
        assert sum(seen) == 8

    @pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that refuses to be read")
    def test_refused_by_the_device(self, numpy: bool) -> None:
        """An error of the device while reading is a problem of the tensor too."""
        entries = [TensorSlice("a", "U8", (4,), 0, 4, frozenset({"zero"}))]

        got = scan_file("/proc/self/mem", entries, numpy=numpy)

        assert got == [TensorStats("a", 4, problem="the tensor cannot be read: Input/output error")]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (TensorSlice("a", "F7", (1,), 0, 1, EVERYTHING), "unknown dtype 'F7' of 'a'"),
        (TensorSlice("a", "BF16", (3,), 0, 5, EVERYTHING), r"'a': 5 bytes are no BF16 \[3\]"),
        (
            TensorSlice("a", "U8", (1,), 0, 1, frozenset({"nan"})),
            "nan is none of minmax, nonfinite, positive, rows, zero",
        ),
    ],
    ids=["dtype", "size", "want"],
)
def test_wrong_questions(entry: TensorSlice, says: str, tmp_path: Path) -> None:
    """A question that no header can lead to is a mistake of the caller."""
    with pytest.raises(ValueError, match=says):
        scan_file(tmp_path / "f", [entry])


class TestReading:
    """What is read, and what is not."""

    @pytest.fixture
    def read(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The sizes of all reads."""
        sizes: list[int] = []
        original = reader._read

        def counted(file, offset: int, into: memoryview) -> tuple[int, str | None]:  # type: ignore[no-untyped-def] # noqa: ANN001
            sizes.append(len(into))
            return original(file, offset, into)

        monkeypatch.setattr(reader, "_read", counted)
        return sizes

    @pytest.mark.usefixtures("small_steps")
    def test_no_more_than_needed(self, read: list[int], tmp_path: Path) -> None:
        """Of integers that are not zero nothing else is asked, so the rest of them is left alone."""
        entries = put(tmp_path / "f", [("I32", (1000,), bytes(1600) + b"\1" * 2400, frozenset({"zero"}))])
        seen: list[int] = []

        got = scan_file(tmp_path / "f", entries, progress=seen.append, numpy=False)

        assert got == [TensorStats("t0", 1000)]
        assert 1600 < sum(read) < 2200
        assert sum(seen) == 4000

    @pytest.mark.parametrize("want", [frozenset({"nonfinite", "zero"}), EVERYTHING], ids=["skipped", "seen"])
    def test_holes(self, want: frozenset[str], read: list[int], numpy: bool, tmp_path: Path) -> None:
        """The holes of a sparse file are zeros, and are not read where zeros have nothing to tell."""
        size = 6 << 20
        with (tmp_path / "f").open("wb") as file:
            file.truncate(3 * size)
            file.seek(size + (2 << 20) + 2)
            file.write(b"\xff\xff")
        if (tmp_path / "f").stat().st_blocks * 512 >= size:
            pytest.skip("no sparse files here")
        shape = (3 << 10, 1 << 10)
        entries = [TensorSlice(str(i), "BF16", shape, i * size, (i + 1) * size, want) for i in range(3)]
        seen: list[int] = []

        got = scan_file(tmp_path / "f", entries, progress=seen.append, numpy=numpy)

        assert [(s.nan, s.first_bad_index, s.all_zero) for s in got] == [
            (0, None, True),
            (1, (1 << 20) + 1, False),
            (0, None, True),
        ]
        assert sum(seen) == 3 * size
        assert sum(read) <= CHUNK if want != EVERYTHING else sum(read) == 3 * size
        if want == EVERYTHING:
            assert got[2].zero == 3 << 20
            assert got[1].zero_rows == RowSet((3 << 10) - 1, (0, 1, 2, 3, 4))

    def test_hole_behind_the_end(self, tmp_path: Path) -> None:
        """What is missing from a sparse file is missing, not zero."""
        with (tmp_path / "f").open("wb") as file:
            file.truncate(1 << 20)
        entries = [TensorSlice("a", "U8", (2 << 20,), 0, 2 << 20, frozenset({"zero"}))]

        (got,) = scan_file(tmp_path / "f", entries)

        assert (got.all_zero, got.problem) == (False, "the file ends 1,048,576 bytes before the tensor does")

    @pytest.mark.parametrize("want", [frozenset({"nonfinite", "zero"}), EVERYTHING], ids=["usual", "everything"])
    def test_memory(self, want: frozenset[str], numpy: bool, tmp_path: Path) -> None:
        """Whatever the size, a few buffers are all that is held, also where everything has to be counted."""
        size = 8 << 20
        with (tmp_path / "f").open("wb") as file:
            for _ in range(size >> 20):
                file.write(b"\xff" * (1 << 20))
        entries = [
            TensorSlice(dtype, dtype, (size // 2 // 1024 // width, 1024), i * size // 2, (i + 1) * size // 2, want)
            for i, (dtype, width) in enumerate([("BF16", 2), ("F8_E4M3", 1)])
        ]
        tracemalloc.start()
        try:
            scan_file(tmp_path / "f", entries, numpy=numpy)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert peak < 20e6


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_interrupted(error: type[BaseException], numpy: bool, tmp_path: Path) -> None:
    """Ctrl-C, or a callback that fails, ends the scan at once and leaves neither a thread nor an open file."""
    entries = put(tmp_path / "f", [("BF16", (500,), b"\1\2" * 500, frozenset({"nonfinite"}))] * 10)
    calls = []

    def interrupt(size: int) -> None:
        calls.append(size)
        if len(calls) == 3:
            raise error

    before = set(open_files())
    with pytest.raises(error):
        scan_file(tmp_path / "f", entries, progress=interrupt, numpy=numpy)

    assert len(calls) == 3
    assert [thread for thread in threading.enumerate() if thread.name == "scan-helper"] == []
    assert set(open_files()) == before


def open_files() -> Iterator[str]:
    """The files this process has open, where that can be seen."""
    folder = Path("/proc/self/fd")
    for entry in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            yield str(entry.readlink())


@pytest.mark.usefixtures("small_steps")
def test_two_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each tensor is scanned by one of two threads, from first to last byte, and progress is told by the caller's."""
    entries = put(tmp_path / "f", [("BF16", (500,), bytes(998) + b"\x80\x7f", EVERYTHING)] * 20)
    fed: dict[str, set[int]] = {}
    both = threading.Barrier(2)
    original = tally.Tally.feed

    def feed(self: tally.Tally, piece: tally.Stretch) -> None:
        if self.name in {"t0", "t1"} and piece.at == 0:
            both.wait(10)
        fed.setdefault(self.name, set()).add(threading.get_ident())
        original(self, piece)

    monkeypatch.setattr(tally.Tally, "feed", feed)
    told: list[tuple[int, int]] = []
    got = scan_file(
        tmp_path / "f", entries, progress=lambda size: told.append((threading.get_ident(), size)), numpy=True
    )

    assert [stats.inf for stats in got] == [1] * 20
    assert [len(threads) for threads in fed.values()] == [1] * 20
    assert fed["t0"] != fed["t1"]
    assert {thread for thread, _ in told} == {threading.get_ident()}
    assert sum(size for _, size in told) == 20_000


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("where", ["main", "helper"])
def test_a_fault_of_ours(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fault in either thread comes out where the scan was called."""
    entries = put(tmp_path / "f", [("BF16", (50,), bytes(100), frozenset({"nonfinite"}))] * 9)
    raised = threading.Event()
    original = reader._read

    def broken(*arguments: Any) -> tuple[int, str | None]:
        if (threading.current_thread().name == "scan-helper") == (where == "helper"):
            raised.set()
            raise ZeroDivisionError
        raised.wait(10)
        return original(*arguments)

    monkeypatch.setattr(reader, "_read", broken)
    with pytest.raises(ZeroDivisionError):
        scan_file(tmp_path / "f", entries, numpy=True)


@pytest.mark.usefixtures("small_steps")
def test_helper_finds_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the file went away meanwhile, the thread that has it open does all the work."""
    entries = put(tmp_path / "f", [("BF16", (500,), bytes(998) + b"\x80\x7f", EVERYTHING)] * 4)
    original = scanner._open

    def once(path: Path) -> Any:
        file = original(path)
        path.unlink(missing_ok=True)
        return file

    monkeypatch.setattr(scanner, "_open", once)

    assert [(s.inf, s.problem) for s in scan_file(tmp_path / "f", entries, numpy=True)] == [(1, None)] * 4


@pytest.mark.usefixtures("small_steps")
def test_no_more_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where no thread can be started, the scan does without."""
    entries = put(tmp_path / "f", [("BF16", (500,), bytes(998) + b"\x80\x7f", EVERYTHING)])

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [stats.inf for stats in scan_file(tmp_path / "f", entries, numpy=True)] == [1]


class TestNumpyIsOptional:
    """With and without the extra."""

    def test_not_imported(self) -> None:
        """Importing the package, and scanning a small file, does not import numpy."""
        code = (
            "import sys\n"
            "from dspark_lint.scan.scanner import scan_file\n"
            "from dspark_lint.scan.tally import WANTS, TensorSlice\n"
            "from dspark_lint.scan import progress, tables\n"
            "print(scan_file(sys.executable, [TensorSlice('a', 'BF16', (50,), 0, 100, WANTS)])[0].elements)\n"
            "print('numpy' in sys.modules)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["50", "False"]

    @pytest.mark.parametrize("demanded", [True, None])
    def test_broken(self, demanded: bool | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Where numpy cannot be imported the standard library does, unless numpy was asked for by name."""
        entries = put(tmp_path / "f", [("BF16", (1,), b"\x80\x7f", EVERYTHING)])
        monkeypatch.setitem(sys.modules, "numpy", None)
        if demanded:
            with pytest.raises(ImportError):
                scan_file(tmp_path / "f", entries, numpy=demanded)
        else:
            assert [stats.inf for stats in scan_file(tmp_path / "f", entries, numpy=demanded)] == [1]
