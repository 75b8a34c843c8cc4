"""The pre-commit hook: files are mapped to checkpoints, and pre-commit itself runs it from the definition file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from safetensors.numpy import save_file

from dspark_lint import hook


ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "demo"
DEFINITIONS = ROOT / ".pre-commit-hooks.yaml"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 123456\n"

DRAFT = json.dumps({"architectures": ["Qwen3DSparkModel"], "model_type": "qwen3"})
TREES: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "one file of one": ({"a/config.json": DRAFT, "b/config.json": DRAFT}, ["a/config.json"], ["a"]),
    "many files of one": (
        {"a/config.json": DRAFT, "a/model-1.safetensors": "", "a/model-2.safetensors": ""},
        ["a/model-2.safetensors", "a/config.json", "./a/model-1.safetensors"],
        ["a"],
    ),
    "in the order of the files": ({"a/config.json": DRAFT, "b/config.json": DRAFT}, ["b/config.json", "a/config.json"], ["b", "a"]),
    "the repository itself": ({"config.json": DRAFT}, ["config.json"], ["."]),
    "blanks, accents and dashes": ({"-ä b/config.json": DRAFT}, ["-ä b/config.json"], ["-ä b"]),
    "weights without a configuration": ({"a/x.safetensors": ""}, ["a/x.safetensors"], ["a"]),
    "an index alone": ({"a/model.safetensors.index.json": "{}"}, ["a/model.safetensors.index.json"], ["a"]),
    "speculators": ({"a/config.json": '{"speculators_model_type": "dflash"}'}, ["a/config.json"], ["a"]),
    "a pointer in place of the weights": ({"a/config.json": DRAFT, "a/model.safetensors": LFS}, ["a/model.safetensors"], ["a"]),
    "config.json of another program": ({"web/config.json": '{"port": 80}'}, ["web/config.json"], []),
    "a target without its weights": ({"t/config.json": '{"architectures": ["Qwen3ForCausalLM"]}'}, ["t/config.json"], []),
    "a file that has gone": ({}, ["a/config.json"], []),
    "a directory is taken as it is": ({"t/config.json": "{}"}, ["t"], ["t"]),
    "nothing": ({"a/config.json": DRAFT}, [], []),
}  # fmt: skip


@pytest.mark.parametrize(("files", "changed", "expected"), TREES.values(), ids=TREES)
def test_checkpoints_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], changed: list[str], expected: list[str]
) -> None:
    """Each file leads to its own directory where that is a checkpoint, and each directory is named once."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert hook.checkpoints_of(changed) == expected


@pytest.mark.parametrize(
    ("argv", "options", "files"),
    [
        ([], [], []),
        (["a/config.json", "b"], [], ["a/config.json", "b"]),
        (["--vllm", "0.32", "a/config.json"], ["--vllm", "0.32"], ["a/config.json"]),
        (["--vllm=0.32", "a"], ["--vllm=0.32"], ["a"]),
        (["--target", "t/config.json", "t/config.json"], ["--target", "t/config.json"], ["t/config.json"]),
        (["-q", "-vv", "--deep", "a"], ["-q", "-vv", "--deep"], ["a"]),
        (["-q", "--", "-a", "--deep"], ["-q"], ["-a", "--deep"]),
        (["--nonsense", "a"], ["--nonsense"], ["a"]),
        (["--vllm"], ["--vllm"], []),
    ],
)
def test_split(argv: list[str], options: list[str], files: list[str]) -> None:
    """What belongs to an option of the check stays with it, everything else is a file."""
    assert hook.split(argv) == (options, files)


def test_split_a_name_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins with a dash is a file where such a file is, unless an option is called so."""
    (tmp_path / "-a").mkdir()
    (tmp_path / "-a" / "config.json").touch()
    (tmp_path / "-q").touch()
    monkeypatch.chdir(tmp_path)

    assert hook.split(["-q", "-a/config.json", "-b/config.json"]) == (["-q", "-b/config.json"], ["-a/config.json"])


def test_definitions_select_what_is_read() -> None:
    """The pattern of the definition file takes the files that a release reads, and no others."""
    definitions = {d["id"]: d for d in yaml.safe_load(DEFINITIONS.read_text(encoding="utf-8"))}
    pattern = re.compile(definitions["dspark-lint"]["files"])
    names = [
        "config.json", "a/config.json", "a/hf_quant_config.json", "a/model.safetensors", "a/model-00001-of-00002.safetensors",
        "a/model.safetensors.index.json", "a/consolidated.safetensors.index.json", "a/mask_embedding.pt", "a/pytorch_model.bin",
        "a/myconfig.json", "a/tokenizer.json", "a/config.json.bak", "a/.safetensors", "a/model.safetensors.md", "README.md", "a/bin",
    ]  # fmt: skip

    assert [name for name in names if pattern.search(name)] == names[:9]
    assert {id_: d["entry"] for id_, d in definitions.items()} == {
        "dspark-lint": "dspark-lint-hook",
        "dspark-lint-all": "dspark-lint check",
    }


def test_says_when_nothing_is_concerned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A commit that touches no checkpoint passes, and standard output stays empty."""
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")

    assert hook.run([str(tmp_path / "config.json")]) == 0
    assert capsys.readouterr() == ("", "dspark-lint: no changed file belongs to a checkpoint\n")


def test_exit_codes_are_those_of_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    """A finding is 1, an option that the check does not know is 2."""
    file = str(DEMO / "exported" / "config.json")

    assert hook.run(["--vllm", "0.32", file]) == 1
    assert hook.run(["--nonsense", file]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_a_target_with_its_weights_is_not_checked(tmp_path: Path) -> None:
    """Nothing here speaks of it, which is no pass: exit code 3, unless a draft was checked beside it."""
    shutil.copytree(DEMO / "target", tmp_path / "target")
    save_file({"model.norm.weight": np.ones(16, np.float16)}, tmp_path / "target" / "model.safetensors")
    target, draft = str(tmp_path / "target" / "config.json"), str(DEMO / "converted" / "config.json")

    assert hook.run(["--vllm", "0.32", target]) == 3
    assert hook.run(["--vllm", "0.32", target, draft]) == 0


class Repository:
    """A git repository with the hooks of a copy of this one."""

    def __init__(self, path: Path, source: Path, home: Path) -> None:
        self.path = path
        self.home = home
        self.report = path.parent / f"{path.name}.json"
        path.mkdir()
        self.git("init", "--quiet")
        revision = git(source, "rev-parse", "HEAD")
        hooks = [
            {"id": "dspark-lint", "args": ["--vllm", "0.32", "--format", f"json={self.report}", "--format", "concise"], "verbose": True},
            {"id": "dspark-lint-all", "args": ["--vllm", "0.32", "--format", f"json={self.report}"], "stages": ["manual"]},
        ]  # fmt: skip
        self.write(
            ".pre-commit-config.yaml", json.dumps({"repos": [{"repo": str(source), "rev": revision, "hooks": hooks}]})
        )

    def write(self, name: str, text: str) -> None:
        """Write a file and stage it."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")
        self.git("add", name)

    def git(self, *arguments: str) -> str:
        """Run git here."""
        return git(self.path, *arguments)

    def pre_commit(self, *arguments: str) -> tuple[int, str]:
        """Run pre-commit on what is staged; return its exit code and what it printed."""
        self.report.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--color", "never", *arguments],
            cwd=self.path, env=outside() | {"PRE_COMMIT_HOME": str(self.home)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def told(self) -> dict[str, list[str]]:
        """Return the rules that fired, by checkpoint, as the hook's own report has them; empty if nothing was checked."""
        if not self.report.exists():
            return {}
        report: dict[str, Any] = json.loads(self.report.read_text(encoding="utf-8"))
        return {c["path"]: [f["rule"] for r in c["results"] for f in r["findings"]] for c in report["checkpoints"]}


def outside() -> dict[str, str]:
    """Return the environment as it is where no git hook runs these tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


def git(where: Path, *arguments: str) -> str:
    """Run git without the user's own configuration."""
    environment = outside() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.invalid", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=where, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Three committed checkpoints, as they should be, under the hooks of a copy of this repository."""
    pytest.importorskip("pre_commit")
    top = tmp_path_factory.mktemp("hooks")
    source = top / "source"
    left_out = (
        "tests",
        "fixtures",
        "benchmarks",
        "dist",
        "build",
        "venv",
        "__pycache__",
        "*.egg-info",
        ".git",
        ".[!pg]*",
    )
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*left_out))
    git(source, "init", "--quiet")
    git(source, "add", "--force", "--all")
    git(source, "commit", "--quiet", "--message", "copy")
    made = Repository(top / "repository", source, top / "home")
    for name in "abc":
        shutil.copytree(DEMO / "converted", made.path / "drafts" / name)
    made.write("web/config.json", '{"port": 80}')
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "three drafts")
    return made


@pytest.fixture
def staged(repository: Repository) -> Repository:
    """The repository with nothing staged."""
    repository.git("reset", "--quiet", "--hard")
    return repository


@pytest.mark.installs
def test_pre_commit_checks_what_changed(staged: Repository) -> None:
    """Of three checkpoints the one with a changed file is checked, in under a second."""
    config = json.loads((staged.path / "drafts/b/config.json").read_text(encoding="utf-8"))
    staged.write("drafts/b/config.json", json.dumps(config | {"vocab_size": "64"}))
    staged.write("web/config.json", '{"port": 81}')
    staged.pre_commit()  # installs the hook
    durations = []
    for _ in range(3):
        code, output = staged.pre_commit()
        durations.append(float(re.findall(r"- duration: ([\d.]+)s", output)[0]))

    assert code == 1, output
    assert list(staged.told()) == ["drafts/b"]
    assert any(rule.startswith("KEY") for rule in staged.told()["drafts/b"])
    assert min(durations) < 1.0


@pytest.mark.installs
def test_pre_commit_passes(staged: Repository) -> None:
    """A checkpoint that stays as it should be passes."""
    text = (staged.path / "drafts/c/config.json").read_text(encoding="utf-8")
    staged.write("drafts/c/config.json", text + "\n")
    code, output = staged.pre_commit()

    assert code == 0, output
    assert staged.told() == {"drafts/c": []}


@pytest.mark.installs
def test_pre_commit_leaves_other_files_alone(staged: Repository) -> None:
    """A config.json that describes no model, and a page of text, start no check."""
    staged.write("web/config.json", '{"port": 82}')
    staged.write("README.md", "words")
    code, output = staged.pre_commit()

    assert code == 0, output
    assert staged.told() == {}


@pytest.mark.installs
def test_pre_commit_names_lfs_pointers(staged: Repository) -> None:
    """A Git LFS pointer where the weights should be is said to be one."""
    staged.write("drafts/a/model.safetensors", LFS)
    code, output = staged.pre_commit()

    assert code == 1, output
    assert staged.told() == {"drafts/a": ["FIL004"]}
    assert "Git LFS pointer" in output


@pytest.mark.installs
def test_pre_commit_checks_all(staged: Repository) -> None:
    """The second hook takes the paths of the configuration, whatever has changed."""
    staged.write("dspark-lint.toml", 'paths = ["drafts/*"]\n')
    code, output = staged.pre_commit("dspark-lint-all", "--hook-stage", "manual")

    assert code == 0, output
    assert staged.told() == {"drafts/a": [], "drafts/b": [], "drafts/c": []}


@pytest.mark.installs
def test_pre_commit_has_nothing_to_check(staged: Repository) -> None:
    """Without a configuration the second hook fails, and not with the code of a finding."""
    code, output = staged.pre_commit("dspark-lint-all", "--hook-stage", "manual")

    assert code == 1, output
    assert re.findall(r"- exit code: (\d+)", output) == ["2"]
    assert staged.told() == {}
