"""Schemas of the files that CI systems read, and what GitHub does with an action's expressions."""

from __future__ import annotations

import re
import subprocess
import sys

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def violations(schema: str, *files: Path) -> str:
    """Return what a schema of check-jsonschema's own store says against files; empty for nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


def substituted(text: str, inputs: Mapping[str, str]) -> str:
    """Put inputs into ``${{ inputs.name }}``; any other expression is a mistake here."""

    def value(match: re.Match[str]) -> str:
        scope, _, name = match.group(1).partition(".")
        assert scope == "inputs", match.group(0)
        return inputs[name]

    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", value, text)


def defaults(action: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs of an action that is given none."""
    return {name: clause.get("default", "") for name, clause in action["inputs"].items()}


def outputs(text: str) -> dict[str, str]:
    """Read what steps wrote to GITHUB_OUTPUT."""
    return dict(line.split("=", 1) for line in text.splitlines())
