"""A real exporter's own test: speculators' classes write a tiny draft, and assert_loadable says whether vLLM serves it.

Needs the extra `exporters`.
"""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

import pytest

from support import neutral_directory


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dspark_lint.finding import Report

pytest.importorskip("speculators", reason="needs the extra `exporters`", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours to refuse

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
RELEASES = "0.27..0.33"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose path says nothing of a method, with a target's config.json in ``target``."""
    from transformers import Qwen3Config

    with neutral_directory() as scratch:
        target = Qwen3Config(
            **SIZES, num_hidden_layers=8, vocab_size=256, rope_theta=1e6, architectures=["Qwen3ForCausalLM"]
        )
        target.save_pretrained(scratch / "target")
        yield scratch


def export(place: Path, **settings: Any) -> Path:
    """Write a DSpark draft as a training run of speculators ends."""
    from speculators import SpeculatorsConfig, VerifierConfig
    from speculators.models.dspark.config import DSparkSpeculatorConfig
    from speculators.models.dspark.core import DSparkDraftModel
    from speculators.proposals import GreedyTokenProposalConfig
    from transformers import Qwen3Config

    config = DSparkSpeculatorConfig(
        transformer_layer_config=Qwen3Config(**SIZES, num_hidden_layers=2, vocab_size=256, rope_theta=1e6),
        speculators_config=SpeculatorsConfig(
            algorithm="dspark",
            default_proposal_method="greedy",
            proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=4)],
            verifier=VerifierConfig(name_or_path=str(place / "target"), architectures=["Qwen3ForCausalLM"]),
        ),
        **{
            "draft_vocab_size": 256,
            "block_size": 4,
            "aux_hidden_state_layer_ids": [2, 5, 7],
            "mask_token_id": 255,
            "markov_rank": 8,
            **settings,
        },
    )
    draft = place / "export"
    DSparkDraftModel(config).save_pretrained(draft)
    return draft


def test_an_export_is_served(place: Path, assert_loadable: Callable[..., Report]) -> None:
    """What the exporter writes, every release with speculators DSpark serves as it was trained."""
    report = assert_loadable(
        export(place), vllm=RELEASES, target=place / "target", require=["TEN", "TGT", "VAL"], deep=True
    )

    assert {r.verdict for r in report.checkpoints[0].results} == {"ok"}


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"markov_head_type": "gated"}, "DRF004"),
        ({"mask_token_id": 256}, "TGT005"),
        ({"aux_hidden_state_layer_ids": [7, 5, 2]}, "DRF005"),
    ],
)
def test_a_setting_that_is_not_served(
    settings: dict[str, Any], rule: str, place: Path, assert_loadable: Callable[..., Report]
) -> None:
    """A setting that the exporter takes and vLLM does not serve fails the exporter's test, by rule."""
    with pytest.raises(AssertionError, match=rule):
        assert_loadable(export(place, **settings), vllm="0.32", target=place / "target")


def test_a_step_after_the_export_that_breaks_it(place: Path, assert_loadable: Callable[..., Report]) -> None:
    """A rename in a script of one's own is found before anyone serves the draft."""
    draft = export(place)
    config = json.loads((draft / "config.json").read_text("utf-8"))
    config["anchor"] = config.pop("sample_from_anchor")
    (draft / "config.json").write_text(json.dumps(config), "utf-8")

    with pytest.raises(AssertionError, match="sample_from_anchor"):
        assert_loadable(draft, vllm="0.32", target=place / "target")
