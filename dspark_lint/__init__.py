"""Holds exported speculative-decoding draft checkpoints against what each vLLM release really loads."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from dspark_lint.api import lint

__all__ = ["__version__", "lint"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Offer ``lint`` without importing the engine when only the version is wanted."""
    if name == "lint":
        from dspark_lint.api import lint  # noqa: PLC0415 - see the sentence above

        return lint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
