"""Holds exported speculative-decoding draft checkpoints against what each vLLM release really loads."""

from __future__ import annotations


__version__ = "0.1.0"
