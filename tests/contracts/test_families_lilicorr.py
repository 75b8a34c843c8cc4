"""LiLiCorrDraftModel: the correlator's sizes, its coverage check, the trained block."""

from __future__ import annotations

import pytest

from conformance.live.cases import add, config, drop, nested, rename, serve, shape, target
from contracts.drafts import Change, Found, keys, messages, told, without


BASE = "base.lilicorr"


@pytest.mark.parametrize(
    ("release", "expected"),
    [("0.30.0", [("ARC001", "refused", "/architectures")]), ("0.31.0", []), ("0.32.0", []), ("0.33.0", [])],
)
def test_known_from_0_31(release: str, expected: list[Found]) -> None:
    """Method dflash leaves the name alone from the release that knows it."""
    assert told(BASE, vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([nested(lilicorr_enabled=False)], [("KEY003", "refused", "/dflash_config/lilicorr_enabled")]),
        ([nested(lilicorr_enabled="false")], []),
        ([without("dflash_config.lilicorr_enabled")], []),
        ([without("dflash_config.lilicorr_factor_dim")], [("KEY001", "refused", "/dflash_config/lilicorr_factor_dim")]),
        ([without("dflash_config.lilicorr_num_layers"), keys(lilicorr_num_layers=1)], [
            ("KEY004", "refused", "/lilicorr_num_layers"),
        ]),
        ([nested(lilicorr_candidate_topk="4")], [("KEY002", "refused", "/dflash_config/lilicorr_candidate_topk")]),
        ([nested(conv_kernel_size=2)], [("KEY003", "refused", "/dflash_config/conv_kernel_size")]),
        ([without("dflash_config.block_size")], []),
        ([keys(block_size=16)], []),
        ([keys(logit_scale=2.0)], [("KEY008", "silent", "/logit_scale")]),
    ],
    ids=[
        "off", "any text is on", "on by default", "missing", "misplaced", "as text", "taps without groups",
        "the block at the top", "the nested block wins", "logit_scale",
    ],
)  # fmt: skip
def test_keys(changes: list[Change], expected: list[Found]) -> None:
    """The correlator's keys stand in dflash_config; all but the switch and the block are required."""
    assert told(BASE, *changes, quiet=("DRF001", "TEN004")) == expected


@pytest.mark.parametrize(("topk", "refused"), [(1, False), (2, False), (3, True), (8, False), (16, False), (32, True)])
def test_candidates_are_a_power_of_two_up_to_16(topk: int, *, refused: bool) -> None:
    """The tensor may have the right size and the number still be refused."""
    changes = [nested(lilicorr_candidate_topk=topk), shape("lilicorr.rank_embedding", 1, 1, 1, topk, 32)]

    expected = [("KEY003", "refused", "/dflash_config/lilicorr_candidate_topk")] if refused else []
    assert told(BASE, *changes) == expected


@pytest.mark.parametrize(("heads", "refused"), [(4, False), (3, True)])
def test_heads_divide_the_lattice(heads: int, *, refused: bool) -> None:
    """The lattice attention demands it for its own hidden size."""
    changes = [
        nested(lilicorr_num_heads=heads),
        shape("lilicorr.same_slot_bias", heads),
        shape("lilicorr.relative_slot_bias", heads, 7),
    ]

    expected = [("KEY003", "refused", "/dflash_config/lilicorr_num_heads")] if refused else []
    assert told(BASE, *changes) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, []), (3, []), (4, [("ARC008", "refused", "")]), (7, [("ARC008", "refused", "")])]
)
def test_fewer_tokens_than_the_trained_block(tokens: int, expected: list[Found]) -> None:
    """The only loader that compares the two."""
    assert told(BASE, serve(num_speculative_tokens=tokens)) == expected


def second_layer() -> list[Change]:
    sizes = {
        "attn_norm.weight": (32,), "mlp_norm.weight": (32,), "attn.in_proj_weight": (96, 32), "attn.in_proj_bias": (96,),
        "attn.out_proj.weight": (32, 32), "attn.out_proj.bias": (32,), "mlp.up_proj.weight": (64, 32),
        "mlp.up_proj.bias": (64,), "mlp.down_proj.weight": (32, 64), "mlp.down_proj.bias": (32,),
    }  # fmt: skip
    return [add(f"lilicorr.layers.1.{name}", *dims) for name, dims in sizes.items()]


def convolutions() -> list[Change]:
    names = [f"layers.{i}.{c}_conv" for i in (0, 1) for c in ("attention", "mlp")]
    pairs = [(add(f"{n}.base_kernel", 2, 2, 64), add(f"{n}.kernel_projection.weight", 16, 64)) for n in names]
    return [nested(conv_kernel_size=2, conv_group_size=16), *(m for pair in pairs for m in pair)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([nested(lilicorr_num_layers=2), *second_layer()], []),
        ([nested(lilicorr_num_layers=2), *second_layer(), drop("lilicorr.layers.1.attn.in_proj_bias")], [
            ("TEN001", "refused", "lilicorr.layers.1.attn.in_proj_bias"),
        ]),
        ([*second_layer()[:1]], [("TEN002", "refused", "lilicorr.layers.1.attn_norm.weight")]),
        ([nested(lilicorr_num_layers=0), drop("lilicorr.layers.*")], []),
        ([*convolutions()], []),
        ([*convolutions(), drop("layers.0.mlp_conv.base_kernel")], [
            ("TEN001", "refused", "layers.0.mlp_conv.base_kernel"),
        ]),
        ([drop("lilicorr.token_proj.bias")], [("TEN001", "refused", "lilicorr.token_proj.bias")]),
        ([drop("norm.weight")], [("TEN001", "silent", "norm.weight")]),
        ([rename("^", "model.")], []),
        ([rename("^", "model.model.")], [("TEN003", "refused", "model.model.fc.weight")]),
        ([rename(r"^lilicorr\.", "correlator.")], [("TEN003", "refused", "correlator.token_proj.weight")]),
        ([add("lilicorr.layers.0.attn_norm.bias", 32)], [("TEN005", "advice", "lilicorr.layers.0.attn_norm.bias")]),
        ([add("lilicorr.gate", 32)], [("TEN002", "refused", "lilicorr.gate")]),
        ([shape("lilicorr.feature_mlp.up_proj.weight", 64, 5)], [
            ("TEN004", "silent", "lilicorr.feature_mlp.up_proj.weight"),
        ]),
        ([shape("lilicorr.layers.0.mlp.down_proj.weight", 32, 128)], [
            ("TEN004", "silent", "lilicorr.layers.0.mlp.down_proj.weight"),
        ]),
        ([shape("lilicorr.slot_embedding", 3, 32)], [("TEN004", "refused", "lilicorr.slot_embedding")]),
    ],
    ids=[
        "two layers", "one of them partly", "a layer too many", "no layers", "convolutions", "one of them missing",
        "the correlator is covered", "the backbone is not", "one prefix", "two prefixes", "another head", "a bias", "unknown",
        "too many rows", "too many columns", "another rank",
    ],
)  # fmt: skip
def test_tensors(changes: list[Change], expected: list[Found]) -> None:
    """The correlator and the convolutions are checked for coverage; rows and columns are cut like everywhere."""
    assert told(BASE, *changes) == expected


def test_a_lattice_as_wide_as_the_draft_has_no_projection() -> None:
    """Without a size of its own the lattice takes the draft's, and token_proj is not built."""
    found = told(BASE, nested(lilicorr_hidden_size=0))

    assert ("TEN003", "refused", "lilicorr.token_proj.bias") not in found
    assert ("TEN002", "refused", "lilicorr.token_proj.bias") in found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([config(draft_vocab_size=128)], [("TGT001", "refused", "/draft_vocab_size")]),
        ([config(vocab_size=320)], [("TGT001", "refused", "/vocab_size")]),
        ([config(has_own_lm_head=True)], [("TGT001", "refused", "/has_own_lm_head")]),
        ([config(has_own_lm_head=True), add("lm_head.weight", 256, 64)], []),
        ([add("lm_head.weight", 256, 64)], []),
        ([target(hidden_size=128), config(target_hidden_size=128), shape("fc.weight", 64, 384),
          add("embed_tokens.weight", 256, 64)], [("TGT003", "refused", "/hidden_size")]),
    ],
    ids=["reduced", "wider", "own head promised", "own head", "head without the flag", "a wider target"],
)  # fmt: skip
def test_target(changes: list[Change], expected: list[Found]) -> None:
    """The whole vocabulary, the target's embedding width, and the head that has_own_lm_head promises."""
    found = told(BASE, *changes)

    assert [f for f in found if f[0] != "TGT003" or f[2] == "/hidden_size"] == expected


def test_the_block_is_read_off_the_slots() -> None:
    """A missing block size is given by the correlator's slots, and told once."""
    gone = without("dflash_config.block_size", "block_size")

    assert told(BASE, gone) == [("TEN004", "refused", "/dflash_config/block_size")]
    assert '"dflash_config.block_size": 4' in messages(BASE, gone)
