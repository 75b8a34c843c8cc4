"""Shell completion: what is offered for a line that is being typed, and the scripts that a shell evaluates."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from click.shell_completion import ShellComplete

from dspark_lint.cli.main import COMMANDS, cli
from dspark_lint.contract.load import shipped_releases
from dspark_lint.report import FORMATS
from dspark_lint.rules import REGISTRY


PAGE = Path(__file__).resolve().parents[2] / "docs" / "completion.md"
RELEASES = list(reversed(shipped_releases()))
FILE = "<files>"


def offered(args: str, incomplete: str) -> list[str]:
    """What is offered after these words, for the word that is being typed; files are left to the shell."""
    found = ShellComplete(cli, {}, "dspark-lint", "_DSPARK_LINT_COMPLETE").get_completions(args.split(), incomplete)
    return [FILE if item.type == "file" else item.value for item in found]


@pytest.mark.parametrize(
    ("args", "incomplete", "want"),
    [
        ("", "", [*COMMANDS, FILE]),
        ("", "con", ["contracts", FILE]),
        ("", "ckpt/", [FILE]),
        ("", "--fo", ["--format"]),
        ("", "--ver", ["--version", "--verbose"]),
        ("check", "--form", ["--format"]),
        ("ckpt/", "--form", ["--format"]),
        ("ckpt/", "", [FILE]),
        ("ckpt/ --format", "", ["auto", *FORMATS]),
        ("ckpt/ --format", "j", ["json", "jsonl", "junit"]),
        ("--format", "sar", ["sarif"]),
        ("ckpt/ --format", "xml", []),
        ("ckpt/ --vllm", "", ["all", "latest", "installed", *RELEASES]),
        ("ckpt/ --vllm", "0.27", ["0.27.1", "0.27.0"]),
        ("ckpt/ --select", "ten", [rule for rule in REGISTRY if rule.startswith("TEN")]),
        ("ckpt/ --ignore", "TEN001,VAL00", [f"TEN001,{rule}" for rule in REGISTRY if rule.startswith("VAL")]),
        ("ckpt/ --fail-on", "", ["error", "warning", "never"]),
        ("ckpt/ --min-severity", "w", ["warning"]),
        ("ckpt/ --target", "/models", [FILE]),
        ("ckpt/ --output", "", [FILE]),
        ("explain", "drf00", [rule for rule in REGISTRY if rule.startswith("DRF")]),
        ("rules --format", "", ["text", "json"]),
        ("contracts", "v", ["validate", "verify"]),
    ],
)  # fmt: skip
def test_what_is_offered(args: str, incomplete: str, want: list[str]) -> None:
    """Sub-commands, flags, formats, releases and ids of rules are completed; where a path stands, files."""
    assert offered(args, incomplete) == want


def test_rules_are_offered_with_their_titles() -> None:
    """A shell that shows a description beside a word shows a rule's title."""
    complete = ShellComplete(cli, {}, "dspark-lint", "_DSPARK_LINT_COMPLETE")

    (item,) = complete.get_completions(["explain"], "TEN001")

    assert item.help == REGISTRY["TEN001"].title


TRY = {
    "bash": 'COMP_WORDS=(dspark-lint ckpt --format j); COMP_CWORD=3; _dspark_lint_completion dspark-lint; printf "%s\\n" "${COMPREPLY[@]}"',
    "fish": 'complete --do-complete "dspark-lint ckpt --format j"',
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_the_script(shell: str, tmp_path: Path) -> None:
    """The line of docs/completion.md makes the shell complete ``--format j``; zsh, which has no way to ask, parses it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    line = re.findall(
        rf"^    (.*_DSPARK_LINT_COMPLETE={shell}_source .*?)\s*(?:#.*)?$", PAGE.read_text("utf-8"), re.MULTILINE
    )[0]
    ask = TRY.get(shell, "print -l ${functions[_dspark_lint_completion]:+json jsonl junit}")
    if shell == "zsh":
        line = f"autoload -Uz compinit; compinit -D; {line}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", f"{line}\n{ask}"],
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.stdout.split(), done.stderr) == (["json", "jsonl", "junit"], "")
