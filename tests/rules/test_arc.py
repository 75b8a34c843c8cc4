"""ARC: architecture, dialect, method, and what the serve flags do to a draft."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.live.cases import add, drop
from rules.build import (
    BLOCK,
    RELEASES,
    Case,
    Change,
    Told,
    alone,
    at,
    check,
    findings,
    moved,
    named,
    served,
    told,
    unserved,
    without,
)


def refused(rule: str, where: str = "/architectures", count: int = 1) -> tuple[Told, ...]:
    return (Told(rule, "error", "refused", where, count),)


def written(*names: str) -> Change:
    return at("architectures", list(names))


def head_off(spec: Any) -> None:
    """No confidence head, and every flag says so."""
    drop("confidence*")(spec)
    for flag in ("enable_confidence_head", "confidence_head_with_markov", "dflash_config.use_confidence_head"):
        at(flag, False)(spec)


FILL_IN = (at("sample_from_anchor", False), without("dflash_config.shift_label", "dflash_config.projector_type"))
DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)
DSPARK = '"architectures": ["Qwen3DSparkModel"]'
DFLASH = '"architectures": ["DFlashDraftModel"]'
V4 = "DeepSeek-V4"

CASES = [
    # ARC001: no such architecture
    Case("ARC001", "unknown", "dflash", (written("NoSuchModel"),), refused("ARC001"), says=("NoSuchModel", "DFlashNoSuchModel", "prefixes"), fix=DFLASH),
    Case("ARC001", "the target's class", "dflash", (written("Qwen3ForCausalLM"),), refused("ARC001"), says=("DFlashQwen3ForCausalLM",), fix=DFLASH),
    Case("ARC001", "missing", "dflash", (without("architectures"),), refused("ARC001"), says=("architectures is missing", "Qwen3ForCausalLM"), fix=DFLASH),
    Case("ARC001", "misspelt", "dflash", (written("DFlashDraftModl"),), refused("ARC001"), says=("DFlashDraftModl",), fix=DFLASH),
    Case("ARC001", "a DSpark draft under method dflash", "native", (served(method="dflash", num_speculative_tokens=3),), refused("ARC001"), says=("Qwen3DSparkModel", "DFlashQwen3DSparkModel"), fix="method dspark"),
    Case("ARC001", "not known yet", "native", (unserved,), refused("ARC001"), vllm="0.24.0", says=("Qwen3DSparkModel",)),
    Case("ARC001", "prefixed into a known one", "dflash", (written("DraftModel"),)),
    Case("ARC001", "the second of two is known", "dflash", (written("DFlashNoSuchModel", "DFlashDraftModel"),)),
    Case("ARC001", "a speculators file's own name is not read", "speculators", (written("Whatever"),)),
    # ARC002: known, but not by this loader
    *(
        Case("ARC002", name, "native", changes, refused("ARC002"), says=(V4, *says), fix=DSPARK, vllm=vllm)
        for name, changes, says, vllm in (
            ("unknown", (written("NoSuchDraftModel"),), ("NoSuchDraftModel", "dspark"), "0.32.0"),
            ("unknown, early", (written("NoSuchDraftModel"),), ("NoSuchDraftModel",), "0.25.0"),
            ("misspelt", (written("Qwen3DsparkModel"),), ("Qwen3DsparkModel",), "0.32.0"),
            ("missing", (without("architectures"),), ("architectures is missing", "Qwen3ForCausalLM"), "0.32.0"),
            ("null", (at("architectures", None),), ("architectures is missing",), "0.32.0"),
            ("empty", (at("architectures", []),), ("architectures is empty",), "0.32.0"),
            ("no list", (at("architectures", "Qwen3DSparkModel"),), ('architectures is "Qwen3DSparkModel", no list',), "0.32.0"),
            ("DFlashDraftModel", (written("DFlashDraftModel"),), ("DFlashDraftModel",), "0.32.0"),
            ("DFlashDraftModel, no flags", (written("DFlashDraftModel"), unserved), ("DFlashDraftModel",), "0.32.0"),
            ("DSparkDraftModel before 0.29", (written("DSparkDraftModel"),), ("DSparkDraftModel",), "0.28.0"),
            ("DSparkDraftModel of another type", (written("DSparkDraftModel"), at("model_type", "llama")), ("DSparkDraftModel",), "0.32.0"),
        )
    ),
    Case("ARC002", "a DFlash draft under method dspark", "dflash", (served(method="dspark", num_speculative_tokens=4),), refused("ARC002"), says=("DFlashDraftModel", V4), fix="serve it with method dflash"),
    Case("ARC002", "Markov tensors under method dflash", "native", (written("DFlashDraftModel"), served(method="dflash", num_speculative_tokens=3)), refused("ARC002"), says=("DFlashDraftModel", "DFlash loader", "Markov head"), fix=DSPARK),
    Case("ARC002", "speculators type dflash with Markov tensors", "speculators", (at("speculators_model_type", "dflash"), served(method="dflash", num_speculative_tokens=3)), refused("ARC002", "/speculators_model_type"), says=("speculators_model_type dflash", "Markov head"), fix='"speculators_model_type": "dspark"'),
    Case("ARC002", "DSparkDraftModel of type qwen3 from 0.29", "native", (written("DSparkDraftModel"),)),
    Case("ARC002", "a DFlash draft under method dflash", "dflash", ()),
    # ARC003: an exporter's own layout
    Case("ARC003", "ModelOpt", "modelopt", (), refused("ARC003"), says=("ModelOpt", "DFlashDraftModel", "markov_w1.weight"), fix="confidence_proj.* to confidence_head.proj.*"),
    Case("ARC003", "ModelOpt, early", "modelopt", (), refused("ARC003"), vllm="0.25.0", says=("ModelOpt",), fix='"markov_rank": 8'),
    Case("ARC003", "ModelOpt, no flags", "modelopt", (unserved, alone), refused("ARC003"), fix='"sample_from_anchor": true'),
    Case("ARC003", "ModelOpt under method dflash", "modelopt", (served(method="dflash", num_speculative_tokens=3),), refused("ARC003"), fix="serve it with method dspark"),
    Case("ARC003", "ModelOpt, gated head", "modelopt", (at("dflash_config.markov_head_type", "gated"), add("gate_proj.weight", 8, 72)), refused("ARC003"), fix="retrain with a vanilla Markov head"),
    Case("ARC003", "ModelOpt, only the names are left", "modelopt", (written("Qwen3DSparkModel"), at("markov_rank", 8), at("sample_from_anchor", True)), refused("ARC003"), says=("Qwen3DSparkModel",), fix="rename markov_w1.weight"),
    Case("ARC003", "Domino", "dflash", (at("dflash_config.projector_type", "domino"), add("prefix_gru.weight_ih_l0", 192, 64)), refused("ARC003"), says=("Domino", "prefix_gru"), fix="nothing to convert to"),
    Case("ARC003", "converted", "native", ()),
    # ARC004: served without a method
    Case("ARC004", "nothing says it", "dflash", (unserved,), (Told("ARC004", "info", "advice", ""),), says=("draft_model", "dflash"), fix='{"method": "dflash"'),
    Case("ARC004", "a trainer's step", "dflash", (unserved, named("checkpoint-1200")), (Told("ARC004", "warning", "silent", ""),), says=("draft_model",), fix='{"method": "dflash"'),
    Case("ARC004", "a trainer's step, refused then", "dflash", (unserved, named("epoch_3")), (Told("ARC004", "warning", "silent", ""),), vllm="0.30.0", says=("draft_model is not supported yet",)),
    Case("ARC004", "another method in the path", "native", (unserved, named("qwen3-dflash")), (Told("ARC004", "warning", "silent", ""),), says=("'dflash'", "dspark"), fix='{"method": "dspark"'),
    Case("ARC004", "the architecture says it", "native", (unserved,)),
    Case("ARC004", "the path says it", "dflash", (unserved, named("qwen3-dflash"))),
    Case("ARC004", "the flags say it", "dflash", ()),
    # ARC005: served by another method
    Case("ARC005", "dflash", "speculators", (served(method="dflash", num_speculative_tokens=3),), (Told("ARC005", "warning", "silent", ""),), says=("dflash", "dspark", "Markov head"), fix='{"method": "dspark"'),
    Case("ARC005", "eagle3", "speculators", (served(method="eagle3", num_speculative_tokens=3),), (Told("ARC005", "warning", "silent", ""),), says=("eagle3",), fix='{"method": "dspark"'),
    Case("ARC005", "no method in the flags", "dflash", (served(num_speculative_tokens=3),), (Told("ARC005", "warning", "silent", ""),), says=("draft_model", "dflash"), fix='{"method": "dflash"'),
    Case("ARC005", "no method in the flags, refused then", "dflash", (served(num_speculative_tokens=3),), (Told("ARC005", "error", "refused", ""),), vllm="0.30.0", says=("draft_model",)),
    Case("ARC005", "no method in the flags, and the name says it", "native", (served(num_speculative_tokens=4),)),
    # ARC006: the other dialect
    Case("ARC006", "speculators with a model_type", "speculators", (at("model_type", "qwen3"),), refused("ARC006", "/model_type"), says=("speculators_config", "qwen3", "transformer_layer_config"), fix="remove model_type"),
    Case("ARC006", "speculators keys without speculators_config", "native", (at("speculators_model_type", "dspark"), at("transformer_layer_config", {})), (Told("ARC006", "warning", "silent", "/speculators_model_type"),), says=("speculators_config", "flat")),
    Case("ARC006", "aux_hidden_state_layer_ids", "dflash", (at("aux_hidden_state_layer_ids", [2, 5, 7]),), (Told("ARC006", "warning", "silent", "/aux_hidden_state_layer_ids"),), says=("aux_hidden_state_layer_ids",), fix="one lower"),
    Case("ARC006", "each in its own dialect", "speculators", ()),
    # ARC007: no reader
    Case("ARC007", "missing", "native", (without("model_type"),), refused("ARC007", "/model_type"), says=("model_type is missing",)),
    Case("ARC007", "unknown", "native", (at("model_type", "speculator_model"),), refused("ARC007", "/model_type"), says=('"speculator_model"',)),
    Case("ARC007", "unknown, whatever the architecture", "modelopt", (at("model_type", 3), drop("markov*", "confidence*"), without("dflash_config.projector_type")), refused("ARC007", "/model_type"), says=("model_type is 3",)),
    Case("ARC007", "unknown speculators type", "speculators", (at("speculators_model_type", "dsparkle"),), refused("ARC007", "/speculators_model_type"), says=('"dsparkle"', "dflash, dspark")),
    Case("ARC007", "speculators type not known yet", "speculators", (), refused("ARC007", "/speculators_model_type"), vllm="0.24.0", says=('"dspark"', "dflash")),
    Case("ARC007", "another known type", "native", (at("model_type", "llama"),)),
    # ARC008: the flags
    *(
        Case("ARC008", name, base, (served(**flags),), refused("ARC008", where), says=says, vllm=vllm)
        for name, base, flags, where, says, vllm in (
            ("zero tokens", "native", {"method": "dspark", "num_speculative_tokens": 0}, "", ("num_speculative_tokens is 0",), "0.32.0"),
            ("tokens as a word", "native", {"method": "dspark", "num_speculative_tokens": "four"}, "", ('num_speculative_tokens is "four"',), "0.32.0"),
            ("half a token", "native", {"method": "dspark", "num_speculative_tokens": 3.5}, "", ("num_speculative_tokens is 3.5",), "0.32.0"),
            ("a sampler that is none", "native", {"method": "dspark", "num_speculative_tokens": 4, "draft_sample_method": "gumbel"}, "", ('"gumbel"', "greedy, probabilistic"), "0.32.0"),
            ("a rejection sampler of a later release", "native", {"method": "dspark", "num_speculative_tokens": 4, "rejection_sample_method": "fly"}, "", ('"fly"', "standard, synthetic, block"), "0.32.0"),
            ("no length", "native", {"method": "dspark", "num_speculative_tokens": 4, "max_model_len": 0}, "", ("max_model_len is 0", "from 1"), "0.32.0"),
            ("a method that this draft is not for", "dflash", {"method": "mtp", "num_speculative_tokens": 3}, "", ('"mtp"', "Unsupported speculative method"), "0.32.0"),
            ("no tokens", "dflash", {"method": "dflash"}, "", ("no num_speculative_tokens",), "0.32.0"),
            ("no tokens before 0.31", "native", {"method": "dspark"}, "", ("no num_speculative_tokens",), "0.30.0"),
            ("unknown field", "native", {"method": "dspark", "num_speculative_tokens": 4, "blocksize": 4}, "", ('"blocksize"',), "0.32.0"),
            ("unknown method", "native", {"method": "dspork", "num_speculative_tokens": 4}, "", ('"dspork"',), "0.32.0"),
            ("candidates past the vocabulary", "native", {"method": "dspark", "num_speculative_tokens": 4, "dspark_draft_topk": 300}, "/dspark_draft_topk", ("300", "256"), "0.32.0"),
            ("candidates without a Markov head", "dflash", {"method": "dflash", "num_speculative_tokens": 3, "dspark_draft_topk": 4}, "", ("dspark_draft_topk 4",), "0.32.0"),
        )
    ),
    Case("ARC008", "what a lenient validator takes for an integer", "native", (served(method="dspark", num_speculative_tokens="4", max_model_len=None, draft_tensor_parallel_size=1.0),)),
    Case("ARC008", "a rejection sampler that is known", "native", (served(method="dspark", num_speculative_tokens=4, rejection_sample_method="fly"),), vllm="0.33.0"),
    Case("ARC008", "a method that is looked for in the draft all the same", "native", (served(method="mtp", num_speculative_tokens=4),)),
    Case("ARC008", "field not known yet", "native", (served(method="dspark", num_speculative_tokens=4, dspark_draft_topk=4),), (*refused("ARC008", ""), DROPPED), vllm="0.27.1", says=('"dspark_draft_topk"',)),
    Case("ARC008", "method not known yet", "native", (), refused("ARC008", ""), vllm="0.24.0", says=('"dspark"',)),
    Case("ARC008", "below dspark_block_size", "native", (moved("block_size", "dspark_block_size"), served(method="dspark", num_speculative_tokens=3)), (*refused("ARC008", ""), DROPPED), vllm="0.27.0", says=("num_speculative_tokens 3", "dspark_block_size 4")),
    Case("ARC008", "below dspark_block_size from 0.28", "native", (moved("block_size", "dspark_block_size"), served(method="dspark", num_speculative_tokens=3))),
    Case("ARC008", "adaptive verification without a head", "native", (head_off, served(method="dspark", num_speculative_tokens=4, enable_adaptive_verification=True)), refused("ARC008", "/enable_confidence_head"), vllm="0.29.0", says=("enable_adaptive_verification", "confidence head")),
    Case("ARC008", "adaptive verification falls back from 0.30", "native", (head_off, served(method="dspark", num_speculative_tokens=4, enable_adaptive_verification=True)), (Told("ARC008", "warning", "silent", "/enable_confidence_head"),), says=("enable_adaptive_verification", "estimator")),
    Case("ARC008", "adaptive verification with a head", "native", (served(method="dspark", num_speculative_tokens=4, enable_adaptive_verification=True),)),
    Case("ARC008", "tokens from block_size from 0.31", "native", (served(method="dspark"),)),
    # ARC009: more than the block
    Case("ARC009", "DFlash", "dflash", (served(method="dflash", num_speculative_tokens=BLOCK),), (Told("ARC009", "warning", "silent", ""),), says=("num_speculative_tokens is 4", "block_size 4")),
    Case("ARC009", "DSpark", "native", (served(method="dspark", num_speculative_tokens=BLOCK + 1),), (Told("ARC009", "warning", "silent", ""),), says=("num_speculative_tokens is 5", "block_size 4")),
    Case("ARC009", "speculators", "speculators", (served(method="dspark", num_speculative_tokens=BLOCK + 1),), (Told("ARC009", "warning", "silent", ""),), says=("num_speculative_tokens is 5",)),
    Case("ARC009", "bonus token", "native", FILL_IN, (Told("ARC009", "info", "silent", "/block_size"),), says=("4 tokens", "num_speculative_tokens"), fix='"num_speculative_tokens": 3'),
    Case("ARC009", "bonus token, no flags", "native", (*FILL_IN, unserved), (Told("ARC009", "info", "silent", "/block_size"),), says=("for want of num_speculative_tokens",)),
    Case("ARC009", "bonus token, one fewer", "native", (*FILL_IN, served(method="dspark", num_speculative_tokens=BLOCK - 1))),
    Case("ARC009", "fewer", "dflash", (served(method="dflash", num_speculative_tokens=1),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_architecture(case: Case) -> None:
    """What is routed, read or served wrongly is one finding that names what stands there and what to write."""
    check(case)


@pytest.mark.parametrize("release", [release for release in RELEASES if release != "0.24.0"])
def test_native_layout_is_one_finding_in_every_release(release: str) -> None:
    """ModelOpt's layout is one finding with the whole conversion, in every release that knows DSpark."""
    (found,) = findings("modelopt", vllm=release)

    assert told([found]) == [Told("ARC003", "error", "refused", "/architectures")]
    assert found.fix == (
        'write "architectures": ["Qwen3DSparkModel"]; '
        "rename markov_w1.weight and markov_w2.weight to markov_head.markov_w1.weight and markov_head.markov_w2.weight; "
        "rename confidence_proj.* to confidence_head.proj.*; "
        'add "markov_rank": 8 at the top level; '
        'add "enable_confidence_head": true and "confidence_head_with_markov": true at the top level; '
        'add "sample_from_anchor": true at the top level (ModelOpt trains DSpark from the anchor), never inside dflash_config'
    )


def test_a_misread_file_tells_why_it_is_refused() -> None:
    """The finding about the dialect carries the refusal that reading the file wrongly leads to."""
    (found,) = findings("speculators", at("model_type", "qwen3"))

    assert found.effect == "refused"
    assert "Read so, the load stops: " in found.message
