"""QNT011: a draft that lies in its target's checkpoint, and the target's list of what is not quantized."""

from __future__ import annotations

import json

import pytest

from conformance.live.cases import add, dtype
from rules.build import HIDDEN, LAYERS, Case, Change, Told, check, file, several


def excluded(*entries: str, algo: str = "FP8") -> Change:
    """State another list, or another algorithm."""
    quantization = {"quant_algo": algo, "kv_cache_quant_algo": None, "exclude_modules": list(entries)}
    if algo == "NVFP4":
        quantization["group_size"] = 16
    return file(
        "hf_quant_config.json",
        json.dumps({"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": quantization}),
    )


def refused(tensor: str, count: int = 1) -> tuple[Told, ...]:
    return (Told("QNT011", "error", "refused", tensor, count),)


DOWN = [f"mtp.layers.{i}.mlp.down_proj" for i in range(LAYERS)]
#: The MTP head's projections in FP8, with their scales.
QUANTIZED = several(
    *(dtype(f"{name}.weight", "F8_E4M3") for name in DOWN),
    *(add(f"{name}.{scale}", kind="F32") for name in DOWN for scale in ("weight_scale", "input_scale")),
)

CASES = [
    Case("QNT011", "one projection is not listed", "embedded", (excluded("lm_head", "mtp.layers*"),), refused("mtp.fc.weight"), says=("mtp.fc is BF16 on disk", "no entry of exclude_modules"), fix="add 'mtp.fc'"),
    Case("QNT011", "one kind in every layer", "embedded", (excluded("lm_head", "mtp.fc"),), refused("mtp.layers.0.mlp.down_proj.weight", LAYERS), says=("mtp.layers.{i}.mlp.down_proj (2 modules)",)),
    Case("QNT011", "listed, and quantized", "embedded", (QUANTIZED,), refused("mtp.layers.0.mlp.down_proj.weight", LAYERS), says=("quantized on disk (F8_E4M3)", "'mtp*' of exclude_modules"), fix="remove 'mtp*'"),
    Case("QNT011", "quantized by another scheme", "embedded", (excluded("lm_head", "mtp.fc", "model*", algo="NVFP4"), QUANTIZED), refused("mtp.layers.0.mlp.down_proj.weight", LAYERS), says=("lacks what the stated quantization keeps", "weight_scale_2")),
    Case("QNT011", "unquantized, and listed", "embedded", ()),
    Case("QNT011", "quantized, and not listed", "embedded", (excluded("lm_head", "mtp.fc"), QUANTIZED)),
    Case("QNT011", "a norm is no projection", "embedded", (excluded("lm_head", "mtp.fc", "mtp.layers*"), add("mtp.pre_fc_norm.weight", HIDDEN))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_embedded_draft(case: Case) -> None:
    """The target's list and the draft's weights are held against each other by the names on disk."""
    check(case)
