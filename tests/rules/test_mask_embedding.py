"""FIL013: mask_embedding.pt, by release and loader, told apart by its zip directory alone."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest

from rules.build import HIDDEN, ROWS, Case, Change, Told, at, check, file, made, results, several, told, without


NAME = "mask_embedding.pt"


def archive(*storages: int, pickled: bytes = b"\x80\x02.") -> bytes:
    """A file of torch.save with storages of these sizes, as its directory shows it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        written.writestr("mask_embedding/data.pkl", pickled)
        for number, size in enumerate(storages):
            written.writestr(f"mask_embedding/data/{number}", b"\x3c" * size)
        written.writestr("mask_embedding/version", "3\n")
    return buffer.getvalue()


def beside(*storages: int) -> Change:
    return file(NAME, archive(*storages))


class Bomb:
    """What no one may unpickle."""

    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise SystemExit('unpickled')",)


GOOD = beside(2 * HIDDEN)
UNREAD = (Told("FIL013", "warning", "silent", ""),)
REFUSED = (Told("FIL013", "error", "refused", ""),)
ONLY_TOP = several(without("dflash_config.mask_token_id"), at("mask_token_id", ROWS - 1))

CASES = [
    *(Case("FIL013", f"fits, {bits} bit", "dflash", (beside(size * HIDDEN),)) for bits, size in ((8, 1), (16, 2), (32, 4), (64, 8))),
    Case("FIL013", "fits, with the number of the token", "dflash", (beside(2 * HIDDEN, 8),), vllm="0.25.0"),
    Case("FIL013", "in a release that never reads it", "dflash", (GOOD,), UNREAD, vllm="0.24.0", says=(NAME, "never opens it", "row 255"), fix="0.25"),
    Case("FIL013", "beside a DSpark draft", "native", (GOOD,), UNREAD, says=("the DSpark loader", "row 255")),
    Case("FIL013", "beside a DSpark draft, speculators", "speculators", (GOOD,), UNREAD, vllm="0.33.0", says=("the DSpark loader",)),
    Case("FIL013", "beside a Gemma4 draft", "gemma4", (GOOD,), (*UNREAD, Told("TGT001", "info", "advice", "embed_tokens.weight")), says=("never opens it",)),
    Case("FIL013", "the token at the top level only, early", "dflash", (GOOD, ONLY_TOP), UNREAD, vllm="0.28.0", says=("looks for the id that it replaces in dflash_config only",), fix='"mask_token_id": 255'),
    Case("FIL013", "the token at the top level only", "dflash", (GOOD, ONLY_TOP), vllm="0.29.0"),
    Case("FIL013", "of a smaller draft", "dflash", (beside(2 * 48),), REFUSED, says=("96 bytes", "128 bytes")),
    Case("FIL013", "of no draft of this size", "dflash", (beside(2 * 100),), REFUSED, vllm="0.31.0", says=("200 bytes",)),
    Case("FIL013", "nothing in it", "dflash", (beside(),), REFUSED, says=("0 bytes",)),
    Case("FIL013", "a whole table", "dflash", (beside(2 * HIDDEN * ROWS),), (Told("FIL013", "warning", "refused", ""),), says=("32768 bytes", "a view"), fix="clone"),
    Case("FIL013", "cut off", "dflash", (file(NAME, archive(2 * HIDDEN)[:100]),), REFUSED, says=("cut off or damaged", "torch.load")),
    Case("FIL013", "no file of torch.save", "dflash", (file(NAME, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9216\n"),), REFUSED, says=("Git LFS",)),
    Case("FIL013", "cut off, where nobody opens it", "native", (file(NAME, archive(2 * HIDDEN)[:100]),), UNREAD),
    Case("FIL013", "in the old format, whose sizes do not show", "dflash", (file(NAME, b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."),)),
    Case("FIL013", "another file", "dflash", (file("mask.pt", archive(3)),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_mask_embedding(case: Case) -> None:
    """A mask embedding that nobody reads, or that does not fit, is one finding; one that is read and fits is none."""
    check(case)


def test_never_unpickled() -> None:
    """A pickle that would end the process stays closed, and the file is judged by its sizes all the same."""
    trap = file(NAME, archive(2 * HIDDEN, pickled=pickle.dumps(Bomb())))

    for vllm in ("==0.24.0", "==0.32.0"):
        (result,) = results(made("dflash", trap), vllm).values()
        assert told(result.findings) == ([] if vllm == "==0.32.0" else list(UNREAD))
