"""Colour: when to use it, and the few styles there are."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Mapping


STYLES = {
    "error": "31;1",
    "warning": "33;1",
    "info": "36",
    "ok": "32;1",
    "unchecked": "35",
    "bold": "1",
    "dim": "2",
}
_OFF = ("", "0", "false")


def want_color(flag: str, stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Whether to colour a stream.

    In this order: the flag (``always``, ``never``; ``auto`` goes on), NO_COLOR, FORCE_COLOR or CLICOLOR_FORCE,
    TERM=dumb, CLICOLOR=0, whether the stream is a terminal.
    """
    if flag in ("always", "never"):
        return flag == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "").lower() not in _OFF for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environ.get("TERM") == "dumb" or environ.get("CLICOLOR") == "0":
        return False
    try:
        return stream.isatty()
    except ValueError:  # a closed stream
        return False


def styled(text: str, style: str, *, color: bool) -> str:
    """Return the text in a style, or as it is."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if color and text else text
