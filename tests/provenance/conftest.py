"""The fake source tree, as most tests want it."""

from __future__ import annotations

import sys

from pathlib import Path

import pytest

from dspark_lint.provenance.source import SourceTree


sys.path.insert(0, str(Path(__file__).parent))

from trees import FILES, write


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    """Open the fake 0.1.0."""
    return SourceTree(write(tmp_path / "vllm-0.1.0", FILES))
