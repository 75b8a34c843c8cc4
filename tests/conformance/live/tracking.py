"""Which elements of which parameters a load wrote, and from which tensors of the checkpoint.

A TorchDispatchMode around the loader sees every operation that mutates a parameter's storage and marks the
elements it covers; the source is matched to a checkpoint tensor by address. So "never written" does not depend on
which loader ran, and no value is disturbed.
"""

from __future__ import annotations

import contextlib

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch.utils._python_dispatch import TorchDispatchMode


if TYPE_CHECKING:
    from collections.abc import Iterator


class Parameter(NamedTuple):
    """A parameter or persistent buffer before the load."""

    storage: int
    """Address of the storage, which parameters may share."""
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    keep: torch.Tensor
    """Held so that its storage is not given to somebody else."""


class Source(NamedTuple):
    """A tensor that the checkpoint offered."""

    begin: int
    end: int
    name: str
    tensor: torch.Tensor


class WriteTracker(TorchDispatchMode):
    """Records writes while it is entered."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.parameters: dict[str, Parameter] = {}
        self.sources: list[Source] = []
        self.consumed: set[str] = set()
        self.casts: set[str] = set()
        self.unwritten: list[str] | None = None
        """None until the load has ended."""
        self.partly: list[str] = []
        self._written: dict[int, tuple[torch.Tensor, int]] = {}
        self._read: dict[str, torch.Tensor] = {}
        for name, tensor in self._state(model).items():
            if tensor.device.type == "meta" or tensor.numel() == 0:
                continue
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            self.parameters[name] = Parameter(
                address, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), str(tensor.dtype), tensor
            )
            size = tensor.element_size()
            self._written.setdefault(address, (torch.zeros(storage.nbytes() // size, dtype=torch.bool), size))

    @staticmethod
    def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
        named: dict[str, torch.Tensor] = dict(model.named_parameters(remove_duplicate=False))
        for prefix, module in model.named_modules():
            passing = getattr(module, "_non_persistent_buffers_set", set())
            for name, buffer in module.named_buffers(recurse=False):
                if name not in passing and buffer is not None:
                    named[f"{prefix}.{name}" if prefix else name] = buffer
        return named

    def offer(self, name: str, tensor: torch.Tensor) -> None:
        """Note a tensor of the checkpoint before the model gets it."""
        self.sources.append(Source(tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, name, tensor))

    def truncated(self) -> list[str]:
        """Checkpoint tensors of which only a slice reached a parameter."""
        return sorted(
            f"{name} {int(read.sum())}/{read.numel()}" for name, read in self._read.items() if not bool(read.all())
        )

    def unconsumed(self) -> list[str]:
        """Checkpoint tensors that nothing read."""
        return sorted({source.name for source in self.sources} - self.consumed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look on, then do what was asked."""
        kwargs = kwargs or {}
        with contextlib.suppress(Exception):  # tracking must never change what happens
            self._note(func, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, args: Any, kwargs: Any) -> None:
        if func is torch.ops.aten._local_scalar_dense.default:
            self._consume(args[0], None)
            return
        into: torch.dtype | None = None
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is None or not argument.alias_info.is_write or not isinstance(value, torch.Tensor):
                continue
            address = value.untyped_storage().data_ptr()
            if address in self._written:
                mask, size = self._written[address]
                if value.element_size() == size:
                    mask.as_strided(value.size(), value.stride(), value.storage_offset()).fill_(1)
                else:
                    mask.fill_(1)
                into = value.dtype
        if into is not None:
            for value in (*args, *kwargs.values()):
                if isinstance(value, torch.Tensor):
                    self._consume(value, into)

    def _consume(self, tensor: torch.Tensor, into: torch.dtype | None) -> None:
        address = tensor.data_ptr()
        for begin, end, name, source in self.sources:
            if not begin <= address < end:
                continue
            self.consumed.add(name)
            if into is not None and into != tensor.dtype:
                self.casts.add(f"{name} {tensor.dtype}->{into}".replace("torch.", ""))
            read = self._read.setdefault(name, torch.zeros(source.numel(), dtype=torch.bool))
            if tensor.element_size() == source.element_size():
                start = (address - begin) // tensor.element_size()
                read.as_strided(tensor.size(), tensor.stride(), start).fill_(1)
            else:
                read.fill_(1)

    def close(self, model: torch.nn.Module) -> None:
        """Work out what was never, and what was partly written."""
        now = dict(model.named_parameters(remove_duplicate=False))
        self.unwritten = []
        for name, parameter in self.parameters.items():
            if name in now and now[name].untyped_storage().data_ptr() != parameter.storage:
                continue  # replaced as a whole: counts as written
            mask = self._written[parameter.storage][0]
            covered = mask.as_strided(parameter.shape, parameter.stride, parameter.offset)
            count = int(covered.sum())
            if count == 0:
                self.unwritten.append(name)
            elif count < covered.numel():
                self.partly.append(f"{name} {count}/{covered.numel()}")


class _Last:
    """The tracker of the load that ran last; the target's is forgotten before the draft's."""

    tracker: WriteTracker | None = None


def last() -> WriteTracker | None:
    """The tracker of the last load, if there was one."""
    return _Last.tracker


def forget() -> None:
    """Drop it."""
    _Last.tracker = None


def patch_loader() -> None:
    """Put a tracker around vLLM's loader."""
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader as Loader

    all_weights, load_weights = Loader.get_all_weights, Loader.load_weights

    def get_all(self: Any, model_config: Any, model: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in all_weights(self, model_config, model):
            if _Last.tracker is not None:
                _Last.tracker.offer(name, tensor)
            yield name, tensor

    def load(self: Any, model: Any, model_config: Any) -> Any:
        tracker = _Last.tracker = WriteTracker(model)
        try:
            with tracker:
                return load_weights(self, model, model_config)
        finally:
            tracker.close(model)

    Loader.get_all_weights, Loader.load_weights = get_all, load
