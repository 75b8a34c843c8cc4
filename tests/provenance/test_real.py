"""The shipped contracts beside the real source.

The records are checked always. The rest needs a directory with the sources of the releases, ``vllm-X.Y.Z`` folders of
unpacked wheels or the wheels themselves, in the environment variable DSPARK_LINT_VLLM_SOURCES; transformers may lie
there too.
"""

from __future__ import annotations

import json
import os

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dspark_lint.cli.provenance import recorded_of, tree_of
from dspark_lint.contract.load import load_raw, shipped_releases
from dspark_lint.contract.paths import contracts_dir
from dspark_lint.errors import UsageError
from dspark_lint.provenance.record import cited, dump, record
from dspark_lint.provenance.scaffold import scaffold
from dspark_lint.provenance.source import SourceTree
from dspark_lint.provenance.verify import verify


if TYPE_CHECKING:
    from dspark_lint.provenance.draft import ReviewItem


SOURCES = os.environ.get("DSPARK_LINT_VLLM_SOURCES", "")
real = pytest.mark.skipif(not SOURCES, reason="DSPARK_LINT_VLLM_SOURCES names no directory of sources")


@lru_cache(maxsize=4)
def source(release: str, package: str = "vllm") -> SourceTree:
    try:
        return tree_of(release, SOURCES, package)
    except UsageError as e:
        pytest.skip(str(e))


def transformers(release: str) -> SourceTree | None:
    try:
        return tree_of(load_raw(release)["transformers"], SOURCES, "transformers")
    except UsageError:
        return None


@pytest.mark.parametrize("release", shipped_releases())
def test_everything_cited_is_recorded(release: str) -> None:
    """No clause without a line, no line without a clause; `dspark-lint contracts record` brings a record up to date."""
    assert sorted(recorded_of(release)) == list(cited(load_raw(release)))


@pytest.mark.parametrize("release", shipped_releases())
def test_records_are_written_as_the_tool_writes_them(release: str) -> None:
    """A record edited by hand, or by another program, would make the next difference unreadable."""
    path = Path(contracts_dir(), "vllm", "sources", f"{release}.json")
    text = path.read_text(encoding="utf-8")
    assert text == dump(json.loads(text))


@real
@pytest.mark.parametrize("release", shipped_releases())
def test_shipped_contracts_verify(release: str) -> None:
    """Every citation, list, key and default of every release holds for its own source."""
    assert verify(load_raw(release), recorded_of(release), source(release), transformers(release)) == []


@real
def test_neighbouring_releases_do_not_verify() -> None:
    """The contract of one release beside the source of the next: the check sees what changed."""
    kinds = {issue.kind for issue in verify(load_raw("0.32.0"), recorded_of("0.32.0"), source("0.33.0"))}
    assert {"release", "changed", "architecture", "list", "lost"} <= kinds


@real
@pytest.mark.parametrize(
    ("path", "old", "new", "cited_in"),
    [
        (
            "model_executor/models/qwen3_dspark.py",
            "config.markov_rank,",
            "config.markov_rank + 0,",
            "dspark::Qwen3DSparkModel.__init__",
        ),
        (
            "model_executor/models/qwen3_dflash.py",
            'getattr(config, "attention_bias", False)',
            'getattr(config, "attention_bias", True)',
            "dflash::DFlashQwen3DecoderLayer.__init__",
        ),
        (
            "v1/worker/gpu/spec_decode/utils.py",
            '"dspark_noise_token_id"',
            '"dspark_noise_id"',
            "spec_utils::get_parallel_drafting_token_id",
        ),
        (
            "transformers_utils/configs/speculators/algos.py",
            '"sample_from_anchor", False',
            '"sample_from_anchor", True',
            "algos::update_dspark",
        ),
    ],
    ids=["a constructor", "a default", "a key", "the speculators reader"],
)
def test_an_altered_real_definition_fails(path: str, old: str, new: str, cited_in: str) -> None:
    """One word of a real definition, and the contract no longer verifies: the citation is named."""
    tree = SourceTree(source("0.32.0").path)
    text = tree.text(path)
    assert text is not None
    assert old in text
    tree._texts[path] = text.replace(old, new)
    issues = verify(load_raw("0.32.0"), recorded_of("0.32.0"), tree)
    assert any(issue.kind in ("changed", "lost") and issue.subject.startswith(cited_in) for issue in issues)


def sample() -> dict[str, Any]:
    """Return a small contract of 0.32.0 that cites what decides about a draft, quantization too."""
    aliases = {
        "registry": "model_executor/models/registry.py",
        "dflash": "model_executor/models/qwen3_dflash.py",
        "dspark": "model_executor/models/qwen3_dspark.py",
        "utils": "model_executor/models/utils.py",
        "modelopt": "model_executor/layers/quantization/modelopt.py",
        "speculative": "config/speculative.py",
        "convertor": "transformers_utils/model_arch_config_convertor.py",
        "algos": "transformers_utils/configs/speculators/algos.py",
        "hf_config": "transformers_utils/config.py",
        "aux": "v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    }
    return {
        "release": "0.32.0",
        "sources": aliases,
        "registry": {"source": "registry::_SPECULATIVE_DECODING_MODELS", "other_drafts": dict.fromkeys(others(), True)},
        "architectures": {
            "DFlashDraftModel": {"family": "dflash", "source": "registry::_SPECULATIVE_DECODING_MODELS::DFlashDraftModel"},
            "Qwen3DSparkModel": {"family": "dspark", "source": "registry::_SPECULATIVE_DECODING_MODELS::Qwen3DSparkModel"},
        },
        "serve": {"tensor_parallel": {"source": "speculative::SpeculativeConfig._verify_and_get_draft_tp"}},
        "model_types": dict.fromkeys(("muse_glimmer", "muse_glimmer_assistant"), "C"),
        "families": {
            "dflash": {
                "loader": "dflash::DFlashQwen3ForCausalLM.load_weights",
                "keys": {"context": {"lookup": ["max_position_embeddings"], "source": "speculative::SpeculativeConfig._maybe_override_draft_max_position_embeddings"}},
                "tensors": {
                    "sink": {"source": "dflash::DFlashQwen3Attention.__init__::self.attention_sink_bias"},
                    "fc": {"source": "dflash::DFlashQwen3Model.__init__::self.fc = ReplicatedLinear"},
                },
                "renames": {"encoder": {"source": "dflash::DFlashQwen3Model.hf_to_vllm_mapper::encoder.fc."}},
                "quantization": {
                    "names": {"source": "dflash::_add_global_draft_layer_exclusions"},
                    "flat": {"source": "modelopt::ModelOptQuantConfigBase.from_config::exclude_modules"},
                    "mixed": {"source": "convertor::ModelArchConfigConvertorBase._normalize_quantization_config"},
                },
            },
            "dspark": {
                "like": "dflash",
                "loader": "dspark::Qwen3DSparkForCausalLM.load_weights",
                "keys": {"markov_rank": {"lookup": ["markov_rank"], "source": "dspark::Qwen3DSparkModel.__init__::config.markov_rank"}},
                "reader": {"source": "algos::update_dspark"},
                "ids": {"source": "aux::get_eagle3_aux_layers_from_config"},
            },
        },
        "audit": {"lists": {"model_types": {"of": "keys", "source": "hf_config::_CONFIG_REGISTRY", "in": "model_types", "except": ["[!m]*", "m[!u]*"]}}},
    }  # fmt: skip


def others() -> list[str]:
    """Return the drafts of 0.32.0 that the sample leaves out."""
    raw = load_raw("0.32.0")
    known = {*raw["registry"]["other_drafts"], *raw["architectures"]}
    return sorted(known - {"DFlashDraftModel", "Qwen3DSparkModel"})


@lru_cache(maxsize=1)
def to_0_33() -> dict[str, list[ReviewItem]]:
    """Scaffold 0.33.0 from the sample, and return its review by kind."""
    old, new = source("0.32.0"), source("0.33.0")
    found = record(sample(), old)
    assert not found.lost
    review = scaffold(sample(), found.record, new, "0.33.0", previous_tree=old).review
    return {kind: [i for i in review if i.kind == kind] for kind in {item.kind for item in review}}


@real
@pytest.mark.parametrize("name", ["Qwen3XPressModel", "DFlash2BeamDraftModel", "MuseSparkDSparkModel"])
def test_0_33_new_architectures(name: str) -> None:
    """The three drafts that 0.33.0 knows anew, each with what it derives from."""
    (item,) = [i for i in to_0_33()["architecture"] if i.subject == name]
    assert (item.clauses == (f"architectures.{name}",)) is (name != "DFlash2BeamDraftModel")
    assert ("it derives from DFlashQwen3ForCausalLM, which serves dflash" in item.detail) is (
        name != "DFlash2BeamDraftModel"
    )


@real
@pytest.mark.parametrize(
    ("kind", "subject", "words"),
    [
        (
            "lost",
            "model_executor/models/qwen3_dflash.py::_add_global_draft_layer_exclusions",
            "has no _add_global_draft_layer_exclusions",
        ),
        (
            "changed",
            "model_executor/models/qwen3_dflash.py::DFlashQwen3Model.__init__",
            "+        map_draft_quant_config(",
        ),
        (
            "changed",
            "model_executor/layers/quantization/modelopt.py::ModelOptQuantConfigBase.from_config",
            "exclude_modules",
        ),
        (
            "changed",
            "transformers_utils/model_arch_config_convertor.py::ModelArchConfigConvertorBase._normalize_quantization_config",
            "MIXED_PRECISION",
        ),
        (
            "lost",
            "model_executor/models/qwen3_dflash.py::DFlashQwen3Model.hf_to_vllm_mapper",
            "encoder.fc.: 423 -> gone",
        ),
        ("changed", "model_executor/models/qwen3_dflash.py::DFlashQwen3Attention.__init__", "make_attention_sink"),
        (
            "changed",
            "config/speculative.py::SpeculativeConfig._maybe_override_draft_max_position_embeddings",
            "_rope_only_sizes_cache",
        ),
        ("changed", "config/speculative.py::SpeculativeConfig._verify_and_get_draft_tp", ""),
        ("list", "model_types", "gone: muse_glimmer, muse_glimmer_assistant"),
    ],
    ids=[
        "quantization names",
        "their mapping",
        "flat exclude_modules",
        "legacy MIXED_PRECISION",
        "renames",
        "sinks",
        "rope",
        "tensor parallel",
        "Muse-Glimmer",
    ],
)
def test_0_33_every_change_is_found(kind: str, subject: str, words: str) -> None:
    """Each change from 0.32.0 to 0.33.0 that concerns files on disk is put before the reader, with the code that says it."""
    (item,) = [i for i in to_0_33()[kind] if i.subject == subject]
    assert words in "\n".join([item.message, *item.detail])


@real
def test_0_33_what_did_not_change_is_inherited() -> None:
    """The speculators reader, the list of tapped layers and the DSpark model itself are not put before the reader."""
    subjects = {i.subject for items in to_0_33().values() for i in items}
    assert not {
        s
        for s in subjects
        if s.startswith(("transformers_utils/configs/speculators", "model_executor/models/qwen3_dspark"))
    }
    assert "v1/worker/gpu/spec_decode/eagle/eagle3_utils.py::get_eagle3_aux_layers_from_config" not in subjects


@real
def test_0_33_the_shipped_contract_scaffolds() -> None:
    """The whole contract of 0.32.0, as if 0.33.0 had just appeared: it names the drafts that 0.33.0 has and 0.32.0 has not."""
    found = scaffold(load_raw("0.32.0"), recorded_of("0.32.0"), source("0.33.0"), "0.33.0")
    new = {i.subject for i in found.review if i.kind == "architecture" and i.clauses[0].startswith("architectures.")}
    assert new == set(load_raw("0.33.0")["architectures"]) - set(load_raw("0.32.0")["architectures"])
    assert found.inherited > 200
