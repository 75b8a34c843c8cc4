"""From a record of the harness to a verdict of the corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Mapping


#: Steps of the probe in their order; the first that raises decides.
_STEPS = ("target_forward", "combine", "context_kv", "draft_forward", "draft_logits", "confidence")
# The DeepSeek-V4 class refuses to be built on a CPU. No case has a draft of its kind: on a GPU each fails on the
# first key of a Qwen3 config that it misses.
_GPU_CLASS = "not implemented on CPU"
_STUB = "harness stub"
# What no release reads from a file, and nothing is lost by it: the marks of a reduced vocabulary, which are for
# training; a table that is computed; a placeholder.
_NEVER_READ = ("t2d", "rotary_emb.inv_freq", "mask_embedding")
_WRONG = {"MAPPED-IDS-OUT-OF-RANGE": "mapped-ids-out-of-range", "MAPPED-IDS-COLLIDE": "mapped-ids-collide"}
MESSAGE = 200


def verdict(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the record says: outcome, and what shows it."""
    if record["verdict"] == "harness-error":
        return {"outcome": "unjudged"}
    if record.get("cpu_artifact") and _GPU_CLASS not in record["message"]:
        return {"outcome": "unjudged"}
    if record["verdict"] != "loaded":
        return _refused(record.get("stage"), record)
    probed = record.get("probe") or {}
    if "harness" in probed:
        return {"outcome": "unjudged"}
    for step in _STEPS:
        if isinstance(probed.get(step), dict):
            # A kernel that only loads says nothing of what the real one would compute.
            if _STUB in probed[step]["message"]:
                break
            return _refused(f"profile:{step}", probed[step])
    shown: dict[str, Any] = {
        key: record[key] for key in ("unwritten", "unwritten_folded", "partly_written", "truncated") if record.get(key)
    }
    logits = probed.get("draft_logits")
    wrong = [name for mark, name in _WRONG.items() if isinstance(logits, str) and mark in logits]
    if wrong:
        shown["wrong"] = wrong
    if shown:
        return {"outcome": "silent", **shown}
    dropped = [name for name in record.get("unconsumed", ()) if not any(part in name for part in _NEVER_READ)]
    return {"outcome": "dropped", "dropped": dropped} if dropped else {"outcome": "clean"}


def _refused(stage: str | None, error: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "outcome": "refused",
        "stage": stage,
        "error": error.get("exc"),
        "message": (error.get("message") or "")[:MESSAGE],
    }
