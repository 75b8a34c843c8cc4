"""Every format on every kind of report: exactly one valid document each time."""

from __future__ import annotations

import json
import re

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from jsonschema import Draft4Validator, Draft202012Validator
from report.samples import HOSTILE, LONG, REPORTS, RULES, options

from dspark_lint.report import FORMATS, render
from dspark_lint.report.base import RenderOptions
from dspark_lint.report.escape import whole


if TYPE_CHECKING:
    from dspark_lint.finding import Report


SCHEMAS = Path(__file__).parent / "schemas"
OWN = Path(__file__).parents[2] / "dspark_lint" / "report" / "schemas"


def strict(text: str) -> Any:
    """Parse JSON as a strict reader does: no NaN, no repeated keys, no lone surrogates."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(pairs) == len(dict(pairs))
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@pytest.fixture(scope="module", params=REPORTS)
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Report, Path]:
    root = tmp_path_factory.mktemp("run")
    return request.param, REPORTS[request.param](root), root


def faults(report: Report) -> int:
    """The number of faults, releases apart."""
    return sum(len({(f.fingerprint, f.severity) for r in c.results for f in r.findings}) for c in report.checkpoints)


@pytest.mark.parametrize("fmt", FORMATS)
def test_output_can_be_written(fmt: str, sample: tuple[str, Report, Path]) -> None:
    """A rendered report encodes as UTF-8, ends with one newline and is the same each time."""
    _, report, root = sample
    text = render(report, fmt, options(root))

    text.encode("utf-8")
    assert text == "" or (text.endswith("\n") and not text.endswith("\n\n"))
    assert render(report, fmt, options(root)) == text


@pytest.mark.parametrize("fmt", FORMATS)
def test_no_control_character_reaches_the_reader(fmt: str, sample: tuple[str, Report, Path]) -> None:
    """No format lets control, bidirectional or invisible characters through."""
    name, report, root = sample
    text = render(report, fmt, options(root))
    allowed = {"\n"} | ({"\ufe0f"} if fmt == "markdown" else set())
    if fmt == "junit":
        # XML has no escapes for what is legal in it; an XML reader shows it
        allowed |= {c for c in "".join(HOSTILE.values()) if not c.isprintable() and ord(c) > 0x9F}
        allowed |= {"\t", "\x9b"}

    assert {c for c in text if not c.isprintable()} - allowed == set(), name


def test_json_is_our_schema(sample: tuple[str, Report, Path]) -> None:
    """The document is valid against the schema in the package."""
    _, report, root = sample
    document = strict(render(report, "json", options(root)))

    Draft202012Validator(strict((OWN / "json.schema.json").read_text())).validate(document)
    assert [len(r["findings"]) for c in document["checkpoints"] for r in c["results"]] == [
        len(r.findings) for c in report.checkpoints for r in c.results
    ]


def test_jsonl_is_our_schema_line_by_line(sample: tuple[str, Report, Path]) -> None:
    """Each line is a document of its own, one a checkpoint, the same as in the json document."""
    _, report, root = sample
    validator = Draft202012Validator(strict((OWN / "jsonl.schema.json").read_text()))
    rows = [strict(line) for line in render(report, "jsonl", options(root)).splitlines()]

    for row in rows:
        validator.validate(row)
    whole_document = strict(render(report, "json", options(root)))
    head = {key: value for key, value in whole_document.items() if key != "checkpoints"}
    assert rows == [{**head, **checkpoint} for checkpoint in whole_document["checkpoints"]]


def test_sarif_is_the_official_schema(sample: tuple[str, Report, Path]) -> None:
    """The log is valid SARIF 2.1.0 with a result a fault, each of a known rule."""
    _, report, root = sample
    log = strict(render(report, "sarif", options(root)))

    Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == faults(report)
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert [r["id"] for r in rules][: len(RULES)] == list(RULES)
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert all(re.fullmatch(r"(?:[\w.~/-]|%[0-9A-F]{2})+", uri) for uri in uris)


@pytest.mark.parametrize("schema", ["junit-ant.xsd", "junit-jenkins.xsd"])
def test_junit_is_both_schemas(schema: str, sample: tuple[str, Report, Path]) -> None:
    """The document is valid for Ant and for Jenkins, and its counts are true."""
    _, report, root = sample
    text = render(report, "junit", options(root))

    xmlschema.XMLSchema(SCHEMAS / schema).validate(ET.ElementTree(ET.fromstring(text)))  # noqa: S314 - our own
    suites = ET.fromstring(text)  # noqa: S314 - our own
    assert len(suites) == sum(len(c.results) for c in report.checkpoints)
    for suite in suites:
        counted = {
            "tests": len(suite.findall("testcase")),
            "failures": len(suite.findall("testcase/failure")),
            "skipped": len(suite.findall("testcase/skipped")),
        }
        assert {key: int(suite.attrib[key]) for key in counted} == counted


def test_gitlab_is_its_schema_with_fingerprints_of_their_own(sample: tuple[str, Report, Path]) -> None:
    """Every issue has what GitLab demands and a fingerprint no other has, so that none is dropped."""
    _, report, root = sample
    issues = strict(render(report, "gitlab", options(root)))

    Draft202012Validator(json.loads((SCHEMAS / "gitlab-code-quality.json").read_text())).validate(issues)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert sum(issue["check_name"] != "unchecked" for issue in issues) == faults(report)


def test_concise_is_a_line_a_fault(sample: tuple[str, Report, Path]) -> None:
    """Every line has the form editors read, and there are as many as faults."""
    _, report, root = sample
    lines = render(report, "concise", options(root)).splitlines()

    assert all(re.fullmatch(r".+:\d+:\d+: ([A-Z]{3}\d{3}|unchecked) .+", line) for line in lines)
    assert sum(": unchecked " not in line for line in lines) == faults(report)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_keeps_to_the_width(width: int, sample: tuple[str, Report, Path]) -> None:
    """No line of the text is wider than the terminal."""
    _, report, root = sample
    lines = render(report, "text", options(root, width=width, verbose=1, explain=True)).splitlines()

    assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize("changes", [{}, {"width": 60}, {"verbose": 1}, {"quiet": True}], ids=str)
def test_colour_changes_nothing_but_colour(changes: dict[str, Any], sample: tuple[str, Report, Path]) -> None:
    """Without its style codes the coloured text is the plain one."""
    _, report, root = sample
    coloured = render(report, "text", options(root, color=True, **changes))

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(report, "text", options(root, **changes))


@pytest.mark.parametrize(
    ("fmt", "contains"),
    [("json", True), ("jsonl", True), ("sarif", True), ("gitlab", True), ("junit", True)]
    + [(fmt, False) for fmt in ("text", "concise", "github", "markdown", "html")],
)
def test_long_names(fmt: str, contains: bool, tmp_path: Path) -> None:
    """Programs get a name of ten thousand characters whole, people get both of its ends."""
    text = render(REPORTS["long"](tmp_path), fmt, options(tmp_path, width=100))

    assert (LONG in text) is contains
    if not contains:
        assert len(text) < 30_000
        joined = re.sub(r"\s+", "", text)
        assert "layers.0.xxx" in joined
        assert "xxx.weight" in joined
        assert "…" in text


@pytest.mark.parametrize("label", HOSTILE)
def test_names_survive_the_json_round_trip(label: str, tmp_path: Path) -> None:
    """What stands in the checkpoint stands in the document, only lone surrogates are written out."""
    report = REPORTS["hostile"](tmp_path)
    index = list(HOSTILE).index(label)
    row = strict(render(report, "json", options(tmp_path)))["checkpoints"][index]

    expected = whole(HOSTILE[label])
    found = row["results"][0]["findings"][0]
    assert [row["architecture"], found["tensor"], found["expected"], found["fix"]] == [expected] * 4
    assert row["path"] == f"ckpt/{expected}"


def described(schema: dict[str, Any], value: Any, root: dict[str, Any], at: str) -> list[str]:
    """The places of a value that a schema says nothing about, or describes without words."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return [f"{at}/{k}" for k in value if k not in known] + [
            place for k, v in value.items() if k in known for place in described(known[k], v, root, f"{at}/{k}")
        ]
    if isinstance(value, list):
        return [place for v in value for place in described(schema["items"], v, root, f"{at}/*")] + (
            [] if schema.get("description") else [at]
        )
    return []


@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_every_field_is_described(fmt: str, tmp_path: Path) -> None:
    """No field is printed that the schema does not know, and no field of the schema is without a description."""
    schema = strict((OWN / f"{fmt}.schema.json").read_text())
    document = strict(render(REPORTS["few"](tmp_path), fmt, options(tmp_path)))

    assert described(schema, document, schema, "") == []
    Draft202012Validator.check_schema(schema)
    silent = [
        f"{name}.{key}"
        for name, node in [("", schema), *schema["$defs"].items()]
        for key, value in node.get("properties", {}).items()
        if "description" not in value and "$ref" not in value
    ]
    assert silent == []


def test_both_schemas_share_their_definitions() -> None:
    """A line of jsonl is a checkpoint of json with the head of the document."""
    document = strict((OWN / "json.schema.json").read_text())
    line = strict((OWN / "jsonl.schema.json").read_text())
    checkpoint = document["$defs"].pop("checkpoint")

    assert line["$defs"] == document["$defs"]
    head = {key: value for key, value in document["properties"].items() if key != "checkpoints"}
    assert line["properties"] == {**head, **checkpoint["properties"]}


@pytest.mark.parametrize("fmt", FORMATS)
def test_options_have_defaults(fmt: str, tmp_path: Path) -> None:
    """Every format renders without a rule table, an environment or inventories."""
    report = REPORTS["few"](tmp_path)

    assert "TEN001" in render(report, fmt, RenderOptions())
