"""TGT: targets that ask for more: Qwen3-Omni, DeepSeek, multimodal ones, quantized ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.live.cases import Spec, target
from rules.build import (
    BLOCK,
    DEPTH,
    HIDDEN,
    ROWS,
    Change,
    Told,
    at,
    findings,
    made,
    results,
    served,
    several,
    told,
    without,
    write,
)
from rules.silent_changes import spec as built
from rules.test_tgt import masked, tapped

from dspark_lint import lint


if TYPE_CHECKING:
    from pathlib import Path


def thinking(spec: Spec) -> None:
    """The target's text part inside the thinker of an Omni target."""
    text = {key: value for key, value in spec.target.items() if key != "architectures"}
    spec.target = {
        "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
        "model_type": "qwen3_omni_moe",
        "thinker_config": {"model_type": "qwen3_omni_moe_thinker", "text_config": text},
    }


def thinker(**keys: Any) -> Change:
    """Set keys of an Omni target's text part."""
    return lambda spec: spec.target["thinker_config"]["text_config"].update(keys)


#: A flat DSpark draft as the validator of Omni targets wants it, beside one.
OMNI = several(
    thinking,
    at("architectures", ["Qwen3OmniDSparkModel"]),
    at("target_hidden_size", HIDDEN),
    at("use_aux_hidden_state", True),
)


def refused(rule: str, where: str) -> list[Told]:
    return [Told(rule, "error", "refused", where)]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ((), []),
        ((at("architectures", ["Qwen3DSparkModel"]),), refused("ARC008", "/architectures")),
        ((without("block_size"),), refused("ARC008", "/block_size")),
        ((served(method="dspark", num_speculative_tokens=BLOCK - 1),), refused("ARC008", "")),
        ((without("target_hidden_size"),), refused("TGT003", "/target_hidden_size")),
        ((thinker(num_key_value_heads=1),), refused("TGT003", "/num_attention_heads")),
        ((thinker(head_dim=32),), refused("TGT003", "/num_attention_heads")),
        ((tapped(4, 1, 6),), refused("TGT004", "/target_layer_ids")),
        ((tapped(-1, 1, 6),), refused("TGT004", "/target_layer_ids")),
        ((tapped(1, 4, DEPTH),), refused("TGT004", "/target_layer_ids")),
        ((without("use_aux_hidden_state"),), refused("KEY003", "/dflash_config/use_aux_hidden_state")),
        ((at("markov_head_type", "Vanilla"), at("dflash_config.markov_head_type", "Vanilla")), refused("DRF004", "/markov_head_type")),
        ((at("sample_from_anchor", False), without("dflash_config.shift_label", "dflash_config.projector_type")), refused("DRF002", "/sample_from_anchor")),
        ((at("dspark_bonus_anchor", True),), refused("DRF002", "/sample_from_anchor")),
        ((masked(ROWS),), refused("TGT005", "/dflash_config/mask_token_id")),
        ((at("mrope_section", [8, 4, 4]),), refused("TGT006", "/rope_parameters")),
    ],
    ids=[
        "as it wants it", "another class", "no block", "fewer tokens", "no target width", "other heads", "other head size",
        "unsorted layers", "a negative layer", "a layer too many", "hidden states not asked for", "a type in capitals",
        "a bonus token", "a bonus token, said the old way", "mask token", "sections",
    ],
)  # fmt: skip
def test_omni(changes: tuple[Change, ...], found: list[Told]) -> None:
    """Beside a Qwen3-Omni target the draft's configuration is validated strictly, and each refusal is one finding."""
    assert [t for t in told(findings("native", OMNI, *changes)) if t.severity == "error"] == found


@pytest.mark.parametrize(("release", "rule"), [("0.28.0", "ARC002"), ("0.29.0", None), ("0.33.0", None)])
def test_omni_is_known_from_0_29(release: str, rule: str | None) -> None:
    """Before, the draft's class is taken for a DeepSeek draft."""
    assert [f.rule for f in findings("native", OMNI, vllm=release) if f.severity == "error"] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ((), []),
        ((at("dspark_target_layer_ids", [1, 4, DEPTH]),), refused("TGT004", "/dspark_target_layer_ids")),
        ((at("dspark_target_layer_ids", [1, 1, 6]),), refused("TGT004", "/dspark_target_layer_ids")),
        (
            (at("dspark_target_layer_ids", [4, 1, 6]),),
            [Told("DRF005", "warning", "silent", "/dspark_target_layer_ids")],
        ),
        ((at("dspark_noise_token_id", ROWS),), [Told("TGT005", "error", "silent", "/dspark_noise_token_id")]),
        ((without("dspark_markov_rank"),), refused("KEY001", "/dspark_markov_rank")),
    ],
    ids=["as it should be", "a layer too many", "a layer twice", "out of order", "mask token", "no rank"],
)
def test_deepseek(changes: tuple[Change, ...], found: list[Told]) -> None:
    """A draft inside its DeepSeek target is held against the layers and rows of the file that it stands in."""
    (result,) = linted(built("deepseek", changes)).values()

    assert told(result) == found


def linted(spec: Spec, vllm: str = "==0.32.0") -> dict[str, Any]:
    """The findings of a spec by release."""
    return {release: result.findings for release, result in results(spec, vllm).items()}


QUANTIZED = target(quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"})


@pytest.mark.parametrize("base", ["native", "speculators", "dflash"])
def test_a_quantized_target_leaves_its_draft_alone(base: str) -> None:
    """A Qwen3-backed draft takes its own quantization, and none is none, in every release."""
    plain, beside = linted(made(base), "all"), linted(made(base, QUANTIZED), "all")

    assert {release: told(found) for release, found in beside.items()} == {r: told(f) for r, f in plain.items()}


def test_gemma4_took_its_target_s_quantization_once() -> None:
    """0.26 builds a Gemma4 draft with the target's quantization; no other release does."""
    assert {
        release
        for release, found in linted(made("gemma4", QUANTIZED), "all").items()
        if "QNT005" in {f.rule for f in found}
    } == {"0.26.0"}


@pytest.mark.parametrize("place", ["text_config", "thinker_config.text_config", "llm_config", "language_config"])
@pytest.mark.parametrize("file", [False, True], ids=["directory", "config.json"])
def test_a_multimodal_target_is_its_text_part(place: str, file: bool, tmp_path: Path) -> None:
    """The sizes are looked up in the text part, whatever stands at the top, of a directory or of a config.json."""
    spec = made("native", at("rope_theta", 500.0))
    text: dict[str, Any] = spec.target
    for name in reversed(place.split(".")):
        text = {name: text, "vocab_size": 1, "hidden_size": 1, "num_hidden_layers": 1, "rope_theta": 500.0}
    spec.target = {**text, "architectures": ["Qwen3VLForConditionalGeneration"]}
    draft, beside = write(spec, tmp_path)
    assert beside is not None

    (result,) = (
        lint(draft, vllm="==0.32.0", target=beside / "config.json" if file else beside, speculative_config=spec.serve)
        .checkpoints[0]
        .results
    )

    assert told(result.findings) == [Told("TGT006", "warning", "silent", "/rope_theta")]
