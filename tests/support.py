"""What several parts of the suite share: unpacking a recorded case into a real directory.

A case carries its files in one compact form (see ``fixtures/conformance/README.md``): text as it was
written, the first bytes of a safetensors file with the stretches that matter (integer tensors) and its
size, or a whole file in base64. Float data was recorded as a constant.

A case of ``fixtures/exports`` is a directory instead: ``case.json``, ``target.json``, and under ``draft``
every file as it was written, or its compact form as ``NAME.recipe.json``.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Stands for every byte of float data that a recording left out: a small positive number in any float type.
FILL = b"\x3c"
#: Files of an export that are text, and may name the target.
TEXT = (".json", ".yaml", ".py", ".txt", ".md")
#: vLLM guesses the method from the whole path of a draft; none of these may occur above a case.
SPEAKING_WORDS = ("dflash", "dspark", "eagle", "medusa", "mtp")


@contextmanager
def neutral_directory() -> Iterator[Path]:
    """A temporary directory whose path names no method; random names do, once in some thousand."""
    place = Path(tempfile.mkdtemp(prefix="case-"))
    while any(word in str(place).lower() for word in SPEAKING_WORDS):
        place.rmdir()
        place = Path(tempfile.mkdtemp(prefix="case-"))
    try:
        yield place
    finally:
        shutil.rmtree(place)


class Unpacked(NamedTuple):
    """Where a case was written."""

    draft: Path
    target: Path | None


def unpack_case(case: Mapping[str, Any] | Path, root: Path) -> Unpacked:
    """Write a recorded case under `root`, the draft as ``case["dirname"]``, the target's config as ``target``.

    `case` is an entry of a corpus, or a directory of ``fixtures/exports``.
    ``@TARGET@`` in a text file becomes the absolute path of the target. Raises ValueError when `root` has a
    word in its path from which vLLM would guess a method.
    """
    root = root.resolve()
    if isinstance(case, Path):
        case = read_export(case)
    if word := next((word for word in SPEAKING_WORDS if word in str(root).lower()), None):
        raise ValueError(f"vLLM guesses the method from the whole path, and {root} contains {word!r}")
    draft, target = root / case["dirname"], root / "target"
    draft.mkdir(parents=True, exist_ok=True)
    for name, record in case["files"].items():
        write_file(draft / name, record, {"@TARGET@": str(target)})
    if case.get("target") is None:
        return Unpacked(draft, None)
    target.mkdir(exist_ok=True)
    (target / "config.json").write_text(case["target"], encoding="utf-8")
    return Unpacked(draft, target)


def read_export(directory: Path) -> dict[str, Any]:
    """A directory of ``fixtures/exports`` in the form that the corpora have."""
    case: dict[str, Any] = json.loads((directory / "case.json").read_text(encoding="utf-8"))
    case["target"] = (directory / "target.json").read_text(encoding="utf-8")
    case["files"] = {}
    for path in sorted((directory / "draft").iterdir()):
        if path.name.endswith(".recipe.json"):
            case["files"][path.name.removesuffix(".recipe.json")] = json.loads(path.read_text(encoding="utf-8"))
        else:
            raw = path.read_bytes()
            text = path.suffix in TEXT
            case["files"][path.name] = {"text": raw.decode()} if text else {"base64": base64.b64encode(raw).decode()}
    return case


def write_file(path: Path, record: Mapping[str, Any], replace: Mapping[str, str]) -> None:
    """Write one recorded file; `replace` applies to text only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if record.get("directory"):
        path.mkdir(exist_ok=True)
    elif "text" in record:
        text: str = record["text"]
        for old, new in replace.items():
            text = text.replace(old, new)
        path.write_bytes(text.encode("utf-8"))
    elif "base64" in record:
        path.write_bytes(base64.b64decode(record["base64"]))
    else:
        size: int = record["size"]
        head = base64.b64decode(record["head"]) if "head" in record else framed(record["header"])
        data = bytearray(head[:size])
        data += FILL * (size - len(data))
        for at, kept in record.get("keep", ()):
            stretch = base64.b64decode(kept)
            data[at : at + len(stretch)] = stretch
        path.write_bytes(data)


def framed(header: str) -> bytes:
    """The first 8 + N bytes of a safetensors file with this header."""
    raw = header.encode("utf-8")
    return len(raw).to_bytes(8, "little") + raw
