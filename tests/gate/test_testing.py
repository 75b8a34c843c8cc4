"""What an exporter's own tests call: assert_loadable, and the pytest plugin."""

from __future__ import annotations

import shutil
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from support import neutral_directory

from dspark_lint.errors import UsageError
from dspark_lint.finding import Report
from dspark_lint.testing import assert_loadable as check


ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"


def test_a_good_export_passes() -> None:
    """The report comes back, for whoever wants more."""
    report = check(DEMO / "converted", vllm="0.31..0.33", target=DEMO / "target")

    assert isinstance(report, Report)
    assert [(r.release, r.verdict) for r in report.checkpoints[0].results] == [
        ("0.31.0", "ok"),
        ("0.32.0", "ok"),
        ("0.33.0", "ok"),
    ]


def test_a_bad_export_fails_with_the_report() -> None:
    """The message is the text report, without colours."""
    with pytest.raises(AssertionError) as failure:
        check(DEMO / "exported", vllm="0.32")

    first, second, *rest = str(failure.value).splitlines()
    assert first == f"{DEMO / 'exported'} is not served as it was trained"
    assert second.startswith(f"{DEMO / 'exported'}  DFlashDraftModel")
    assert any("ARC003" in line for line in rest)
    assert any("source    vLLM 0.32.0 model_executor/models/qwen3_dspark.py:" in line for line in rest)
    assert "\x1b" not in str(failure.value)


@pytest.mark.parametrize("allow", [("ARC003",), ("arc",), "ARC003"])
def test_what_is_allowed_passes(allow: tuple[str, ...] | str) -> None:
    """Ids or prefixes of rules whose findings are accepted."""
    assert check(DEMO / "exported", vllm="0.32", allow=allow).checkpoints[0].results[0].verdict == "error"


def test_the_severity_that_fails() -> None:
    """Warnings fail unless only errors are asked for."""
    with neutral_directory() as place:
        draft = place / "draft"
        shutil.copytree(DEMO / "converted", draft)
        text = (draft / "config.json").read_text("utf-8")
        (draft / "config.json").write_text(text.replace('"sample_from_anchor"', '"sample_from_anchor_"'), "utf-8")

        check(draft, vllm="0.32", fail_on="error")
        with pytest.raises(AssertionError, match="KEY006"):
            check(draft, vllm="0.32")


def test_what_nobody_can_judge_fails() -> None:
    """A draft of another kind is no pass: nothing was checked."""
    with neutral_directory() as place:
        draft = place / "draft"
        shutil.copytree(DEMO / "converted", draft)
        (draft / "config.json").write_text(
            '{"architectures": ["Eagle3LlamaForCausalLM"], "model_type": "llama"}', "utf-8"
        )

        with pytest.raises(AssertionError, match=r"nothing could be judged under vLLM 0\.32\.0"):
            check(draft, vllm="0.32", speculative_config={"method": "eagle3", "num_speculative_tokens": 3})


REQUIRED = [
    (
        {"require": ["TGT"]},
        [
            "not checked under vLLM 0.31.0, 0.32.0: TGT001, TGT003, TGT004, TGT006, TGT007, TGT008, TGT009 (needs --target)"
        ],
    ),
    (
        {"require": ["TGT", "VAL"], "target": DEMO / "target"},
        ["not checked under vLLM 0.31.0, 0.32.0: VAL003, VAL004, VAL005, VAL006 (needs --deep)"],
    ),
    ({"require": ["TGT", "VAL"], "target": DEMO / "target", "deep": True}, []),
    ({"require": "ten"}, []),
]


@pytest.mark.parametrize(("arguments", "gaps"), REQUIRED)
def test_what_must_be_checked(arguments: dict[str, Any], gaps: list[str]) -> None:
    """A rule of `require` that was not checked to the end fails, and the reason is said once for all releases."""
    if not gaps:
        check(DEMO / "converted", vllm="0.31..0.32", **arguments)
        return
    with pytest.raises(AssertionError) as failure:
        check(DEMO / "converted", vllm="0.31..0.32", **arguments)

    told = str(failure.value).splitlines()
    assert told[: len(gaps)] == [f"{DEMO / 'converted'}: {gap}" for gap in gaps]
    assert told[len(gaps)].split() == ["0.31.0", "0.32.0"]  # the report


def test_what_an_accepted_finding_kept_quiet_was_not_checked() -> None:
    """A native layout hides what its tensors are: accepting it does not make them checked."""
    with pytest.raises(AssertionError, match=r"not checked under vLLM 0\.32\.0: .*TEN001.*ARC003 stands before it"):
        check(DEMO / "exported", vllm="0.32", allow=["ARC003"], require=["TEN"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vllm": "9.9"}, "9.9"),
        ({"allow": ["NO"]}, "allow='NO': no rule begins so"),
        ({"allow": [""]}, "allow='': no rule begins so"),
        ({"require": ["TENN"]}, "require='TENN': no rule begins so"),
        ({"fail_on": "fatal"}, "fail_on='fatal'"),
        ({"target": "nothing"}, "nothing"),
    ],
)
def test_mistakes_are_no_failures_of_the_export(arguments: dict[str, object], message: str) -> None:
    """They raise UsageError, which no test takes for a verdict."""
    with pytest.raises(UsageError, match=message):
        check(DEMO / "converted", **arguments)  # type: ignore[arg-type]


TESTS = """
def test_export(assert_loadable):
    report = assert_loadable({draft!r})
    print("releases", [r.release for r in report.checkpoints[0].results])
"""


def pytest_run(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as an exporter's project would, with the plugin as installation registers it."""
    plugin = () if _registered() else ("-p", "dspark_lint.pytest_plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", *plugin, *args],
        cwd=place, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _registered() -> bool:
    from importlib.metadata import entry_points

    return any(e.value == "dspark_lint.pytest_plugin" for e in entry_points(group="pytest11"))


def test_the_plugin(tmp_path: Path) -> None:
    """The fixture holds the export against the releases of the option, else of the ini file, else the newest."""
    (tmp_path / "test_export.py").write_text(TESTS.format(draft=str(DEMO / "converted")), "utf-8")

    newest = pytest_run(tmp_path)
    option = pytest_run(tmp_path, "--dspark-vllm", "0.31..0.32")
    (tmp_path / "pytest.ini").write_text("[pytest]\ndspark_vllm = 0.30\n", "utf-8")
    ini = pytest_run(tmp_path)

    assert [(r.returncode, r.stdout.partition("releases ")[2].partition("\n")[0]) for r in (newest, option, ini)] == [
        (0, "['0.33.0']"),
        (0, "['0.31.0', '0.32.0']"),
        (0, "['0.30.0']"),
    ]


def test_the_plugin_fails_with_the_report(tmp_path: Path) -> None:
    """The failure of an exporter's test is the report, not a traceback into this package."""
    (tmp_path / "test_export.py").write_text(TESTS.format(draft=str(DEMO / "exported")), "utf-8")

    ran = pytest_run(tmp_path, "--dspark-vllm", "0.32")

    assert ran.returncode == 1
    assert "is not served as it was trained" in ran.stdout
    assert "ARC003" in ran.stdout
    assert "testing.py" not in ran.stdout


def test_the_plugin_imports_nothing(tmp_path: Path) -> None:
    """A pytest run that does not use it pays for one small module."""
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert [m for m in sys.modules if m.startswith('dspark_lint.')] == ['dspark_lint.pytest_plugin']\n",
        "utf-8",
    )

    assert pytest_run(tmp_path).returncode == 0
