"""`from dspark_lint import lint`: what it takes, what it refuses, its types, and the page that describes it."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from support import neutral_directory

from dspark_lint import lint
from dspark_lint.errors import ContractError, DsparkLintError, UsageError
from dspark_lint.testing import assert_loadable


ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FORK = 'contract: 1\nruntime: vllm\nrelease: "0.33.9"\nextends: "0.33.0"\n'


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        pytest.param({}, ["ARC003"], id="everything"),
        pytest.param({"select": ["ARC003"]}, ["ARC003"], id="an id"),
        pytest.param({"select": "arc"}, ["ARC003"], id="a prefix"),
        pytest.param({"select": (p for p in ("KEY", "ARC"))}, ["ARC003"], id="several, from anything"),
        pytest.param({"select": ["KEY"]}, [], id="others"),
        pytest.param({"ignore": ["ARC003"]}, [], id="not an id"),
        pytest.param({"select": ["ARC"], "ignore": ["ARC00"]}, [], id="what is ignored is not selected"),
    ],
)
def test_rules_are_chosen(arguments: dict[str, Any], rules: list[str]) -> None:
    """Ids or prefixes, as on the command line."""
    [result] = lint(DEMO / "exported", vllm="0.32", **arguments).checkpoints[0].results

    assert [f.rule for f in result.findings] == rules


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"path": "nothing"}, UsageError, "nothing"),
        ({"vllm": "9.9"}, UsageError, "9.9"),
        ({"vllm": []}, UsageError, r"vllm=\[\]: names no release"),
        ({"target": "nothing"}, UsageError, "nothing"),
        ({"select": ["ARC003", "ARK"]}, UsageError, "select='ARK': no rule begins so"),
        ({"ignore": [""]}, UsageError, "ignore='': no rule begins so"),
        ({"contracts": ["nothing.yaml"]}, ContractError, "nothing.yaml"),
    ],
)
def test_mistakes_raise(arguments: dict[str, Any], error: type[DsparkLintError], message: str) -> None:
    """What is misspelt is an exception, never a report that says less."""
    with pytest.raises(error, match=message):
        lint(**{"path": DEMO / "converted", **arguments})


def test_a_contract_of_ones_own(tmp_path: Path) -> None:
    """Its release can be named, and is among the known ones."""
    (tmp_path / "fork.yaml").write_text(FORK, "utf-8")
    given: dict[str, Any] = {"contracts": [tmp_path / "fork.yaml"], "target": DEMO / "target"}

    assert [r.release for r in lint(DEMO / "converted", vllm="0.33.0..0.33", **given).checkpoints[0].results] == [
        "0.33.0",
        "0.33.9",
    ]
    assert assert_loadable(DEMO / "converted", **given).checkpoints[0].results[0].release == "0.33.9"


def test_nothing_is_printed_and_nothing_exits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read and a draft that is refused are results; what they say is for the caller to print."""
    (tmp_path / "config.json").write_text("{", "utf-8")
    reports = [lint(path, vllm="0.27..0.33", deep=True) for path in (tmp_path, DEMO / "exported", DEMO / "converted")]

    assert [{r.verdict for r in report.checkpoints[0].results} for report in reports] == [{"error"}, {"error"}, {"ok"}]
    assert capfd.readouterr() == ("", "")


USER = """
from pathlib import Path

from dspark_lint import lint
from dspark_lint.testing import assert_loadable

reveal_type([f.severity for f in lint(Path("ckpt"), vllm=["0.32"]).checkpoints[0].results[0].findings])
reveal_type(assert_loadable("ckpt", allow=["KEY"]).checkpoints[0].results[0].blind)
lint("ckpt", vllm=0.32)
assert_loadable("ckpt", fail_on="fatal")
"""


def test_types_are_those_that_a_caller_sees(tmp_path: Path) -> None:
    """A strict type checker knows the records, and refuses a float for a release."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: the extra `dev`")
    (tmp_path / "user.py").write_text(USER, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache",
         "--hide-error-context", "--no-error-summary", "--config-file=", tmp_path / "user.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert re.findall(r"user\.py:(\d+): (\w+): (.*?)(?: *\[[\w-]+\])?$", done.stdout, re.MULTILINE) == [
        ("7", "note", "Revealed type is \"list[Literal['error'] | Literal['warning'] | Literal['info']]\""),
        ("8", "note", 'Revealed type is "bool"'),
        ("9", "error", 'Argument "vllm" to "lint" has incompatible type "float"; expected "str | Sequence[str]"'),
        (
            "10",
            "error",
            """Argument "fail_on" to "assert_loadable" has incompatible type "Literal['fatal']"; expected "Literal['error', 'warning', 'info']\"""",
        ),
    ], done.stdout + done.stderr


def test_the_page_names_every_argument() -> None:
    """docs/python.md speaks of each argument of both functions."""
    named = set(re.findall(r"`(\w+)(?:=[^`]*)?`", PAGE)) | set(re.findall(r"(\w+)=", "".join(BLOCKS)))

    assert (
        {*inspect.signature(lint).parameters, *inspect.signature(assert_loadable).parameters} - {"path"}
    ) - named == set()


def test_the_pages_examples_run() -> None:
    """The first prints a report, the others are tests of an exporter that pass."""
    with neutral_directory() as place:
        shutil.copytree(DEMO / "exported", place / "ckpt")
        shutil.copytree(DEMO / "target", place / "tests/data/tiny-target")
        first, *tests = (block.replace("/models/Qwen3-8B", "tests/data/tiny-target") for block in BLOCKS)
        shown = subprocess.run([sys.executable, "-c", first], cwd=place, capture_output=True, text=True, check=True)

        assert re.findall(r"^( *\S+ \w+)", shown.stdout, re.MULTILINE) == [
            line
            for release in ("0.30.0", "0.31.0", "0.32.0", "0.33.0")
            for line in (f"{release} error", "  ARC003 error")
        ]
        exporter = f"import shutil\n\n\ndef export_tiny_draft(place):\n    shutil.copytree({str(DEMO / 'converted')!r}, place, dirs_exist_ok=True)\n\n\n"
        for number, block in enumerate(tests):
            (place / f"test_{number}.py").write_text(exporter + block, "utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", place / "out"],
            cwd=place, capture_output=True, text=True, check=False,
        )  # fmt: skip

        assert (ran.returncode, ran.stdout.splitlines()[-1].split(" in ")[0]) == (0, f"{len(tests)} passed"), ran.stdout
