"""The worked example of a rule's page: a small draft that fires the rule, what tells it from one that does not, the words.

The drafts are those of the tables in tests/rules; what a page shows is what the tool says of them when the page is written.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import sys
import textwrap

from difflib import SequenceMatcher
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple


ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from conformance.live.cases import WEIGHTS, Spec
from rules import build, test_qnt, test_registry
from support import neutral_directory

from dspark_lint import lint
from dspark_lint.contract.load import shipped_releases


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import Finding


#: Of a rule's table, the line that shows it best, where that is not the first that fires it.
BEST = {
    "FIL001": "trailing comma",
    "FIL003": "tensors overlap",
    "ARC002": "DFlashDraftModel",
    "ARC004": "a trainer's step",
    "ARC005": "no method in the flags",
    "ARC007": "unknown speculators type",
    "DRF002": "proposal of one token fewer",
    "FIL010": "no weight_map",
    "FIL013": "beside a DSpark draft",
    "KEY003": "too few layer types",
    "KEY008": "attention_value_scale in 0.30",
    "KEY009": "sample_from_anchor of an exporter that trains so",
    "TEN003": "one name",
    "TEN005": "the confidence head before 0.28",
    "TEN006": "no bias",
    "TGT001": "reduced without d2t",
}
#: Up to how many lines a part of a difference is shown whole, how many of a run in a longer one, and how long one may be.
LINES, FIRST, LENGTH = 12, 3, 140


class Example(NamedTuple):
    """What a page shows."""

    difference: str
    """From a draft that is quiet to one that fires, as the body of a diff."""
    words: str
    """The rule's finding, as plain text."""


class _Draft(NamedTuple):
    """A draft of the tables under a release."""

    base: str
    changes: tuple[build.Change, ...]
    vllm: str
    deep: bool

    @property
    def spec(self) -> Spec:
        return build.made(self.base, *self.changes)


_CASES = [*test_registry.CASES, *test_qnt.CASES]


@cache
def example(rule: str) -> Example:
    """Return the example of a rule. Raises LookupError where no table has a draft that fires it and one that does not."""
    best = BEST.get(rule)
    case = next((c for c in _CASES if c.rule == rule and c.fires and best in (None, c.name)), None)
    if case is None:
        raise LookupError(f"{rule}: no line of a table fires it, or none is called {best!r}")
    bad = _Draft(case.base, case.changes, case.vllm, case.deep)
    found = next((f for f in _findings(bad) if f.rule == rule), None)
    if found is None:
        raise LookupError(f"{rule}: {case.name} does not fire it")
    for _, difference, good in sorted(_quiet(rule, bad), key=lambda one: one[0]):
        if difference and not any(f.rule == rule for f in _findings(good)):
            return Example("\n".join(difference), _words(found, case.vllm))
    raise LookupError(f"{rule}: nothing shows it quiet")


def _quiet(rule: str, bad: _Draft) -> Iterator[tuple[int, list[str], _Draft]]:
    """Yield drafts that may be quiet, each with what tells the bad one from it and how much that is."""
    drafts = [_Draft(bad.base, (), bad.vllm, bad.deep), bad._replace(vllm=shipped_releases()[-1])]
    for case in _CASES:
        # a quantized draft is best told from one that is quantized too, a draft of two shards from another
        kin = case.rule == rule or (case.rule[:3] == rule[:3] in ("FIL", "QNT") and case.base == bad.base)
        if kin and not case.fires and case.deep == bad.deep:
            drafts.append(_Draft(case.base, case.changes, case.vllm if case.rule == rule else bad.vllm, case.deep))
    for good in drafts:
        difference = list(_difference(good, bad))
        size = sum(not line.startswith(" ") for line in difference)
        yield size + 2 * (good.vllm != bad.vllm), _clipped(difference), good


def _findings(draft: _Draft) -> tuple[Finding, ...]:
    with neutral_directory() as scratch:
        place, target = build.write(draft.spec, scratch, varied=draft.deep)
        report = lint(
            place,
            vllm=f"=={draft.vllm}",
            target=target,
            speculative_config=draft.spec.serve or None,
            deep=draft.deep,
        )
        (result,) = report.checkpoints[0].results
        return tuple(f._replace(message=f.message.replace(str(scratch), "...")) for f in result.findings)


def _words(finding: Finding, release: str) -> str:
    """Return a finding as plain text, a line a part."""
    where = "  ".join(part for part in (finding.file, finding.pointer, finding.tensor) if part)
    parts = [f"{finding.severity}  {finding.rule}  {where}".rstrip()]

    def block(label: str, text: str) -> None:
        parts.append(
            textwrap.fill(
                text, 100, initial_indent=f"  {label:<8}" if label else "  ", subsequent_indent=" " * (10 if label else 2),
                break_long_words=False, break_on_hyphens=False,
            )
        )  # fmt: skip

    block("", finding.message)
    if finding.fix:
        block("fix", finding.fix)
    block("source", f"vLLM {release} {finding.source}")
    return "\n".join(parts)


# ---------------------------------------------------------------- a draft as lines
def _difference(good: _Draft, bad: _Draft) -> Iterator[str]:
    """Yield the lines of a diff, each part of a checkpoint under its name."""
    # a file that one of them has as text or bytes is compared as such
    raw = {name for draft in (good.spec, bad.spec) for name in draft.files}
    raw |= {"config.json" for draft in (good.spec, bad.spec) if draft.text is not None}
    old, new = _parts(good, raw), _parts(bad, raw)
    for part in {**old, **new}:
        before, after = old.get(part, []), new.get(part, [])
        changed: list[str] = []
        for what, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if what != "equal":
                changed += [f"-{line}" for line in before[i1:i2]] + [f"+{line}" for line in after[j1:j2]]
        if changed:
            yield f" {part}"
            yield from changed


def _parts(draft: _Draft, raw: set[str]) -> dict[str, list[str]]:
    """Return everything a draft is, by the name of the part, as lines."""
    spec = draft.spec
    parts = {"vLLM": [draft.vllm], "directory": [spec.dirname]}
    if "config.json" in raw:
        text = json.dumps(spec.config) if spec.text is None else spec.text
        parts["config.json"] = text.replace(", ", ",\n").splitlines()
    else:
        parts["config.json"] = list(_keys(spec.config))
    if WEIGHTS in raw:
        parts[WEIGHTS] = _content(build.weights(spec))
    else:
        parts[WEIGHTS] = [
            f"{name}  {kind} {list(dims)}{_values(spec, name)}" for name, (kind, dims) in spec.tensors.items()
        ]
    for name, record in spec.files.items():
        if record is None:
            parts[name] = []
        elif "base64" in record:
            parts[name] = _content(base64.b64decode(record["base64"]))
        else:
            parts[name] = _content(str(record.get("text", "")).encode())
    parts["the target's config.json"] = list(_keys(spec.target))
    parts["--speculative-config"] = [json.dumps(spec.serve)] if spec.serve else []
    return parts


def _keys(config: Any, prefix: str = "") -> Iterator[str]:
    """Yield a line a key, objects by dotted paths."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}: {json.dumps(value)}"


def _values(spec: Spec, name: str) -> str:
    """Return what a tensor holds, where a change says it."""
    data = spec.tables.get(name)
    if data is None:
        return ""
    if not any(data):
        return "  zeros"
    kind = spec.tensors[name][0]
    code = {"I64": "q", "I32": "i", "BOOL": "B", "U8": "B", "F32": "f", "F16": "e"}.get(kind)
    if code is not None:
        values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
    elif kind == "BF16":
        values = tuple(struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2))
    else:
        return f"  bytes {data[:8].hex(' ')}" + (" ..." if len(data) > 8 else "")
    return "  " + ", ".join(f"{value:.6g}" for value in values[:8]) + (", ..." if len(values) > 8 else "")


def _content(data: bytes) -> list[str]:
    """Return a file's lines: a safetensors header by its tensors, JSON by its keys, text as it is, else its size."""
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        size = int.from_bytes(data[:8], "little")
        head = json.loads(data[8 : 8 + size]) if size <= len(data) else {}
        lines = [
            f"{name}  {entry['dtype']} {entry['shape']}  bytes {entry['data_offsets']}"
            for name, entry in head.items()
            if name != "__metadata__"
        ]
        if lines:
            return lines
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [f"({len(data)} bytes, {data[:4].hex(' ')} ...)"]
    if "\0" in text:
        return [f"({len(data)} bytes)"]
    try:
        value = json.loads(text)
    except ValueError:
        return text.splitlines() or ["(empty)"]
    return list(_keys(value)) if isinstance(value, dict) and value else [text]


def _clipped(lines: list[str]) -> list[str]:
    """Return what is shown of a difference: each part's first lines, none longer than a page is wide."""
    shown: list[str] = []
    parts: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(" "):
            part = parts[line] = []
        else:
            part.append(line if len(line) <= LENGTH else line[: LENGTH - 4] + " ...")
    for name, changed in parts.items():
        shown.append(name)
        for _, group in groupby(changed, key=lambda line: line[0]):
            run = list(group)
            whole = len(changed) <= LINES or len(run) <= 2 * FIRST + 2
            shown += run if whole else [*run[:FIRST], f"{run[0][0]}... and {len(run) - FIRST} more lines"]
    return shown
