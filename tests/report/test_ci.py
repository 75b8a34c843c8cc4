"""The formats of CI systems, read by their readers' rules."""

from __future__ import annotations

import html
import json
import re

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from report.samples import HOSTILE, KEY, RELEASES, REPORTS, SERVED, TENSOR, checkpoint, options, result

from dspark_lint.finding import Report
from dspark_lint.report import render, resolve_format
from dspark_lint.report.escape import name, safe, sentence, whole
from dspark_lint.report.github import step_summary, write_step_summary
from dspark_lint.report.markdown import COMMENT, code, text
from dspark_lint.report.sarif import artifact


if TYPE_CHECKING:
    from pathlib import Path

    from dspark_lint.finding import Finding


# -- GitHub: a line is a command exactly when the runner takes it for one -----------------------------------------


def commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands in a log, as the runner reads them."""
    found = []
    for line in log.splitlines():
        assert "##[" not in line or line.startswith("::"), line
        if not line.lstrip().startswith("::"):
            continue
        match = re.match(r"::(\w+) ?(.*?)::(.*)$", line)
        assert match, line
        properties = {}
        for pair in match.group(2).split(","):
            key, _, value = pair.partition("=")
            for char in (":", ","):
                value = value.replace(f"%{ord(char):02X}", char)
            properties[key] = value.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        message = match.group(3).replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        found.append((match.group(1), properties, message))
    return found


def test_github_annotations(tmp_path: Path) -> None:
    """Every finding is an annotation at its place, the most severe first."""
    log = render(REPORTS["few"](tmp_path), "github", options(tmp_path))

    assert commands(log) == [
        (
            "error",
            {"file": "few/model.safetensors", "line": "1", "title": "TEN001"},
            (
                "layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises.\nexpected: [12288, 4096]\n"
                "found: nothing\nsource: vLLM 0.32.0 model_executor/models/qwen3_dspark.py:189"
            ),
        ),
        (
            "warning",
            {"file": "few/config.json", "line": "7", "col": "5", "title": "KEY001"},
            (
                "mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config.\n"
                'expected: mask_token_id: 7\nfound: nothing\nfix: write "mask_token_id": 7\n'
                "source: vLLM 0.32.0 v1/worker/gpu/spec_decode/utils.py:41"
            ),
        ),
        (
            "notice",
            {"file": "few/config.json", "line": "1", "title": "ARC003"},
            "the method is inferred.",
        ),
    ]
    assert log.splitlines()[-1] == "dspark-lint: 1 error, 1 warning, 1 info in 1 checkpoint"


def test_github_shows_ten_of_a_level(tmp_path: Path) -> None:
    """Ten errors and ten warnings are annotations, errors first; every other finding is a line of the log."""
    log = render(REPORTS["many"](tmp_path), "github", options(tmp_path))

    assert [level for level, _, _ in commands(log)] == ["error"] * 10 + ["warning"] * 10
    lines = log.splitlines()
    assert len(lines) == 2000 + 1
    assert lines[-1] == (
        "dspark-lint: 1000 errors, 1000 warnings in 1 checkpoint; 20 of 2000 shown as annotations, "
        "GitHub takes 10 of a level"
    )


@pytest.mark.parametrize("label", HOSTILE)
def test_github_escapes(label: str, tmp_path: Path) -> None:
    """No name of a checkpoint becomes a command or a property, as an annotation or as a line beyond the limit."""
    hostile = HOSTILE[label]
    found = tuple(TENSOR._replace(file=hostile, message=f"{hostile} {i}", tensor=str(i)) for i in range(12))
    report = Report((checkpoint(tmp_path, "a", (result(*found),)),), "1")
    log = render(report, "github", options(tmp_path))

    read = commands(log)
    assert [(level, properties["title"]) for level, properties, _ in read] == [("error", "TEN001")] * 10
    assert {key for _, properties, _ in read for key in properties} == {"file", "line", "title"}
    assert [message.splitlines()[0] for _, _, message in read] == [f"{sentence(hostile)} {i}" for i in range(10)]
    assert len(log.splitlines()) == 13


@pytest.mark.parametrize("directory", ["::error title=x::y", "##[error]x"])
def test_github_paths_are_no_commands(directory: str, tmp_path: Path) -> None:
    """A checkpoint whose own path looks like a command is a plain line beyond the limit."""
    found = tuple(TENSOR._replace(tensor=str(i)) for i in range(11))
    log = render(Report((checkpoint(tmp_path, directory, (result(*found),)),), "1"), "github", options(tmp_path))

    assert [properties["title"] for _, properties, _ in commands(log)] == ["TEN001"] * 10


def test_github_says_what_was_not_judged(tmp_path: Path) -> None:
    """A checkpoint that was not judged is a notice; without room for it, a line."""
    log = render(REPORTS["unjudged"](tmp_path), "github", options(tmp_path))
    assert commands(log) == [
        (
            "notice",
            {"file": "blind/config.json", "line": "1", "title": "unchecked"},
            "nothing was judged under vLLM 0.32.0: it is no draft",
        )
    ]

    infos = tuple(SERVED._replace(module=str(i)) for i in range(10))
    both = (*REPORTS["unjudged"](tmp_path).checkpoints, checkpoint(tmp_path, "a", (result(*infos),)))
    log = render(Report(both, "1"), "github", options(tmp_path))
    assert len(commands(log)) == 10
    assert "blind/config.json:1:1: unchecked nothing was judged under vLLM 0.32.0: it is no draft" in log.splitlines()


def test_github_paths_count_from_the_workspace(tmp_path: Path) -> None:
    """In a sub-directory of the workspace the annotations still find their files."""
    report = REPORTS["one"](tmp_path / "sub")
    log = render(report, "github", options(tmp_path / "sub", environ={"GITHUB_WORKSPACE": str(tmp_path)}))

    assert commands(log)[0][1]["file"] == "sub/one/config.json"


def test_step_summary(tmp_path: Path) -> None:
    """The summary is appended to the file that GitHub names, and to none without it."""
    report = REPORTS["few"](tmp_path)
    target = tmp_path / "summary.md"
    target.write_text("before\n")

    assert write_step_summary(report, options(tmp_path, environ={"GITHUB_STEP_SUMMARY": str(target)}))
    assert target.read_text() == "before\n" + step_summary(report, options(tmp_path)) + "\n"
    assert not write_step_summary(report, options(tmp_path, environ={}))


def test_step_summary_fits(tmp_path: Path) -> None:
    """A summary stays below the mebibyte that GitHub takes."""
    found = tuple(TENSOR._replace(tensor=f"t{i}", fix="x y " * 400) for i in range(2000))
    report = Report((checkpoint(tmp_path, "a", (result(*found),)),), "1")
    summary = step_summary(report, options(tmp_path))

    assert 800_000 < len(summary.encode()) < 1_000_000
    (omitted,) = re.findall(r"\*(\d+) more findings not shown here\.\*", summary)
    assert summary.count("| ❌ error |") + int(omitted) == 2000


# -- GitLab -------------------------------------------------------------------------------------------------------


def gitlab(report: Report, root: Path, **changes: Any) -> list[dict[str, Any]]:
    """The issues of a report."""
    issues: list[dict[str, Any]] = json.loads(render(report, "gitlab", options(root, **changes)))
    return issues


def test_gitlab_issues(tmp_path: Path) -> None:
    """An issue says what, where and how bad."""
    issues = gitlab(REPORTS["few"](tmp_path), tmp_path)

    assert [(i["check_name"], i["severity"], i["location"]) for i in issues] == [
        ("TEN001", "blocker", {"path": "few/model.safetensors", "lines": {"begin": 1}}),
        ("KEY001", "major", {"path": "few/config.json", "lines": {"begin": 7}}),
        ("ARC003", "info", {"path": "few/config.json", "lines": {"begin": 1}}),
    ]
    assert issues[1]["description"] == (
        "mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config. "
        'Fix: write "mask_token_id": 7'
    )


@pytest.mark.parametrize(
    ("finding", "severity"),
    [
        (TENSOR, "blocker"),
        (TENSOR._replace(effect="silent"), "critical"),
        (KEY, "major"),
        (SERVED, "info"),
    ],
)
def test_gitlab_severities(finding: Finding, severity: str, tmp_path: Path) -> None:
    """A refusal blocks, silent damage is critical, a warning major, advice information."""
    assert gitlab(Report((checkpoint(tmp_path, "a", (result(finding),)),), "1"), tmp_path)[0]["severity"] == severity


def test_gitlab_fingerprints_are_stable(tmp_path: Path) -> None:
    """A fault keeps its fingerprint when its words, its line or the releases checked change, not in another place."""

    def prints(name: str, *findings: Finding, releases: tuple[str, ...] = ("0.32.0",)) -> list[str]:
        results = tuple(result(*findings, release=release) for release in releases)
        return [i["fingerprint"] for i in gitlab(Report((checkpoint(tmp_path, name, results),), "1"), tmp_path)]

    before = prints("a", TENSOR, KEY)
    reworded = TENSOR._replace(message="other words", source="b.py:2", found="something")
    assert prints("a", reworded, KEY._replace(fix=None), releases=("0.31.0", "0.32.0")) == before
    assert set(prints("b", TENSOR, KEY)).isdisjoint(before)
    twice = prints("a", SERVED, SERVED)
    assert len(set(twice)) == 2


# -- SARIF --------------------------------------------------------------------------------------------------------


def sarif(report: Report, root: Path) -> dict[str, Any]:
    """The one run of a log."""
    run: dict[str, Any] = json.loads(render(report, "sarif", options(root)))["runs"][0]
    return run


def test_sarif_results(tmp_path: Path) -> None:
    """A result has its rule, its level, its place, what it is about, and the releases that have it."""
    run = sarif(REPORTS["releases"](tmp_path), tmp_path)

    assert run["results"][1] == {
        "ruleId": "KEY001",
        "ruleIndex": 2,
        "level": "warning",
        "message": {
            "text": "mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config. "
            '[vLLM 0.25.0-0.25.1, 0.32.0]\nFix: write "mask_token_id": 7'
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "a/broken/config.json", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 7, "startColumn": 5},
                },
                "logicalLocations": [{"fullyQualifiedName": "/dflash_config/mask_token_id", "kind": "property"}],
            }
        ],
        "partialFingerprints": {
            "dsparkLint/v1": f"{KEY.fingerprint}:warning:silent:1",
            "primaryLocationLineHash": f"{KEY.fingerprint[:16]}:1",
        },
        "properties": {
            "checkpoint": "a/broken",
            "runtime": "vllm",
            "releases": ["0.25.0", "0.25.1", "0.32.0"],
            "effect": "silent",
            "count": 1,
            "pointer": "/dflash_config/mask_token_id",
            "expected": "mask_token_id: 7",
            "found": "nothing",
            "fix": 'write "mask_token_id": 7',
            "source": "v1/worker/gpu/spec_decode/utils.py:41",
        },
    }
    assert run["results"][0]["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "layers.{i}.mlp.up_proj.weight", "kind": "variable"}
    ]
    assert run["properties"]["checkpoints"][2]["verdicts"] == dict.fromkeys(RELEASES, "unchecked")


def test_sarif_rules(tmp_path: Path) -> None:
    """A rule brings its help in both forms, its level and its address."""
    driver = sarif(REPORTS["few"](tmp_path), tmp_path)["tool"]["driver"]

    assert (driver["name"], driver["version"]) == ("dspark-lint", "1.2.3")
    assert driver["rules"][4] == {
        "id": "TEN004",
        "shortDescription": {"text": "A tensor has another size"},
        "fullDescription": {"text": "It is cut."},
        "help": {
            "text": "It is cut.\n\nCorrect the key.",
            "markdown": "It is cut.\n\n**What to do:** Correct the key.",
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["TEN"], "problem.severity": "error"},
        "helpUri": "https://example.org/TEN004",
    }


def test_sarif_fingerprints_are_unique(tmp_path: Path) -> None:
    """Two faults about one subject have fingerprints of their own."""
    run = sarif(Report((checkpoint(tmp_path, "a", (result(SERVED, SERVED, TENSOR),)),), "1"), tmp_path)

    for key in ("dsparkLint/v1", "primaryLocationLineHash"):
        assert len({r["partialFingerprints"][key] for r in run["results"]}) == 3


def test_sarif_tells_what_was_not_checked(tmp_path: Path) -> None:
    """What was not checked is a notification with its rule, where there is such a rule."""
    unchecked = (("KEY001", "needs --target"), ("tensors", "no clause speaks of x"))
    run = sarif(Report((checkpoint(tmp_path, "a", (result(unchecked=unchecked),)),), "1"), tmp_path)
    notes = run["invocations"][0]["toolExecutionNotifications"]

    assert [(n["message"]["text"], n.get("associatedRule")) for n in notes] == [
        ("KEY001 was not checked under 0.32.0: needs --target", {"id": "KEY001", "index": 2}),
        ("tensors was not checked under 0.32.0: no clause speaks of x", None),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.json", {"uri": "a/b.json", "uriBaseId": "%SRCROOT%"}),
        ("a b/ü%.json", {"uri": "a%20b/%C3%BC%25.json", "uriBaseId": "%SRCROOT%"}),
        ("a:b/?#.json", {"uri": "a%3Ab/%3F%23.json", "uriBaseId": "%SRCROOT%"}),
        ("x\udcff", {"uri": "x%FF", "uriBaseId": "%SRCROOT%"}),
        ("x\ud800", {"uri": "x%5Cud800", "uriBaseId": "%SRCROOT%"}),
        ("/abs/c.json", {"uri": "file:///abs/c.json"}),
        ("hf://org/name@v1/c.json", {"uri": "hf://org/name%40v1/c.json"}),
    ],
    ids=repr,
)
def test_sarif_addresses(path: str, expected: dict[str, str]) -> None:
    """Paths are percent-encoded, relative ones count from the root."""
    assert artifact(path) == expected


def test_sarif_makes_no_links_of_names(tmp_path: Path) -> None:
    """Brackets that SARIF would read as a link are escaped, all others stay as they are."""
    found = (TENSOR._replace(message="see [a](0)", fix=None), KEY._replace(message="shape [1, 2]", fix=None))
    run = sarif(Report((checkpoint(tmp_path, "a", (result(*found),)),), "1"), tmp_path)

    assert [r["message"]["text"] for r in run["results"]] == ["see \\[a\\](0)", "shape [1, 2]"]


@pytest.mark.parametrize("label", HOSTILE)
def test_sarif_paths_decode_to_the_file(label: str, tmp_path: Path) -> None:
    """The address of a file with a strange name leads back to it."""
    file = HOSTILE[label].replace("/", "_").replace("\0", "")
    run = sarif(Report((checkpoint(tmp_path, "a", (result(TENSOR._replace(file=file)),)),), "1"), tmp_path)
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]

    assert unquote(uri, errors="surrogateescape") in (f"a/{file}", f"a/{whole(file)}")


# -- JUnit --------------------------------------------------------------------------------------------------------


def suites(report: Report, root: Path) -> ET.Element:
    """The parsed document."""
    return ET.fromstring(render(report, "junit", options(root)))  # noqa: S314 - our own


def test_junit_cases(tmp_path: Path) -> None:
    """Every rule is a case: failed with all its findings, skipped with the reason, or passed."""
    report = Report(
        (
            checkpoint(
                tmp_path,
                "a",
                (
                    result(
                        TENSOR,
                        TENSOR._replace(tensor="other", message="other is missing."),
                        KEY,
                        SERVED,
                        checked=("ARC003", "KEY001", "TEN001", "TEN004"),
                        unchecked=(("TEN004", "needs --target"), ("FIL001", "no file"), ("TEN001", "partly")),
                    ),
                ),
            ),
        ),
        "1",
    )
    (suite,) = suites(report, tmp_path)

    def outcome(case: ET.Element) -> str:
        return f"{case[0].tag} {case[0].get('type') or case[0].get('message')}" if len(case) else "passed"

    assert {case.attrib["name"]: outcome(case) for case in suite.findall("testcase")} == {
        "FIL001 config.json cannot be used": "skipped no file",
        "ARC003 A native layout": "passed",
        "KEY001 A key is missing": "failure warning",
        "TEN001 A tensor is missing": "failure error",
        "TEN004 A tensor has another size": "skipped needs --target",
    }
    assert [suite.attrib[key] for key in ("tests", "failures", "skipped", "errors")] == ["5", "2", "2", "0"]
    assert {case.attrib["classname"] for case in suite.findall("testcase")} == {"vllm-0_32_0.a"}
    assert (suite.attrib["name"], suite.attrib["timestamp"]) == ("a vLLM 0.32.0", "1970-01-01T00:00:00")
    failure = suite.find("testcase/failure[@type='error']")
    assert failure is not None
    assert failure.attrib["message"] == "layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises. (and 1 more)"
    assert failure.text == (
        "error TEN001  model.safetensors  layers.{i}.mlp.up_proj.weight  (x36)\n"
        "layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises.\nexpected: [12288, 4096]\nfound: nothing\n"
        "source: model_executor/models/qwen3_dspark.py:189\n\n"
        "error TEN001  model.safetensors  other  (x36)\nother is missing.\nexpected: [12288, 4096]\nfound: nothing\n"
        "source: model_executor/models/qwen3_dspark.py:189"
    )
    assert suite.findtext("system-out") == (
        "method dspark inferred\ninfo ARC003  model.layers.36\nthe method is inferred."
    )


def test_junit_is_never_empty_where_nothing_was_judged(tmp_path: Path) -> None:
    """A suite without a single rule still has a skipped case."""
    blind = result(checked=(), judged=False, unchecked=())
    (suite,) = suites(Report((checkpoint(tmp_path, "a", (blind,)),), "1"), tmp_path)

    assert [(c.attrib["name"], c[0].tag) for c in suite.findall("testcase")] == [("verdict", "skipped")]


@pytest.mark.parametrize("label", HOSTILE)
def test_junit_keeps_what_xml_can_hold(label: str, tmp_path: Path) -> None:
    """Text comes back as it was, but for what XML 1.0 has no place for, which is written out."""
    name = HOSTILE[label]
    found = TENSOR._replace(message=name, tensor=name, fix=name)
    (suite,) = suites(Report((checkpoint(tmp_path, "a", (result(found),)),), "1"), tmp_path)
    failure = suite.find("testcase/failure")
    expected = "".join(safe(c) if (c < " " and c not in "\t\n\r") or c in "\ufffe\uffff" else c for c in whole(name))

    assert failure is not None
    assert failure.attrib["message"] == expected
    assert f"\nfix: {expected}\n" in (failure.text or "")


# -- Markdown -----------------------------------------------------------------------------------------------------

OURS = re.compile(r"</?(?:b|sub|code)>|<br>|<!-- -->")


def rows(document: str) -> list[list[str]]:
    """The rows of the tables, cut at unescaped pipes as GitHub does."""
    return [line[1:-1].split("|") for line in document.splitlines() if line.startswith("|")]


def test_markdown_tables_have_their_columns(tmp_path: Path) -> None:
    """Whatever the names are, every row has as many cells as its head, and no tag but ours is there."""
    for report in ("few", "releases", "hostile"):
        document = render(REPORTS[report](tmp_path), "markdown", options(tmp_path))
        width = 0
        for line in document.splitlines():
            if not line.startswith("|"):
                width = 0
                continue
            cells = line[1:-1].split("|")
            width = width or len(cells)
            assert len(cells) == width, line
        outside = re.sub(r"`[^`]*`", "", OURS.sub("", document))
        assert "<" not in outside


@pytest.mark.parametrize("label", HOSTILE)
def test_markdown_text_shows_what_it_was(label: str) -> None:
    """A text has nothing left that Markdown interprets, and reads back as it was."""
    out = text(HOSTILE[label])

    assert not re.search(r"[`|*\[\]~$\\]|(?<![0-9A-Za-z])_", OURS.sub("", out))
    assert not re.search(r"@\w|#(?=\d)(?!\d+;)|\bGH-\d|://\w|www\.\w|:\w+:", out)
    assert html.unescape(OURS.sub("", out)) == sentence(HOSTILE[label])


@pytest.mark.parametrize("label", HOSTILE)
def test_markdown_code_shows_what_it_was(label: str) -> None:
    """A name is code, and reads back as it was."""
    out = code(HOSTILE[label])
    if out.startswith("`"):
        assert out[1:-1] == name(HOSTILE[label])
        assert "|" not in out
        assert "`" not in out[1:-1]
    else:
        assert re.fullmatch(r"<code>[^`|]*</code>", out)
        assert html.unescape(OURS.sub("", out)) == name(HOSTILE[label])


def test_markdown_fits_into_a_comment(tmp_path: Path) -> None:
    """Two thousand findings and hundreds of checkpoints fit, and what was left out is counted."""
    document = render(REPORTS["many"](tmp_path), "markdown", options(tmp_path))
    assert len(document) < 65_536
    (omitted,) = re.findall(r"\*(\d+) more findings not shown here\.\*", document)
    assert len(rows(document)) - 2 + int(omitted) == 2000

    one = checkpoint(tmp_path, "a", (result(TENSOR, KEY),))
    fleet = Report(tuple(one._replace(path=f"fleet/checkpoint-{i:04}") for i in range(1000)), "1")
    document = render(fleet, "markdown", options(tmp_path))
    assert len(document) < 65_536
    assert "more checkpoints not shown here" in document
    assert re.search(r"\*\d+ more checkpoints and \d+ more findings not shown here\.\*", document)
    assert len(document) > COMMENT // 2


def test_markdown_links_rules(tmp_path: Path) -> None:
    """A rule with an address is a link."""
    report = Report((checkpoint(tmp_path, "a", (result(TENSOR._replace(rule="TEN004")),)),), "1")

    assert "| [TEN004](https://example.org/TEN004) |" in render(report, "markdown", options(tmp_path))


# -- concise, and the choice of a format --------------------------------------------------------------------------


def test_concise(tmp_path: Path) -> None:
    """Each fault is a line with the releases that have it, and so is what was not judged."""
    assert render(REPORTS["releases"](tmp_path), "concise", options(tmp_path)) == (
        "a/broken/model.safetensors:1:1: TEN001 missing; vLLM 0.32.0 raises. [vLLM 0.25.0-0.32.0]\n"
        "a/broken/config.json:7:5: KEY001 mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of "
        "dflash_config. [vLLM 0.25.0-0.25.1, 0.32.0]\n"
        "b/blind/config.json:1:1: unchecked nothing was judged under vLLM 0.25.0-0.32.0: it is no draft\n"
    )


@pytest.mark.parametrize(
    ("asked", "environ", "expected"),
    [
        ("auto", {}, "text"),
        ("auto", {"GITHUB_ACTIONS": "true"}, "github"),
        ("auto", {"GITHUB_ACTIONS": "false"}, "text"),
        ("auto", {"GITLAB_CI": "true"}, "gitlab"),
        ("auto", {"GITLAB_CI": ""}, "text"),
        ("auto", {"GITHUB_ACTIONS": "true", "GITLAB_CI": "true"}, "github"),
        ("json", {"GITHUB_ACTIONS": "true"}, "json"),
    ],
)
def test_resolve_format(asked: str, environ: dict[str, str], expected: str) -> None:
    """``auto`` follows the CI system; a format that was asked for stays."""
    assert resolve_format(asked, environ) == expected
