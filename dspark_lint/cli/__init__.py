"""The command line: thin click commands over the library."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    import click

    from click.shell_completion import CompletionItem


def completed(_ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a value for the shell: every parameter's ``shell_complete``."""
    from dspark_lint.cli.completion import complete  # noqa: PLC0415 - only a shell asks

    return complete(param.name or "", incomplete)
