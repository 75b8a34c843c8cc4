"""The tool from a wheel, from an editable install and from a plain checkout, with nothing else on the path."""

from __future__ import annotations

import json
import os
import re
import zipfile

from typing import TYPE_CHECKING, NamedTuple

import pytest

from installs import ROOT, run


if TYPE_CHECKING:
    from pathlib import Path

    from installs import Built, Ran, Site


RELEASES = sorted(path.stem for path in (ROOT / "contracts" / "vllm").glob("*.yaml"))


class Installed(NamedTuple):
    """One way of having the tool: what is run, and the environment that this takes."""

    site: Site
    way: str
    commands: tuple[tuple[str, ...], ...]
    environment: dict[str, str]

    def __call__(self, *args: str, command: int = 0) -> Ran:
        return run(self.way, *self.commands[command], *args, cwd=self.site.scratch, **self.environment)


@pytest.fixture(scope="module", params=["wheel", "editable", "checkout"])
def installed(request: pytest.FixtureRequest, site: Site, built: Built) -> Installed:
    """The three ways, one after the other in one virtual environment that has the run-time dependencies alone."""
    way: str = request.param
    script, module = (str(site.bin / "dspark-lint"),), (str(site.bin / "python"), "-m", "dspark_lint")
    site.pip("uninstall", "--yes", "dspark-lint")
    if way == "wheel":
        site.pip("install", "--no-deps", "--no-index", str(built.wheel))
    elif way == "editable":
        site.pip("install", "--no-deps", "--editable", str(site.checkout))
    environment = {"PYTHONPATH": str(site.checkout)} if way == "checkout" else {}
    return Installed(site, way, (module,) if way == "checkout" else (script, module), environment)


def test_readme(site: Site) -> None:
    """The README's command sets up and lints: the bundled export is refused, by one finding that says what to do."""
    assert site.first.code == 1
    assert site.first.out.startswith("fixtures/demo/exported")
    assert re.search(r"^1 error.* in 1 checkpoint;", site.first.out, re.MULTILINE)


def test_nothing_else_is_installed(site: Site) -> None:
    """An installation brings the declared dependencies and what these need, and nothing that was left out on purpose."""
    listed = run("pip", str(site.bin / "python"), "-m", "pip", "list", "--format", "json", cwd=site.scratch, check=True)
    names = {one["name"].lower().replace("_", "-") for one in json.loads(listed.out)}

    assert {"click", "pyyaml", "jsonschema", "safetensors", "packaging"} <= names
    assert names & {"torch", "numpy", "transformers", "vllm", "pytest", "hatchling"} == set()


def test_contracts_are_found(installed: Installed) -> None:
    """Every release of the checkout is listed, by the command and by the module alike."""
    runs = [installed("contracts", "list", "--format", "json", command=i) for i in range(len(installed.commands))]

    assert [sorted(row["release"] for row in json.loads(ran.out)) for ran in runs] == [RELEASES] * len(runs)
    assert [(ran.code, ran.err) for ran in runs] == [(0, "")] * len(runs)


def test_the_demonstration_is_judged(installed: Installed) -> None:
    """One draft is refused and one is clean, under every release that knows its architecture."""
    demo = installed.site.checkout / "fixtures" / "demo"
    refused = installed(str(demo / "exported"), "--vllm", "0.32", "--format", "json")
    clean = installed(str(demo / "converted"), "--vllm", "0.25..0.33", "--target", str(demo / "target"))

    assert (refused.code, refused.err) == (1, "")
    results = json.loads(refused.out)["checkpoints"][0]["results"]
    assert [(r["release"], r["verdict"], [f["rule"] for f in r["findings"] if f["severity"] == "error"])
            for r in results] == [("0.32.0", "error", ["ARC003"])]  # fmt: skip
    assert (clean.code, clean.err) == (0, "")


def test_schemas_are_found(installed: Installed) -> None:
    """The schema of contracts and the schema of reports are in the package."""
    own = installed.site.scratch / "own.yaml"
    own.write_text('contract: 1\nruntime: vllm\nrelease: "9.0.0"\nextends: "0.33.0"\n', encoding="utf-8")
    good = installed("contracts", "validate", str(own))
    own.write_text('contract: 1\nruntime: vllm\nrelease: "9.0.0"\nfamilies: 5\n', encoding="utf-8")
    bad = installed("contracts", "validate", str(own))
    read = "import dspark_lint.report as r, json, os; print(json.load(open(os.path.join(r.__path__[0], 'schemas', 'json.schema.json')))['$schema'])"
    schema = run("schema", installed.commands[-1][0], "-c", read, cwd=own.parent, **installed.environment)

    assert (good.code, good.out) == (0, "")
    assert bad.code == 1
    assert "families" in bad.out
    assert schema.out.startswith("https://json-schema.org/")


def test_a_wheel_parses_no_yaml(installed: Installed) -> None:
    """The first run from a wheel finds its contracts resolved and leaves nothing behind; a checkout keeps its answer."""
    cache = installed.site.scratch / f"cache-{installed.way}"
    demo = str(installed.site.checkout / "fixtures" / "demo" / "converted")
    code = (
        "import sys; from dspark_lint.cli.main import run;"
        f" print(run([{demo!r}, '--vllm', 'all', '-q', '--fail-on', 'never']), 'yaml' in sys.modules)"
    )
    environment = {**installed.environment, "XDG_CACHE_HOME": str(cache)}
    ran = run("first", installed.commands[-1][0], "-c", code, cwd=installed.site.scratch, **environment)

    assert ran.out.split()[-2:] == ["0", str(installed.way != "wheel")], ran
    assert cache.exists() is (installed.way != "wheel")


def test_an_edited_contract_is_read(site: Site, built: Built) -> None:
    """A contract that was changed after the installation is not answered from what the wheel brought along."""
    site.pip("install", "--no-deps", "--no-index", "--force-reinstall", str(built.wheel))
    newest = max(RELEASES, key=lambda release: [int(part) for part in release.split(".")])
    path = site.package / "contracts" / "vllm" / f"{newest}.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            "\nchanges:\n", "\nchanges:\n  edited: {area: a, kind: none, says: edited by hand}\n"
        ),
        encoding="utf-8",
    )
    shown = run("show", str(site.bin / "dspark-lint"), "contracts", "show", newest, cwd=site.scratch, check=True)

    assert "edited by hand" in shown.out


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_sdist_builds_the_same_wheel(built: Built) -> None:
    """Byte by byte, so nothing that a wheel needs is left out of the sdist."""
    assert built.again.name == built.wheel.name
    assert members(built.again) == members(built.wheel)


def test_what_a_wheel_holds(built: Built) -> None:
    """The package, its schemas, every contract beside its resolved form; no tests, no fixtures, no byte code."""
    names = set(members(built.wheel))
    inside = {name.removeprefix("dspark_lint/") for name in names if name.startswith("dspark_lint/")}

    assert {"py.typed", "__main__.py", "report/schemas/json.schema.json", "contracts/schema.json"} <= inside
    folders = ("contracts/vllm", "contracts/vllm/sources", "contracts/transformers")
    wanted = {f"{folder}/{path.name}" for folder in folders for path in (ROOT / folder).iterdir() if path.is_file()}
    compiled = {name for name in inside if name.startswith("contracts/compiled/")}
    assert {name for name in inside if name.startswith("contracts/")} - compiled == wanted | {"contracts/schema.json"}
    transformers = len(os.listdir(ROOT / "contracts" / "transformers"))
    assert len(compiled) == len(RELEASES) + transformers
    top = {name.partition("/")[0] for name in names}
    assert {part for part in top if not part.endswith(".dist-info")} == {"dspark_lint"}
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
