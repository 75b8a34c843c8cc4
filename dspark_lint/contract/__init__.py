"""The contracts: YAML knowledge of what each release loads, resolved and typed."""

from __future__ import annotations

from dspark_lint.contract.load import family_mapping, load_raw, merge, shipped_releases


__all__ = ["family_mapping", "load_raw", "merge", "shipped_releases"]
