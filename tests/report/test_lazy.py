"""A run imports the reporter it was asked for and nothing else of weight."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dspark_lint.errors import UsageError
from dspark_lint.report import FORMATS, MACHINE, reporter


SCRIPT = """
import sys
import dspark_lint.finding
before = set(sys.modules)
from dspark_lint.finding import Finding, Report, Result, CheckpointReport
from dspark_lint.report import render
from dspark_lint.report.base import RenderOptions
found = Finding("TEN001", "error", "refused", "m", file="model.safetensors", tensor="t")
result = Result("vllm", "0.32.0", (found,), ("TEN001",))
render(Report((CheckpointReport("c", "c", "A", "flat", 1, (result,)),), "1"), sys.argv[1], RenderOptions(width=80))
print(" ".join(sorted(set(sys.modules) - before)))
"""
#: Nothing of these is wanted for text, concise, json and jsonl.
HEAVY = {"html", "xml", "jsonschema", "dataclasses", "inspect", "textwrap", "logging", "urllib", "unicodedata"}


@pytest.mark.parametrize("fmt", FORMATS)
def test_only_the_asked_reporter_is_imported(fmt: str) -> None:
    """The other reporters' modules are not read, and the plain formats import nothing heavy."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, fmt], capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())

    own = FORMATS[fmt].partition(":")[0]
    # GitHub's log shares the words of the editors' lines and of the comments; the page those of the comments
    shared = {"github": {"concise", "markdown"}, "html": {"markdown"}}.get(fmt, set())
    others = {place.partition(":")[0] for place in FORMATS.values()} - {own}
    assert loaded & others == {f"dspark_lint.report.{name}" for name in shared}
    if fmt in ("text", "concise", "json", "jsonl"):
        assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


def test_every_format_has_its_class() -> None:
    """Each name of the table leads to a reporter, and an unknown one to a usage error that lists them."""
    assert all(hasattr(reporter(name), "render") for name in FORMATS)
    assert set(FORMATS) > MACHINE
    with pytest.raises(UsageError, match="not one of auto, text, concise, json, jsonl, sarif"):
        reporter("xml")
