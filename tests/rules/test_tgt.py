"""TGT: the draft against its target."""

# ruff: noqa: ERA001 - a line of a table reads best whole; the remarks name the rules
from __future__ import annotations

import json

from typing import TYPE_CHECKING

import pytest

from conformance.live.cases import Spec, add, drop, shape, target
from rules.build import (
    DEPTH,
    HIDDEN,
    ROWS,
    Case,
    Change,
    Told,
    alone,
    at,
    check,
    findings,
    made,
    pruned,
    table,
    told,
    without,
    write,
)

from dspark_lint import lint


if TYPE_CHECKING:
    from pathlib import Path


DROPPED = Told("TEN005", "info", "advice", "confidence_head.proj.bias", 2)
LAYER = "transformer_layer_config"
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256}


def finding(rule: str, severity: str, effect: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return (Told(rule, severity, effect, where), *((DROPPED,) if early else ()))


def refused(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return finding(rule, "error", "refused", where, early=early)


def wrong(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return finding(rule, "error", "silent", where, early=early)


def warned(rule: str, where: str, *, early: bool = False) -> tuple[Told, ...]:
    return finding(rule, "warning", "silent", where, early=early)


def tapped(*ids: int) -> Change:
    """The same layers in both places."""
    return lambda spec: (at("target_layer_ids", list(ids))(spec), at("dflash_config.target_layer_ids", list(ids))(spec))  # type: ignore[func-returns-value, return-value]


def masked(token: int) -> Change:
    return lambda spec: (at("mask_token_id", token)(spec), at("dflash_config.mask_token_id", token)(spec))  # type: ignore[func-returns-value, return-value]


def text_only(spec: Spec) -> None:
    """The target's text part as a target of its own."""
    spec.target.update(spec.target.pop("text_config"))


#: The Gemma4 base ships copies of its target's tables.
TABLES = (Told("TGT001", "info", "advice", "embed_tokens.weight"),)
MAP = table("d2t", "I64", [0] * ROWS)

CASES = [
    # TGT001: vocabularies
    Case("TGT001", "reduced without d2t", "native", (pruned(), drop("d2t")), refused("TGT001", "/draft_vocab_size"), says=("128", "256", "no d2t"), fix="export d2t"),
    Case("TGT001", "reduced without d2t, no target given", "native", (pruned(), drop("d2t"), alone), refused("TGT001", "/draft_vocab_size"), says=("no d2t",)),
    Case("TGT001", "reduced without d2t before 0.29", "speculators", (pruned(), drop("d2t")), wrong("TGT001", "/draft_vocab_size", early=True), vllm="0.27.0", says=("no d2t", "same number")),
    Case("TGT001", "reduced without lm_head", "native", (pruned(), drop("lm_head.weight")), refused("TGT001", "/draft_vocab_size"), says=("no lm_head",), fix="export lm_head.weight"),
    Case("TGT001", "reduced without lm_head, DFlash", "dflash", (pruned(), drop("lm_head.weight")), wrong("TGT001", "/draft_vocab_size"), vllm="0.25.0", says=("no lm_head", "first 128 rows")),
    Case("TGT001", "a larger target", "native", (target(vocab_size=300),), refused("TGT001", "/vocab_size"), says=("256", "300")),
    Case("TGT001", "a smaller target", "native", (target(vocab_size=200),), refused("TGT001", "/vocab_size"), says=("256", "200", "embed_tokens")),
    Case("TGT001", "a smaller target, own tables", "speculators", (target(vocab_size=200),), warned("TGT001", "/draft_vocab_size"), says=("256", "200", "padding")),
    Case("TGT001", "an own head that is replaced", "dflash", (add("lm_head.weight", ROWS, HIDDEN),), warned("TGT001", "lm_head.weight"), vllm="0.24.0", says=("lm_head",)),
    Case("TGT001", "an own head that is kept", "dflash", (add("lm_head.weight", ROWS, HIDDEN),), vllm="0.25.0"),
    Case("TGT001", "an own head by flag only", "dflash", (at("has_own_lm_head", True),), wrong("TGT001", "/has_own_lm_head"), says=("has_own_lm_head is true",)),
    Case("TGT001", "reduced, complete", "native", (pruned(),)),
    Case("TGT001", "reduced, complete, speculators, early", "speculators", (pruned(),), (DROPPED,), vllm="0.27.0"),
    # TGT002: a mapping without a place
    Case("TGT002", "flat", "native", (MAP,), refused("TGT002", "d2t"), says=("d2t", "256"), fix="leave d2t and t2d out"),
    Case("TGT002", "speculators", "speculators", (MAP,), refused("TGT002", "d2t", early=True), vllm="0.27.0", says=("d2t",)),
    Case("TGT002", "reduced", "native", (pruned(),)),
    # TGT003: hidden sizes
    Case("TGT003", "flat", "native", (target(hidden_size=128),), refused("TGT003", "/hidden_size"), says=("64", "128")),
    Case("TGT003", "speculators", "speculators", (target(hidden_size=128),), refused("TGT003", f"/{LAYER}/hidden_size"), says=("64", "128")),
    Case("TGT003", "equal", "native", ()),
    Case("TGT003", "by what the file says of its target", "native", (alone, at("target_hidden_size", 2 * HIDDEN), shape("fc.weight", HIDDEN, 6 * HIDDEN)), refused("TGT003", "/hidden_size"), says=("64", "128")),
    Case("TGT003", "by what the file says of its target, own table", "native", (alone, at("target_hidden_size", 2 * HIDDEN), shape("fc.weight", HIDDEN, 6 * HIDDEN), add("embed_tokens.weight", ROWS, HIDDEN)), refused("TGT003", "/hidden_size"), says=("64", "128, or an lm_head.weight")),
    Case("TGT003", "by what the file says of its target, own tables", "native", (alone, at("target_hidden_size", 2 * HIDDEN), shape("fc.weight", HIDDEN, 6 * HIDDEN), add("embed_tokens.weight", ROWS, HIDDEN), add("lm_head.weight", ROWS, HIDDEN))),
    Case("TGT003", "a shared head, DFlash", "dflash", (target(hidden_size=2 * HIDDEN), at("target_hidden_size", 2 * HIDDEN), shape("fc.weight", HIDDEN, 6 * HIDDEN), add("embed_tokens.weight", ROWS, HIDDEN)), refused("TGT003", "/hidden_size"), vllm="0.25.0", says=("the target's head is shared",)),
    # TGT004: tap layers
    Case("TGT004", "deeper than the target", "native", (target(num_hidden_layers=5),), refused("TGT004", "/dflash_config/target_layer_ids"), says=("[2, 5, 7]", "target of 5 layers")),
    Case("TGT004", "deeper than the target, speculators", "speculators", (target(num_hidden_layers=5),), refused("TGT004", "/aux_hidden_state_layer_ids"), says=("[2, 5, 7]",)),
    Case("TGT004", "deeper than the file says of its target", "dflash", (alone, at("num_target_layers", 5)), refused("TGT004", "/dflash_config/target_layer_ids"), vllm="0.24.0", says=("boundary 7", "num_target_layers", "5")),
    Case("TGT004", "one twice", "native", (tapped(1, 1, 6),), refused("TGT004", "/dflash_config/target_layer_ids"), says=("[2, 2, 7]", "captured once")),
    Case("TGT004", "one twice, no target given", "native", (tapped(1, 1, 6), alone), refused("TGT004", "/dflash_config/target_layer_ids"), says=("[2, 2, 7]",)),
    Case("TGT004", "a negative one", "native", (tapped(-3, 1, 6),), refused("TGT004", "/dflash_config/target_layer_ids", early=True), vllm="0.27.1", says=("[-2, 2, 7]",)),
    Case("TGT004", "the last layer", "native", (tapped(1, 4, DEPTH - 1),)),
    # TGT005: the mask token
    Case("TGT005", "past the rows", "native", (masked(ROWS),), wrong("TGT005", "/dflash_config/mask_token_id"), says=("mask_token_id is 256", "0 to 255")),
    Case("TGT005", "past the rows, no target given", "native", (masked(ROWS), alone), wrong("TGT005", "/dflash_config/mask_token_id", early=True), vllm="0.25.0", says=("mask_token_id is 256",)),
    Case("TGT005", "past the rows, speculators", "speculators", (at("mask_token_id", ROWS),), wrong("TGT005", "/mask_token_id"), says=("mask_token_id is 256",)),
    Case("TGT005", "negative", "dflash", (at("dflash_config.mask_token_id", -1),), wrong("TGT005", "/dflash_config/mask_token_id"), vllm="0.24.0", says=("mask_token_id is -1",)),
    Case("TGT005", "the last row", "native", (masked(ROWS - 1),)),
    # TGT006: rope
    Case("TGT006", "theta", "native", (at("rope_theta", 10000.0),), warned("TGT006", "/rope_theta"), says=("10000", "1000000"), fix='"rope_theta": 1000000.0'),
    Case("TGT006", "theta by default", "native", (without("rope_theta"),), warned("TGT006", "/rope_parameters"), says=("by default", "1000000")),
    Case("TGT006", "theta, speculators", "speculators", (at(f"{LAYER}.rope_theta", 500.0),), warned("TGT006", f"/{LAYER}/rope_theta"), says=("500",)),
    Case("TGT006", "a scaled target", "native", (target(rope_scaling=YARN),), warned("TGT006", "/rope_parameters"), says=("default", "yarn")),
    Case("TGT006", "a scaled draft", "dflash", (at("rope_scaling", YARN),), warned("TGT006", "/rope_scaling"), vllm="0.25.0", says=("yarn", "default")),
    Case("TGT006", "scaled logits", "dflash", (target(logit_scale=0.5),), warned("TGT006", "/logit_scale"), says=("0.5", "1.0")),
    Case("TGT006", "both scaled", "native", (at("rope_scaling", YARN), target(rope_scaling=YARN))),
    Case("TGT006", "a target that does not say", "native", (at("rope_scaling", YARN), lambda spec: spec.target.pop("rope_theta"))),
    # TGT007: context
    Case("TGT007", "shorter", "native", (target(max_position_embeddings=4096),), warned("TGT007", "/max_position_embeddings"), says=("512", "4096")),
    Case("TGT007", "shorter, speculators", "speculators", (target(max_position_embeddings=4096),), warned("TGT007", f"/{LAYER}/max_position_embeddings", early=True), vllm="0.27.0", says=("512",)),
    Case("TGT007", "longer", "native", (target(max_position_embeddings=256),)),
    # TGT008: another target
    Case("TGT008", "architecture", "speculators", (target(architectures=["LlamaForCausalLM"]),), warned("TGT008", "/speculators_config/verifier/architectures"), says=("Qwen3ForCausalLM", "LlamaForCausalLM")),
    Case("TGT008", "name", "speculators", (at("speculators_config.verifier.name_or_path", "Qwen/Qwen3-8B"),), warned("TGT008", "/speculators_config/verifier/name_or_path"), says=("Qwen/Qwen3-8B",)),
    Case("TGT008", "no name", "speculators", (at("speculators_config.verifier", {}),)),
    # TGT009: no hidden states
    Case("TGT009", "unknown class", "native", (target(architectures=["NoSuchForCausalLM"]),), refused("TGT009", ""), says=("NoSuchForCausalLM",)),
    Case("TGT009", "a class of its own release", "native", (target(architectures=["SeedOssForCausalLM"]),), refused("TGT009", ""), vllm="0.31.0", says=("SeedOssForCausalLM",)),
    Case("TGT009", "a class of a later release", "native", (target(architectures=["SeedOssForCausalLM"]),), vllm="0.32.0"),
    Case("TGT009", "unknown class of the verifier", "speculators", (alone, at("speculators_config.verifier.architectures", ["NoSuchForCausalLM"])), refused("TGT009", "/speculators_config/verifier/architectures"), says=("NoSuchForCausalLM",)),
    Case("TGT009", "the verifier's class", "speculators", (alone,)),
    # TGT010: layer names
    Case("TGT010", "a text-only target", "gemma4", (target(architectures=["Gemma4ForCausalLM"]), text_only), (*refused("TGT010", ""), *TABLES), says=("Gemma4ForCausalLM", "model.layers.N")),
    Case("TGT010", "its multimodal target", "gemma4", (), TABLES),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_target(case: Case) -> None:
    """A draft that does not fit its target is one finding that names both sides."""
    check(case)


ASSUMED = "no --target: the target's vocabulary is taken to be the draft's vocab_size, 256"
NAMED = "the file names its target, and it is here: --target {place} checks the pair"


@pytest.mark.parametrize(
    ("base", "changes", "said"),
    [
        ("native", (), [f"{ASSUMED}, its depth to be num_target_layers, 8"]),
        ("native", (without("num_target_layers"),), [ASSUMED]),
        ("native", (at("target_hidden_size", HIDDEN),), [f"{ASSUMED}, its depth to be num_target_layers, 8, its hidden size to be target_hidden_size, 64"]),
        ("speculators", (), [f'{ASSUMED}, its class to be the verifier\'s, ["Qwen3ForCausalLM"]']),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": "beside"}),), [ASSUMED, NAMED]),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": "@HERE@"}),), [ASSUMED, NAMED]),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": "Qwen/Qwen3-8B"}),), [ASSUMED]),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": "."}),), [ASSUMED]),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": "a\0b"}),), [ASSUMED]),
        ("speculators", (at("speculators_config.verifier", {"name_or_path": 3}),), [ASSUMED]),
    ],
    ids=["depth", "nothing", "width", "class", "a path from the draft", "a path", "a repository", "itself", "no path", "no text"],
)  # fmt: skip
def test_what_is_assumed_is_said(base: str, changes: tuple[Change, ...], said: list[str], tmp_path: Path) -> None:
    """Without --target it is said what the draft's file is believed, and a target that it names and that is there is offered."""
    place = tmp_path / "draft" / "beside"
    spec = made(base, *changes)
    spec.target = {}
    spec.text = json.dumps(spec.config).replace("@HERE@", str(place))
    draft, _ = write(spec, tmp_path)
    place.mkdir()
    (place / "config.json").write_text(json.dumps(made(base).target), encoding="utf-8")

    (result,) = lint(draft, vllm="==0.32.0", speculative_config=spec.serve).checkpoints[0].results

    assert list(result.notes) == [note.format(place=place) for note in said]


def test_without_a_target_the_draft_s_own_word_counts() -> None:
    """Without --target nothing is said of the target's rope, context, classes or width."""
    assert told(findings("native", alone, at("rope_theta", 1.0), at("max_position_embeddings", 1))) == []
