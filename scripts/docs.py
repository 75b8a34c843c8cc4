"""Write what the docs say of the program from the program itself: scripts/docs.py [--check]

The pages of docs/rules/, the examples that ``dspark-lint explain`` shows, docs/silent-damage.md, and in README.md what stands between the markers ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
With --check nothing is written; the exit code is 1 when a file is not current.
"""

from __future__ import annotations

import json
import re
import sys

from pathlib import Path

import click
import yaml


ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from examples import example

from dspark_lint import lint
from dspark_lint.cli.check import check
from dspark_lint.cli.exits import TABLE
from dspark_lint.contract.load import shipped_releases
from dspark_lint.report import FORMATS, render
from dspark_lint.report.base import RenderOptions
from dspark_lint.report.merge import ranges
from dspark_lint.ruledocs import by_file, rests_on
from dspark_lint.rules import REGISTRY, Rule


#: Where a release's source can be read, and the packages that contracts cite beside vLLM.
SOURCE = "https://github.com/vllm-project/vllm/blob/v{release}/vllm"
OTHERS = ("transformers/", "speculators/", "compressed_tensors/")
FAMILIES = {
    "FIL": "files, headers, shards, index",
    "ARC": "architecture, dialect, method, how it is served",
    "KEY": "keys of config.json",
    "DRF": "two places that disagree",
    "QNT": "quantization: references, scales, what can be quantized",
    "TEN": "tensors",
    "TGT": "pairing with the target",
    "VAL": "what the tensors hold",
}
FORMAT_USES = {
    "text": "people, at a terminal and in a log",
    "concise": "editors: `file:line:col: RULE message`",
    "json": "programs: one document, [schema](dspark_lint/report/schemas)",
    "jsonl": "fleets: a line a checkpoint",
    "sarif": "code scanning, SARIF 2.1.0",
    "junit": "test reports: a case a rule and release, unchecked is skipped",
    "github": "annotations and a step summary in Actions",
    "gitlab": "a code quality report",
    "markdown": "a table for a comment or a release note",
    "html": "one self-contained page with the matrix and the tensor inventory",
}


def linked(file: str, numbers: list[int], release: str) -> str:
    """Return cited lines of a file as links into the source of that release; plain where it is of another package."""
    if file.startswith(OTHERS):
        return f"`{file}`: {', '.join(map(str, numbers))}"
    link = f"{SOURCE.format(release=release)}/{file}"
    return f"[`{file}`]({link}): {', '.join(f'[{number}]({link}#L{number})' for number in numbers)}"


def page(rule: Rule) -> str:
    """Return the page of one rule."""
    rests = rests_on(rule.id)
    newest = rests.releases[-1]
    lines = [f"- {linked(file, numbers, newest)}" for file, numbers in by_file(rests.lines).items()]
    shown = example(rule.id)
    return "\n".join(
        [
            f"# {rule.id}: {rule.title}",
            "",
            f"Default severity **{rule.severity}**, effect **{rule.effect}**. A clause of a contract may give a finding another.",
            "",
            "## Why",
            "",
            rule.rationale,
            "",
            "## Example",
            "",
            f"Fires on {rule.fires}; quiet on {rule.quiet}.",
            "",
            "From a draft that is quiet to one that fires it, two of those that the tests build:",
            "",
            "```diff",
            shown.difference,
            "```",
            "",
            "```text",
            shown.words,
            "```",
            "",
            "## What to do",
            "",
            rule.remedy,
            "",
            "## What it rests on",
            "",
            f"vLLM {ranges(rests.releases, shipped_releases())}. The lines of {newest}:",
            "",
            *lines,
            "",
        ]
    )


def examples() -> str:
    """Return the example of every rule as a program reads them."""
    return json.dumps({rule: example(rule)._asdict() for rule in sorted(REGISTRY)}, indent=1, ensure_ascii=False) + "\n"


def releases_of(spans: dict[str, str]) -> str:
    """Return the answers of a line of the silent-damage table in words: ``warning (0.25.0 to 0.28.0), error after``."""
    parts: dict[str, list[str]] = {}
    for span, answer in spans.items():
        severity, effect = answer.split()
        first, _, last = span.partition("..")
        through = first if not last else f"{first} on" if last == shipped_releases()[-1] else f"{first} to {last}"
        parts.setdefault(severity if effect != "refused" else "refused", []).append(through)
    if list(spans) == [f"{shipped_releases()[0]}..{shipped_releases()[-1]}"]:
        return next(iter(parts))
    return "; ".join(f"{name}, {' and '.join(through)}" for name, through in parts.items())


def silent_damage() -> str:
    """Return the page of every known way to be served badly, from docs/silent-damage.yaml."""
    table = yaml.safe_load((ROOT / "docs" / "silent-damage.yaml").read_text("utf-8"))
    rows = [row for group in table["groups"] for row in group["rows"].values()]
    told = sum("told" in row for row in rows)
    parts = [
        "# Silent damage",
        "",
        "What a release loads without a word and then serves worse than trained: every way known, and the rule that tells it.",
        f"{told} of the {len(rows)} show in the files, or in the files and what the release and the flags are; of the rest, and of the part of",
        "some that does not show, the reason stands below. A release is meant where it says one; `error`, `warning` and `info` are what",
        "the finding is, `refused` an error of what the release does not load after all. Each line is a test: a draft that shows it, and a",
        "twin that does not.",
        "",
    ]
    for group in table["groups"]:
        parts += [f"## {group['title']}", "", "| | what happens | told by |", "|---|---|---|"]
        for sid, row in group["rows"].items():
            lines = [
                f"[{line['rule']}](rules/{line['rule']}.md) {line['when']}: {releases_of(line['as'])}"
                for line in row.get("told", ())
            ]
            lines += [f"*Unseen:* {row['unseen']}"] if "unseen" in row else []
            parts.append(f"| {sid} | {row['says']} | {'<br>'.join(lines)} |")
        parts.append("")
    return "\n".join(parts)


def index() -> str:
    """Return the page that lists the rules, family by family."""
    parts = ["# Rules", "", "`dspark-lint explain RULE` prints a page at the terminal.", ""]
    for family, title in FAMILIES.items():
        parts += [f"## {family}: {title}", "", "| rule | severity | effect | |", "|---|---|---|---|"]
        parts += [
            f"| [{r.id}]({r.id}.md) | {r.severity} | {r.effect} | {r.title} |"
            for r in sorted(REGISTRY.values())
            if r.id.startswith(family)
        ]
        parts.append("")
    return "\n".join(parts)


def rule_table() -> str:
    """Return the README's table of the rules, a row a family's rule."""
    rows = ["| rule | severity | |", "|---|---|---|"]
    for family, title in FAMILIES.items():
        rows.append(f"| **{family}** | | **{title}** |")
        rows += [
            f"| [{r.id}](docs/rules/{r.id}.md) | {r.severity} | {r.title} |"
            for r in sorted(REGISTRY.values())
            if r.id.startswith(family)
        ]
    return "\n".join(rows)


def exit_table() -> str:
    """Return the table of exit codes."""
    return "\n".join(["| code | |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in TABLE)])


def format_table() -> str:
    """Return the table of formats."""
    return "\n".join(["| format | for |", "|---|---|", *(f"| `{name}` | {FORMAT_USES[name]} |" for name in FORMATS)])


def help_text() -> str:
    """Return the help of the check, 100 columns wide."""
    context = click.Context(
        check, info_name="dspark-lint", max_content_width=100, terminal_width=100, help_option_names=["-h", "--help"]
    )
    return f"```\n{check.get_help(context)}\n```"


def printed(checkpoint: str, **flags: str) -> str:
    """Return what the tool prints of a demonstration checkpoint, wrapped as in a terminal of 100 columns."""
    report = lint(ROOT / checkpoint, **flags)
    only = report.checkpoints[0]._replace(path=checkpoint)
    text = render(report._replace(checkpoints=(only,)), "text", RenderOptions(width=100))
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def sample() -> str:
    """Return the report of the demonstration checkpoint as it was exported."""
    return printed("fixtures/demo/exported", vllm="0.32")


def matrix() -> str:
    """Return the report of the converted one under several releases."""
    return printed("fixtures/demo/converted", vllm="0.24..0.27", target=str(ROOT / "fixtures" / "demo" / "target"))


BLOCKS = {
    "sample": sample,
    "matrix": matrix,
    "rules": rule_table,
    "exit codes": exit_table,
    "formats": format_table,
    "help": help_text,
}


def filled(text: str) -> str:
    """Return README.md with every marked part written anew. Raises SystemExit for a marker that is missing."""
    for name, make in BLOCKS.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        text, number = pattern.subn(lambda m, make=make: f"{m[1]}{make()}\n{m[2]}", text)
        if number != 1:
            raise SystemExit(f"README.md: the markers of {name!r} stand there {number} times")
    return text


def documents() -> dict[Path, str]:
    """Return every generated file and its text."""
    readme = ROOT / "README.md"
    pages = ROOT / "docs" / "rules"
    return {
        readme: filled(readme.read_text("utf-8")),
        pages / "README.md": index(),
        ROOT / "docs" / "silent-damage.md": silent_damage(),
        ROOT / "dspark_lint" / "rules" / "examples.json": examples(),
        **{pages / f"{rule.id}.md": page(rule) for rule in REGISTRY.values()},
    }


def stale(wanted: dict[Path, str]) -> list[Path]:
    """Return the files that are not current, and pages of rules that are no more."""
    there = set((ROOT / "docs" / "rules").glob("*.md"))
    return sorted(
        {f for f, text in wanted.items() if not f.is_file() or f.read_text("utf-8") != text} | (there - set(wanted))
    )


def main() -> int:
    """Write or check."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    wanted = documents()
    if sys.argv[1:]:
        for file in (files := stale(wanted)):
            print(f"{file.relative_to(ROOT)} is not current: run scripts/docs.py")
        return 1 if files else 0
    (ROOT / "docs" / "rules").mkdir(parents=True, exist_ok=True)
    for file, text in wanted.items():
        file.write_text(text, "utf-8")
    for file in stale(wanted):
        file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
