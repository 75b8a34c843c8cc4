"""Entry point: ``dspark-lint`` and ``python -m dspark_lint``."""

from __future__ import annotations

import contextlib
import gc
import os
import sys


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    gc.disable()  # a run is short and keeps what it reads; collecting seventy thousand tensors' worth costs more
    from dspark_lint.cli.main import run  # noqa: PLC0415 - after the collector is off

    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it
                stream.flush()
    # tearing down the parsed headers takes longer than judging them; nothing is left to clean up
    os._exit(code)


if __name__ == "__main__":
    main()
