"""Escaping of names and messages: for people, who must see what stands there, and for strict readers."""

from __future__ import annotations


#: Longer names are clipped for people; machine formats give them whole.
NAME = 160
#: Longer sentences are clipped for people.
SENTENCE = 2000

#: Characters that `str.isprintable` lets through although they show nothing.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def safe(text: str) -> str:
    r"""Escape what a reader would interpret or not show: ``\x1b``, ``\n``, ``\u202e``, lone surrogates."""
    if text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text)):
        return text
    return "".join(c if c.isprintable() and c not in _BLANK else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return _SHORT.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clip(text: str, limit: int = NAME) -> str:
    """Cut the middle out of a long text: of a tensor's name both ends tell."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[len(text) - tail :]}"


def name(text: str, limit: int = NAME) -> str:
    """Return a name for people: clipped and escaped."""
    return safe(clip(text, limit))


def sentence(text: str, limit: int = SENTENCE) -> str:
    """Return a sentence for people: the long names inside it clipped each, so that its end survives, and escaped."""
    if len(text) > NAME:
        text = clip(" ".join(clip(word) for word in text.split(" ")), limit)
    return safe(text)


def whole(text: str) -> str:
    r"""Return a text that any strict reader accepts: a lone surrogate is written out as ``\udc80``.

    They come from file names that are no UTF-8 and from escapes in JSON; strict parsers refuse all for one.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
