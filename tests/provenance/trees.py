"""A vLLM of a few lines: its source, the contract that was read from it, and what its next release does otherwise."""

from __future__ import annotations

import textwrap
import zipfile

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from pathlib import Path


REGISTRY = """
_TEXT_MODELS = {
    "SmallForCausalLM": ("small", "SmallForCausalLM"),
}
_DRAFT_MODELS = {
    "MiniDraftModel": ("mini_draft", "MiniForCausalLM"),
    "OtherHeads": ("other_heads", "OtherHeads"),
}
_ALL_MODELS = {**_TEXT_MODELS, **_DRAFT_MODELS}
"""
MINI = '''
"""The mini draft."""
from torch import nn

from .small import SmallForCausalLM


class MiniModel(nn.Module):
    """Two layers."""

    def __init__(self, config):
        self.width = config.hidden_size
        mini_config = getattr(config, "mini_config", None) or {}
        self.window = mini_config.get("window", 64)
        self.rank = getattr(config, "rank", 8)  # the rank of the head


class MiniForCausalLM(SmallForCausalLM):
    def load_weights(self, weights):
        for name, tensor in weights:
            if "rotary" in name:
                continue
            self.params[name].copy_(tensor)
'''
SMALL = """
from .interfaces import HandsOut


class SmallForCausalLM(HandsOut):
    pass
"""
INTERFACES = '''
class HandsOut:
    """Hands out hidden states."""
'''
CONFIG = '''
from typing import ClassVar, Literal

OwnMethod = Literal["mini"]
Method = Literal["ngram", OwnMethod]


class ServeConfig:
    """What is given at the command line."""

    method: Method | None = None
    tokens: int = 0
    known: ClassVar[tuple[str, ...]] = ()
    _seen: int = 0

    def check(self, hf_config):
        return getattr(hf_config, "block_size", None)
'''
OTHER_HEADS = """
class OtherHeads:
    pass
"""

#: Paths inside the package -> source.
FILES: dict[str, str] = {
    "__init__.py": "",
    "_version.py": "__version__ = version = '0.1.0'\n",
    "models/__init__.py": "",
    "models/registry.py": REGISTRY,
    "models/mini_draft.py": MINI,
    "models/small.py": SMALL,
    "models/interfaces.py": INTERFACES,
    "models/other_heads.py": OTHER_HEADS,
    "config/__init__.py": "",
    "config/serve.py": CONFIG,
}


def contract() -> dict[str, Any]:
    """Return the resolved contract of the fake 0.1.0."""
    return {
        "contract": 1,
        "runtime": "vllm",
        "release": "0.1.0",
        "sources": {"registry": "models/registry.py", "mini": "models/mini_draft.py", "serve": "config/serve.py"},
        "registry": {"source": "registry::_DRAFT_MODELS", "others": {"SmallForCausalLM": True}, "other_drafts": {"OtherHeads": True}},
        "architectures": {"MiniDraftModel": {"family": "mini", "source": "registry::_DRAFT_MODELS::MiniDraftModel"}},
        "serve": {"fields": {"method": True, "tokens": True}},
        "methods": {"known": ["ngram", "mini"]},
        "target": {"captures": {"SmallForCausalLM": True, "MiniDraftModel": True}},
        "families": {
            "mini": {
                "loader": "mini::MiniForCausalLM.load_weights",
                "keys": {
                    "width": {"lookup": ["hidden_size"], "source": "mini::MiniModel.__init__::config.hidden_size"},
                    "window": {"lookup": ["mini_config.window"], "default": 64, "source": "mini::MiniModel.__init__::window"},
                    "rank": {"lookup": ["rank"], "default": 8, "source": "mini::MiniModel.__init__::rank"},
                    "block_size": {"lookup": ["block_size"], "default": None, "source": "serve::ServeConfig.check"},
                },
                "names": {"rotary": {"contains": "rotary", "then": "ignored", "source": 'mini::MiniForCausalLM.load_weights::"rotary"'}},
            },
        },
        "audit": {
            "receivers": {"config": "", "hf_config": ""},
            "definitions": {"serve": {"source": "serve::ServeConfig.check"}},
            "lists": {
                "registry": {"of": "keys", "source": "registry::_ALL_MODELS", "in": ["architectures", "registry.other_drafts", "registry.others"]},
                "serve_fields": {"of": "fields", "source": "serve::ServeConfig", "in": "serve.fields"},
                "methods": {"of": "literals", "source": "serve::Method", "in": "methods.known"},
                "captures": {"of": "implementers", "base": "HandsOut", "source": "registry::_ALL_MODELS", "in": "target.captures"},
            },
        },
    }  # fmt: skip


def write(root: Path, files: dict[str, str], package: str = "vllm") -> Path:
    """Write a package's files as an unpacked wheel under `root` and return `root`."""
    for path, text in files.items():
        target = root / package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def write_wheel(path: Path, files: dict[str, str], package: str = "vllm") -> Path:
    """Write a package's files as a wheel file."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{package}/{name}", textwrap.dedent(text).lstrip("\n"))
    return path


def edited(*edits: tuple[str, str, str], **more: str) -> dict[str, str]:
    """Return the files with pieces of them replaced: (path, old, new), each of which must be there."""
    files = {**FILES, **more}
    for path, old, new in edits:
        assert old in files[path], f"{path} has no {old!r}"
        files[path] = files[path].replace(old, new)
    return files
