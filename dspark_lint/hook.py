"""The pre-commit hook: changed files in, each checkpoint that holds one of them checked once.

``dspark-lint-hook [options of the check] FILE...``; pre-commit passes files, a checkpoint is a directory.
"""

from __future__ import annotations

import gc
import os
import sys

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: Without weights beside it, a config.json is looked into this far: nothing that describes a draft is longer.
_CONFIG_LIMIT = 1 << 20


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options of the check with their values, and the file names.

    A file whose name begins with a dash is a file, since pre-commit writes nothing between options and files; an unknown
    option is kept among the options: the check reports it.
    """
    from click import Option  # noqa: PLC0415 - not needed to map files

    from dspark_lint.cli.check import check  # noqa: PLC0415 - as above

    known = [p for p in check.params if isinstance(p, Option)]
    names = {name for p in known for name in (*p.opts, *p.secondary_opts)}
    valued = {name for p in known if not p.is_flag and not p.count for name in p.opts}
    options: list[str] = []
    files: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            files += rest
        elif word.startswith("-") and (word.partition("=")[0] in names or not os.path.lexists(word)):
            options.append(word)
            if word in valued:
                options += [value for value in (next(rest, None),) if value is not None]
        else:
            files.append(word)
    return options, files


def checkpoints_of(files: Iterable[str]) -> list[str]:
    """Return the checkpoint directories that hold the files, once each, in the order of their first file.

    A directory is its own checkpoint. Files whose directory holds neither weights nor the configuration of a draft
    belong to no checkpoint: other programs have a config.json too.
    """
    found: dict[str, str] = {}
    passed: set[str] = set()
    for file in files:
        place = file if os.path.isdir(file) else os.path.dirname(file) or "."
        real = os.path.abspath(place)
        if real in found or real in passed:
            continue
        if os.path.isdir(file) or is_checkpoint(place):
            found[real] = place
        else:
            passed.add(real)
    return list(found.values())


def is_checkpoint(directory: str) -> bool:
    """Whether a directory holds weights, or an index of weights, or the configuration of a draft."""
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    if any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return True
    return "config.json" in names and _names_a_draft(os.path.join(directory, "config.json"))


def _names_a_draft(config: str) -> bool:
    """Whether the file speaks of an architecture that the newest contract has, or of the speculators library."""
    try:
        with open(config, encoding="utf-8", errors="replace") as handle:
            text = handle.read(_CONFIG_LIMIT)
    except OSError:
        return False
    from dspark_lint.contract.load import shipped_releases  # noqa: PLC0415 - only for a config.json without weights
    from dspark_lint.contract.model import load_contract  # noqa: PLC0415 - as above

    contract = load_contract(shipped_releases()[-1])
    words = [str(name) for name in contract["architectures"]]
    words += [str(d["selector"]) for d in contract["dialects"].values() if d and "selector" in d]
    return any(f'"{word}"' in text for word in words)


def run(argv: Sequence[str]) -> int:
    """Check what the files lead to; return the exit code of the check, 0 where no file belongs to a checkpoint."""
    options, files = split(argv)
    places = checkpoints_of(files)
    if files and not places:
        sys.stderr.write("dspark-lint: no changed file belongs to a checkpoint\n")
        return 0
    from dspark_lint.cli.main import run as run_command  # noqa: PLC0415 - not where nothing is checked

    return run_command(["check", *options, "--", *places])


def main() -> None:
    """Run the hook and leave the process with its exit code."""
    gc.disable()  # as for the command itself
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
