"""What a finding is about, in words for people."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from dspark_lint.finding import Finding


def subject(finding: Finding) -> str:
    """Return the key, tensor or module a finding is about, as people write it; empty when it is the whole file."""
    if finding.pointer:
        return dotted(finding.pointer)
    return finding.tensor or finding.module or ""


def dotted(pointer: str) -> str:
    """Return a JSON pointer as people write keys: ``dflash_config.mask_token_id``."""
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
