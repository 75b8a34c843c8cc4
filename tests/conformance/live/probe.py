"""The draft's first step on the CPU, attention stubbed to zeros.

It says what a checkpoint that loaded does at the first forward pass: width of the target's hidden states, look-up
of the mask token, mapping of ids. A step that raises is a refusal at profiling; see `outcome`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from conformance.live.told import described


if TYPE_CHECKING:
    from collections.abc import Callable


def probe(speculator: Any, draft: Any, target: Any, vocabulary: int) -> dict[str, Any]:
    """Step name to what it gave (text) or what it raised (see `described`)."""
    from vllm.model_executor.layers import attention

    def forward(self: Any, query: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return query.new_zeros(query.shape[0], self.num_heads * getattr(self, "head_size_v", self.head_size))

    attention.Attention.forward = forward
    steps = _Steps(draft, vocabulary)
    if steps.run("target_forward", lambda: steps.target(target)) and steps.run("combine", steps.combine):
        steps.run("context_kv", steps.context)
    if not hasattr(speculator, "parallel_drafting_token_id"):
        steps.out["draft_forward"] = f"skipped: {type(speculator).__name__}"
        return steps.out
    mask, queries = speculator.parallel_drafting_token_id, speculator.num_query_per_req
    if not steps.run("draft_forward", lambda: steps.forward(mask, queries)):
        return steps.out
    if hasattr(draft, "compute_draft_logits"):
        logits = steps.run("draft_logits", steps.dspark_logits)
        if getattr(draft.model, "confidence_head", None) is not None and (logits or steps.embedded is not None):
            steps.run("confidence", steps.confidence)
    elif hasattr(draft, "compute_candidates"):
        steps.run("draft_logits", steps.candidates)
    else:
        steps.run("draft_logits", steps.logits)
    return steps.out


class _Steps:
    """The steps, each with what the ones before it left."""

    def __init__(self, draft: Any, vocabulary: int) -> None:
        self.draft = draft
        self.vocabulary = vocabulary
        self.out: dict[str, Any] = {}
        self.embedded: torch.Tensor | None = None

    def run(self, name: str, step: Callable[[], str]) -> bool:
        """Take one step; False when it raised."""
        try:
            with torch.no_grad():
                self.out[name] = step()
        except Exception as error:  # noqa: BLE001 - what it raises is the answer
            self.out[name] = described(error)
            return False
        return True

    def target(self, model: Any) -> str:
        _, states = model(torch.tensor([3, 4, 5]), torch.arange(3), None)
        self.states = torch.cat(list(states), dim=-1)
        return f"aux {len(states)} x {states[0].shape[-1]}"

    def combine(self) -> str:
        self.combined = self.draft.combine_hidden_states(self.states)
        return f"{list(self.combined.shape)}"

    def context(self) -> str:
        self.draft.precompute_and_store_context_kv(self.combined, torch.arange(3), None)
        return "ok"

    def forward(self, mask: int, queries: int) -> str:
        self.queries = queries
        ids = torch.tensor([3] + [mask] * (queries - 1))
        self.hidden = self.draft(ids, torch.arange(3, 3 + queries), None)
        return f"{list(self.hidden.shape)}" + ("" if bool(self.hidden.isfinite().all()) else " NON-FINITE")

    def dspark_logits(self) -> str:
        logits = self.draft.compute_draft_logits(self.hidden)
        embedded = self.draft.markov_embed(torch.full((self.queries,), 3))
        bias = self.draft.markov_bias(embedded)
        total = logits + bias
        self.embedded = embedded
        self.draft.map_draft_to_target(total.argmax(-1))
        told = f"logits {list(logits.shape)} bias {list(bias.shape)}"
        mapped = self.draft.map_draft_to_target(torch.arange(logits.shape[-1]))
        low, high = int(mapped.min()), int(mapped.max())
        if high >= self.vocabulary or low < 0:
            told += f" MAPPED-IDS-OUT-OF-RANGE [{low},{high}]"
        elif len(set(mapped.tolist())) < len(mapped):
            told += " MAPPED-IDS-COLLIDE"
        return told + ("" if bool(total.isfinite().all()) else " NON-FINITE")

    def confidence(self) -> str:
        return f"{list(self.draft.compute_confidence(self.hidden, self.embedded).shape)}"

    def candidates(self) -> str:
        return f"candidates {list(self.draft.compute_candidates(self.hidden)[0].shape)}"

    def logits(self) -> str:
        return f"logits {list(self.draft.compute_logits(self.hidden).shape)}"
