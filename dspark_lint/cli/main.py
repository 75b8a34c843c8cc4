"""The group, its default command, and the way from an exception to an exit code."""

from __future__ import annotations

import os
import sys

from typing import TYPE_CHECKING, Any

import click

from dspark_lint import __version__
from dspark_lint.cli.exits import TABLE, USAGE
from dspark_lint.errors import DsparkLintError


if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Sub-commands by name: module and attribute, imported when used.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "check": ("dspark_lint.cli.check", "check", "Hold checkpoints against vLLM releases (the default command)."),
    "explain": ("dspark_lint.cli.explain", "explain", "Explain a rule: why it exists, what fires it, what to do."),
    "rules": ("dspark_lint.cli.explain", "rules", "List the rules."),
    "contracts": ("dspark_lint.cli.contracts", "contracts_group", "Look at the contracts; verify and extend them."),
    "manifest": ("dspark_lint.manifest.cli", "manifest_group", "Checkpoints without their weights."),
}
EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning.replace('`', '')}" for code, meaning in TABLE)


class DefaultGroup(click.Group):
    """A group whose first argument may be a path: then the check is meant.

    A directory that is named like a command is written ``./rules``.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the sub-commands in the order they are listed."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return a sub-command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module  # noqa: PLC0415 - only when a command is really wanted

        command = getattr(import_module(entry[0]), entry[1])
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``check`` in front unless a command or one of the group's own flags leads."""
        own = {"--help", "-h", "--version"}
        asked = bool(args) or not ctx.resilient_parsing  # completion asks for the names of commands
        if asked and (not args or (args[0] not in COMMANDS and args[0] not in own)):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete sub-commands, and what may stand in their place: a path, a flag of the check."""
        from dspark_lint.cli.completion import files  # noqa: PLC0415 - only a shell asks

        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return [*found, *files(incomplete)]
        check = self.get_command(ctx, "check")
        assert check is not None
        named = {item.value for item in found}
        more = check.shell_complete(click.Context(check, parent=ctx), incomplete)
        return [*found, *(item for item in more if item.value not in named)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=EPILOG,
    no_args_is_help=False,
    options_metavar="",
    subcommand_metavar="CKPT... [OPTIONS] | COMMAND ...",
)
@click.version_option(__version__, "--version", prog_name="dspark-lint", message="%(prog)s %(version)s")
def cli() -> None:
    """Hold exported draft checkpoints against what each vLLM release really loads.

    \b
    dspark-lint ckpt/ --vllm 0.32
    dspark-lint ckpt/ --vllm all --target /models/Qwen3-8B
    dspark-lint explain TEN001

    `dspark-lint check --help` lists the options of the check.
    """  # noqa: D301 - the mark is a backspace, by which click keeps lines as they are


def run(args: list[str]) -> int:
    """Run the command line and return the exit code; nothing but that leaves this function."""
    verbose = any(a == "--verbose" or (a.startswith("-") and not a.startswith("--") and "v" in a[1:]) for a in args)
    try:
        code: Any = cli.main(args, prog_name="dspark-lint", standalone_mode=False)
    except click.exceptions.Exit as e:
        return int(e.exit_code)
    except click.ClickException as e:
        e.show(sys.stderr)
        return USAGE
    except click.Abort:
        click.echo("interrupted", err=True)
        return USAGE
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return USAGE
    except (BrokenPipeError, SystemExit):
        # the reader of our output has gone, which click turns into an exit of 1: nobody was told of any findings
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - stays open until the process ends
        return USAGE
    except DsparkLintError as e:
        click.echo(f"dspark-lint: {e}", err=True)
        return USAGE
    except Exception as e:  # noqa: BLE001 - a fault of the tool must be 2, never 0 or 1
        click.echo(f"dspark-lint: internal error: {type(e).__name__}: {e} (run with -v for the traceback)", err=True)
        if verbose:
            import traceback  # noqa: PLC0415 - only to tell of a fault

            traceback.print_exc()
        return USAGE
    return code if isinstance(code, int) else 0
