"""The pytest plugin: the option ``--dspark-vllm`` and the fixture `assert_loadable`.

Loaded by every pytest run in an environment that has the package, so it imports nothing of it until a test asks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest


if TYPE_CHECKING:
    from collections.abc import Callable

    from dspark_lint.finding import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and its counterpart in the configuration."""
    group = parser.getgroup("dspark-lint")
    group.addoption(
        "--dspark-vllm",
        metavar="SPEC",
        default=None,
        help="vLLM releases that assert_loadable holds an export against: 0.32, 0.30..0.33, all, latest, ...",
    )
    parser.addini("dspark_vllm", "vLLM releases that assert_loadable holds an export against", default="latest")


@pytest.fixture
def assert_loadable(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`dspark_lint.testing.assert_loadable` under the releases of ``--dspark-vllm``, else of the ini key ``dspark_vllm``."""
    from dspark_lint.testing import assert_loadable as check  # noqa: PLC0415 - see the module

    spec = request.config.getoption("--dspark-vllm") or request.config.getini("dspark_vllm")
    return partial(check, vllm=spec)
