"""TGT: the draft against its target: vocabularies, sharing, hidden sizes, tap layers, mask token, rope, context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.rules.base import Context, Rule, finding, in_contract
from dspark_lint.words import show


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding


def stray_map(ctx: Context) -> Iterator[Finding]:
    """TGT002: a d2t table that the model has no place for."""
    for stray in ctx.inventory.strays:
        if stray.clause.get("rule") == "TGT002":
            sizes = f"draft vocabulary {show(ctx.binding.get('draft_vocab_size'))}, target {show(ctx.binding.get('target').get('vocab_size'))}"
            yield finding(
                ctx,
                "TGT002",
                stray.clause,
                f"{stray.disk} is there, but {stray.clause['says']} ({sizes}); vLLM {ctx.release} raises.",
                file=ctx.inventory.tensors[stray.disk][0],
                tensor=stray.disk,
                expected="no mapping",
                found=stray.disk,
                fix="leave d2t and t2d out of the export, or correct draft_vocab_size",
            )
            return


RULES = (
    Rule(
        "TGT001",
        "The vocabularies do not fit what ships",
        "A reduced draft vocabulary needs its own lm_head and a d2t table; a larger input vocabulary needs its own embed_tokens. What is missing is shared with the target, cut, or left as it was allocated.",
        "Ship the tensors, or make the vocabularies equal.",
        "error",
        "refused",
        in_contract,
        ("family", "weights"),
        fires="draft_vocab_size 32000 without d2t",
        quiet="d2t and lm_head.weight of 32000 rows",
    ),
    Rule(
        "TGT002",
        "A vocabulary mapping that has no place",
        "With equal vocabularies the model has no draft_id_to_target_id, and loading d2t into it fails.",
        "Leave d2t out, or correct draft_vocab_size.",
        "error",
        "refused",
        stray_map,
        ("family", "weights"),
        fires="d2t beside draft_vocab_size equal to the target's",
        quiet="no d2t",
    ),
    Rule(
        "TGT003",
        "The hidden sizes do not fit",
        "Shared embeddings and heads have the target's width; fc takes the target's hidden states.",
        "Declare target_hidden_size and ship what cannot be shared.",
        "error",
        "refused",
        in_contract,
        ("family",),
        fires="hidden_size 2048 beside a target of 4096",
        quiet="equal sizes",
    ),
    Rule(
        "TGT004",
        "Tap layers that the target does not have",
        "Hidden states are captured only for layers that exist, once each and in layer order; fc is then handed fewer features than it takes.",
        "List distinct layers of this target, in increasing order.",
        "error",
        "refused",
        in_contract,
        ("family",),
        fires="target_layer_ids up to 33 on a target of 32 layers",
        quiet="ids below 32",
    ),
    Rule(
        "TGT005",
        "The mask token is outside the embedding",
        "Masked slots are embedded like any token; an id past the rows is an out-of-range look-up.",
        "Use an id below the rows of the embedding that serves.",
        "error",
        "silent",
        in_contract,
        ("family",),
        fires="mask_token_id equal to vocab_size",
        quiet="vocab_size - 1",
    ),
    Rule(
        "TGT006",
        "Rope differs from the target's",
        "The draft is fed the target's positions; theta, scaling and layout must be those it was trained with, usually the target's.",
        "Write the rope parameters that were trained.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="rope_theta 10000 beside a target of 1000000",
        quiet="equal rope parameters",
    ),
    Rule(
        "TGT007",
        "The draft's context is shorter than the target's",
        "The draft's rotary table has max_position_embeddings rows.",
        "Write the target's max_position_embeddings.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="max_position_embeddings 4096 beside a target of 40960",
        quiet="40960",
    ),
    Rule(
        "TGT008",
        "The draft names another target",
        "A draft is trained on one target's hidden states; the fields that name it contradict the target given.",
        "Pair the draft with its own target.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="verifier architecture LlamaForCausalLM with a Qwen3 target",
        quiet="the verifier's own config",
    ),
    Rule(
        "TGT009",
        "The target does not hand out hidden states",
        "A block draft is fed the hidden states of its target's layers; a target class without that interface in this release cannot carry one.",
        "Serve the pair with a release whose target class has the interface.",
        "error",
        "refused",
        in_contract,
        ("family",),
        fires="a target architecture that the release does not know",
        quiet="Qwen3ForCausalLM",
    ),
    Rule(
        "TGT010",
        "The draft's layers are called like the target's",
        "A Gemma4 draft does not count its layers on from the target's. Beside a target whose own layers are called model.layers.N the engine stops at the first name that is there twice.",
        "Serve it with the multimodal target that it was trained on, whose text layers have a prefix.",
        "error",
        "refused",
        in_contract,
        ("family",),
        fires="a Gemma4DSparkModel draft with a text-only Gemma4ForCausalLM target",
        quiet="Gemma4ForConditionalGeneration",
    ),
)
