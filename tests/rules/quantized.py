"""Changes that quantize a base of `rules.build`: what lies on disk for a scheme, and the statements that speak of it."""

from __future__ import annotations

import copy
import fnmatch
import json

from typing import TYPE_CHECKING, Any

from rules.build import Change, Spec, at


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


LINEAR = ("fc.weight", "layers.*_proj.weight")
#: What an exporter leaves alone, by ModelOpt's globs and by compressed-tensors' patterns.
HEADS = ("lm_head", "embed_tokens", "*markov_head*", "*confidence_head*")
HEADS_RE = ("lm_head", "re:.*markov_head.*", "re:.*confidence_head.*")


def linears(spec: Spec) -> list[str]:
    """Names of the weights that are commonly quantized."""
    return [n for n in spec.tensors if any(fnmatch.fnmatch(n, p) for p in LINEAR)]


def stored(make: Callable[[str, int, int], dict[str, tuple[str, tuple[int, ...]]]], *skip: str) -> Change:
    """Put other tensors in the place of each linear weight: `make` gets its stem, output and input size."""

    def change(spec: Spec) -> None:
        for name in linears(spec):
            if not any(fnmatch.fnmatch(name, f"{pattern}.weight") for pattern in skip):
                rows, columns = spec.tensors.pop(name)[1]
                spec.tensors.update(make(name.removesuffix("weight"), rows, columns))

    return change


def fp8(*skip: str, static: bool = True) -> Change:
    """FP8 with one scale a tensor."""
    one: dict[str, tuple[str, tuple[int, ...]]] = {"weight_scale": ("F32", ())}
    if static:
        one["input_scale"] = ("F32", ())
    return stored(lambda s, o, i: {f"{s}weight": ("F8_E4M3", (o, i)), **{s + k: v for k, v in one.items()}}, *skip)


def fp8_channel(*skip: str) -> Change:
    """FP8 with one scale a row."""
    return stored(lambda s, o, i: {f"{s}weight": ("F8_E4M3", (o, i)), f"{s}weight_scale": ("F32", (o, 1))}, *skip)


def fp8_block(*skip: str, size: int = 32, scale: str = "weight_scale_inv") -> Change:
    """FP8 with one scale a block."""
    return stored(
        lambda s, o, i: {f"{s}weight": ("F8_E4M3", (o, i)), f"{s}{scale}": ("F32", (-(-o // size), -(-i // size)))},
        *skip,
    )


def nvfp4(*skip: str, act: bool = True) -> Change:
    """NVFP4 with groups of 16."""
    return stored(
        lambda s, o, i: {
            f"{s}weight": ("U8", (o, i // 2)),
            f"{s}weight_scale": ("F8_E4M3", (o, i // 16)),
            f"{s}weight_scale_2": ("F32", ()),
            **({f"{s}input_scale": ("F32", ())} if act else {}),
        },
        *skip,
    )


def mxfp8(*skip: str) -> Change:
    """MXFP8: FP8 with an exponent for 32 columns."""
    return stored(lambda s, o, i: {f"{s}weight": ("F8_E4M3", (o, i)), f"{s}weight_scale": ("U8", (o, i // 32))}, *skip)


def int8(*skip: str) -> Change:
    """INT8 with one scale a row."""
    return stored(lambda s, o, i: {f"{s}weight": ("I8", (o, i)), f"{s}weight_scale": ("BF16", (o, 1))}, *skip)


def packed_int4(*skip: str, group: int = 32) -> Change:
    """INT4, eight in a word, with a scale a group."""
    return stored(
        lambda s, o, i: {
            f"{s}weight_packed": ("I32", (o, i // 8)),
            f"{s}weight_scale": ("BF16", (o, i // group)),
            f"{s}weight_shape": ("I64", (2,)),
        },
        *skip,
    )


# ---------------------------------------------------------------- statements
def legacy(algo: str, exclude: Iterable[str] | None = HEADS, **more: Any) -> dict[str, Any]:
    """What hf_quant_config.json holds."""
    lists = {} if exclude is None else {"exclude_modules": list(exclude)}
    return {
        "producer": {"name": "modelopt", "version": "0.47.0"},
        "quantization": {"quant_algo": algo, "kv_cache_quant_algo": None, **lists, **more},
    }


def in_file(algo: str, exclude: Iterable[str] | None = HEADS, **more: Any) -> Change:
    """State it in hf_quant_config.json."""
    text = json.dumps(legacy(algo, exclude, **more))
    return lambda spec: spec.files.update({"hf_quant_config.json": {"text": text}})


def in_config(algo: str, ignore: Iterable[str] | None = HEADS, **more: Any) -> Change:
    """State it in config.json, as ModelOpt's newer exports do."""
    lists = {} if ignore is None else {"ignore": list(ignore)}
    return at("quantization_config", {"quant_method": "modelopt", "quant_algo": algo, **lists, **more})


def hf_fp8(**more: Any) -> Change:
    """State FP8 as transformers does."""
    return at("quantization_config", {"quant_method": "fp8", "activation_scheme": "dynamic", **more})


WEIGHTS_FP8 = {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": False, "symmetric": True}
TOKENS_FP8 = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
WEIGHTS_INT8 = {**WEIGHTS_FP8, "type": "int"}
TOKENS_INT8 = {**TOKENS_FP8, "type": "int"}
WEIGHTS_INT4 = {**WEIGHTS_FP8, "type": "int", "num_bits": 4, "strategy": "group", "group_size": 32}


def compressed(
    weights: dict[str, Any] = WEIGHTS_FP8,
    activations: dict[str, Any] | None = TOKENS_FP8,
    form: str = "float-quantized",
    *,
    ignore: Iterable[str] = HEADS_RE,
    targets: Iterable[str] = ("Linear",),
    **more: Any,
) -> Change:
    """State one group of compressed-tensors."""
    group = {"targets": list(targets), "weights": weights, "input_activations": activations}
    return at(
        "quantization_config",
        copy.deepcopy(
            {
                "quant_method": "compressed-tensors",
                "format": form,
                "quantization_status": "compressed",
                "ignore": list(ignore),
                "config_groups": {"group_0": group},
                **more,
            }
        ),
    )


def layers(number: int) -> Change:
    """Make the draft one of so many layers, all alike."""

    def change(spec: Spec) -> None:
        first = {n: t for n, t in spec.tensors.items() if n.startswith("layers.0.")}
        for name in [n for n in spec.tensors if n.startswith("layers.")]:
            del spec.tensors[name]
        for i in range(number):
            spec.tensors.update({n.replace("layers.0.", f"layers.{i}."): t for n, t in first.items()})
        spec.config["num_hidden_layers"] = number
        spec.config["layer_types"] = ["full_attention"] * number

    return change
