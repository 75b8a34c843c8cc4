#!/usr/bin/env python3
"""Ask the installed vLLM about the recorded corpora, and write down what it did.

python tests/conformance/live/record.py                  compare with what is recorded for this release
python tests/conformance/live/record.py --write          record it (a new release, or again)
python tests/conformance/live/record.py --dir CKPT --target DIR     one checkpoint of your own: the whole record
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any


HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]

from conformance.live.outcome import verdict  # noqa: E402
from conformance.recorded import FIXTURES, Case, read_corpus, write_corpus  # noqa: E402
from support import SPEAKING_WORDS, unpack_case  # noqa: E402


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.live.worker import Ask


#: What a stand-in takes over from the text model that it stands for.
SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
)


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", default=["loader", "exports"])
    parser.add_argument("--only", default="*", metavar="GLOB", help="cases whose id matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the verdicts into the corpora")
    parser.add_argument("--overwrite", action="store_true", help="also verdicts that were set by hand")
    parser.add_argument("--records", type=Path, help="write the full records there (JSON)")
    parser.add_argument("--dir", type=Path, help="one checkpoint instead of the corpora")
    parser.add_argument("--target", type=Path, help="directory of its target")
    parser.add_argument("--speculative-config", default='{"method": "dspark", "num_speculative_tokens": 4}')
    return parser.parse_args()


def main() -> int:
    """Ask, compare, and write when told to."""
    o = options()
    scratch = Path(tempfile.gettempdir()).resolve()
    if any(word in str(scratch).lower() for word in SPEAKING_WORDS):
        sys.exit(f"vLLM guesses the method from the whole path: set TMPDIR to a neutral directory, not {scratch}")
    from conformance.live import environment, worker

    release = environment.setup()
    if o.dir is not None:
        serve = json.loads(o.speculative_config)
        ask = worker.Ask(str(o.dir.resolve()), str((o.target or o.dir).resolve()), serve)
        with tempfile.TemporaryDirectory(prefix="case-") as place:
            ((_, record),) = worker.ask_in_forks([("", ask, Path(place))], 1)
        print(json.dumps({"vllm": release, "verdict": verdict(record), "record": record}, indent=1))
        return 0
    records: dict[str, dict[str, Any]] = {}
    differ = 0
    for corpus in o.corpora:
        cases = list(read_corpus(corpus))
        asked = {case["id"]: case for case in cases if fnmatch(case["id"], o.only)}
        with tempfile.TemporaryDirectory(prefix="cases-") as root:
            for key, record in worker.ask_in_forks(questions(asked.values(), Path(root)), o.jobs):
                records[key] = record
                differ += take(asked[key], release, verdict(record), overwrite=o.overwrite)
        print_summary(corpus, release, list(asked.values()))
        if o.write:
            write_corpus(FIXTURES / f"{corpus}.jsonl.gz", cases)
    if o.records:
        text = {"vllm": release, "patches": environment.PATCHES, "cases": records}
        o.records.write_text(json.dumps(text, indent=1), encoding="utf-8")
    return 1 if differ and not o.write else 0


def questions(cases: Iterable[Case], root: Path) -> Iterator[tuple[str, Ask, Path]]:
    """Unpack cases below `root` as they are asked for."""
    from conformance.live.worker import Ask, served

    for number, case in enumerate(cases):
        place = root / f"c{number:04}"
        where = unpack_case(case, place)
        target, prefix = stand_in(where.target or where.draft)
        yield case["id"], Ask(str(where.draft), str(target), served(case), prefix), place


def stand_in(target: Path) -> tuple[Path, str]:
    """The target that is really loaded, and the prefix of its layers' names.

    A multimodal target cannot be built on the CPU. A Qwen3 of its text model's sizes stands for it, its layers
    named as they would be below the multimodal one.
    """
    try:
        config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return target, ""
    if not isinstance(config, dict) or not isinstance(config.get("text_config"), dict):
        return target, ""
    sizes = {key: value for key, value in config["text_config"].items() if key in SIZES}
    text = sizes | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": False}
    place = target.with_name("text")
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(text), encoding="utf-8")
    return place, "language_model"


def take(case: Case, release: str, new: dict[str, Any], *, overwrite: bool) -> bool:
    """Put a verdict into its case; True when it contradicts what was recorded, which is told.

    Verdicts set by hand stay: corrected ones, and those that the run on a CPU is not trusted with.
    """
    old = case["verdicts"].get(release)
    kept = old is not None and (by_hand(old) and not overwrite)
    differs = old is not None and (old["outcome"], old.get("stage")) != (new["outcome"], new.get("stage"))
    if differs:
        print(f"{case['id']}: recorded {summary(old)}, now {summary(new)}{' (set by hand, kept)' * kept}")
    if not kept:
        case["verdicts"][release] = new
    return differs and not kept


def by_hand(told: Mapping[str, Any]) -> bool:
    """Whether a verdict is not what the harness said."""
    return bool(told.get("corrected")) or told["outcome"] == "unjudged"


def summary(told: Mapping[str, Any]) -> str:
    """A verdict in a few words."""
    return " ".join(filter(None, (told["outcome"], told.get("stage"), told.get("error")))) + (
        " corrected" if told.get("corrected") else ""
    )


def print_summary(corpus: str, release: str, cases: list[Case]) -> None:
    """How many cases came to what, and which ones were set by hand under the newest other release."""
    count = collections.Counter(case["verdicts"][release]["outcome"] for case in cases)
    print(f"{corpus} under {release}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(count.items())))
    for case in cases:
        others = sorted(
            (r for r in case["verdicts"] if r != release), key=lambda r: [int(part) for part in r.split(".")]
        )
        if others and by_hand(case["verdicts"][others[-1]]) and not by_hand(case["verdicts"][release]):
            print(f"  look at {case['id']}: set by hand under {others[-1]}")


if __name__ == "__main__":
    sys.exit(main())
