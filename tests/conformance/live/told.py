"""What a run says in words: exceptions with their stage and place, warnings, and what was resolved."""

from __future__ import annotations

import logging
import traceback

from typing import TYPE_CHECKING, Any

from conformance.live import tracking


if TYPE_CHECKING:
    import torch


# First match wins: the function on the stack, and the stage it stands for.
_STAGES = (
    ("process_weights_after_loading", "postprocess"),
    ("maybe_share_target_embed", "share"),
    ("_should_share", "share"),
    ("load_weights", "load"),
    ("_get_weights_iterator", "load"),
    ("initialize_model", "build"),
    ("create_model", "build"),
)
_CONFIG_FILES = (
    "transformers_utils/config.py",
    "config/model.py",
    "models/registry.py",
    "configs/speculators/base.py",
    "configs/speculators/algos.py",
)
#: Texts of failures that a GPU does not have, or has differently.
_CPU_ONLY = (
    "not implemented on CPU",
    "requires full CUDA graphs",
    "Failed to find a kernel",
    "failed to be inspected",
    "_C::",
)
_CONFIG_KEYS = (
    "model_type",
    "vocab_size",
    "draft_vocab_size",
    "block_size",
    "markov_rank",
    "markov_head_type",
    "enable_confidence_head",
    "confidence_head_with_markov",
    "sample_from_anchor",
    "target_hidden_size",
    "num_hidden_layers",
    "layer_types",
    "sliding_window",
    "rope_parameters",
    "is_causal",
)


class Warnings(logging.Handler):
    """Keeps each warning once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.out: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take one."""
        try:
            message = record.getMessage()[:240]
        except Exception:  # noqa: BLE001 - a log line that cannot be formatted is still a line
            message = str(record.msg)[:240]
        if message not in self.out:
            self.out.append(message)


def plain(value: Any) -> Any:
    """`value` as JSON has it; anything else by its repr."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, int | float | str | bool | None) else repr(value)[:80]


def _inner(error: BaseException) -> BaseException | None:
    """The exception that a pydantic ValidationError wraps, if it carries one."""
    try:
        for entry in error.errors():  # type: ignore[attr-defined]
            wrapped = (entry.get("ctx") or {}).get("error")
            if isinstance(wrapped, BaseException):
                return wrapped
    except Exception:  # noqa: BLE001 - then it is no such error
        return None
    return None


def _frames(error: BaseException | None) -> list[tuple[str, str, int]]:
    if error is None:
        return []
    return [(frame.filename, frame.name, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]


def stage(coarse: str, error: BaseException) -> str:
    """Where in loading an exception arose, more finely than the step of the harness."""
    frames = _frames(error) + _frames(_inner(error))
    if coarse == "draft-load":
        names = {name for _, name, _ in frames}
        return next((fine for function, fine in _STAGES if function in names), "draft-setup")
    if coarse == "speculative-config":
        if any(file.endswith(_CONFIG_FILES) for file, _, _ in frames):
            return "config"
        if type(error).__name__ == "ValidationError" and getattr(error, "title", "") == "ModelConfig":
            return "config"
    return coarse


def described(error: BaseException) -> dict[str, Any]:
    """Type, message and place of an exception."""
    told = _inner(error) or error
    frames = _frames(_inner(error)) or _frames(error)
    frames = [f for f in frames if "/vllm/" in f[0] or "/transformers/" in f[0] or "safetensors" in f[0]]
    where = None
    if frames:
        file, name, line = frames[-1]
        where = f"{file.split('site-packages/')[-1].split('/vllm/')[-1]}:{line} {name}"
    return {"exc": type(told).__name__, "message": " ".join(str(told).split())[:400], "where": where}


def cpu_artifact(message: str) -> bool:
    """Whether a failure is one of the CPU only."""
    return any(text in message for text in _CPU_ONLY)


def resolved_config(speculative: Any) -> dict[str, Any]:
    """What vLLM made of the draft's configuration."""
    draft = speculative.draft_model_config
    return {
        "method": speculative.method,
        "k": speculative.num_speculative_tokens,
        "architectures": plain(list(draft.architectures or [])),
        "hf_config_class": type(draft.hf_config).__name__,
        "quantization": plain(draft.quantization),
        "draft_dtype": str(draft.dtype),
        "parallel_drafting": plain(getattr(speculative, "parallel_drafting", None)),
        "hf": {name: plain(getattr(draft.hf_config, name, None)) for name in _CONFIG_KEYS},
    }


def oneshot(draft: str) -> dict[str, Any]:
    """``vllm serve <speculators checkpoint>``: what the form with one argument resolves to."""
    from vllm.transformers_utils.config import maybe_override_with_speculators

    try:
        model, _, found = maybe_override_with_speculators(draft, None, False)
    except Exception as error:  # noqa: BLE001 - that it fails is the answer
        return described(error)
    target = "declared" if model != draft else "itself"
    return {"target": target, **{key: plain(value) for key, value in (found or {}).items() if key != "model"}}


def resolved_model(draft: Any, config: Any) -> dict[str, Any]:
    """What vLLM built, after loading."""
    tracker = tracking.last()
    parameters = tracker.parameters if tracker is not None else {}
    inner = draft.model
    out: dict[str, Any] = {
        "model_class": f"{type(draft).__module__.split('.')[-1]}.{type(draft).__name__}",
        "parameter_numel": sum(p.numel() for p in draft.parameters()),
        "has_own_embed_tokens": getattr(draft, "has_own_embed_tokens", False),
        "has_own_lm_head": getattr(draft, "has_own_lm_head", False),
        "has_d2t": getattr(draft, "draft_id_to_target_id", None) is not None,
        "confidence_head": _confidence(inner, parameters),
    }
    if getattr(inner, "markov_head", None) is not None:
        names = [f"model.markov_head.{name}.weight" for name in ("markov_w1", "markov_w2")]
        out["markov"] = [list(parameters[name].shape) for name in names if name in parameters]
    try:
        out["attention"] = [
            {name: plain(getattr(layer.self_attn, name, None)) for name in ("sliding_window", "causal")}
            for layer in inner.layers
        ]
        rope = inner.layers[0].self_attn.rotary_emb
        names = ["base", "rotary_dim"]
        out["rope"] = {"cls": type(rope).__name__, **{name: plain(getattr(rope, name, None)) for name in names}}
    except Exception:  # noqa: BLE001, S110 - a class built otherwise tells less
        pass
    return out | _quantization(draft, config)


def _confidence(inner: Any, parameters: dict[str, tracking.Parameter]) -> str:
    if not hasattr(inner, "confidence_head"):
        return "class-has-none"
    if inner.confidence_head is None:
        return "dropped" if any("confidence_head" in name for name in parameters) else "not-built"
    return f"present[{parameters['model.confidence_head.proj.weight'].shape[-1]}]"


def _quantization(draft: torch.nn.Module, config: Any) -> dict[str, Any]:
    from vllm.model_executor.models.utils import get_draft_quant_config

    out: dict[str, Any] = {}
    try:
        found = get_draft_quant_config(config)
        out["quant_config"] = type(found).__name__ if found is not None else None
    except Exception as error:  # noqa: BLE001 - that it fails is the answer
        out["quant_config"] = described(error)
    methods = {}
    for name, module in draft.named_modules():
        method, scheme = getattr(module, "quant_method", None), getattr(module, "scheme", None)
        if method is not None:
            methods[name] = type(method).__name__ + (f"/{type(scheme).__name__}" if scheme is not None else "")
    if out["quant_config"] or any(not method.startswith("Unquantized") for method in methods.values()):
        out["quant_methods"] = methods
    return out
