"""Tiny real checkpoints: a base as an exporter writes it, with changes, and what the tool finds in it.

A base is a `Spec` of `conformance.live.cases`, so its mutations work here too. Every base lints clean under vLLM 0.32.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import struct

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.live.cases import WEIGHTS, Spec, from_case
from conformance.recorded import read_corpus
from support import neutral_directory, write_file

from dspark_lint import lint
from dspark_lint.manifest.rows import Tensor
from dspark_lint.manifest.write import header


if TYPE_CHECKING:
    from pathlib import Path

    from dspark_lint.finding import Finding, Result


Change = Callable[[Spec], None]

HIDDEN, MLP, LAYERS, HEADS, KV, HEAD, ROWS, RANK, BLOCK, DEPTH = 64, 128, 2, 4, 2, 16, 256, 8, 4, 8
IDS = [1, 4, 6]
RELEASES = ("0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")  # fmt: skip

LAYER_KEYS: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": HIDDEN,
    "intermediate_size": MLP,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": HEAD,
    "vocab_size": ROWS,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
    "layer_types": ["full_attention"] * LAYERS,
}
TARGET: dict[str, Any] = {
    **{k: v for k, v in LAYER_KEYS.items() if k not in ("rope_scaling", "layer_types")},
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": DEPTH,
}
#: One decoder layer of a Qwen3 backbone.
LAYER: dict[str, tuple[int, ...]] = {
    "input_layernorm.weight": (HIDDEN,),
    "post_attention_layernorm.weight": (HIDDEN,),
    "self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
    "self_attn.k_proj.weight": (KV * HEAD, HIDDEN),
    "self_attn.v_proj.weight": (KV * HEAD, HIDDEN),
    "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
    "self_attn.q_norm.weight": (HEAD,),
    "self_attn.k_norm.weight": (HEAD,),
    "mlp.gate_proj.weight": (MLP, HIDDEN),
    "mlp.up_proj.weight": (MLP, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, MLP),
}
BACKBONE: dict[str, tuple[int, ...]] = {
    "fc.weight": (HIDDEN, len(IDS) * HIDDEN),
    "hidden_norm.weight": (HIDDEN,),
    "norm.weight": (HIDDEN,),
    **{f"layers.{i}.{name}": dims for i in range(LAYERS) for name, dims in LAYER.items()},
}
MARKOV: dict[str, tuple[int, ...]] = {"markov_w1.weight": (ROWS, RANK), "markov_w2.weight": (ROWS, RANK)}
CONFIDENCE: dict[str, tuple[int, ...]] = {"proj.weight": (1, HIDDEN + RANK), "proj.bias": (1,)}
TABLES: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (ROWS, HIDDEN), "lm_head.weight": (ROWS, HIDDEN)}


def _under(prefix: str, tensors: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {prefix + name: dims for name, dims in tensors.items()}


def _spec(config: dict[str, Any], serve: dict[str, Any], *tensors: dict[str, tuple[int, ...]]) -> Spec:
    kinds = {name: ("BF16", dims) for group in tensors for name, dims in group.items()}
    return Spec(copy.deepcopy(config), kinds, {}, copy.deepcopy(TARGET), dict(serve), {})


def native() -> Spec:
    """A flat DSpark draft with every key written out."""
    heads = {"markov_rank": RANK, "markov_head_type": "vanilla"}
    config = {
        "architectures": ["Qwen3DSparkModel"],
        **LAYER_KEYS,
        "num_target_layers": DEPTH,
        "block_size": BLOCK,
        "mask_token_id": ROWS - 1,
        "target_layer_ids": IDS,
        **heads,
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
        "sample_from_anchor": True,
        "dflash_config": {
            "mask_token_id": ROWS - 1,
            "target_layer_ids": IDS,
            "projector_type": "dspark",
            "shift_label": True,
            **heads,
            "use_confidence_head": True,
        },
    }
    serve = {"method": "dspark", "num_speculative_tokens": BLOCK}
    return _spec(config, serve, BACKBONE, _under("markov_head.", MARKOV), _under("confidence_head.", CONFIDENCE))


def speculators() -> Spec:
    """A DSpark draft as speculators writes it, with its own copies of the target's tables."""
    config = {
        "architectures": ["DSparkDraftModel"],
        "speculators_model_type": "dspark",
        "speculators_config": {
            "algorithm": "dspark",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": BLOCK}],
            "verifier": {"name_or_path": "@TARGET@", "architectures": ["Qwen3ForCausalLM"]},
        },
        "transformer_layer_config": LAYER_KEYS,
        "draft_vocab_size": ROWS,
        "block_size": BLOCK,
        "target_hidden_size": None,
        "aux_hidden_state_layer_ids": [i + 1 for i in IDS],
        "mask_token_id": ROWS - 1,
        "sliding_window_non_causal": False,
        "sample_from_anchor": True,
        "markov_rank": RANK,
        "markov_head_type": "vanilla",
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
    }
    serve = {"method": "dspark", "num_speculative_tokens": BLOCK}
    heads = (_under("markov_head.", MARKOV), _under("confidence_head.", CONFIDENCE))
    return _spec(config, serve, BACKBONE, *heads, TABLES)


def dflash() -> Spec:
    """A flat DFlash draft."""
    config = {
        "architectures": ["DFlashDraftModel"],
        **LAYER_KEYS,
        "num_target_layers": DEPTH,
        "block_size": BLOCK,
        "dflash_config": {"mask_token_id": ROWS - 1, "target_layer_ids": IDS},
    }
    return _spec(config, {"method": "dflash", "num_speculative_tokens": BLOCK - 1}, BACKBONE)


def modelopt() -> Spec:
    """A DSpark draft in ModelOpt's own layout, which no release reads; the one base that is not clean."""
    config = {
        "architectures": ["DFlashDraftModel"],
        **LAYER_KEYS,
        "num_target_layers": DEPTH,
        "block_size": BLOCK,
        "dflash_config": {
            "mask_token_id": ROWS - 1,
            "target_layer_ids": IDS,
            "causal": False,
            "projector_type": "dspark",
            "shift_label": True,
            "markov_rank": RANK,
            "markov_head_type": "vanilla",
            "use_confidence_head": True,
        },
    }
    serve = {"method": "dspark", "num_speculative_tokens": BLOCK}
    return _spec(
        config, serve, BACKBONE, MARKOV, {"confidence_proj.weight": (1, HIDDEN + RANK), "confidence_proj.bias": (1,)}
    )


def gemma4() -> Spec:
    """A flat Gemma4 DSpark draft beside its multimodal target, as it was recorded."""
    return from_case(next(case for case in read_corpus("loader") if case["id"] == "base.gemma4"))


def embedded() -> Spec:
    """A target of FP8 with an unquantized MTP head in its checkpoint, which no family describes."""
    exclude = ["lm_head", "mtp*"]
    config = {
        **LAYER_KEYS,
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "mtp_num_hidden_layers": 1,
    }
    tensors = {
        "lm_head.weight": ("BF16", (ROWS, HIDDEN)),
        "model.embed_tokens.weight": ("BF16", (ROWS, HIDDEN)),
        "model.layers.0.mlp.down_proj.weight": ("F8_E4M3", (HIDDEN, MLP)),
        "model.layers.0.mlp.down_proj.weight_scale": ("F32", ()),
        "model.layers.0.mlp.down_proj.input_scale": ("F32", ()),
        "mtp.fc.weight": ("BF16", (HIDDEN, 2 * HIDDEN)),
        "mtp.norm.weight": ("BF16", (HIDDEN,)),
        **{f"mtp.layers.{i}.mlp.down_proj.weight": ("BF16", (HIDDEN, MLP)) for i in range(LAYERS)},
    }
    quantization = {"quant_algo": "FP8", "kv_cache_quant_algo": None, "exclude_modules": exclude}
    text = json.dumps({"producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": quantization})
    return Spec(config, tensors, {}, {}, {}, {"hf_quant_config.json": {"text": text}})


BASES: dict[str, Callable[[], Spec]] = {
    "native": native,
    "speculators": speculators,
    "dflash": dflash,
    "modelopt": modelopt,
    "gemma4": gemma4,
    "embedded": embedded,
}


@cache
def _corpora() -> dict[str, Any]:
    return {case["id"]: case for name in ("loader", "quant") for case in read_corpus(name)}


def recorded(case: str) -> Spec:
    """A recorded case."""
    return from_case(_corpora()[case])


# ---------------------------------------------------------------- changes beyond those of conformance.live.cases
def at(path: str, value: Any) -> Change:
    """Set a key by its dotted path."""

    def change(spec: Spec) -> None:
        *outer, last = path.split(".")
        place: Any = spec.config
        for name in outer:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        place[last] = copy.deepcopy(value)

    return change


def without(*paths: str) -> Change:
    """Take keys out by their dotted paths; they must be there."""

    def change(spec: Spec) -> None:
        for path in paths:
            *outer, last = path.split(".")
            place: Any = spec.config
            for name in outer:
                place = place[name]
            del place[last]

    return change


def moved(old: str, new: str) -> Change:
    """Move a key from one dotted path to another."""

    def change(spec: Spec) -> None:
        place: Any = spec.config
        for name in old.split("."):
            place = place[name]
        without(old)(spec)
        at(new, place)(spec)

    return change


def alone(spec: Spec) -> None:
    """Lint without a target."""
    spec.target = {}


def unserved(spec: Spec) -> None:
    """Lint without a speculative config."""
    spec.serve = {}


def served(**flags: Any) -> Change:
    """Serve with exactly these flags."""
    return lambda spec: setattr(spec, "serve", flags)


def named(name: str) -> Change:
    """Put the draft into a directory of that name."""
    return lambda spec: setattr(spec, "dirname", name)


def written(text: str) -> Change:
    """Write config.json as this text."""
    return lambda spec: setattr(spec, "text", text)


def file(name: str, content: str | bytes | None) -> Change:
    """Add a file, put another in its place, or (None) leave it out."""
    record = (
        None
        if content is None
        else {"base64": base64.b64encode(content.encode() if isinstance(content, str) else content).decode()}
    )
    return lambda spec: spec.files.update({name: record})


def table(name: str, kind: str, values: Sequence[Any]) -> Change:
    """Add a one-dimensional tensor with its values: I64, BOOL, F32 or BF16 (given as 16-bit patterns)."""
    code = {"I64": "q", "BOOL": "?", "F32": "f", "BF16": "H"}[kind]

    def change(spec: Spec) -> None:
        spec.tensors[name] = (kind, (len(values),))
        spec.tables[name] = struct.pack(f"<{len(values)}{code}", *values)

    return change


def pruned(rows: int = 128, *, d2t: Iterable[int] | None = None) -> Change:
    """Reduce the draft's vocabulary to the even ids: its own head, a d2t of offsets, and its own markov_w2."""
    offsets = list(d2t) if d2t is not None else list(range(rows))

    def change(spec: Spec) -> None:
        spec.config["draft_vocab_size"] = rows
        spec.tensors["lm_head.weight"] = ("BF16", (rows, HIDDEN))
        if "markov_head.markov_w2.weight" in spec.tensors:
            spec.tensors["markov_head.markov_w2.weight"] = ("BF16", (rows, RANK))
        table("d2t", "I64", offsets)(spec)

    return change


def several(*changes: Change) -> Change:
    """Several changes as one."""

    def change(spec: Spec) -> None:
        for one in changes:
            one(spec)

    return change


# ---------------------------------------------------------------- writing and linting
def weights(spec: Spec, *, varied: bool = False) -> bytes:
    """The safetensors file of a spec; float data is a small positive constant, or `varied` as trained weights are."""
    tensors = [Tensor(name, kind, dims) for name, (kind, dims) in spec.tensors.items()]
    head, places, size = header(tensors, {})
    data = bytearray(b"\x3c" * size)
    if varied:
        # bytes that no float of any width has for its exponent's highest bits alone: finite, positive, not repeating
        data[:] = bytes(0x38 + byte % 5 for byte in random.Random(0).randbytes(size))  # noqa: S311 - weights
    for name, content in spec.tables.items():
        if name in places:
            data[places[name][0] : places[name][0] + len(content)] = content
    return head + bytes(data)


def write(spec: Spec, root: Path, *, varied: bool = False) -> tuple[Path, Path | None]:
    """Write draft and target under `root`; the draft's directory, and the target's if there is one."""
    draft, target = root / spec.dirname, root / "target"
    draft.mkdir(parents=True)
    text = json.dumps(spec.config, indent=1) if spec.text is None else spec.text
    contents = {
        "config.json": {"text": text},
        WEIGHTS: {"base64": base64.b64encode(weights(spec, varied=varied)).decode()},
        **spec.files,
    }
    for name, record in contents.items():
        if record is not None:
            write_file(draft / name, record, {"@TARGET@": str(target)})
    if not spec.target:
        return draft, None
    target.mkdir()
    (target / "config.json").write_text(json.dumps(spec.target), encoding="utf-8")
    return draft, target


def made(base: str, *changes: Change) -> Spec:
    """A base, or a recorded case, with changes."""
    spec = BASES[base]() if base in BASES else recorded(base)
    for change in changes:
        change(spec)
    return spec


def results(spec: Spec, vllm: str | Sequence[str] = "==0.32.0", *, deep: bool = False) -> dict[str, Result]:
    """Lint a spec; the results by release."""
    # a neutral path: vLLM guesses the method from all of it
    with neutral_directory() as scratch:
        draft, target = write(spec, scratch, varied=deep)
        report = lint(draft, vllm=vllm, target=target, speculative_config=spec.serve or None, deep=deep)
    return {r.release: r for r in report.checkpoints[0].results}


def findings(base: str, *changes: Change, vllm: str = "0.32.0", deep: bool = False) -> tuple[Finding, ...]:
    """What one release makes of a base with changes."""
    (result,) = results(made(base, *changes), f"=={vllm}", deep=deep).values()
    return result.findings


class Told(NamedTuple):
    """What of a finding a table states."""

    rule: str
    severity: str
    effect: str
    where: str
    """The pointer; without one the tensor; empty for the speculative config."""
    count: int = 1


def told(found: Iterable[Finding]) -> list[Told]:
    """Findings as a table states them, sorted."""
    return sorted(
        Told(f.rule, f.severity, f.effect, (f.pointer if f.pointer is not None else f.tensor) or "", f.count)
        for f in found
    )


class Case(NamedTuple):
    """One line of a rule's table."""

    rule: str
    """The rule the line is about; without a finding of it the line shows it quiet."""
    name: str
    base: str
    changes: tuple[Change, ...]
    found: tuple[Told, ...] = ()
    """Every finding, of this rule or another."""
    vllm: str = "0.32.0"
    says: tuple[str, ...] = ()
    """What the message of the rule's finding names, beside the release."""
    fix: str | None = None
    """A part of its fix."""
    deep: bool = False
    """Whether all data is read; it is varied then."""

    @property
    def fires(self) -> bool:
        """Whether the rule fires here."""
        return any(t.rule == self.rule for t in self.found)


def check(case: Case) -> None:
    """Hold one line against the tool: whole findings, and the words of the rule's own."""
    found = findings(case.base, *case.changes, vllm=case.vllm, deep=case.deep)

    got, want = told(found), sorted(case.found)
    words = "\n".join(f"{f.rule} {f.message}" for f in found)
    assert got == want, (
        f"\ntoo many: {[t for t in got if t not in want]}\nmissing: {[t for t in want if t not in got]}\n{words}"
    )
    for finding in (f for f in found if f.rule == case.rule):
        missing = [word for word in (*case.says, case.vllm) if word not in finding.message]
        assert missing == [], finding.message
        if case.fix is not None:
            assert case.fix in (finding.fix or "")
