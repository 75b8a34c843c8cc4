"""``python -m dspark_lint.manifest``."""

from __future__ import annotations

from dspark_lint.manifest.cli import manifest_group


if __name__ == "__main__":
    manifest_group(prog_name="python -m dspark_lint.manifest")
