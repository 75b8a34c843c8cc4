"""``contracts diff`` along the chain says everything that is known to have changed for files on disk."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest

from dspark_lint.contract.diff import Diff, Kind, diff, render_diff
from dspark_lint.contract.load import shipped_releases


class Change(NamedTuple):
    """A change between two releases, as reading both sources found it."""

    what: str
    kind: Kind | None
    """None: nothing that a file on disk meets."""
    says: tuple[str, ...]
    """Words of the lines that say it, a line each; for what concerns no file, why it does not."""


def no_file(what: str, why: str) -> Change:
    return Change(what, None, (why,))


#: Every row of every step; patch releases belong to the step that ends with them.
CHANGES: dict[tuple[str, str], list[Change]] = {
    ("0.24.0", "0.25.1"): [
        Change("registry", "loosens", ("Qwen3DSparkModel, the method dspark and speculators files of type dspark are known", "DFlashLagunaForCausalLM is known")),
        Change("detection", "other", ("every architecture but Qwen3DSparkModel is taken for a DeepSeek-V4 draft",)),
        Change("block layout", "other", ("only dspark_bonus_anchor selects the fill-in layout; speculators files are always served fill-in",)),
        Change("attention", "semantics", ("layer_types, sliding windows and attention sinks are read; a mixture of sliding and full layers is refused",)),
        Change("capture ids", "loosens", ("dspark_target_layer_ids and a top-level target_layer_ids are captured",)),
        Change("mask id", "loosens", ("a top-level mask_token_id and dspark_noise_token_id are read",)),
        Change("heads", "semantics", ("a draft's own lm_head is kept; an absent one is shared whatever the vocabularies are",)),
        Change("files", "other", ("mask_embedding.pt is read",)),
        Change("unknown names", "other", ("an unknown tensor outside the backbone is a ValueError, and the bias of an existing module is dropped",)),
        Change("DSpark specifics", "other", ("both Markov tables are needed and never quantized; confidence tensors are dropped; without d2t draft ids are target ids",)),
        Change("quantization", "loosens", ("quantized_layers is asked for the unfused names too, and may hold MXFP8",)),
    ],
    ("0.25.1", "0.26.0"): [
        Change("registry", "loosens", ("Gemma4DSparkModel is known",)),
        Change("attention", "semantics", ("causality is resolved layer by layer (dflash_config.causal, else sliding layers are causal), for DSpark too; mixed sliding and full layers are served",)),
        Change("speculators dflash", "semantics", ("causal = not sliding_window_non_causal",)),
        Change("unknown names", "semantics", ("an unknown tensor is a ValueError instead of a KeyError; the bias of an existing module is dropped without a word",)),
        Change("fc", "other", ("hidden states that do not fit fc are a clear ValueError",)),
        Change("number of tokens", "tightens", ("num_speculative_tokens below dspark_block_size is refused",)),
        Change("quantization", "semantics", ("quantization.modelopt_quant_config; Gemma4 drafts take the target's quantization",)),
        no_file("serve", "a flag for the type of the draft's cache, which no file states"),
    ],
    ("0.26.0", "0.27.1"): [
        Change("registry", "loosens", ("K3DSparkModel is known",)),
        Change("block layout", "semantics", ("sample_from_anchor replaces dspark_bonus_anchor: absent means true in a flat file and false in a speculators file; the old key is no longer read",)),
        Change("DFlash", "tightens", ("dflash_config.sample_from_anchor: true is refused, for DSpark too",)),
        Change("fc", "loosens", ("fc is sized by the captured layers from every source", "target_hidden_size: null counts as absent")),
        Change("heads", "semantics", ("markov_w1 is a plain embedding",)),
        Change("heads, quantized", "loosens", ("markov_w2 may be quantized",)),
        Change("quantization", "semantics", ("a DSpark draft is built under its own quantization, Gemma4 too",)),
        no_file("Gemma4", "its causality comes from the function that the others share since 0.26, to the same effect"),
    ],
    ("0.27.1", "0.28.0"): [
        Change("registry", "loosens", ("DFlash2DraftModel and the Muse-Glimmer assistants are known", "encoder.fc and encoder.output_norm_enc are read")),
        Change("config", "other", ("is_causal is read and wins over everything", "is_neox_style is read; for method dflash the loader overwrites it", "dspark_draft_topk is read from the flag and the file")),
        Change("confidence head", "semantics", ("Qwen3 drafts build the head when enable_confidence_head is true; confidence_head_with_markov decides its width", "DeepSeek drafts inside their target build a confidence head unless")),
        Change("adaptive verification", "tightens", ("adaptive verification without a confidence head is refused",)),
        Change("number of tokens", "loosens", ("num_speculative_tokens is no longer compared with dspark_block_size",)),
        Change("mask id", "loosens", ("the V1 runner looks for the mask token at all five places",)),
        Change("DeepSeek", "semantics", ("a DeepSeek draft inside its target takes the target's quantization",)),
        no_file("runner", "which runner and which attention backend serve a draft depends on the machine"),
    ],
    ("0.28.0", "0.29.0"): [
        Change("registry", "loosens", ("Qwen3OmniDSparkModel is known, with a strict validator for Omni targets; DSparkDraftModel with model_type qwen3 is taken for Qwen3DSparkModel",)),
        Change("speculators", "semantics", ("keeps a listed Qwen3DSparkModel or Qwen3OmniDSparkModel; use_aux_hidden_state is copied; dflash2 is a known type",)),
        Change("is_neox_style", "semantics", ("is_neox_style is no longer copied from the target",)),
        Change("config", "loosens", ("use_aux_hidden_state and mask_token_id are also read at the top level",)),
        Change("vocabulary", "tightens", ("embed_tokens is demanded when vocab_size is above the target's, lm_head and d2t when the draft vocabulary differs",)),
        Change("quantization", "loosens", ("NVFP4 groups without input activations are served as W4A16; FP8_PB_WO may stand in quantized_layers",)),
        no_file("runner", "a DSpark draft on the old runner is refused whatever its files are"),
    ],
    ("0.29.0", "0.30.0"): [
        Change("registry", "loosens", ("DSparkV41DraftModel is known",)),
        Change("vocabulary", "loosens", ("lm_head and d2t are demanded only when the draft vocabulary is below the target's",)),
        Change("quantized names", "semantics", ("the draft's layers are numbered after all of the target's layers",)),
        Change("quantized checks", "tightens", ("an NVFP4 weight_scale that was never loaded is refused",)),
        Change("quantized checks", "loosens", ("tensors named *.g_idx are dropped", "dspark_draft_topk can be served with a ModelOpt W4A16_NVFP4 markov_w2")),
        Change("adaptive verification", "semantics", ("adaptive verification without a confidence head falls back to an estimator",)),
        no_file("parallelism", "drafts may be served in pipeline stages, which no file states"),
    ],
    ("0.30.0", "0.31.0"): [
        Change("registry", "loosens", ("LiLiCorrDraftModel is known and not renamed by method dflash",)),
        Change("config", "loosens", ("dflash_config.attention_value_scale is read", "has_own_lm_head keeps the draft's head", "DSpark takes num_speculative_tokens from block_size, then dspark_block_size", "no longer has to be a multiple of block_size")),
        Change("confidence head", "semantics", ("Gemma4 and K3 drafts build their confidence head when enable_confidence_head is true",)),
        Change("quantization", "loosens", ("layer numbers in exclude_modules are understood as the draft's own; quantized q/k/v can be served", "lm_head with has_own_lm_head and the DFlash2 convolution may be quantized")),
        Change("parsing", "loosens", ("scalar rope keys beside per-layer ones are taken out of a gemma4_text file",)),
        no_file("DeepSeek", "the fused projection is put together from the same tensors"),
    ],
    ("0.31.0", "0.32.0"): [
        Change("load", "other", ("a copy that narrows or mismatches the dtype is logged",)),
        Change("block layout", "other", ("a DSpark draft with a bonus token reserves one more slot",)),
        Change("Gemma4", "semantics", ("Gemma4 drafts take their head sizes from per_layer_config",)),
        no_file("tracking", "weights of quantized models are tracked only where a flag asks for it"),
    ],
    ("0.32.0", "0.33.0"): [
        Change("registry", "loosens", ("Qwen3XPressModel, DFlash2BeamDraftModel and MuseSparkDSparkModel are known",)),
        Change("Muse-Glimmer", "semantics", ("the configuration class of Muse-Glimmer assistants is replaced by an override",)),
        Change("quantized names", "loosens", ("exclude_modules and quantized_layers are renamed, offset and prefixed",)),
        Change("quantized parsing", "loosens", ("a flat ModelOpt dictionary may say exclude_modules, and a legacy one MIXED_PRECISION",)),
        Change("renames", "tightens", ("the encoder.* aliases need word boundaries",)),
        Change("sink", "semantics", ("an attention sink that was not loaded counts as none",)),
        Change("rope", "other", ("max_position_embeddings is raised to the target's context for plain rope types; for others the target's context is lowered",)),
        no_file("serve", "the draft's tensor parallel size is a flag"),
    ],
}  # fmt: skip
ROWS = [(step, change) for step, changes in CHANGES.items() for change in changes if change.kind is not None]


@pytest.mark.parametrize(("step", "change"), ROWS, ids=[f"{step[1]} {change.what}" for step, change in ROWS])
def test_every_known_change_is_said(step: tuple[str, str], change: Change) -> None:
    """A change that a file on disk meets stands in the difference of the two releases, and among its kind."""
    found = [stated.says for stated in diff(*step).stated if stated.kind == change.kind]

    assert [words for words in change.says if not any(words in says for says in found)] == []


def test_nothing_is_said_that_is_not_known() -> None:
    """Every stated change is one of the table, but for those that reading the sources again has added."""
    added = {
        "0.26.0": {"a shard that the index names and that is absent is refused"},
    }
    stray: list[str] = []
    for step, changes in CHANGES.items():
        known = [words for change in changes if change.kind is not None for words in change.says]
        stray += [
            f"{stated.release}: {stated.says}"
            for stated in diff(*step).stated
            if not any(words in stated.says for words in known) and stated.says not in added.get(stated.release, ())
        ]

    assert stray == []


def test_the_table_covers_the_chain() -> None:
    """The steps follow each other from the first release to the last."""
    steps = list(CHANGES)

    assert all(before[1] == after[0] for before, after in pairwise(steps))
    assert (steps[0][0], steps[-1][1]) == (shipped_releases()[0], shipped_releases()[-1])


def test_a_long_way_says_what_its_steps_say() -> None:
    """From the first release to the last everything is said that is said on the way, and nothing else."""
    releases = shipped_releases()
    whole = set(diff(releases[0], releases[-1]).stated)

    assert whole == {stated for step in pairwise(releases) for stated in diff(*step).stated}


def test_the_way_back() -> None:
    """From the newer release to the older one loosening and tightening change places, and each line says so."""
    there, back = diff("0.32.0", "0.33.0"), diff("0.33.0", "0.32.0")
    turned = {"loosens": "tightens", "tightens": "loosens", "semantics": "semantics", "other": "other"}

    assert back.backwards
    assert [(s.kind, s.says) for s in back.stated] == [(turned[s.kind], f"undone: {s.says}") for s in there.stated]
    assert [(r.kind, r.says) for r in back.rows] == [(turned[r.kind], f"undone: {r.says}") for r in there.rows]


def test_nothing_changed() -> None:
    """A release is no different from itself, and a patch release that changes nothing for drafts says so."""
    assert diff("0.32.0", "0.32.0") == Diff("0.32.0", "0.32.0", backwards=False, stated=(), rows=())
    assert "nothing that a draft checkpoint meets changed" in render_diff(diff("0.25.0", "0.25.1"), "text")


@pytest.mark.parametrize("fmt", ["text", "markdown", "json"])
def test_every_line_is_rendered(fmt: str) -> None:
    """Each form holds every stated change with its release."""
    found = diff("0.31.0", "0.33.0")
    text = render_diff(found, fmt)

    assert found.stated
    assert [s for s in found.stated if s.says not in text or s.release not in text] == []
