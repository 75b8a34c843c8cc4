"""Import vLLM once and patch what stops a draft from being built and loaded without a GPU.

None of it changes which parameters exist, their shapes, or how they are loaded. `PATCHES` lists what was done,
and goes into every record file.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

from typing import TYPE_CHECKING, Any


# Before anything imports torch or vLLM.
for _name, _value in {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_USE_V2_MODEL_RUNNER": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}.items():
    os.environ.setdefault(_name, _value)

import torch  # noqa: E402 - after the environment it reads

from conformance.live import tracking  # noqa: E402


if TYPE_CHECKING:
    from collections.abc import Callable


PATCHES: list[str] = []
#: Names of the kernel selectors that found no kernel for the CPU, in this process.
STUBBED: list[str] = []

# Imported before the first case, so that every fork has them.
_WARM = (
    *(
        f"vllm.model_executor.models.{name}"
        for name in (
            "qwen2",
            "qwen3",
            "llama",
            "qwen3_dflash",
            "qwen3_dspark",
            "qwen3_dflash2",
            "lilicorr",
            "gemma4_dspark",
        )
    ),
    *(
        f"vllm.v1.worker.gpu.spec_decode.{name}"
        for name in (
            "dspark.speculator",
            "dflash.speculator",
            "dflash2.speculator",
            "lilicorr.speculator",
            "eagle.eagle3_utils",
        )
    ),
    *(
        f"vllm.model_executor.layers.quantization.{name}"
        for name in ("modelopt", "compressed_tensors.compressed_tensors", "fp8")
    ),
)


def setup() -> str:
    """Make this process ready to run cases in forks of it; returns vLLM's version."""
    torch.set_num_threads(1)
    torch.accelerator.empty_cache = lambda *_, **__: None
    PATCHES.append("torch.accelerator.empty_cache -> no-op")
    _patch_config()
    importlib.import_module("vllm.model_executor.model_loader")
    registry = importlib.import_module("vllm.model_executor.models.registry")
    if hasattr(registry, "_run_in_subprocess"):
        registry._run_in_subprocess = lambda function: function()
        PATCHES.append("registry._run_in_subprocess -> in process (speed only)")
    for module in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    _patch_quantization()
    tracking.patch_loader()
    gc.collect()
    gc.freeze()  # a fork then collects only what it made itself
    version: str = importlib.import_module("vllm").__version__
    return version.split("+", maxsplit=1)[0]


def _patch_config() -> None:
    module = importlib.import_module("vllm.config.vllm")
    config = importlib.import_module("vllm.config").VllmConfig
    if hasattr(module, "HAS_TRITON"):
        module.HAS_TRITON = True
        PATCHES.append("vllm.config.vllm.HAS_TRITON = True")
    for runner in ("v1", "v2"):
        name = f"_get_{runner}_model_runner_unsupported_features"
        if hasattr(config, name):
            setattr(config, name, lambda _: [])
            PATCHES.append(f"VllmConfig.{name} -> []")
    for runner in ("v2", "v1"):
        name = f"_validate_{runner}_model_runner"
        if hasattr(config, name):
            setattr(config, name, lambda _: None)
            PATCHES.append(f"VllmConfig.{name} -> None")
    if hasattr(config, "use_v2_model_runner"):
        config.use_v2_model_runner = property(lambda _: True)
        PATCHES.append("VllmConfig.use_v2_model_runner -> True")


def _patch_quantization() -> None:
    """Stand-ins for what the CPU build lacks, so that a quantized draft gets as far as on a GPU."""
    operations = importlib.import_module("vllm._custom_ops")
    operations.scaled_fp8_quant = _fp8_quantize
    PATCHES.append("vllm._custom_ops.scaled_fp8_quant -> torch")
    try:
        kernels = importlib.import_module("vllm.model_executor.kernels.linear")
        cpu = importlib.import_module("vllm.platforms").PlatformEnum.CPU
        emulated = [value for key, value in vars(kernels).items() if key == "EmulationNvFp4LinearKernel"]
        if emulated and not kernels._POSSIBLE_NVFP4_KERNELS.get(cpu):
            kernels._POSSIBLE_NVFP4_KERNELS[cpu] = emulated
            PATCHES.append("NVFP4 linear on CPU -> EmulationNvFp4LinearKernel")
    except Exception as error:  # noqa: BLE001 - a release without it is judged without it
        PATCHES.append(f"NVFP4 emulation not registered: {error!r}")
    for name, module in list(sys.modules.items()):
        if name.startswith("vllm.model_executor.layers.quantization"):
            for selector in ("init_nvfp4_linear_kernel", "init_fp8_linear_kernel"):
                if callable(getattr(module, selector, None)):
                    setattr(module, selector, _or_stub(getattr(module, selector)))
    PATCHES.append("init_{nvfp4,fp8}_linear_kernel: load-only stub where the CPU has no kernel")


def _fp8_quantize(
    input: torch.Tensor,  # noqa: A002 - the parameter's name in vLLM, passed by keyword
    scale: torch.Tensor | None = None,
    num_token_padding: int | None = None,  # noqa: ARG001 - likewise
    scale_ub: torch.Tensor | None = None,  # noqa: ARG001
    use_per_token_if_dynamic: bool = False,
    output: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    x = input.float()
    if scale is None:
        largest = x.abs().amax(dim=-1, keepdim=True) if use_per_token_if_dynamic else x.abs().max().reshape(1)
        scale = (largest / 448.0).clamp(min=1e-12)
    quantized = (x / scale.float()).clamp(-448, 448).to(torch.float8_e4m3fn)
    return (output.copy_(quantized) if output is not None else quantized), scale


class NoKernel:
    """A kernel that only lets weights load."""

    supports_pre_processed_weights = False

    def process_weights_after_loading(self, layer: Any) -> None:
        """Leave the weights as they were loaded."""

    def apply_weights(self, *_: Any, **__: Any) -> None:
        """Refuse to compute."""
        raise NotImplementedError("no CPU kernel for this quantisation (harness stub)")

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Answer "nothing" to every other question about capabilities."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _or_stub(function: Callable[..., Any]) -> Callable[..., Any]:
    def select(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (ValueError, KeyError, AttributeError, AssertionError, NotImplementedError):
            STUBBED.append(function.__name__)
            return NoKernel()

    select.__name__ = function.__name__
    return select
