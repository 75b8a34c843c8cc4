"""Reading a checkpoint: files, JSON documents, safetensors headers, small tables.

Nothing here judges. Whatever lies in the directory, reading it ends in a value and a list of problems; only a
path that does not exist is an error of the caller. No content is ever executed or unpickled.
"""

from __future__ import annotations

from dspark_lint.checkpoint.core import CONFIG, INDEX, QUANT_CONFIG, Checkpoint, find_checkpoints, open_checkpoint
from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.checkpoint.files import FileEntry
from dspark_lint.checkpoint.header import Header
from dspark_lint.checkpoint.jsonfile import Document
from dspark_lint.checkpoint.locate import locate
from dspark_lint.checkpoint.problems import KINDS, Problem
from dspark_lint.checkpoint.torchfile import TorchFile


__all__ = [
    "BITS",
    "CONFIG",
    "INDEX",
    "KINDS",
    "QUANT_CONFIG",
    "Checkpoint",
    "Document",
    "FileEntry",
    "Header",
    "Problem",
    "TorchFile",
    "find_checkpoints",
    "locate",
    "open_checkpoint",
]
