"""Small drafts for the tests of families: a recorded base with changes, and what the tool finds in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from conformance.live.cases import Spec, add, from_case, to_case
from conformance.recorded import lint_case, read_corpus


Change = Callable[[Spec], None]
Found = tuple[str, str, str]
"""Rule, effect, and what it is about: a pointer, a tensor, or nothing for the speculative config."""


@cache
def _bases() -> dict[str, Any]:
    return {case["id"]: case for case in read_corpus("loader") if case["id"].startswith("base.")}


def draft(base: str, *changes: Change) -> dict[str, Any]:
    """A recorded base, or one made of it here (`xpress`, `beam`), with changes, as a case of a corpus."""
    spec = from_case(_bases()[MADE[base][0] if base in MADE else base])
    for change in (*MADE.get(base, ("", ()))[1], *changes):
        change(spec)
    return to_case("made", "made", spec)


def told(base: str, *changes: Change, vllm: str = "0.32.0", quiet: tuple[str, ...] = ()) -> list[Found]:
    """Every finding under one release, sorted; `quiet` leaves rules out that the test is not about."""
    (result,) = lint_case(draft(base, *changes), f"=={vllm}").values()
    assert result.verdict != "unchecked"
    return sorted((f.rule, f.effect, f.pointer or f.tensor or "") for f in result.findings if f.rule not in quiet)


def messages(base: str, *changes: Change, vllm: str = "0.32.0") -> str:
    """The messages and fixes of every finding under one release."""
    (result,) = lint_case(draft(base, *changes), f"=={vllm}").values()
    return "\n".join(f"{f.message} [{f.fix}]" for f in result.findings)


def keys(**values: Any) -> Change:
    """Set keys at the top level and, for a dictionary, inside the one that is there."""

    def change(spec: Spec) -> None:
        for key, value in values.items():
            if isinstance(value, dict) and isinstance(spec.config.get(key), dict):
                spec.config[key].update(value)
            else:
                spec.config[key] = value

    return change


def without(*paths: str) -> Change:
    """Take keys out: ``a``, or ``a.b`` for one inside."""

    def change(spec: Spec) -> None:
        for path in paths:
            *outer, last = path.split(".")
            place = spec.config
            for name in outer:
                place = place[name]
            del place[last]

    return change


def tensors(**shapes: tuple[int, ...]) -> list[Change]:
    """Add tensors, or give them another shape; ``__`` in a name stands for a dot."""
    return [add(name.replace("__", "."), *dims) for name, dims in shapes.items()]


RANK, HIDDEN, BLOCK, TILE, ROWS = 16, 64, 4, 64, 256
REFINER = {
    "w1.weight": (ROWS, RANK),
    "w2.weight": (ROWS, RANK),
    "down_h.weight": (RANK, HIDDEN),
    "down_g.weight": (RANK, HIDDEN),
    "in_proj.weight": (RANK, 3 * RANK),
    "mix.L": (RANK, BLOCK, BLOCK),
    "mlp.gate_proj.weight": (TILE, RANK),
    "mlp.up_proj.weight": (TILE, RANK),
    "mlp.down_proj.weight": (RANK, TILE),
}
#: Families that no recorded base is of: made of another one.
MADE: dict[str, tuple[str, tuple[Change, ...]]] = {
    "xpress": (
        "base.dflash",
        (
            keys(architectures=["Qwen3XPressModel"], xpress_block_size=BLOCK, xpress_rank=RANK, xpress_mlp_hidden=TILE),
            *(add(f"xpress_head.{name}", *dims) for name, dims in REFINER.items()),
        ),
    ),
    "beam": (
        "base.dflash2",
        (
            keys(
                architectures=["DFlash2BeamDraftModel"],
                layer_types=["sliding_attention"] * 2,
                sliding_window=16,
                use_sliding_window=True,
                is_causal=False,
                dflash_config={"final_logit_softcapping": 30.0},
            ),
        ),
    ),
}
