"""Where the contract files stand: inside an installed wheel, or at the top of a checkout (also an editable install)."""

from __future__ import annotations

import os

from dspark_lint.errors import ContractError


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def contracts_dir() -> str:
    """Return the directory of the shipped contracts.

    The packaged folder first, else the repository's own: a build backend's mapping of a top-level folder into the
    package does not reach an editable install. Raises ContractError when neither is there.
    """
    for candidate in (os.path.join(_PACKAGE, "contracts"), os.path.join(os.path.dirname(_PACKAGE), "contracts")):
        if os.path.isdir(os.path.join(candidate, "vllm")):
            return candidate
    raise ContractError("the contract files are not installed with this package; reinstall dspark-lint")
