"""Which weight files a release opens, and what the index does to them; the contract's ``files`` section applied."""

from __future__ import annotations

import fnmatch
import gc

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.order import ordered


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.checkpoint import Checkpoint, Document, Header


class Selection(NamedTuple):
    """The weight files of one checkpoint as one release picks them."""

    kind: str | None
    """The contract's name of the file set; None when nothing would be loaded."""
    clause: Mapping[str, Any]
    reads: str
    """``safetensors`` or ``pickle`` (not read here)."""
    files: tuple[str, ...]
    """What is opened, in the loader's order."""
    index: Document | None  # type: ignore[assignment]
    missing: tuple[str, ...]
    """Named by the index, not on disk."""
    unlisted: tuple[str, ...]
    """On disk and of this set's pattern, not named by the index."""
    passed_over: tuple[str, ...]
    """Weight files of other sets that this one hides."""
    headers: tuple[Header, ...]
    tensors: Mapping[str, tuple[str, dict[str, Any]]]
    """Name on disk: (file, header entry); for a name in two files the one that wins."""
    duplicates: Mapping[str, tuple[str, ...]]
    """Names that stand in several opened files."""


def select(checkpoint: Checkpoint, contract: Mapping[str, Any], *, prefix: str | None = None) -> Selection:
    """Pick the files as the release does and read their headers.

    `prefix` keeps only tensor names that start with it: a draft inside its target's checkpoint.
    """
    names = [
        entry.name
        for entry in checkpoint.files
        if entry.kind in ("file", "directory", "fifo", "device", "socket", "broken-link", "other")
    ]
    sets = ordered(contract["files"]["sets"])
    chosen: tuple[str, Mapping[str, Any], list[str]] | None = None
    passed_over: list[str] = []
    for name, clause in sets:
        left_out = set(clause.get("leave_out", ()))
        matching = [n for n in names if fnmatch.fnmatchcase(n, clause["pattern"]) and n not in left_out]
        if chosen is None and matching:
            chosen = (name, clause, matching)
        elif chosen is not None:
            passed_over += [n for n in matching if n not in chosen[2]]
    if chosen is None:
        return Selection(None, {}, "safetensors", (), None, (), (), (), (), {}, {})
    kind, clause, matching = chosen
    if clause["reads"] != "safetensors":
        return Selection(kind, clause, clause["reads"], tuple(matching), None, (), (), tuple(passed_over), (), {}, {})
    index = checkpoint.document(clause["index"])
    missing: list[str] = []
    unlisted: list[str] = []
    opened = sorted(matching)
    weight_map = index.value.get("weight_map") if index.exists and isinstance(index.value, dict) else None
    if isinstance(weight_map, dict):
        listed = {v for v in weight_map.values() if isinstance(v, str)}
        unlisted = [n for n in opened if n not in listed]
        missing = sorted(v for v in listed if v not in names)
        opened = [n for n in opened if n in listed]
    headers = tuple(checkpoint.header(n) for n in opened)
    tensors, duplicates = _join(headers, prefix)
    return Selection(
        kind,
        clause,
        "safetensors",
        tuple(opened),
        index if index.exists else None,
        tuple(missing),
        tuple(unlisted),
        tuple(passed_over),
        headers,
        tensors,
        duplicates,
    )


def _join(
    headers: tuple[Header, ...], prefix: str | None
) -> tuple[dict[str, tuple[str, dict[str, Any]]], dict[str, tuple[str, ...]]]:
    tensors: dict[str, tuple[str, dict[str, Any]]] = {}
    twice: dict[str, list[str]] = {}
    enabled = gc.isenabled()
    gc.disable()  # seventy thousand small tuples trigger it a hundred times for nothing
    try:
        for header in headers:
            file = header.file
            for name, entry in header.tensors.items():
                if prefix is not None and not name.startswith(prefix):
                    continue
                if name in tensors:
                    twice.setdefault(name, [tensors[name][0]]).append(file)
                tensors[name] = (file, entry)
    finally:
        if enabled:
            gc.enable()
    return tensors, {k: tuple(v) for k, v in twice.items()}
