"""The matching functions of a real vLLM against ours, on random module trees and lists; see tests/conformance/live."""

from __future__ import annotations

import random

import pytest


pytest.importorskip("torch", reason="needs the extra `conformance`, and vLLM")
pytest.importorskip("vllm", reason="needs vLLM: tests/conformance/live/README.md")

from quant.trees import random_lists

from dspark_lint.contract.model import load_contract
from dspark_lint.quant.match import way_of


LISTS = random_lists(random.Random(1), 3000)  # noqa: S311 - no secret


def ways(backend: str, key: str = "match") -> list[str]:
    """The ways of the newest contract's backend."""
    return list(load_contract("0.32.0")["quantization"]["backends"][backend][key])


def test_modelopt() -> None:
    """``ModelOptQuantConfigBase.is_layer_excluded``."""
    from vllm.model_executor.layers.quantization.modelopt import ModelOptFp8Config

    for modules, entries in LISTS:
        config = ModelOptFp8Config.__new__(ModelOptFp8Config)
        config.exclude_modules, config.packed_modules_mapping = entries, {}
        for name in modules:
            ours = any(way_of(e, name, ways("modelopt")) for e in entries)
            assert ours == bool(config.is_layer_excluded(name)), (name, entries)


def test_compressed_tensors() -> None:
    """``should_ignore_layer`` and the two steps of ``find_matched_target``."""
    import re

    import torch

    from vllm.model_executor.layers.quantization.compressed_tensors.utils import (
        find_matched_target,
        should_ignore_layer,
    )

    class QKVParallelLinear(torch.nn.Module):
        pass

    module = QKVParallelLinear()
    for modules, entries in LISTS:
        if any(e.startswith("re:") and not _compiles(e[3:]) for e in entries):
            continue  # vLLM raises there
        for name in modules:
            ignored = any(way_of(e, name, ways("compressed-tensors")) for e in entries)
            assert ignored == should_ignore_layer(name, ignore=entries), (name, entries)
            ours = next(
                (e for e in entries if way_of(e, name, ways("compressed-tensors", "target_match"))), None
            ) or next(
                (e for e in entries if way_of(e, "QKVParallelLinear", ways("compressed-tensors", "class_match"))), None
            )
            try:
                theirs = find_matched_target(name, module, entries)
            except (ValueError, re.error):
                theirs = None
            assert ours == theirs, (name, entries)


def _compiles(text: str) -> bool:
    import re

    try:
        re.compile(text)
    except re.error:
        return False
    return True


def test_fp8() -> None:
    """``is_layer_skipped`` with an exact match."""
    from vllm.model_executor.layers.quantization.utils.quant_utils import is_layer_skipped

    for modules, entries in LISTS:
        for name in modules:
            ours = any(way_of(e, name, ways("fp8")) for e in entries)
            assert ours == bool(is_layer_skipped(name, entries, {})), (name, entries)
