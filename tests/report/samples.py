"""Reports of every kind a format has to survive, and the options they are rendered with."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.finding import CheckpointReport, Finding, Report, Result
from dspark_lint.report.base import RenderOptions, RuleInfo
from dspark_lint.report.inventories import Cell, Inventory, InventoryRow


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


RELEASES = ("0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.32.0")
CHECKED = ("FIL001", "ARC003", "KEY001", "TEN001", "TEN004")
RULES = {
    rule.id: rule
    for rule in (
        RuleInfo("FIL001", "config.json cannot be used", "Nothing loads without it.", "Write valid JSON.", "error"),
        RuleInfo("ARC003", "A native layout", "No loader <reads> it.", "Convert the export.", "error"),
        RuleInfo("KEY001", "A key is missing", "The default differs | the training.", "Write the key.", "warning"),
        RuleInfo("TEN001", "A tensor is missing", "The draft serves noise.", "Export it.", "error"),
        RuleInfo(
            "TEN004",
            "A tensor has another size",
            "It is cut.",
            "Correct the key.",
            "error",
            "https://example.org/TEN004",
        ),
    )
}
CONFIG = {
    "architectures": ["Qwen3DSparkModel"],
    "hidden_size": 4096,
    "dflash_config": {"mask_token_id": 7, "target_layer_ids": [1, 2, 3]},
    "block_size": 7,
}
KEY = Finding(
    rule="KEY001",
    severity="warning",
    effect="silent",
    message="mask_token_id is missing at the top level; vLLM 0.32.0 takes the one of dflash_config.",
    file="config.json",
    pointer="/dflash_config/mask_token_id",
    expected="mask_token_id: 7",
    found="nothing",
    source="v1/worker/gpu/spec_decode/utils.py:41",
    fix='write "mask_token_id": 7',
)
TENSOR = Finding(
    rule="TEN001",
    severity="error",
    effect="refused",
    message="layers.{i}.mlp.up_proj.weight is missing; vLLM 0.32.0 raises.",
    file="model.safetensors",
    tensor="layers.{i}.mlp.up_proj.weight",
    expected="[12288, 4096]",
    found="nothing",
    count=36,
    source="model_executor/models/qwen3_dspark.py:189",
)
SERVED = Finding(
    rule="ARC003", severity="info", effect="advice", message="the method is inferred.", module="model.layers.36"
)

#: Names that a reader of some format interprets.
HOSTILE = {
    "quotes": "quo\"te's",
    "newlines": "a\nb\r\nc\rd\u2028e",
    "double-colon": "a::b::error file=x::y",
    "percent": "100%, %0A%25",
    "ansi": "\x1b[31mred\x1b[0m\x1b]8;;http://x\x07\x9b1m",
    "non-ascii": "größe-日本語-🙂-é",
    "lone-surrogate": "a\ud800b\udc80",
    "cdata": "x]]><y>&amp;</failure>",
    "nul": "nul\x00\ufffe\uffff",
    "bidi": "evil\u202egnp.\u2066\u200b",
    "html": "<script>alert(1)</script><img src=x onerror=y>",
    "markdown": "|pipe|`tick`*bold*_u_[a](http://b)~~s~~\\|$x$",
    "mentions": "@someone org/repo#12 GH-3 https://example.org www.example.org :smile:",
    "placeholders": "{0} {{x}} [a](0) %s ${y}",
    "runner": "##[error]x ::stop-commands::tok",
    "blank": " \t \u3164",
}
LONG = "layers.0." + "x" * 10_000 + ".weight"


class Sample(NamedTuple):
    """A report, and what it was made for."""

    report: Report
    root: Path


def checkpoint(root: Path, name: str, results: tuple[Result, ...], path: str | None = None) -> CheckpointReport:
    """A checkpoint whose config.json really stands below `root`."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    return CheckpointReport(path or name, str(directory), "Qwen3DSparkModel", "flat", 64, results)


def result(*findings: Finding, release: str = "0.32.0", **more: object) -> Result:
    """What one release makes of a checkpoint."""
    values: dict[str, object] = {"checked": CHECKED, "notes": ("method dspark inferred",), "method": "dspark", **more}
    return Result("vllm", release, findings, **values)  # type: ignore[arg-type]


def none(root: Path) -> Report:
    """No checkpoint at all."""
    del root
    return Report((), "1.2.3")


def clean(root: Path) -> Report:
    """Nothing found."""
    return Report((checkpoint(root, "good", (result(),)),), "1.2.3")


def one(root: Path) -> Report:
    """One finding."""
    return Report((checkpoint(root, "one", (result(KEY),)),), "1.2.3")


def few(root: Path) -> Report:
    """A finding of every severity, with a target that was not given."""
    unchecked = (("TGT001", "needs --target"), ("TGT004", "needs --target"))
    return Report((checkpoint(root, "few", (result(TENSOR, KEY, SERVED, unchecked=unchecked),)),), "1.2.3")


def many(root: Path) -> Report:
    """Two thousand findings."""
    found = tuple(
        TENSOR._replace(tensor=f"layers.{i}.weight", message=f"layers.{i}.weight is missing.", count=1)
        if i % 2
        else KEY._replace(pointer=f"/dflash_config/key{i}", message=f"key{i} is missing.")
        for i in range(2000)
    )
    return Report((checkpoint(root, "many", (result(*found),)),), "1.2.3")


def hostile(root: Path) -> Report:
    """Every interpreted name in every place a checkpoint can bring it to."""
    checkpoints = []
    for label, name in HOSTILE.items():
        found = tuple(
            TENSOR._replace(
                message=f"{name} is there",
                expected=name,
                found=name,
                fix=name,
                source=name,
                severity=severity,
                **subject,
            )
            for severity, subject in (
                ("error", {"tensor": name, "file": name}),
                ("warning", {"tensor": None, "pointer": "/" + name, "file": "config.json"}),
                ("info", {"tensor": None, "module": name, "file": None}),
            )
        )
        told = result(*found, unchecked=((name, name),), notes=(name,), architecture=name, method=name)
        at = checkpoint(root, f"case-{label}", (told,), path=f"ckpt/{name}")
        checkpoints.append(at._replace(architecture=name))
    return Report(tuple(checkpoints), "1.2.3")


def long(root: Path) -> Report:
    """A tensor whose name has ten thousand characters, alone and inside a sentence."""
    found = TENSOR._replace(tensor=LONG, message=f"{LONG} is missing; vLLM 0.32.0 raises.", found=LONG)
    return Report((checkpoint(root, "long", (result(found),), path=f"dir/{'p' * 10_000}"),), "1.2.3")


def releases(root: Path) -> Report:
    """Several checkpoints under several releases: a fault of some, a fault of all, one that was not judged."""
    broken = tuple(
        result(
            TENSOR._replace(source=f"models/qwen3_dspark.py:{100 + i}", message=f"missing; vLLM {release} raises."),
            *([KEY] if release in ("0.25.0", "0.25.1", "0.32.0") else []),
            release=release,
        )
        for i, release in enumerate(RELEASES)
    )
    good = tuple(result(release=release) for release in RELEASES)
    blind = tuple(
        result(release=release, checked=(), judged=False, unchecked=(("LlamaForCausalLM", "it is no draft"),))
        for release in RELEASES
    )
    told = (("a/broken", broken), ("a/good", good), ("b/blind", blind))
    return Report(tuple(checkpoint(root, name, results) for name, results in told), "1.2.3")


def unjudged(root: Path) -> Report:
    """Nothing could be judged."""
    blind = result(checked=(), notes=(), judged=False, unchecked=(("LlamaForCausalLM", "it is no draft"),))
    return Report((checkpoint(root, "blind", (blind,)),), "1.2.3")


REPORTS: dict[str, Callable[[Path], Report]] = {
    f.__name__: f for f in (none, clean, one, few, many, hostile, long, releases, unjudged)
}
INVENTORY = Inventory(
    (
        InventoryRow("outside the layers", (Cell("fc.weight", "ok", (8, 16), (8, 16)),)),
        InventoryRow("layer 0", (Cell("q.weight", "ok", (4, 8), (4, 8)), Cell("k.weight", "missing", (4, None)))),
        InventoryRow(
            "layer 1",
            (
                Cell("q.weight", "wrong-shape", (4, 8), (2, 8)),
                Cell("<b>x</b>", "unexpected", None, (1,)),
                Cell("k.weight", "unused", None, (4,)),
            ),
        ),
    )
)


def options(root: Path, **changes: object) -> RenderOptions:
    """The options of a run in `root`."""
    values: dict[str, object] = {"rules": RULES, "base_dir": root, "environ": {"SOURCE_DATE_EPOCH": "0"}, **changes}
    return RenderOptions(**values)  # type: ignore[arg-type]
