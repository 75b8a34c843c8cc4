"""Colour: when to use it, and the few styles there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO


STYLES = {"error": "31;1", "warning": "33;1", "info": "36", "ok": "32;1", "unchecked": "35", "bold": "1", "dim": "2"}


def want_color(flag: str, stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Whether to colour a stream: the flag first, then NO_COLOR, FORCE_COLOR, TERM=dumb, then whether it is a terminal."""
    if flag in ("always", "never"):
        return flag == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def styled(text: str, style: str, *, color: bool) -> str:
    """Return the text in a style, or as it is."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color and text else text
