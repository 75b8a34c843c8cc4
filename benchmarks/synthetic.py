"""Writes checkpoints of a given size with real headers and sparse data, to measure reading on.

python benchmarks/synthetic.py DIRECTORY [--tensors 72000] [--shards 46]
"""

from __future__ import annotations

import argparse
import json

from pathlib import Path
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterator


_BYTES = {"F8_E4M3": 1, "BF16": 2, "F32": 4}


def mixture_of_experts(count: int) -> Iterator[tuple[str, str, list[int]]]:
    """`count` tensors, (name, dtype, shape), named and shaped like those of a large FP8 mixture of experts."""
    made = 0
    layer = 0
    while True:
        prefix = f"model.layers.{layer}"
        block = [
            (f"{prefix}.input_layernorm.weight", "BF16", [7168]),
            (f"{prefix}.post_attention_layernorm.weight", "BF16", [7168]),
            (f"{prefix}.mlp.gate.weight", "BF16", [190, 7168]),
        ]
        for name, rows, columns in (
            ("q_a_proj", 1536, 7168),
            ("q_b_proj", 24576, 1536),
            ("kv_a_proj_with_mqa", 576, 7168),
            ("kv_b_proj", 32768, 512),
            ("o_proj", 7168, 16384),
        ):
            block.append((f"{prefix}.self_attn.{name}.weight", "F8_E4M3", [rows, columns]))
            block.append((f"{prefix}.self_attn.{name}.weight_scale_inv", "F32", [-(-rows // 128), -(-columns // 128)]))
        for expert in range(190):
            for name, rows, columns in (
                ("gate_proj", 2048, 7168),
                ("up_proj", 2048, 7168),
                ("down_proj", 7168, 2048),
            ):
                stem = f"{prefix}.mlp.experts.{expert}.{name}"
                block.append((f"{stem}.weight", "F8_E4M3", [rows, columns]))
                block.append((f"{stem}.weight_scale_inv", "F32", [rows // 128, columns // 128]))
        for tensor in block:
            if made == count:
                return
            yield tensor
            made += 1
        layer += 1


def write_shard(path: Path, tensors: list[tuple[str, str, list[int]]]) -> int:
    """A safetensors file with a real header and holes for data; returns the bytes of data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, dtype, shape in tensors:
        size = _BYTES[dtype]
        for dim in shape:
            size *= dim
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + offset)
    return offset


def write_checkpoint(directory: Path, tensors: int = 72_000, shards: int = 46) -> Path:
    """A whole checkpoint in `directory`: config.json, shards and, if there are several, the index."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps({"architectures": ["SyntheticForCausalLM"]}), encoding="utf-8")
    every = list(mixture_of_experts(tensors))
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(shards):
        part = every[number * len(every) // shards : (number + 1) * len(every) // shards]
        name = f"model-{number + 1:05}-of-{shards:05}.safetensors" if shards > 1 else "model.safetensors"
        total += write_shard(directory / name, part)
        weight_map.update((tensor[0], name) for tensor in part)
    if shards > 1:
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        (directory / "model.safetensors.index.json").write_text(json.dumps(index, indent=2), encoding="utf-8")
    return directory


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tensors", type=int, default=72_000)
    parser.add_argument("--shards", type=int, default=46)
    given = parser.parse_args()
    write_checkpoint(given.directory, given.tensors, given.shards)


if __name__ == "__main__":
    main()
