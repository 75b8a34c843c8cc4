"""DRF: two places that state one fact and disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.rules.base import Context, Rule, config_file, finding, in_contract, key_place
from dspark_lint.words import as_json


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.binding import Key
    from dspark_lint.finding import Finding


def _at(config: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    node: Any = config
    for name in path.split("."):
        if isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node:
            node = node[name]
        else:
            return False, None
    return True, node


def same_fact(ctx: Context) -> Iterator[Finding]:
    """DRF001: one fact written in several places with different values."""
    binding = ctx.binding
    for name, clause in binding.family.get("same_fact", {}).items():
        if not clause or evaluate(str(clause.get("when", "true")), binding) is False:
            continue
        stated: list[tuple[str, Any]] = []
        for place in clause["places"]:
            path = place if isinstance(place, str) else place["path"]
            there, value = _at(binding.config, path)
            if there and value is not None:
                if isinstance(place, dict) and "value" in place:
                    from dspark_lint.runtime_config import PlainScope  # noqa: PLC0415 - only where a place needs mapping

                    value = evaluate(place["value"], PlainScope({"it": value}))
                if value is not UNKNOWN:
                    stated.append((path, value))
        if len(stated) < 2 or all(_same(stated[0][1], v) for _, v in stated[1:]):
            continue
        key = _read_key(ctx, clause.get("key", name), [p for p, _ in stated])
        if key is not None and key.trouble:
            continue
        read = key_place(key) if key is not None and key.origin == "file" else None
        said = ", ".join(f"{p} = {as_json(v)}" for p, v in stated)
        takes = f"takes {read}" if read else "reads none of them"
        other = next((p for p, v in stated if p != read and not _same(v, key.raw if key else None)), stated[-1][0])
        yield finding(
            ctx,
            "DRF001",
            {"effect": "silent", "severity": "warning", "source": key.clause.get("source") if key else None, **clause},
            f"{clause.get('title', name)} is written in {len(stated)} places that disagree ({said}); vLLM {ctx.release} {takes}.",
            file=config_file(ctx),
            pointer="/" + other.replace(".", "/"),
            expected=f"one value, {as_json(key.raw)}" if key and read else "one value",
            found=said,
            fix="write the trained value in every place, or in the place that is read alone",
        )


def _read_key(ctx: Context, name: str, places: list[str]) -> Key | None:
    """Return the key that reads the fact: the one of that name, else the first of the family that stands at a place."""
    if name in ctx.binding.keys:
        return ctx.binding.keys[name]
    pointers = {"/" + p.replace(".", "/") for p in places}
    for key in ctx.binding.keys.values():
        if key.pointer in pointers and key.origin == "file":
            return key
    return None


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        return a.lower() == b.lower()
    return bool(a == b)


RULES = (
    Rule(
        "DRF001",
        "One fact is written twice and drifts",
        "Exporters write markov_rank, mask_token_id, target_layer_ids and the block size both at the top level and under dflash_config. A release reads one of them; the other misleads every other reader, and the release's next version may read that one.",
        "Write the trained value in both places, or in the one that is read.",
        "warning",
        "silent",
        same_fact,
        ("family",),
        fires='"mask_token_id": 151669 beside "dflash_config": {"mask_token_id": 151668}',
        quiet="both 151669",
    ),
    Rule(
        "DRF002",
        "The block layout contradicts itself",
        "Whether the first draft token is sampled at the anchor or the anchor is a bonus token decides which positions the draft was trained on; served the other way every token is off by one.",
        "Write sample_from_anchor as trained, at the top level.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="sample_from_anchor: true with speculative_tokens = block_size - 1",
        quiet="speculative_tokens = block_size",
    ),
    Rule(
        "DRF003",
        "The confidence head's flags, tensors and width contradict each other",
        "Two flags and two tensors describe the head. With the flag off its tensors are dropped without a word; with the flag on and no tensors the head is; with the wrong width flag the load fails.",
        "Set enable_confidence_head and confidence_head_with_markov at the top level as the tensors say.",
        "error",
        "refused",
        in_contract,
        ("family", "weights"),
        fires="confidence_head.proj.weight of hidden + markov_rank columns without confidence_head_with_markov",
        quiet='"confidence_head_with_markov": true',
    ),
    Rule(
        "DRF004",
        "The Markov head's type and its tensors contradict each other",
        "No release reads markov_head_type for a Qwen3 draft: a gated or rnn head is served as vanilla when its extra tensors were stripped, and refused when they are there.",
        "Export a vanilla head.",
        "warning",
        "silent",
        in_contract,
        ("family", "weights"),
        fires='"markov_head_type": "gated" without markov_head.gate_proj.weight',
        quiet='"markov_head_type": "vanilla"',
    ),
    Rule(
        "DRF005",
        "Two lists of target layers disagree",
        "The flat list counts layers from 0 and means their output; the eagle list counts boundaries and is one higher. The first in the release's order wins, and an unsorted list feeds fc its blocks in another order than it was trained with.",
        "Write one list, strictly increasing, or two that differ by exactly one.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires="target_layer_ids [1, 9, 17] beside eagle_aux_hidden_state_layer_ids [1, 9, 17]",
        quiet="[2, 10, 18]",
    ),
    Rule(
        "DRF006",
        "The attention settings contradict each other or the training",
        "Windows, causality and rope are read from several places with an order of their own; what is shadowed is not served.",
        "Write the setting where the release reads it.",
        "warning",
        "silent",
        in_contract,
        ("family",),
        fires='"use_swa": true beside layer_types that name sliding layers',
        quiet="layer_types alone",
    ),
)
