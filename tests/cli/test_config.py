"""The configuration file: where it is found, what it says, what overrides it, and what it refuses."""

from __future__ import annotations

import json

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.config import KEYS


if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Ran


REFUSED = "demo/exported"
CLEAN = "demo/converted"
TABLE = "[tool.dspark-lint]\n"


def told(ran: Ran) -> list[tuple[str, str, str]]:
    """What a JSON report says: checkpoint, rule and severity of every finding."""
    return [
        (c["path"], f["rule"], f["severity"])
        for c in json.loads(ran.out)["checkpoints"]
        for r in c["results"]
        for f in r["findings"]
    ]


def releases(ran: Ran) -> list[str]:
    return [r["release"] for r in json.loads(ran.out)["checkpoints"][0]["results"]]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"dspark-lint.toml": 'releases = "0.31"'}, ["0.31.0"], id="a file of its own"),
        pytest.param({"pyproject.toml": f'{TABLE}releases = "0.31"'}, ["0.31.0"], id="a table of pyproject.toml"),
        pytest.param({"pyproject.toml": '[tool."dspark-lint"]\nreleases = "0.31"'}, ["0.31.0"], id="a quoted table"),
        pytest.param({"pyproject.toml": '[ tool . dspark-lint ]\nreleases = "0.31"'}, ["0.31.0"], id="a spaced table"),
        pytest.param({"pyproject.toml": 'tool.dspark-lint.releases = "0.31"'}, ["0.31.0"], id="dotted keys"),
        pytest.param(
            {"pyproject.toml": '[tool]\nother = 1\ndspark-lint = {releases = "0.31"}'}, ["0.31.0"], id="inside of tool"
        ),
        pytest.param({"pyproject.toml": 'tool = {dspark-lint = {releases = "0.31"}}'}, ["0.31.0"], id="all inline"),
        pytest.param(
            {"pyproject.toml": '[tool.dspark-lint.severity]\nFIL = "off"', "../dspark-lint.toml": 'releases = "0.31"'},
            ["0.33.0"],
            id="a table of the table",
        ),
        pytest.param(
            {
                "pyproject.toml": '[[tool.dspark-lint.ignores]]\npath = "x"\nrules = "FIL"\nreason = "y"',
                "../dspark-lint.toml": 'releases = "0.31"',
            },
            ["0.33.0"],
            id="an array of the table",
        ),
        pytest.param({"../dspark-lint.toml": 'releases = "0.31"'}, ["0.31.0"], id="upwards"),
        pytest.param(
            {"../dspark-lint.toml": 'releases = "0.31"', "pyproject.toml": "[project]\nname = 'x'"},
            ["0.31.0"],
            id="past a pyproject.toml that says nothing of it",
        ),
        pytest.param(
            {
                "../dspark-lint.toml": 'releases = "0.31"',
                "pyproject.toml": '# [tool.dspark-lint] stands above\n[tool]\n[dependency-groups]\ndev = ["dspark-lint"]',
            },
            ["0.31.0"],
            id="past one that only names the tool",
        ),
        pytest.param(
            {"dspark-lint.toml": 'releases = "0.31"', "pyproject.toml": f'{TABLE}releases = "0.30"'},
            ["0.31.0"],
            id="its own file before the table",
        ),
        pytest.param(
            {"../dspark-lint.toml": 'releases = "0.31"', ".git": ""}, ["0.33.0"], id="not above the repository"
        ),
    ],
)
def test_the_nearest_file_counts(
    files: dict[str, str], expected: list[str], place: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one's own or a table, in the working directory or above it, but not above the repository."""
    inner = place / "inner"
    inner.mkdir()
    for name, text in files.items():
        (inner / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(inner)

    assert releases(run(f"../{CLEAN}", "--format", "json")) == expected


@pytest.mark.parametrize(
    ("text", "args", "code", "expected"),
    [
        pytest.param('select = ["FIL"]', (REFUSED,), 0, [], id="select"),
        pytest.param('ignore = ["ARC003"]', (REFUSED,), 0, [], id="ignore"),
        pytest.param(
            'ignore = ["ARC003"]', (REFUSED, "--ignore", "FIL"), 1, [(REFUSED, "ARC003", "error")], id="flag over file"
        ),
        pytest.param('fail-on = "never"', (REFUSED,), 0, [(REFUSED, "ARC003", "error")], id="fail-on"),
        pytest.param(
            '[severity]\nARC003 = "warning"', (REFUSED,), 0, [(REFUSED, "ARC003", "warning")], id="another severity"
        ),
        pytest.param(
            'fail-on = "warning"\n[severity]\nARC003 = "warning"',
            (REFUSED,),
            1,
            [(REFUSED, "ARC003", "warning")],
            id="another severity that still fails",
        ),
        pytest.param(
            '[severity]\nARC = "info"\nARC003 = "error"',
            (REFUSED,),
            1,
            [(REFUSED, "ARC003", "error")],
            id="the longest prefix",
        ),
        pytest.param('[severity]\nARC003 = "off"', (REFUSED,), 0, [], id="a rule that is off"),
        pytest.param('min-severity = "error"\n[severity]\nARC003 = "info"', (REFUSED,), 0, [], id="min-severity"),
        pytest.param(
            '[[ignores]]\npath = "demo/exported"\nrules = "ARC003"\nreason = "old"', (REFUSED,), 0, [], id="an ignore"
        ),
        pytest.param(
            '[[ignores]]\npath = "demo/conv*"\nrules = "ARC003"\nreason = "old"',
            (REFUSED,),
            1,
            [(REFUSED, "ARC003", "error")],
            id="an ignore for another path",
        ),
        pytest.param(f'paths = ["{REFUSED}"]', (), 1, [(REFUSED, "ARC003", "error")], id="paths"),
        pytest.param('paths = ["demo/[ec]*"]', (), 1, [(REFUSED, "ARC003", "error")], id="a glob"),
        pytest.param(
            f'paths = ["{REFUSED}/config.json"]', (), 1, [(f"{REFUSED}/config.json", "ARC003", "error")], id="a file"
        ),
        pytest.param(
            'paths = ["demo/ex*/*.json"]', (), 1, [(f"{REFUSED}/config.json", "ARC003", "error")], id="a glob of files"
        ),
        pytest.param(f'paths = ["{REFUSED}"]', (CLEAN,), 0, [], id="arguments over paths"),
        pytest.param('paths = ["nothing/*"]', (), 3, [], id="a glob that matches nothing"),
        pytest.param('[targets]\n"demo/*" = "demo/target"\n', (CLEAN,), 0, [], id="a target that fits"),
        pytest.param(
            '[speculative-config]\nmethod = "eagle3"', (CLEAN,), 1, [(CLEAN, "ARC001", "error")], id="how it is served"
        ),
    ],
)
def test_what_a_key_does(
    text: str,
    args: tuple[str, ...],
    code: int,
    expected: list[tuple[str, str, str]],
    place: Path,
    run: Callable[..., Ran],
) -> None:
    """Verdict and exit code go by the configuration; a flag overrides it."""
    (place / "dspark-lint.toml").write_text(f'releases = "0.32"\n{text}', encoding="utf-8")

    ran = run(*args, "--format", "json")

    assert (ran.code, told(ran)) == (code, expected), ran


def test_a_target_for_each_path(place: Path, run: Callable[..., Ran]) -> None:
    """The first glob that matches a checkpoint's directory names its target; the flag's is for all."""
    other = place / "other"
    other.mkdir()
    config = json.loads((place / "demo/target/config.json").read_text("utf-8"))
    (other / "config.json").write_text(json.dumps({**config, "hidden_size": 48}), encoding="utf-8")
    (place / "dspark-lint.toml").write_text(
        'releases = "0.32"\n[targets]\n"demo/conv*" = "other"\n"demo/*" = "demo/target"\n', encoding="utf-8"
    )

    by_file = run(CLEAN, "--format", "json")
    by_flag = run(CLEAN, "--format", "json", "--target", "demo/target")

    assert (by_file.code, by_flag.code) == (1, 0)
    assert {rule[:3] for _, rule, severity in told(by_file) if severity == "error"} == {"TGT"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("release = '0.32'", "unknown key 'release'; did you mean 'releases'?"),
        ("vllm = '0.32'", "unknown key 'vllm'; did you mean 'releases'?"),
        ("colour = 1", "unknown key 'colour'; known are paths, releases"),
        ("select = ['XYZ']", "unknown rule or prefix 'XYZ'"),
        ("ignore = [1]", "ignore must be a string, not 1"),
        ("[severity]\nTEN999 = 'error'", "unknown rule or prefix 'TEN999'"),
        ("[severity]\nTEN001 = 'fatal'", "severity.TEN001 must be one of off, info, warning, error, not 'fatal'"),
        ("fail-on = 'info'", "fail-on must be one of error, warning, never, not 'info'"),
        ("nearest = 'yes'", "nearest must be true or false, not 'yes'"),
        ("ignores = ['TEN']", "ignores must be an array of tables"),
        ("[[ignores]]\npath = '*'\nrules = 'TEN'", "ignores[0] has no reason; say why"),
        ("[[ignores]]\npath = '*'\nrule = 'TEN'\nreason = 'x'", "unknown key 'rule'; did you mean 'rules'?"),
        ("[[ignores]]\npath = '*'\nrules = 'NO'\nreason = 'x'", "unknown rule or prefix 'NO'"),
        ("paths = ['nothing']", "nothing: no such file or directory"),
        ("releases = '9.9'", "9.9"),
        ("targets = 'x'", "targets must be a table"),
        ("releases = [", "is not TOML"),
        ("baseline = 'nothing.json'", "nothing.json cannot be read"),
        ("baseline = ''", "baseline must be a string"),
        ("contracts = 'nothing.yaml'", "nothing.yaml"),
        ("[speculative-config]\nmethod = 1979-05-27", "speculative-config.method must be a value that JSON has"),
    ],
)
def test_a_mistake_is_a_usage_error(text: str, message: str, place: Path, run: Callable[..., Ran]) -> None:
    """Exit code 2, nothing on standard output, and a sentence that names file, key and what was expected."""
    (place / "dspark-lint.toml").write_text(text, encoding="utf-8")

    ran = run(*(() if text.startswith("paths") else (CLEAN,)))

    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "internal error" not in ran.err


def test_files_that_are_named(place: Path, run: Callable[..., Ran]) -> None:
    """--config names one, --no-config looks for none, and one that is not there is a usage error."""
    (place / "dspark-lint.toml").write_text('releases = "0.31"', encoding="utf-8")
    (place / "other.toml").write_text('releases = "0.30"', encoding="utf-8")

    assert releases(run(CLEAN, "--format", "json", "--config", "other.toml")) == ["0.30.0"]
    assert releases(run(CLEAN, "--format", "json", "--no-config")) == ["0.33.0"]
    missing = run(CLEAN, "--config", "missing.toml")
    assert (missing.code, missing.err) == (2, "dspark-lint: --config missing.toml: no such file\n")
    (place / "pyproject.toml").write_text("[project]", encoding="utf-8")
    without = run(CLEAN, "--config", "pyproject.toml")
    assert (without.code, without.err) == (
        2,
        f"dspark-lint: {place}/pyproject.toml has no table [tool.dspark-lint]\n",
    )


def test_what_a_flag_takes_back(place: Path, run: Callable[..., Ran]) -> None:
    """What the file turns on, a flag turns off: a nearest release, pointers, the baseline."""
    assert run(REFUSED, "--vllm", "0.32", "--write-baseline", "known.json").code == 0
    (place / "dspark-lint.toml").write_text(
        'releases = "0.99"\nnearest = true\nallow-lfs-pointers = true\nbaseline = "known.json"', encoding="utf-8"
    )

    assert run(REFUSED).code == 0
    assert run(REFUSED, "--no-baseline").code == 1
    assert "0.99" in run(REFUSED, "--no-nearest").err
    said = json.loads(run("--show-config", "--format", "json", "--no-allow-lfs-pointers", "--no-baseline").out)[
        "values"
    ]
    assert (said["allow-lfs-pointers"], said["baseline"]) == (
        {"value": False, "from": "a flag"},
        {"value": None, "from": "a flag"},
    )


def test_a_glob_that_matches_nothing_is_told(place: Path, run: Callable[..., Ran]) -> None:
    """A gate that has lost part of what it was about says so, and checks the rest."""
    (place / "dspark-lint.toml").write_text(f'paths = ["{CLEAN}", "lost/*"]', encoding="utf-8")

    assert run("--format", "concise") == (
        0,
        "",
        f"dspark-lint: {place}/dspark-lint.toml: paths: lost/* matches nothing\n",
    )


def test_without_a_reader_of_toml(place: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.10 has none: a configuration is never passed over for that, it is an error that says what to install."""

    def missing(name: str) -> None:
        raise ImportError(name)

    (place / "dspark-lint.toml").write_text('releases = "0.31"', encoding="utf-8")
    monkeypatch.setattr("dspark_lint.config.import_module", missing)
    ran = run(CLEAN)

    assert (ran.code, ran.out, ran.err) == (
        2,
        "",
        "dspark-lint: to read TOML under Python 3.10: pip install 'dspark-lint[toml]'\n",
    )


def test_no_configuration_costs_nothing(place: Path, tool: Callable[..., Ran]) -> None:
    """Without a file, or past one of another program, nothing that reads or applies a configuration is imported."""
    (place / "pyproject.toml").write_text("[tool.ruff]\n", encoding="utf-8")

    ran = tool(CLEAN, PYTHONPROFILEIMPORTTIME="1")

    imported = {line.rpartition("|")[2].strip() for line in ran.err.splitlines() if line.startswith("import time:")}
    assert ran.code == 0
    assert "dspark_lint.cli.settings" in imported
    assert imported & {"tomllib", "tomli", "glob", "dspark_lint.config", "dspark_lint.suppress"} == set()
    assert "dspark_lint.baseline" not in imported


def test_unused_ignores_are_told(place: Path, run: Callable[..., Ran]) -> None:
    """An ignore that held nothing back is one too many, where its checkpoint was checked and its rules ran."""
    (place / "dspark-lint.toml").write_text(
        'releases = "0.32"\n'
        '[[ignores]]\npath = "demo/exported"\nrules = ["ARC003", "FIL"]\nreason = "until the exporter is mended"\n'
        '[[ignores]]\npath = "elsewhere"\nrules = ["TEN"]\nreason = "another run"\n',
        encoding="utf-8",
    )

    ran = run(REFUSED, "--format", "concise")

    assert ran[:2] == (0, "")
    assert ran.err.splitlines() == [
        f"dspark-lint: {place}/dspark-lint.toml: ignores[0]: FIL of demo/exported ignores nothing any more; take it out",
        "dspark-lint: 1 finding is held back by the configuration's ignores",
    ]


def test_unused_ignores_of_a_whole_run(place: Path, run: Callable[..., Ran]) -> None:
    """Where all configured paths are checked, an ignore whose path matches none of them is told too."""
    (place / "dspark-lint.toml").write_text(
        f'releases = "0.32"\npaths = ["{CLEAN}"]\n'
        '[[ignores]]\npath = "elsewhere"\nrules = ["TEN"]\nreason = "long gone"\n',
        encoding="utf-8",
    )

    assert run("--format", "concise").err == (
        f"dspark-lint: {place}/dspark-lint.toml: ignores[0]: no checkpoint matches elsewhere\n"
    )


def test_show_config(place: Path, run: Callable[..., Ran]) -> None:
    """Every key with its value and where it comes from, as text and as JSON; nothing is checked."""
    file = place / "pyproject.toml"
    file.write_text(f'{TABLE}releases = ["0.31"]\nfail-on = "warning"\n', encoding="utf-8")

    text = run("--show-config", "--fail-on", "never")
    document = json.loads(run("--show-config", "--fail-on", "never", "--format", "json").out)

    assert (document["file"], list(document["values"])) == (str(file), list(KEYS))
    wanted: dict[str, Any] = {
        "releases": {"value": ["0.31"], "from": str(file)},
        "fail-on": {"value": "never", "from": "a flag"},
        "min-severity": {"value": "info", "from": "default"},
    }
    assert {key: document["values"][key] for key in wanted} == wanted
    assert text.out.splitlines()[0] == f"configuration file: {file}"
    assert f'releases            ["0.31"]  ({file})' in text.out.splitlines()
    assert 'fail-on             "never"  (a flag)' in text.out.splitlines()
    assert text.code == 0


def test_every_key_is_documented() -> None:
    """docs/configuration.md has a line for every key, and speaks of no other."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text("utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]

    assert rows == list(KEYS)
