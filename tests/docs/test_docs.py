"""What the docs say of the program is what the program says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

from pathlib import Path

import pytest

from dspark_lint.contract.load import shipped_releases
from dspark_lint.contract.model import load_contract
from dspark_lint.ruledocs import CLAUSES, by_file, example_of, rests_on
from dspark_lint.rules import REGISTRY


ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_generated_parts_are_current() -> None:
    """docs/rules/ and the marked parts of README.md are what scripts/docs.py writes."""
    done = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("rule", list(REGISTRY))
def test_a_rule_is_whole(rule: str) -> None:
    """Each rule says why it exists, what to do, what fires it and what does not, and rests on lines of a release."""
    told = REGISTRY[rule]
    rests = rests_on(rule)

    assert all([told.title, told.rationale, told.remedy, told.fires, told.quiet])
    assert rests.releases
    assert rests.releases[-1] in shipped_releases()
    assert all(re.fullmatch(r"[\w/]+\.py:\d+", line) for line in rests.lines), rests.lines


@pytest.mark.parametrize("rule", list(REGISTRY))
def test_an_example_is_of_its_rule(rule: str) -> None:
    """What is shown differs in something, and tells a finding of this rule with the line it rests on."""
    example = example_of(rule)
    first, *rest = example["words"].splitlines()

    signs = {line[0] for line in example["difference"].splitlines()}
    assert signs & {"-", "+"}
    assert signs <= {"-", "+", " "}
    assert re.fullmatch(rf"(error|warning|info)  {rule}(  .+)?", first)
    assert re.fullmatch(r"  source  vLLM \d+\.\d+\.\d+ [\w/]+\.py:\d+", rest[-1])


def test_an_example_has_to_fire() -> None:
    """A page cannot be written for a rule that no draft fires, nor by a line of a table that is not there."""
    code = (
        "import examples\n"
        "for rule, best in (('NOT001', None), ('TEN001', 'no such line')):\n"
        "    examples.BEST[rule] = best\n"
        "    try: examples.example(rule)\n"
        "    except LookupError as e: print(e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )

    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["NOT001", "TEN001"]


def test_explain_prints_what_the_page_has(capsys: pytest.CaptureFixture[str]) -> None:
    """The terminal shows the words of the page: reasons, the example, the lines, the releases."""
    from dspark_lint.cli.main import run

    assert run(["explain", "ten004"]) == 0
    printed = capsys.readouterr().out
    told, example, rests = REGISTRY["TEN004"], example_of("TEN004"), rests_on("TEN004")
    words = " ".join(printed.split())
    for part in (told.title, told.rationale, told.remedy, told.fires, told.quiet, *example.values()):
        assert " ".join(part.split()) in words
    cited = by_file(rests.lines)
    assert [file for file in cited if f"{file}:{cited[file][0]}" not in words] == []
    assert printed.endswith("Releases\n  0.24.0-0.33.0\n")


def test_rules_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """``rules --format json`` has every rule with all that its page has."""
    from dspark_lint.cli.main import run

    assert run(["rules", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == list(REGISTRY)
    for row in rows:
        told, rests = REGISTRY[row["id"]], rests_on(row["id"])
        assert row == {
            "id": told.id,
            "title": told.title,
            "severity": told.severity,
            "effect": told.effect,
            "rationale": told.rationale,
            "remedy": told.remedy,
            "fires": told.fires,
            "quiet": told.quiet,
            "example": dict(example_of(told.id)),
            "releases": list(rests.releases),
            "source": list(rests.lines),
        }


def test_the_places_of_clauses_are_of_rules() -> None:
    """Nothing is listed for a rule that does not exist."""
    assert set(CLAUSES) <= set(REGISTRY)


def test_links_lead_somewhere() -> None:
    """Every relative link of a page, and its anchor, is there."""
    lost = []
    for file in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", file.read_text("utf-8")):
            path, _, anchor = target.partition("#")
            there = file.parent / path if path else file
            headings = (
                re.findall(r"^#+ (.+)$", there.read_text("utf-8"), re.MULTILINE) if anchor and there.is_file() else []
            )
            if not there.exists() or (anchor and anchor not in {h.lower().replace(" ", "-") for h in headings}):
                lost.append(f"{file.relative_to(ROOT)}: {target}")

    assert lost == []


COMMANDS = sorted(
    {
        line.strip().split("   ")[0].removeprefix("$ ")
        for file in PAGES
        for line in file.read_text("utf-8").splitlines()
        if re.match(r"    (\$ )?dspark-lint ", line)
    }
)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command: str) -> None:
    """Every command that a page shows parses: its sub-commands and flags exist."""
    from click import Context, Group, UsageError

    from dspark_lint.cli.main import COMMANDS as SUB_COMMANDS
    from dspark_lint.cli.main import cli

    name, *rest = shlex.split(command, comments=True)[1:]
    if name not in SUB_COMMANDS:
        name, rest = "check", [name, *rest]
    found = cli.get_command(Context(cli), name)
    assert found is not None
    if isinstance(found, Group):
        name, *rest = rest
        found = found.get_command(Context(found), name)
        assert found is not None, command
    try:
        found.make_context(name, rest)
    except UsageError as e:
        if "does not exist" not in e.format_message():  # the pages' own examples of files
            pytest.fail(e.format_message())


def test_the_newest_release_is_the_readmes() -> None:
    """README and changelog speak of the releases that are there."""
    readme = (ROOT / "README.md").read_text("utf-8")
    first, last = shipped_releases()[0], shipped_releases()[-1]

    assert f"from {first} to {last}" in readme
    assert f"{len(REGISTRY)} rules" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert load_contract(last).release == last
