"""What can be wrong with a file before anybody asks what its content means.

A problem is a fact about bytes, stated once by the reader that met it; whether it matters, and to which
release, is for the rules to say.
"""

from __future__ import annotations

from typing import Final, NamedTuple


# The file itself.
MISSING: Final = "missing"
NOT_A_FILE: Final = "not-a-file"
BROKEN_LINK: Final = "broken-link"
UNREADABLE: Final = "unreadable"
EMPTY: Final = "empty"
TOO_LARGE: Final = "too-large"
TOO_MANY_FILES: Final = "too-many-files"
LFS_POINTER: Final = "lfs-pointer"
HTML: Final = "html"
ZIP_OR_PICKLE: Final = "zip-or-pickle"
OTHER_FORMAT: Final = "other-format"

# Text and JSON, of a document or of a header.
NOT_UTF8: Final = "not-utf8"
BOM: Final = "bom"
NOT_JSON: Final = "not-json"
NOT_OBJECT: Final = "not-object"
TOO_DEEP: Final = "too-deep"
BAD_NUMBER: Final = "bad-number"
NAN_LITERAL: Final = "nan-literal"
DUPLICATE_KEY: Final = "duplicate-key"

# The frame of a safetensors file.
HEADER_TRUNCATED: Final = "header-truncated"
HEADER_LENGTH: Final = "header-length"
HEADER_NOT_JSON: Final = "header-not-json"
HEADER_BOM: Final = "header-bom"
BAD_METADATA: Final = "bad-metadata"

# One tensor of a header, and how the tensors cover the data.
BAD_ENTRY: Final = "bad-entry"
BAD_DTYPE: Final = "bad-dtype"
BAD_SHAPE: Final = "bad-shape"
BAD_OFFSETS: Final = "bad-offsets"
SHAPE_OVERFLOW: Final = "shape-overflow"
SIZE_MISMATCH: Final = "size-mismatch"
GAP: Final = "gap"
OVERLAP: Final = "overlap"
TRAILING_BYTES: Final = "trailing-bytes"
TRUNCATED_DATA: Final = "truncated-data"

# The index of a sharded checkpoint.
INDEX_NO_WEIGHT_MAP: Final = "index-no-weight-map"
INDEX_BAD_WEIGHT_MAP: Final = "index-bad-weight-map"
INDEX_EMPTY: Final = "index-empty"
INDEX_BAD_ENTRY: Final = "index-bad-entry"
INDEX_ESCAPES: Final = "index-escapes"

KINDS: Final = frozenset(
    {
        MISSING,
        NOT_A_FILE,
        BROKEN_LINK,
        UNREADABLE,
        EMPTY,
        TOO_LARGE,
        TOO_MANY_FILES,
        LFS_POINTER,
        HTML,
        ZIP_OR_PICKLE,
        OTHER_FORMAT,
        NOT_UTF8,
        BOM,
        NOT_JSON,
        NOT_OBJECT,
        TOO_DEEP,
        BAD_NUMBER,
        NAN_LITERAL,
        DUPLICATE_KEY,
        HEADER_TRUNCATED,
        HEADER_LENGTH,
        HEADER_NOT_JSON,
        HEADER_BOM,
        BAD_METADATA,
        BAD_ENTRY,
        BAD_DTYPE,
        BAD_SHAPE,
        BAD_OFFSETS,
        SHAPE_OVERFLOW,
        SIZE_MISMATCH,
        GAP,
        OVERLAP,
        TRAILING_BYTES,
        TRUNCATED_DATA,
        INDEX_NO_WEIGHT_MAP,
        INDEX_BAD_WEIGHT_MAP,
        INDEX_EMPTY,
        INDEX_BAD_ENTRY,
        INDEX_ESCAPES,
    }
)

#: The same fault many times over in one file is told this often at most.
MAX_REPEATS: Final = 8


class Problem(NamedTuple):
    """One thing that is wrong with one file, in words that need no further context."""

    kind: str
    """One of `KINDS`."""
    file: str | None
    """Path relative to the checkpoint directory; None for the directory itself."""
    pointer: str | None = None
    """RFC 6901 pointer into a JSON document."""
    tensor: str | None = None
    """Tensor name as it stands in the header, unescaped."""
    detail: str = ""
    """What is wrong, as one sentence without a full stop; names taken from the file are escaped and clipped."""
    expected: str | None = None
    found: str | None = None
    fatal: bool = False
    """The file cannot be used at all."""


def quote(text: object, limit: int = 120) -> str:
    """`text` between backquotes, fit to be printed: what cannot be is escaped, a long middle is cut."""
    plain = text if isinstance(text, str) else show(text)
    if len(plain) > limit:
        plain = f"{plain[: limit // 2]}…{plain[-(limit // 2) + 1 :]}"
    if not plain.isprintable():
        plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in plain)
    return f"`{plain}`"


def show(value: object, limit: int = 80) -> str:
    """A JSON value as JSON would write it, clipped to `limit` characters and without walking further than that."""
    text = _show(value, limit - 4)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _show(value: object, room: int) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        clipped = value if len(value) <= room else value[:room] + "…"
        return '"' + quote(clipped, limit=room + 2)[1:-1] + '"'
    if isinstance(value, int) and not -(10**40) < value < 10**40:
        return "an integer of more than 40 digits"
    if isinstance(value, (list, tuple, dict)):
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        parts: list[str] = []
        # Each level and each item takes from the room that is left, which bounds depth as well as length.
        for item in value:
            room -= 2
            if room <= 0:
                parts.append("…")
                break
            part = _show(item, room)
            if isinstance(value, dict):
                part += ": " + _show(value[item], room - len(part))
            parts.append(part)
            room -= len(part)
        return opening + ", ".join(parts) + closing
    return str(value)


def count(number: int, thing: str) -> str:
    """``1 byte``, ``2,000 bytes``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def pointer_to(*parts: object) -> str:
    """The RFC 6901 pointer through `parts`, each a key or an array index."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
