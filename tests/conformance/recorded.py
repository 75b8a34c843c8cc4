"""The recorded verdicts of the real loader, and what it means to agree with one.

refused  it raised before serving (at config, build, load, or the first profiling pass)
silent   it loaded and served, with weights never written, cut to size, or ids out of range
dropped  it loaded as intended by its config, but tensors of the file were thrown away
clean    every parameter was written and every tensor used
unjudged the recording cannot tell (a stub on the CPU decided); never compared

A public fault report says instead what a good linter makes of it: error, warning, info, ok.
"""

from __future__ import annotations

import gzip
import json
import traceback

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from support import neutral_directory, unpack_case


if TYPE_CHECKING:
    from dspark_lint.finding import Result


Case = Mapping[str, Any]

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "conformance"
EXCEPTIONS = Path(__file__).with_name("exceptions.yaml")
CORPORA = ("loader", "quant", "exports", "random", "bugs")
OUTCOMES = ("refused", "silent", "dropped", "clean", "expect-error", "expect-warning", "expect-info", "expect-ok")


class Verdict(NamedTuple):
    """What one release did with a case, or what is expected of a linter."""

    outcome: str
    why: str
    """The exception and the beginning of its message, empty when it loaded."""


class Comparison(NamedTuple):
    """A case under one release: recorded against found."""

    case: str
    group: str
    release: str
    want: Verdict
    agrees: bool
    got: str
    """The findings, in short, or why there are none."""

    def __str__(self) -> str:
        """One line, for a table of disagreements."""
        why = f" {self.want.why!r}" if self.want.why else ""
        return f"{self.case} @ {self.release}: loader {self.want.outcome}{why}; tool: {self.got}"


class Exempt(NamedTuple):
    """A recorded verdict that is argued to be wrong, or not to be seen on disk."""

    case: str
    """A glob over case ids."""
    releases: tuple[str, ...]
    """Empty: every recorded release."""
    reason: str


def read_corpus(name: str | Path) -> Iterator[Case]:
    """The cases of a corpus, by its name (``loader``) or by the path of its ``.jsonl.gz``."""
    path = FIXTURES / f"{name}.jsonl.gz" if str(name) in CORPORA else Path(name)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_corpus(path: Path, cases: Iterable[Case]) -> None:
    """Write a corpus; the same cases give the same bytes."""
    part = path.with_suffix(".part")
    with part.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        for case in cases:
            line = json.dumps(case, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            file.write(line.encode("utf-8") + b"\n")
    part.replace(path)


def read_exceptions(path: Path = EXCEPTIONS) -> tuple[Exempt, ...]:
    """The argued exceptions."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return tuple(Exempt(e["case"], tuple(e.get("releases", ())), e["reason"]) for e in entries)


def exempt(exceptions: Sequence[Exempt], case: str, release: str) -> Exempt | None:
    """The exception that covers a case under a release, if any."""
    return next(
        (e for e in exceptions if fnmatch(case, e.case) and (not e.releases or release in e.releases)),
        None,
    )


def verdicts(case: Case) -> dict[str, Verdict]:
    """What is recorded of a case, by release; what is unjudged is left out."""
    if "expect" in case:
        return {release: Verdict("expect-" + expected, "") for release, expected in case["expect"].items()}
    return {
        release: Verdict(v["outcome"], " ".join(filter(None, (v.get("error"), (v.get("message") or "")[:110]))))
        for release, v in case["verdicts"].items()
        if v["outcome"] != "unjudged"
    }


def agrees(want: str, group: str, result: Result) -> bool:
    """Whether the findings of one release say what the loader did.

    refused  a finding with effect "refused"
    silent   a finding of severity error or warning whose effect is "silent" (or "refused")
    dropped  a finding of any severity
    clean    no finding with effect "refused"; a case of group "base" has no error or warning at all
    expect-* error: an error; warning: a warning or error; info: no error; ok: neither
    """
    bad = [f for f in result.findings if f.severity in ("error", "warning")]
    errors = any(f.severity == "error" for f in bad)
    refused = any(f.effect == "refused" for f in result.findings)
    table = {
        "refused": refused,
        "silent": any(f.effect in ("silent", "refused") for f in bad),
        "dropped": bool(result.findings),
        "clean": not refused and not (group == "base" and bad),
        "expect-error": errors,
        "expect-warning": bool(bad),
        "expect-info": not errors,
        "expect-ok": not bad,
    }
    return table[want]


def lint_case(case: Case, vllm: str | Sequence[str], root: Path | None = None) -> dict[str, Result]:
    """Lint an unpacked case; the results by release. With `root` the files stay there.

    Imports the tool late: a corpus can be read without it.
    """
    from dspark_lint import lint

    with neutral_directory() as scratch:
        draft, target = unpack_case(case, root or scratch)
        report = lint(draft, vllm=vllm, target=target, speculative_config=case.get("speculative_config"))
    return {result.release: result for checkpoint in report.checkpoints for result in checkpoint.results}


def compare(case: Case, releases: Sequence[str] = (), root: Path | None = None) -> list[Comparison]:
    """Hold the tool against everything recorded of a case (or against `releases` only)."""
    wanted = {r: v for r, v in verdicts(case).items() if not releases or r in releases}
    failure = ""
    results: dict[str, Result] = {}
    if wanted:
        try:
            results = lint_case(case, [f"=={r}" for r in releases] if releases else "all", root)
        except Exception as error:  # noqa: BLE001 - a crash of the tool is a disagreement like another
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            failure = f"tool failed: {type(error).__name__}: {error} ({place})"
    out = []
    for release, want in sorted(wanted.items(), key=lambda item: tuple(map(int, item[0].split(".")))):
        result = results.get(release)
        if failure:
            agree, got = False, failure
        elif result is None or result.verdict == "unchecked":
            agree, got = False, "not checked"
        else:
            agree = agrees(want.outcome, case["group"], result)
            got = ", ".join(sorted({f"{f.rule}/{f.severity}/{f.effect}" for f in result.findings})) or "nothing"
        out.append(Comparison(case["id"], case["group"], release, want, agree, got))
    return out
