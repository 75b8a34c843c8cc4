"""The baseline: what is known is not told, what is new is, what is gone is said to be stale."""

from __future__ import annotations

import json
import shutil

from typing import TYPE_CHECKING, Any

import pytest


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Ran


@pytest.fixture
def draft(place: Path) -> Path:
    """A checkpoint of one's own that is refused."""
    shutil.copytree(place / "demo" / "exported", place / "drafts" / "one")
    return place / "drafts" / "one"


def set_keys(draft: Path, **keys: Any) -> None:
    file = draft / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **keys}), encoding="utf-8")


def test_a_known_finding_is_held_back(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """Written once, it neither is told nor fails the run, whatever the release and wherever the run starts."""
    assert run("drafts/one", "--vllm", "0.32").code == 1
    written = run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json", "--format", "concise")
    known = run(str(draft), "--vllm", "0.31..0.33", "--baseline", "known.json", "--format", "concise")

    assert written == (
        0,
        "",
        "dspark-lint: known.json: 1 known finding\ndspark-lint: 1 finding is held back by the baseline known.json\n",
    )
    assert known == (0, "", "dspark-lint: 3 findings are held back by the baseline known.json\n")
    assert json.loads((place / "known.json").read_text("utf-8")) == {
        "schema_version": 1,
        "findings": [
            {
                "checkpoint": "drafts/one",
                "rule": "ARC003",
                "fingerprint": "afd91f02174e270019aa56aedb9522bd",
                "file": "config.json",
                "subject": "/architectures",
            }
        ],
    }


def test_it_moves_with_the_checkout(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """Paths are relative to the file, so that a checkout may lie anywhere."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "drafts/known.json")
    (place / "moved").mkdir()
    shutil.move(str(draft.parent), place / "moved" / "drafts")

    assert run("moved/drafts/one", "--vllm", "0.32", "--baseline", "moved/drafts/known.json").code == 0


def test_a_new_finding_is_told(draft: Path, run: Callable[..., Ran]) -> None:
    """Another rule, or another place, is not known."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    (draft / "model.safetensors").write_bytes(b"<html>")

    ran = run("drafts/one", "--vllm", "0.32", "--baseline", "known.json", "--format", "json")

    findings = json.loads(ran.out)["checkpoints"][0]["results"][0]["findings"]
    assert (ran.code, [f["rule"] for f in findings]) == (1, ["FIL003", "ARC002"])


def test_another_checkpoint_is_not_known(draft: Path, run: Callable[..., Ran]) -> None:
    """The same fault in a second checkpoint is new."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    shutil.copytree(draft, draft.parent / "two")

    ran = run("drafts", "--vllm", "0.32", "--baseline", "known.json", "--format", "json")

    held = {c["path"]: len(c["results"][0]["findings"]) for c in json.loads(ran.out)["checkpoints"]}
    assert (ran.code, held) == (1, {"drafts/one": 0, "drafts/two": 1})


@pytest.mark.parametrize(
    ("args", "stale"),
    [
        pytest.param(("drafts/one",), True, id="its checkpoint was checked and is mended"),
        pytest.param(("drafts/one", "--select", "TEN"), False, id="its rule did not run"),
        pytest.param(("demo/converted",), False, id="its checkpoint was not checked"),
    ],
)
def test_stale_entries_are_told(args: tuple[str, ...], stale: bool, draft: Path, run: Callable[..., Ran]) -> None:
    """An entry that no longer holds is told and changes no exit code; one that was not asked about stays."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    shutil.rmtree(draft)
    shutil.copytree(draft.parents[1] / "demo" / "converted", draft)

    ran = run(*args, "--vllm", "0.32", "--baseline", "known.json")

    assert (ran.code, "ARC003 of drafts/one (/architectures) is stale" in ran.err) == (0, stale)


@pytest.mark.parametrize(
    ("then", "args", "stale"),
    [
        pytest.param({}, ("--target", "demo/target"), False, id="still so"),
        pytest.param({}, (), False, id="without the target nothing can be said"),
        pytest.param({"rope_theta": 1e6}, ("--target", "demo/target"), True, id="mended"),
        pytest.param({"architectures": ["Nobody"]}, ("--target", "demo/target"), False, id="another finding covers it"),
        pytest.param(None, ("--target", "demo/target"), False, id="the configuration cannot be read any more"),
    ],
)
def test_only_silence_that_means_something_is_stale(
    then: dict[str, Any] | None, args: tuple[str, ...], stale: bool, draft: Path, place: Path, run: Callable[..., Ran]
) -> None:
    """A rule that could not come to a conclusion about this checkpoint says nothing of its entries."""
    shutil.copytree(place / "demo" / "converted", draft, dirs_exist_ok=True)
    set_keys(draft, rope_theta=500.0)
    both = ("drafts/one", "demo/converted", "--vllm", "0.32")
    run(*both, "--target", "demo/target", "--write-baseline", "known.json", "--select", "TGT006")
    assert [e["rule"] for e in json.loads((place / "known.json").read_text("utf-8"))["findings"]] == ["TGT006"]
    if then is None:
        (draft / "config.json").write_text("{", encoding="utf-8")
    else:
        set_keys(draft, **then)

    ran = run(*both, *args, "--baseline", "known.json")

    assert ("TGT006 of drafts/one (" in ran.err and "is stale: it is not found under 0.32.0" in ran.err) is stale


@pytest.mark.parametrize("flag", ["--baseline", "--write-baseline"])
def test_what_a_known_finding_kept_quiet_is_unchecked(flag: str, draft: Path, run: Callable[..., Ran]) -> None:
    """Rules that the known finding stood before were not checked, and are not said to have been."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")

    ran = run("drafts/one", "--vllm", "0.32", flag, "known.json", "--format", "json")

    (result,) = json.loads(ran.out)["checkpoints"][0]["results"]
    why = "ARC003 stands before it, and is held back"
    assert draft.is_dir()
    assert {"TEN001", "DRF001"} <= {u["what"] for u in result["unchecked"] if u["reason"] == why}
    assert {"TEN001", "DRF001"}.isdisjoint(result["checked"])
    assert "ARC003" in result["checked"]


def test_the_file_is_the_same_whatever_the_order(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """Sorted, a line a value: two runs that find the same write the same bytes, and one entry more is one hunk."""
    shutil.copytree(draft, draft.parent / "two")
    for name, args in {
        "a": ("drafts/one", "drafts/two"),
        "b": ("drafts/two", "drafts/one"),
        "c": ("drafts/two",),
    }.items():
        run(*args, "--vllm", "0.31..0.32", "--write-baseline", f"{name}.json")
    a, b, c = ((place / f"{name}.json").read_text("utf-8") for name in "abc")

    assert a == b
    assert json.loads(a)["findings"][-1:] == json.loads(c)["findings"]
    assert a.count("\n") == c.count("\n") + 7


def test_writing_keeps_what_was_not_asked_about(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """With --select the entries of other rules stay; those of the rules that ran are written anew."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    before = (place / "known.json").read_text("utf-8")
    shutil.copytree(place / "demo" / "converted", draft, dirs_exist_ok=True)

    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json", "--select", "TEN")
    kept = (place / "known.json").read_text("utf-8")
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json", "--select", "ARC")

    assert (kept, json.loads((place / "known.json").read_text("utf-8"))["findings"]) == (before, [])


def test_a_file_that_cannot_be_written_is_left(
    draft: Path, place: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was known is not lost for a disk that is full: the new file takes the place of the old one whole."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    before = (place / "known.json").read_text("utf-8")
    set_keys(draft, architectures=["Nobody"])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    ran = run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")

    assert ran == (2, "", "dspark-lint: baseline known.json cannot be written: No space left on device\n")
    assert (place / "known.json").read_text("utf-8") == before
    assert sorted(p.name for p in place.iterdir()) == ["demo", "drafts", "known.json"]


def test_a_checkpoint_that_is_gone_is_stale(draft: Path, run: Callable[..., Ran]) -> None:
    """Nothing stands there any more: its entries are told, and the next writing takes them out."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")
    shutil.rmtree(draft)

    assert "of drafts/one (/architectures) is stale" in run("demo/converted", "--baseline", "known.json").err
    assert "0 known findings" in run("demo/converted", "--write-baseline", "known.json").err


def test_writing_keeps_what_was_not_checked(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """A run over one checkpoint leaves the entries of the others alone."""
    shutil.copytree(draft, draft.parent / "two")
    run("drafts", "--vllm", "0.32", "--write-baseline", "known.json")
    set_keys(draft, architectures=["Nobody"])
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "known.json")

    entries = json.loads((place / "known.json").read_text("utf-8"))["findings"]
    assert ("drafts/two", "ARC003") in [(e["checkpoint"], e["rule"]) for e in entries]


def test_the_configuration_names_it(draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """`baseline` is relative to the configuration file."""
    run("drafts/one", "--vllm", "0.32", "--write-baseline", "drafts/known.json")
    (place / "dspark-lint.toml").write_text('releases = "0.32"\nbaseline = "drafts/known.json"', encoding="utf-8")

    assert (draft.name, run("drafts/one").code) == ("one", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is no baseline of dspark-lint"),
        ('{"schema_version": 2, "findings": []}', "has schema_version 2, not 1"),
        ('{"schema_version": 1, "findings": [1]}', "an entry is not an object of strings"),
        ('{"schema_version": 1, "findings": [{"rule": "TEN001"}]}', "an entry has other keys than"),
    ],
)
def test_a_broken_baseline_is_a_usage_error(text: str, message: str, place: Path, run: Callable[..., Ran]) -> None:
    """Exit code 2: a gate that has lost its baseline must neither pass nor fail for it."""
    (place / "known.json").write_text(text, encoding="utf-8")

    for flag in ("--baseline", "--write-baseline"):
        ran = run("demo/converted", flag, "known.json")
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
