"""Exit codes, and how an exception becomes one."""

from __future__ import annotations

from typing import Final


CLEAN: Final = 0
"""Nothing at or above --fail-on."""
FINDINGS: Final = 1
"""At least one finding at or above --fail-on; a checkpoint that cannot be read is one."""
USAGE: Final = 2
"""The command line or the configuration is wrong, or the tool itself failed."""
NOTHING: Final = 3
"""Nothing was checked."""

TABLE: Final = (
    (CLEAN, "nothing at or above `--fail-on`"),
    (FINDINGS, "findings at or above `--fail-on`; a checkpoint that cannot be read is a finding"),
    (USAGE, "a usage error, a configuration error, or a fault of the tool"),
    (NOTHING, "nothing was checked: no checkpoint there, or no release could judge it"),
)
