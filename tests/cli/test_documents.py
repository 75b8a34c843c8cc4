"""Real checkpoints with every kind of name, in every format: standard output is exactly one document."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from report.samples import HOSTILE, LONG
from support import framed

from dspark_lint.report import FORMATS


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Ran


#: Names that a header can hold: JSON has no lone surrogates that a strict reader takes, and a name is never empty.
NAMES = [*(name for label, name in HOSTILE.items() if label != "lone-surrogate"), LONG]


def copied(place: Path, name: str) -> Path:
    """The converted demonstration draft in a directory of this name."""
    draft = place / name
    draft.mkdir()
    for file in (place / "demo" / "converted").iterdir():
        (draft / file.name).write_bytes(file.read_bytes())
    return draft


def strays(draft: Path, names: list[str]) -> None:
    """Put tensors of one byte with these names behind those of a draft."""
    file = draft / "model.safetensors"
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entries: dict[str, Any] = json.loads(data[8 : 8 + size])
    end = len(data) - 8 - size
    for i, name in enumerate(names):
        entries[name] = {"dtype": "U8", "shape": [1], "data_offsets": [end + i, end + i + 1]}
    file.write_bytes(framed(json.dumps(entries)) + data[8 + size :] + bytes(len(names)))


def clean(place: Path) -> Path:
    """A draft as it should be."""
    return copied(place, "good")


def one(place: Path) -> Path:
    """A draft with one fault."""
    return place / "demo" / "exported"


def hostile(place: Path) -> Path:
    """A draft whose directory, keys and tensors have names that readers interpret."""
    draft = copied(place, "a'b\"c::d %0A größe\n\x1b[31m")
    strays(draft, NAMES)
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps({**config, "mask_token_id": "::error::\x1b[0m\n%"}))
    return draft


def many(place: Path) -> Path:
    """A directory of fifty drafts, each with forty tensors too many."""
    root = place / "many"
    root.mkdir()
    for i in range(50):
        strays(copied(place, f"many/{i:02}"), [f"layers.0.extra{'x' * n}.weight" for n in range(40)])
    return root


def nothing(place: Path) -> Path:
    """A directory without a checkpoint."""
    (place / "empty").mkdir()
    return place / "empty"


def plain(text: str) -> None:
    """Lines for people, or for a CI system's log."""
    assert all(c.isprintable() for line in text.splitlines() for c in line)


def xml(text: str) -> None:
    """One document of XML."""
    ET.fromstring(text)  # noqa: S314 - our own


def page(text: str) -> None:
    """One page."""
    assert text.startswith("<!DOCTYPE html>\n")
    assert text.count("</html>") == 1
    assert text.endswith("</html>\n")


def rows(text: str) -> None:
    """A document a line."""
    assert all(isinstance(json.loads(line), dict) for line in text.split("\n")[:-1])


READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("text", "concise", "github", "markdown"), plain),
    **dict.fromkeys(("json", "sarif", "gitlab"), json.loads),
    "jsonl": rows,
    "junit": xml,
    "html": page,
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("make", "code"), [(clean, 0), (one, 1), (hostile, 1), (many, 1), (nothing, 3)])
def test_standard_output_is_one_document(
    fmt: str, make: Callable[[Path], Path], code: int, place: Path, run: Callable[..., Ran]
) -> None:
    """Whatever was found and whatever it is called, a reader of the format takes all of standard output."""
    done = run(str(make(place)), "--vllm", "0.32", "--format", fmt, "--no-config")

    READ[fmt](done.out)
    assert done.code == code
    if make is not nothing:
        assert done.err == ""
