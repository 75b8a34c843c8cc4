#!/usr/bin/env python3
"""Hold the working tree against a corpus of recorded verdicts, in this process (no command is started).

python tests/conformance/compare.py loader --skip-group quant -v
python tests/conformance/compare.py exports --release 0.32.0 --only 'mo-*'
"""

from __future__ import annotations

import argparse
import collections
import functools
import multiprocessing
import sys
import time
import zlib

from fnmatch import fnmatch
from pathlib import Path


HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from conformance.recorded import CORPORA, OUTCOMES, Case, Comparison, compare, exempt, read_corpus, read_exceptions  # noqa: E402


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help=f"{', '.join(CORPORA)}, or the path of a .jsonl.gz")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="cases whose id matches")
    parser.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out cases whose id matches")
    parser.add_argument("--group", action="append", default=[], help="cases of this group")
    parser.add_argument("--skip-group", action="append", default=[])
    parser.add_argument("--base", action="append", default=[], help="cases on this base (fault reports)")
    parser.add_argument("--release", action="append", default=[], metavar="X.Y.Z")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true", help="list the disagreements")
    parser.add_argument("-a", "--all", action="store_true", help="list every comparison")
    parser.add_argument("--fail-under", type=float, default=1.0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the unpacked cases there")
    return parser.parse_args()


def wanted(case: Case, o: argparse.Namespace) -> bool:
    """Whether the options ask for this case."""
    return (
        (not o.only or any(fnmatch(case["id"], glob) for glob in o.only))
        and not any(fnmatch(case["id"], glob) for glob in o.skip)
        and (not o.group or case["group"] in o.group)
        and case["group"] not in o.skip_group
        and (not o.base or case.get("base") in o.base)
    )


def run(case: Case, releases: list[str], keep: Path | None) -> list[Comparison]:
    """One case, in a worker process."""
    # a neutral directory name: vLLM guesses the method from the whole path
    return compare(case, releases, keep and keep / f"case-{zlib.crc32(case['id'].encode()):08x}")


def main() -> int:
    """Compare, print the table, and tell by the exit status whether it is good enough."""
    o = options()
    started = time.perf_counter()
    cases = [case for case in read_corpus(o.corpus) if wanted(case, o)]
    work = functools.partial(run, releases=o.release, keep=o.keep)
    if o.jobs > 1:
        with multiprocessing.Pool(o.jobs) as pool:
            compared = [c for several in pool.imap(work, cases, chunksize=4) for c in several]
    else:
        compared = [c for case in cases for c in work(case)]
    exceptions = read_exceptions()
    tally: dict[str, collections.Counter[tuple[str, bool]]] = collections.defaultdict(collections.Counter)
    groups: dict[str, collections.Counter[bool]] = collections.defaultdict(collections.Counter)
    for c in compared:
        tally[c.release][c.want.outcome, c.agrees] += 1
        groups[c.group][c.agrees] += 1
        if o.all or (o.verbose and not c.agrees):
            argued = exempt(exceptions, c.case, c.release)
            print(f"{'+' if c.agrees else '-'} {c}" + (f" [exception: {argued.reason}]" if argued else ""))
    print_table(tally)
    print("by group: " + ", ".join(f"{g} {n[True]}/{n.total()}" for g, n in sorted(groups.items())))
    good, total = sum(c.agrees for c in compared), len(compared)
    rate = good / total if total else 0.0
    print(f"agreement {good}/{total} = {rate:.2%} ({len(cases)} cases, {time.perf_counter() - started:.1f} s)")
    return 0 if total and rate >= o.fail_under else 1


def print_table(tally: dict[str, collections.Counter[tuple[str, bool]]]) -> None:
    """A row a release, a column an outcome."""
    kinds = [k for k in OUTCOMES if any(want == k for t in tally.values() for want, _ in t)]
    print(f"{'release':9} " + " ".join(f"{k:>14}" for k in kinds) + f" {'agree':>8}")
    for release, t in sorted(tally.items(), key=lambda item: tuple(map(int, item[0].split(".")))):
        cells = [f"{t[k, True]}/{t[k, True] + t[k, False]}" for k in kinds]
        good = sum(n for (_, agree), n in t.items() if agree)
        print(f"{release:9} " + " ".join(f"{cell:>14}" for cell in cells) + f" {good / t.total():8.2%}")


if __name__ == "__main__":
    sys.exit(main())
