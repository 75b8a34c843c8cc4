"""The text for people, compared whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from report.samples import KEY, REPORTS, TENSOR, checkpoint, options, result

from dspark_lint.finding import Report
from dspark_lint.report import render


if TYPE_CHECKING:
    from pathlib import Path


FEW = """\
few  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0
  note      method dspark inferred
  error    TEN001  refused  model.safetensors  layers.{i}.mlp.up_proj.weight
             (x36)
           layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises.
           expected  [12288, 4096]
           found     nothing
           source    vLLM 0.32.0 model_executor/models/qwen3_dspark.py:189

  warning  KEY001  silent   config.json:7:5  dflash_config.mask_token_id
           mask_token_id is missing at the top level; vLLM 0.32.0 takes the one
           of dflash_config.
           expected  mask_token_id: 7
           found     nothing
           fix       write "mask_token_id": 7
           source    vLLM 0.32.0 v1/worker/gpu/spec_decode/utils.py:41

  info     ARC003  advice   model.layers.36
           the method is inferred.

  unchecked 2 checks not made, -v lists them: needs --target

1 error, 1 warning, 1 info in 1 checkpoint; 5 rules checked
"""
QUIET = """\
few  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0
  error    TEN001  refused  model.safetensors  layers.{i}.mlp.up_proj.weight  (x36)
           layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises.
  warning  KEY001  silent   config.json:7:5  dflash_config.mask_token_id
           mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config.
  info     ARC003  advice   model.layers.36
           the method is inferred.

1 error, 1 warning, 1 info in 1 checkpoint
"""
EXPLAINED = """\
one  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0
  note      method dspark inferred
  warning  KEY001  silent   config.json:7:5  dflash_config.mask_token_id
           mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config.
           expected  mask_token_id: 7
           found     nothing
           fix       write "mask_token_id": 7
           source    vLLM 0.32.0 v1/worker/gpu/spec_decode/utils.py:41
           why       A key is missing. The default differs | the training.
           remedy    Write the key.

1 warning in 1 checkpoint; 5 rules checked
"""
COLOURED = (
    "\x1b[1mone\x1b[0m  \x1b[2mQwen3DSparkModel  flat  64 tensors  vLLM 0.32.0\x1b[0m\n"
    "  \x1b[33;1mwarning \x1b[0m KEY001  \x1b[33;1msilent \x1b[0m  \x1b[1mconfig.json:7:5  dflash_config.mask_token_id\x1b[0m\n"
    "           mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config.\n"
    "\n"
    "\x1b[33;1m1 warning in 1 checkpoint\x1b[0m\n"
)
RELEASES = """\
          0.25.0     0.25.1     0.26.0     0.27.0     0.32.0
a/broken  1 error    1 error    1 error    1 error    1 error
a/good    ok         ok         ok         ok         ok
b/blind   unchecked  unchecked  unchecked  unchecked  unchecked

a/broken  Qwen3DSparkModel  flat  64 tensors  vLLM 0.25.0-0.32.0
  note      method dspark inferred
  error    TEN001  refused  model.safetensors
             layers.{i}.mlp.up_proj.weight  (x36)  [0.25.0-0.32.0]
           missing; vLLM 0.32.0 raises.
           expected  [12288, 4096]
           found     nothing
           source    vLLM 0.32.0 models/qwen3_dspark.py:104

  warning  KEY001  silent   config.json:7:5  dflash_config.mask_token_id
             [0.25.0-0.25.1, 0.32.0]
           mask_token_id is missing at the top level; vLLM 0.32.0 takes
           the one of dflash_config.
           expected  mask_token_id: 7
           found     nothing
           fix       write "mask_token_id": 7
           source    vLLM 0.32.0 v1/worker/gpu/spec_decode/utils.py:41

  error: 1 error, 1 warning; 5 rules checked

a/good  Qwen3DSparkModel  flat  64 tensors  vLLM 0.25.0-0.32.0
  note      method dspark inferred
  ok: no findings; 5 rules checked

b/blind  Qwen3DSparkModel  flat  64 tensors  vLLM 0.25.0-0.32.0
  note      method dspark inferred
  nothing was judged under vLLM 0.25.0-0.32.0: it is no draft
  unchecked

1 error, 1 warning in 3 checkpoints under 5 releases; 5 rules checked; 5
  of 15 results unchecked
"""
UNJUDGED = """\
blind  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0
  nothing was judged under vLLM 0.32.0: it is no draft

nothing was checked in 1 checkpoint
"""
CLEAN = """\
good  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0
  note      method dspark inferred

no findings in 1 checkpoint; 5 rules checked
"""


@pytest.mark.parametrize(
    ("report", "changes", "expected"),
    [
        pytest.param("few", {"width": 80}, FEW, id="every severity, wrapped"),
        pytest.param("few", {"quiet": True}, QUIET, id="quiet"),
        pytest.param("one", {"explain": True}, EXPLAINED, id="explained"),
        pytest.param("one", {"quiet": True, "color": True}, COLOURED, id="coloured"),
        pytest.param("releases", {"width": 72}, RELEASES, id="several releases"),
        pytest.param("unjudged", {}, UNJUDGED, id="nothing judged"),
        pytest.param("unjudged", {"quiet": True}, UNJUDGED, id="nothing judged, quiet"),
        pytest.param("clean", {}, CLEAN, id="nothing found"),
        pytest.param("clean", {"quiet": True}, "", id="nothing found, quiet"),
        pytest.param("none", {}, "nothing was checked in 0 checkpoints\n", id="no checkpoint"),
    ],
)
def test_text(report: str, changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    """The text is exactly this."""
    assert render(REPORTS[report](tmp_path), "text", options(tmp_path, **changes)) == expected


def test_matrix_in_bands(tmp_path: Path) -> None:
    """Releases that do not fit beside each other go on below, and a long path keeps its end."""
    releases = [f"0.{minor}.0" for minor in range(25, 32)]
    results = tuple(result(*[TENSOR] * (i % 3), release=release) for i, release in enumerate(releases))
    report = Report((checkpoint(tmp_path, "d", results, path="models/drafts/qwen3-8b-dspark-block7"),), "1")

    lines = render(report, "text", options(tmp_path, width=58)).splitlines()

    assert lines[:6] == [
        "                     0.25.0  0.26.0   0.27.0    0.28.0",
        "…3-8b-dspark-block7  ok      1 error  2 errors  ok",
        "",
        "                     0.29.0   0.30.0    0.31.0",
        "…3-8b-dspark-block7  1 error  2 errors  ok",
        "",
    ]


def test_checkpoints_with_other_releases(tmp_path: Path) -> None:
    """A release that a checkpoint was not held against is a dash in its row."""
    report = Report(
        (
            checkpoint(tmp_path, "a", (result(release="0.31.0"), result(KEY, release="0.32.0"))),
            checkpoint(tmp_path, "b", (result(release="0.32.0"),)),
        ),
        "1",
    )

    assert render(report, "text", options(tmp_path)).splitlines()[:3] == [
        "   0.31.0  0.32.0",
        "a  ok      1 warning",
        "b  -       ok",
    ]


def test_sources_of_every_release(tmp_path: Path) -> None:
    """Verbose names the cited line in each release that has the fault."""
    lines = render(REPORTS["releases"](tmp_path), "text", options(tmp_path, verbose=1)).splitlines()

    assert [line.strip() for line in lines if "models/qwen3_dspark.py" in line] == [
        f"source    vLLM {release} models/qwen3_dspark.py:{100 + i}"
        for i, release in enumerate(("0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.32.0"))
    ]


def test_unchecked_is_listed_with_v(tmp_path: Path) -> None:
    """Verbose lists what was not checked by reason; without it the reasons are counted."""
    unchecked = (("TGT001", "needs --target"), ("VAL001", "needs --deep"), ("TGT004", "needs --target"), ("x", "y"))
    report = Report((checkpoint(tmp_path, "a", (result(unchecked=unchecked),)),), "1")

    assert "  unchecked TGT001, TGT004: needs --target\n  unchecked VAL001: needs --deep\n  unchecked x: y\n" in render(
        report, "text", options(tmp_path, verbose=1)
    )
    assert "  unchecked 4 checks not made, -v lists them: needs --target; needs --deep; …\n" in render(
        report, "text", options(tmp_path)
    )


def test_notes_of_some_releases_name_them(tmp_path: Path) -> None:
    """A note that only some releases earn says which."""
    results = (result(release="0.31.0", notes=()), result(release="0.32.0", notes=("assumed.",)))
    report = Report((checkpoint(tmp_path, "a", results),), "1")

    assert "  note      assumed. (vLLM 0.32.0)\n" in render(report, "text", options(tmp_path))


def test_long_head_goes_to_a_second_line(tmp_path: Path) -> None:
    """A path that leaves no room for the facts has a line of its own."""
    report = Report((checkpoint(tmp_path, "a", (result(),), path="models/" + "d" * 40),), "1")

    assert render(report, "text", options(tmp_path, width=60)).splitlines()[:2] == [
        "models/" + "d" * 40,
        "  Qwen3DSparkModel  flat  64 tensors  vLLM 0.32.0",
    ]
