"""Build hook: a wheel carries its contracts resolved, so that its first run on a fresh machine parses no YAML."""

from __future__ import annotations

import sys
import tempfile

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ResolvedContracts(BuildHookInterface):  # type: ignore[type-arg] - the configuration is no business of this hook
    """Adds ``dspark_lint/contracts/compiled/`` to a wheel; an editable install follows the YAML files as they change."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Resolve every shipped contract and include the results."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from dspark_lint.contract.load import write_resolved  # noqa: PLC0415 - needs the path above
        finally:
            sys.path.remove(self.root)
        self.scratch = tempfile.TemporaryDirectory(prefix="contracts-")
        write_resolved(self.scratch.name)
        build_data["force_include"].update(
            (str(path), f"dspark_lint/contracts/compiled/{path.name}")
            for path in sorted(Path(self.scratch.name).iterdir())
        )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's signature
        """Take the results away again once they are in the wheel."""
        if version != "editable":
            self.scratch.cleanup()
