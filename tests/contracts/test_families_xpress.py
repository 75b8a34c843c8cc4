"""Qwen3XPressModel: the refiner's tensors and the block that its mixer is made for."""

from __future__ import annotations

import pytest

from conformance.live.cases import add, config, drop, nested, rename, serve, shape
from contracts.drafts import Change, Found, keys, told, without


BASE = "xpress"
NEWEST = "0.33.0"


@pytest.mark.parametrize(
    ("changes", "release", "expected"),
    [
        ([], "0.33.0", []),
        ([keys(architectures=["DFlashQwen3XPressModel"])], "0.33.0", []),
        ([], "0.32.0", [("ARC001", "refused", "/architectures")]),
        ([serve(method="dspark")], "0.33.0", [("ARC002", "refused", "/architectures")]),
    ],
    ids=["known", "under its rewritten name", "unknown before", "under another method"],
)
def test_architecture(changes: list[Change], release: str, expected: list[Found]) -> None:
    """Method dflash rewrites the name to one that the registry knows too."""
    assert told(BASE, *changes, vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([without("xpress_block_size"), keys(num_speculative_steps=3)], []),
        ([keys(xpress_rank=None)], [("KEY002", "refused", "/xpress_rank")]),
        ([keys(xpress_topc=257)], [("ARC008", "refused", "/xpress_topc")]),
        ([keys(xpress_topc=0)], []),
        ([keys(xpress_topc="64")], [("KEY002", "refused", "/xpress_topc")]),
        ([serve(xpress_topc=512)], [("ARC008", "refused", "/xpress_topc")]),
        ([keys(num_jacobi_passes=4)], [("KEY004", "silent", "/num_jacobi_passes")]),
        ([keys(sample_from_anchor=True)], [("DRF002", "refused", "/sample_from_anchor")]),
        ([nested(sample_from_anchor=True)], [("DRF002", "refused", "/dflash_config/sample_from_anchor")]),
        ([config(draft_vocab_size=128)], [("TGT001", "refused", "/draft_vocab_size")]),
        ([config(has_own_lm_head=True)], []),
    ],
    ids=[
        "the block by steps", "null rank", "more candidates than tokens", "all candidates", "candidates as text",
        "too many by flag", "the trainer's name", "from the anchor", "nested", "reduced", "a flag of other loaders",
    ],
)  # fmt: skip
def test_keys(changes: list[Change], expected: list[Found]) -> None:
    """Sizes have defaults, candidates a range, and the layout is fixed."""
    assert told(BASE, *changes, vllm=NEWEST) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"), [(3, []), (2, [("ARC009", "silent", "")]), (4, [("ARC009", "silent", "")])]
)
def test_the_block_is_exactly_the_mixers(tokens: int, expected: list[Found]) -> None:
    """Fewer tokens are as wrong as more: the mixer is read with the served block's row length."""
    assert told(BASE, serve(num_speculative_tokens=tokens), vllm=NEWEST) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([drop("xpress_head.mix.L")], [("TEN001", "refused", "xpress_head.mix.L")]),
        ([drop("xpress_head.down_g.weight")], [("TEN001", "silent", "xpress_head.down_g.weight")]),
        ([rename(r"^xpress_head\.mlp\.(gate|up|down)_proj", r"xpress_head.mlp_\1")], []),
        ([rename(r"mix\.L$", "mix_L")], [("TEN003", "refused", "xpress_head.mix_L")]),
        ([shape("xpress_head.mix.L", 16, 8, 8)], [("TEN004", "refused", "xpress_head.mix.L")]),
        ([shape("xpress_head.w1.weight", 320, 16)], [("TEN004", "refused", "xpress_head.w1.weight")]),
        ([add("xpress_head.w2.bias", 256)], [("TEN005", "advice", "xpress_head.w2.bias")]),
        ([add("xpress_head.w3.weight", 256, 16)], [("TEN002", "refused", "xpress_head.w3.weight")]),
        ([add("d2t", 256)], [("TEN005", "advice", "d2t")]),
        ([add("mask_hidden", 64)], [("TEN002", "refused", "mask_hidden")]),
    ],
    ids=["mixer", "projection", "module names", "folded mixer", "another block", "rows", "a bias", "unknown", "mapping", "mask"],
)  # fmt: skip
def test_tensors(changes: list[Change], expected: list[Found]) -> None:
    """Only the mixer is demanded; names in the module's own spelling are taken too."""
    assert told(BASE, *changes, vllm=NEWEST) == expected


@pytest.mark.parametrize(
    ("rank", "tile", "expected"),
    [
        (16, 128, []),
        (24, 64, [("KEY003", "refused", "/xpress_rank")]),
        (16, 96, [("KEY003", "silent", "/xpress_mlp_hidden")]),
    ],
)
def test_sizes_that_the_kernel_tiles(rank: int, tile: int, expected: list[Found]) -> None:
    """The rank is one tile of the kernel, the MLP is gone through in tiles of 64."""
    sizes = {
        "w1.weight": (256, rank), "w2.weight": (256, rank), "down_h.weight": (rank, 64), "down_g.weight": (rank, 64),
        "in_proj.weight": (rank, 3 * rank), "mix.L": (rank, 4, 4), "mlp.gate_proj.weight": (tile, rank),
        "mlp.up_proj.weight": (tile, rank), "mlp.down_proj.weight": (rank, tile),
    }  # fmt: skip
    changes = [
        keys(xpress_rank=rank, xpress_mlp_hidden=tile),
        *(shape(f"xpress_head.{n}", *d) for n, d in sizes.items()),
    ]

    assert told(BASE, *changes, vllm=NEWEST) == expected


def test_the_flag_is_for_xpress_alone() -> None:
    """Another draft served with xpress_topc is refused."""
    assert told("base.dflash", serve(xpress_topc=64), vllm=NEWEST) == [("ARC008", "refused", "")]
