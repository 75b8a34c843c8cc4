"""Whatever stands where a checkpoint is expected costs bounded time and memory and ends in a finding."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cli.conftest import DEMO, plain_environment

from dspark_lint.cli import exits


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
QUANT = "hf_quant_config.json"
#: The tool by itself, and what memory it took at most, as the last word on standard error where the system tells.
SCRIPT = """
import sys
from dspark_lint.cli.main import run
code = run(sys.argv[1:])
try:
    with open("/proc/self/status") as status:
        print(*(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
except OSError:
    print(0, file=sys.stderr)
sys.stdout.flush()
raise SystemExit(code)
"""


def text(name: str, content: bytes | str) -> Callable[[Path], None]:
    """The file with this content."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda draft: put(draft / name, raw)


def put(path: Path, raw: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(raw)


def framed(header: bytes, data: int = 0) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(data)


def edited(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    """The file with something in it replaced."""

    def change(draft: Path) -> None:
        raw = (draft / name).read_bytes()
        assert old in raw
        put(draft / name, raw.replace(old, new, 1))

    return change


def resized(name: str, change: int) -> Callable[[Path], None]:
    """The file longer or shorter by so many bytes."""

    def resize(draft: Path) -> None:
        with (draft / name).open("r+b") as file:
            file.truncate(os.path.getsize(draft / name) + change)

    return resize


def sparse(name: str, begin: bytes, size: int) -> Callable[[Path], None]:
    """The file of so many bytes, all but the first a hole."""

    def write(draft: Path) -> None:
        put(draft / name, begin)
        os.truncate(draft / name, size)

    return write


def directory(name: str) -> Callable[[Path], None]:
    """A directory in the file's place."""

    def make(draft: Path) -> None:
        (draft / name).unlink(missing_ok=True)
        (draft / name).mkdir()

    return make


def fifo(name: str) -> Callable[[Path], None]:
    """A pipe that nobody writes to."""

    def make(draft: Path) -> None:
        (draft / name).unlink(missing_ok=True)
        os.mkfifo(draft / name)

    return make


def link(name: str, to: str) -> Callable[[Path], None]:
    """A link in the file's place."""

    def make(draft: Path) -> None:
        (draft / name).unlink(missing_ok=True)
        (draft / name).symlink_to(to)

    return make


def indexed(files: dict[str, str]) -> Callable[[Path], None]:
    """The weights in two shards' place, and an index that sends tensors to these files."""

    def write(draft: Path) -> None:
        shard = "model-00001-of-00002.safetensors"
        (draft / WEIGHTS).rename(draft / shard)
        raw = (draft / shard).read_bytes()
        names = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        weight_map = {name: shard for name in names if name != "__metadata__"}
        put(draft / INDEX, json.dumps({"metadata": {}, "weight_map": {**weight_map, **files}}).encode())

    return write


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    return packed.getvalue()


def many() -> bytes:
    """A header of very many tensors of one byte; what they cost grows with their number and no faster."""
    entry = '"t%d":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}'
    return framed(("{" + ",".join(entry % (i, i, i + 1) for i in range(250_000)) + "}").encode(), 250_000)


def named(*names: str) -> bytes:
    """Tensors of one byte with these names."""
    entries = {name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, name in enumerate(names)}
    return framed(json.dumps(entries).encode(), len(names))


DEEP = 100_000
DIGITS = "9" * 10_000
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"
HTML = "<!DOCTYPE html><html><head><title>404</title></head></html>" + " " * 600


class Row(NamedTuple):
    """Something that stands there."""

    name: str
    make: Callable[[Path], None]
    finding: tuple[str, str | None]
    """Rule and file of the finding that must be among those told."""
    megabytes: int = 80
    seconds: float = 10


ROWS = [
    Row("no config.json", lambda draft: (draft / CONFIG).unlink(), ("FIL001", CONFIG)),
    Row("config.json is empty", text(CONFIG, ""), ("FIL001", CONFIG)),
    Row("config.json is a FIFO", fifo(CONFIG), ("FIL001", CONFIG)),
    Row("config.json is a device", link(CONFIG, "/dev/zero"), ("FIL001", CONFIG)),
    Row("config.json is a directory", directory(CONFIG), ("FIL001", CONFIG)),
    Row("config.json leads in a circle", link(CONFIG, CONFIG), ("FIL001", CONFIG)),
    Row("config.json of 200 MB", sparse(CONFIG, b'{"a": "', 200_000_000), ("FIL001", CONFIG)),
    Row("config.json of 200 MB of brackets", lambda draft: put(draft / CONFIG, b"[" * 200_000_000), ("FIL001", CONFIG)),
    Row("objects 100,000 deep", text(CONFIG, '{"a":' * DEEP + "1" + "}" * DEEP), ("FIL001", CONFIG)),
    Row("arrays 100,000 deep", text(CONFIG, '{"a":' + "[" * DEEP + "]" * DEEP + "}"), ("FIL001", CONFIG)),
    Row("100,000 brackets and no end", text(CONFIG, "[" * DEEP), ("FIL001", CONFIG)),
    Row("an integer of 10,000 digits", edited(CONFIG, b"{", f'{{"n": {DIGITS},'.encode()), ("FIL001", CONFIG)),
    Row("a byte order mark", edited(CONFIG, b"{", b"\xef\xbb\xbf{"), ("FIL001", CONFIG)),
    Row("UTF-16", lambda draft: put(draft / CONFIG, (draft / CONFIG).read_text().encode("utf-16")), ("FIL001", CONFIG)),
    Row("invalid UTF-8", edited(CONFIG, b"{", b'{"a": "\xff",'), ("FIL001", CONFIG)),
    Row("no JSON", edited(CONFIG, b"{", b"{,"), ("FIL001", CONFIG)),
    Row("a list", text(CONFIG, "[]"), ("FIL001", CONFIG)),
    Row("a page for a config", text(CONFIG, HTML), ("FIL001", CONFIG)),
    Row("a pointer for a config", text(CONFIG, POINTER), ("FIL001", CONFIG)),
    Row("a key twice", edited(CONFIG, b"{", b'{"hidden_size": 1,'), ("FIL002", CONFIG)),
    Row("NaN", edited(CONFIG, b"{", b'{"a": NaN,'), ("FIL002", CONFIG)),
    Row("hf_quant_config.json is no JSON", text(QUANT, "{"), ("FIL001", QUANT)),
    Row("no weights", lambda draft: (draft / WEIGHTS).unlink(), ("FIL005", None)),
    Row("weights are empty", text(WEIGHTS, b""), ("FIL004", WEIGHTS)),
    Row("weights are a FIFO", fifo(WEIGHTS), ("FIL004", WEIGHTS)),
    Row("weights are a device", link(WEIGHTS, "/dev/zero"), ("FIL004", WEIGHTS)),
    Row("weights are a directory", directory(WEIGHTS), ("FIL004", WEIGHTS)),
    Row("weights lead nowhere", link(WEIGHTS, "nowhere"), ("FIL003", WEIGHTS)),
    Row("weights are a page", text(WEIGHTS, HTML), ("FIL004", WEIGHTS)),
    Row("weights are a zip", text(WEIGHTS, archive()), ("FIL004", WEIGHTS)),
    Row("weights are a pointer", text(WEIGHTS, POINTER), ("FIL004", WEIGHTS)),
    Row("weights cut short", resized(WEIGHTS, -1), ("FIL003", WEIGHTS)),
    Row("weights too long", resized(WEIGHTS, 1), ("FIL003", WEIGHTS)),
    Row("a length of 2**63", text(WEIGHTS, (1 << 63).to_bytes(8, "little") + b"{}"), ("FIL003", WEIGHTS)),
    Row("a header beyond 100 MB", sparse(WEIGHTS, (100_000_001).to_bytes(8, "little"), 1 << 32), ("FIL003", WEIGHTS)),
    Row("a header of 100 MB of zeros", sparse(WEIGHTS, (100_000_000).to_bytes(8, "little"), 1 << 32), ("FIL003", WEIGHTS), 400),
    Row("a header of 100 MB of brackets", lambda draft: put(draft / WEIGHTS, framed(b"[" * 100_000_000)), ("FIL004", WEIGHTS), 400),
    Row("a header 100,000 deep", text(WEIGHTS, framed(b'{"a":' * DEEP + b"1" + b"}" * DEEP)), ("FIL003", WEIGHTS)),
    Row("an offset of 10,000 digits", text(WEIGHTS, framed(f'{{"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,{DIGITS}]}}}}'.encode(), 1)), ("FIL003", WEIGHTS)),
    Row("a header of invalid UTF-8", text(WEIGHTS, framed(b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1)), ("FIL003", WEIGHTS)),
    Row("a quarter of a million tensors", lambda draft: put(draft / WEIGHTS, many()), ("TEN002", WEIGHTS), 300, 20),
    Row("an index that is a FIFO", fifo(INDEX), ("FIL010", INDEX)),
    Row("an index of 400 MB", sparse(INDEX, b"{", 400_000_000), ("FIL010", INDEX)),
    Row("an index that leads out", indexed({"a": "../../../../etc/passwd"}), ("FIL010", INDEX)),
    Row("an index that leads to the root", indexed({"a": "/etc/passwd"}), ("FIL010", INDEX)),
    Row("an index to a directory", indexed({"a": "."}), ("FIL010", INDEX)),
    Row("an index of no names", indexed({"a": 5}), ("FIL010", INDEX)),  # type: ignore[dict-item]
    Row("an index without a map", text(INDEX, "{}"), ("FIL010", INDEX)),
    Row("names that are nearly layers", text(WEIGHTS, named("layers.", "layers.5", "layers.1.", "layers.x.y", "layers.99999999999.z", "layers.7.norm.weight", "", "\n", "\u202e")), ("TEN002", WEIGHTS)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_hostile(row: Row, place: Path) -> None:
    """It ends, soon and small, in a finding that names the file; nothing is a traceback and nothing passes."""
    draft = place / "draft"
    shutil.copytree(DEMO / "converted", draft)
    row.make(draft)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "draft", "--vllm", "0.32", "--fail-on", "warning", "--format", "json"],
        cwd=place, env=plain_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    seconds = time.perf_counter() - start

    assert done.returncode == exits.FINDINGS, done
    (result,) = json.loads(done.stdout)["checkpoints"][0]["results"]
    told: list[dict[str, Any]] = result["findings"]
    assert row.finding in [(found["rule"], found["file"]) for found in told], told
    assert [found for found in told if not found["message"] or len(json.dumps(found)) > 10_000] == []
    (kilobytes,) = done.stderr.split()
    assert int(kilobytes) / 1024 < row.megabytes
    assert seconds < row.seconds
