"""The two families of trouble: the user's mistake, and a fault of the tool or of its data.

A broken checkpoint is neither: it is a finding.
"""

from __future__ import annotations


class DsparkLintError(Exception):
    """Root of everything raised on purpose."""


class UsageError(DsparkLintError):
    """The command line, the configuration or an argument cannot be understood; exit code 2."""


class ContractError(DsparkLintError):
    """A contract file is not what its schema and the loader expect; exit code 2."""
