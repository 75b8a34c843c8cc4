"""What expressions of a contract can name beside a family's own keys: namespaces of a binding, and functions."""

from __future__ import annotations

import fnmatch
import re

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dspark_lint.binding import Binding
    from dspark_lint.checkpoint.torchfile import TorchFile


def as_integer(value: Any) -> int | None:
    """Return a value as a lenient validator takes it for an integer: "4", 4.0 and true count; None for anything else."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,18}(\.0*)?\s*", value):
        return int(float(value))
    return None


@lru_cache(maxsize=256)
def _glob(pattern: str) -> Callable[[str], Any]:
    return re.compile(fnmatch.translate(pattern)).match


def _matching(pattern: str, binding: Binding) -> Iterator[str]:
    """Yield the tensors whose names a glob matches.

    Most patterns match none, and a target has tens of thousands of names: what stands between the stars is looked for
    in all of them at once, and each by itself is asked only where that was found.
    """
    if not any(char in pattern for char in "*?["):
        return iter([pattern] if pattern in binding.tensors else [])
    if "?" not in pattern and "[" not in pattern and not all(map(binding.all_names.__contains__, pattern.split("*"))):
        return iter(())
    return filter(_glob(pattern), binding.tensors)


def namespace_of(binding: Binding, name: str) -> Any:
    """Return a name that every family has. Raises KeyError for one that nobody has."""
    if name == "config":
        return binding.config
    if name == "own":
        return binding.own
    if name == "serve":
        return binding.serve
    if name == "target":
        return binding.target_names()
    if name == "method":
        return binding.method
    if name == "dialect":
        return binding.dialect
    if name == "model_type":
        val = binding.runtime.values.get("model_type")
        return val.value if val else None
    if name == "architectures":
        return binding.architectures()
    if name == "tensor_heads":
        return sorted({n.split(".", 1)[0] for n in binding.tensors})
    if name == "layer_types_allowed":
        return binding.classes.get("layer_types_allowed", [])
    if name == "architecture":
        return binding.route.architecture
    if name in binding.runtime.values and not binding.family:
        return binding.runtime.values[name].value
    if name == "serving_target":
        # a draft inside its target is its own target file
        return binding.target.config if binding.target else binding.config
    if name == "directory":
        return binding.path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if name == "written":
        return list(binding.written)
    if name == "release":
        return binding.release
    raise KeyError(name)


def function_of(binding: Binding, name: str) -> Callable[..., Any] | None:
    """Return a function over the checkpoint's tensors and raw keys."""
    if name == "raw":
        return lambda key: binding.keys[key].raw if key in binding.keys else None
    if name == "given":
        return lambda key: key in binding.keys and binding.keys[key].origin in ("file", "derived")
    if name == "present":
        return lambda path: (val := binding.lookup(path)) is not None and val.origin == "file"
    if name == "any_tensor":
        return lambda pattern: any(True for _ in _matching(pattern, binding))
    if name == "count_tensors":
        return lambda pattern: sum(1 for _ in _matching(pattern, binding))
    if name == "beside":
        return lambda file: file in binding.beside
    if name == "unloadable":
        return lambda file: (
            UNKNOWN if (found := _side(binding, file)) is None else found.problems[0].detail if found.fatal else ""
        )
    if name == "stored":
        return lambda file: UNKNOWN if (found := _side(binding, file)) is None or found.stored is None else found.stored
    if name == "on_disk":
        return lambda tensor: tensor in binding.tensors
    if name in {"has_tensor", "dim", "shape", "dtype"}:
        return getattr(binding.inventory, name) if binding.inventory is not None else lambda *_a: UNKNOWN
    return None


def _side(binding: Binding, file: str) -> TorchFile | None:
    return binding.side_file(file) if binding.side_file is not None and file in binding.beside else None
