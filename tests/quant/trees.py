"""Module trees and exclusion lists as they are met, and crooked ones, for tests of matching."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    import random

    from collections.abc import Callable, Sequence


LEAVES = ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj")
OUTSIDE = ("model.fc", "model.markov_head.markov_w2", "lm_head")
#: Pieces that entries are made of: run-time names, names on disk, trainers' names, parts of words.
STEMS = (
    "fc", "lm_head", "markov_w2", "markov_head", "self_attn", "mlp", "qkv_proj", "q_proj", "o_proj", "down_proj",
    "gate_up_proj", "layers.", "layers.0", "layers.1", "layers.8", "layers.10", "proj", "embed_tokens", "draft",
)  # fmt: skip
HEADS = (
    "",
    "",
    "model.",
    "*",
    "*.",
    "re:",
    "re:.*",
    "re:model\\.",
    "dflash_module.",
    "language_model.",
    "model*",
    "[m]odel.",
)
TAILS = ("", "", "*", ".*", ".", "$", "?", ".self_attn", ".mlp.down_proj", "_x", "\\..*")


def names(layers: int, offset: int) -> list[str]:
    """Run-time names of the modules of a draft with so many layers, numbered from `offset` on."""
    inside = [f"model.layers.{offset + i}.{leaf}" for i in range(layers) for leaf in LEAVES]
    return [*inside, *OUTSIDE]


def entry(pick: Callable[[Sequence[str]], str]) -> str:
    """One entry, put together by `pick`."""
    return pick(HEADS) + pick(STEMS) + pick(TAILS)


def random_lists(rnd: random.Random, number: int) -> list[tuple[list[str], list[str]]]:
    """(module names, entries) so many times."""
    return [
        (names(rnd.randint(1, 12), rnd.choice((0, 2, 8, 30))), [entry(rnd.choice) for _ in range(rnd.randint(0, 4))])
        for _ in range(number)
    ]
