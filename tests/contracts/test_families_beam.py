"""DFlash2BeamDraftModel: a DFlash2 draft of sliding, non-causal layers whose tables are always the target's."""

from __future__ import annotations

import pytest

from conformance.live.cases import add, config, drop, nested
from contracts.drafts import Change, Found, told, without


BASE = "beam"
NEWEST = "0.33.0"


@pytest.mark.parametrize(
    ("release", "expected"), [("0.33.0", []), ("0.32.0", [("ARC001", "refused", "/architectures")])]
)
def test_known_in_0_33(release: str, expected: list[Found]) -> None:
    """The architecture is new in 0.33."""
    assert told(BASE, vllm=release) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([without("is_causal")], [("KEY001", "refused", "/is_causal")]),
        ([config(is_causal=None)], []),
        ([config(is_causal=True)], [("KEY003", "refused", "/is_causal")]),
        ([config(layer_types=["sliding_attention", "full_attention"])], [("KEY003", "refused", "/layer_types")]),
        ([without("use_sliding_window")], [("DRF006", "silent", "/sliding_window")]),
        ([without("dflash_config.final_logit_softcapping")], [
            ("KEY001", "refused", "/dflash_config/final_logit_softcapping"),
        ]),
        ([nested(final_logit_softcapping=0.0)], [("KEY003", "silent", "/dflash_config/final_logit_softcapping")]),
        ([nested(target_layer_ids=None)], [("KEY002", "refused", "/dflash_config/target_layer_ids")]),
        ([nested(output_multiplier=2.0)], [("KEY008", "silent", "/dflash_config")]),
        ([config(hidden_act="gelu")], [("KEY008", "silent", "/hidden_act")]),
        ([config(draft_vocab_size=128)], []),
    ],
    ids=[
        "causality missing", "null", "causal", "a full layer", "the window dropped", "no cap", "a cap of zero", "no layers",
        "a scalar unread", "another activation", "a draft vocabulary unread",
    ],
)  # fmt: skip
def test_keys(changes: list[Change], expected: list[Found]) -> None:
    """What this loader requires beside the sizes of every DFlash2 draft, and what it never reads."""
    assert told(BASE, *changes, vllm=NEWEST) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [drop("candidate_selector.successor_codebook")],
            [("TEN001", "refused", "candidate_selector.successor_codebook")],
        ),
        ([drop("layers.0.attention_conv.base_kernel")], [("TEN001", "refused", "layers.0.attention_conv.base_kernel")]),
        ([drop("layers.0.self_attn.q_norm.weight")], [("TEN001", "refused", "layers.0.self_attn.q_norm.weight")]),
        ([drop("fc.weight")], [("TEN001", "silent", "fc.weight")]),
        ([add("lm_head.weight", 256, 64)], [("TEN002", "refused", "lm_head.weight")]),
        ([add("d2t", 256)], [("TEN002", "refused", "d2t")]),
        ([add("embed_tokens.weight", 256, 64)], [("TGT001", "advice", "embed_tokens.weight")]),
        ([add("layers.0.self_attn.q_proj.bias", 64)], [("TEN005", "advice", "layers.0.self_attn.q_proj.bias")]),
    ],
    ids=["codebook", "kernel", "norm", "fc", "a head", "a mapping", "an embedding", "a bias"],
)
def test_tensors(changes: list[Change], expected: list[Found]) -> None:
    """Bare parameters and norms are checked after loading; there is no place for a head."""
    assert told(BASE, *changes, vllm=NEWEST) == expected
