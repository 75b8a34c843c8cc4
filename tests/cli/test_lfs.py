"""Git LFS pointers in the place of weights: named, and with the flag no error, but never a silent pass."""

from __future__ import annotations

import json
import shutil

from typing import TYPE_CHECKING, Any

import pytest


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Ran


POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


@pytest.fixture
def draft(place: Path) -> Path:
    """A clean checkpoint as a checkout without `git lfs pull` has it."""
    shutil.copytree(place / "demo" / "converted", place / "draft")
    (place / "draft" / "model.safetensors").write_text(POINTER, encoding="utf-8")
    return place / "draft"


def result(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.out)["checkpoints"][0]["results"][0]
    return found


def test_a_pointer_is_refused(draft: Path, run: Callable[..., Ran]) -> None:
    """Without the flag it is an error that says what to run."""
    ran = run(draft.name, "--vllm", "0.32", "--format", "json")

    (found,) = result(ran)["findings"]
    assert (ran.code, found["rule"], found["effect"], found["file"]) == (1, "FIL004", "refused", "model.safetensors")
    assert "Git LFS pointer" in found["message"]
    assert found["fix"].startswith("run `git lfs pull`")


@pytest.mark.parametrize("how", ["flag", "configuration"])
def test_what_needs_no_weights_is_checked(how: str, draft: Path, place: Path, run: Callable[..., Ran]) -> None:
    """Allowed, the pointer is worth knowing, keys are judged, and every rule on tensors is said to be unchecked."""
    if how == "configuration":
        (place / "dspark-lint.toml").write_text("allow-lfs-pointers = true", encoding="utf-8")
    flags = ("--allow-lfs-pointers",) if how == "flag" else ()

    ran = run(draft.name, "--vllm", "0.32", "--format", "json", *flags)

    said = result(ran)
    assert (ran.code, said["verdict"]) == (0, "ok")
    assert [(f["rule"], f["severity"], f["effect"]) for f in said["findings"]] == [("FIL004", "info", "advice")]
    assert {"KEY001", "KEY002", "DRF001"} <= set(said["checked"])
    assert {u["what"] for u in said["unchecked"]} >= {"TEN001", "TEN002", "TEN004"}


def test_a_fault_of_the_keys_is_still_told(draft: Path, run: Callable[..., Ran]) -> None:
    """A configuration that is refused is refused, pointers or not."""
    config = json.loads((draft / "config.json").read_text("utf-8"))
    (draft / "config.json").write_text(json.dumps({**config, "hidden_size": "64"}), encoding="utf-8")

    ran = run(draft.name, "--vllm", "0.32", "--format", "json", "--allow-lfs-pointers")

    assert (ran.code, [f["rule"] for f in result(ran)["findings"]]) == (1, ["KEY002", "FIL004"])


def test_a_pointer_for_the_configuration_is_an_error(draft: Path, run: Callable[..., Ran]) -> None:
    """Without config.json nothing can be checked, and the flag changes nothing of that."""
    (draft / "config.json").write_text(POINTER, encoding="utf-8")

    ran = run(draft.name, "--vllm", "0.32", "--format", "json", "--allow-lfs-pointers")

    assert (ran.code, [f["rule"] for f in result(ran)["findings"]]) == (1, ["FIL001", "FIL004"])
