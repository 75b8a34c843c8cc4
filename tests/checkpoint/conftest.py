"""Files to read."""

from __future__ import annotations

import json

from typing import TYPE_CHECKING, Any

import pytest


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """``write(name, header, data)`` makes a safetensors file of a header (parsed, text or bytes) and data bytes."""

    def written(name: str, header: Any, data: bytes | int = 0) -> Path:
        if not isinstance(header, (str, bytes)):
            header = json.dumps(header)
        raw = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else header
        path = tmp_path / name
        path.write_bytes(len(raw).to_bytes(8, "little") + raw + (bytes(data) if isinstance(data, int) else data))
        return path

    return written
