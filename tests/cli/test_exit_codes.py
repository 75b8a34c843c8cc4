"""The table of exit codes, row by row, and standard output that is one document or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cli.conftest import plain_environment

from dspark_lint.cli import exits
from dspark_lint.cli.main import run as run_tool
from dspark_lint.report import FORMATS, MACHINE


if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Ran


CLEAN = "demo/converted"
REFUSED = "demo/exported"


def broken(place: Path) -> str:
    """A checkpoint whose config.json is no JSON."""
    (place / "broken").mkdir()
    (place / "broken" / "config.json").write_text("{", encoding="utf-8")
    return "broken"


def stranger(place: Path) -> str:
    """A checkpoint of an architecture that nothing here speaks of."""
    draft = place / "stranger"
    draft.mkdir()
    (draft / "config.json").write_text(
        '{"architectures": ["Eagle3LlamaForCausalLM"], "model_type": "llama"}', encoding="utf-8"
    )
    (draft / "model.safetensors").write_bytes((place / CLEAN / "model.safetensors").read_bytes())
    return "stranger"


def empty(place: Path) -> str:
    """A directory without a checkpoint."""
    (place / "empty" / "below").mkdir(parents=True)
    return "empty"


def test_the_table_is_the_one_that_is_tested() -> None:
    """There are four codes, and nothing else is promised."""
    assert (
        [code for code, _ in exits.TABLE] == [exits.CLEAN, exits.FINDINGS, exits.USAGE, exits.NOTHING] == [0, 1, 2, 3]
    )


ROWS: list[tuple[str, int, tuple[str, ...]]] = [
    ("clean", 0, (CLEAN, "--vllm", "0.32")),
    ("clean under several releases", 0, (CLEAN, "--vllm", "0.31..0.33")),
    ("clean by its config.json", 0, (f"{CLEAN}/config.json",)),
    ("the command written out", 0, ("check", CLEAN)),
    ("errors, but they were not asked for", 0, (REFUSED, "--vllm", "0.32", "--fail-on", "never")),
    ("rules that do not fire", 0, (CLEAN, "--select", "FIL,TEN001")),
    ("help", 0, ("--help",)),
    ("help of the check", 0, ("check", "--help")),
    ("version", 0, ("--version",)),
    ("rules", 0, ("rules",)),
    ("explain", 0, ("explain", "ten001")),
    ("errors", 1, (REFUSED, "--vllm", "0.32")),
    ("errors by a weight file", 1, (f"{REFUSED}/model.safetensors", "--vllm", "0.32")),
    ("errors in one of two", 1, (CLEAN, REFUSED)),
    ("errors below a directory", 1, ("demo",)),
    ("errors under one release of several", 1, (REFUSED, "--vllm", "all")),
    ("errors that are the least", 1, (REFUSED, "--fail-on", "error")),
    ("errors where warnings count too", 1, (REFUSED, "--fail-on", "warning")),
    ("errors although nothing is shown of them", 1, (REFUSED, "-q")),
    ("no path", 2, ()),
    ("no path but flags", 2, ("--vllm", "0.32")),
    ("a path where nothing is", 2, ("nowhere",)),
    ("an empty path", 2, ("",)),
    ("a path where nothing is beside a good one", 2, (CLEAN, "nowhere")),
    ("an unknown flag", 2, (CLEAN, "--strict")),
    ("an unknown command of a group", 2, ("contracts", "burn")),
    ("an unknown rule", 2, (CLEAN, "--select", "XYZ")),
    ("an unknown rule among known ones", 2, (CLEAN, "--ignore", "TEN,XYZ001")),
    ("no rule", 2, (CLEAN, "--select", "")),
    ("no rule but a comma", 2, (CLEAN, "--ignore", " , ")),
    ("an unknown rule to explain", 2, ("explain", "XYZ001")),
    ("an unknown format", 2, (CLEAN, "--format", "xml")),
    ("an unknown format for a file", 2, (CLEAN, "--format", "xml=out.xml")),
    ("a format for a file without a name", 2, (CLEAN, "--format", "json=")),
    ("two formats for standard output", 2, (CLEAN, "--format", "json", "--format", "sarif")),
    ("two formats for one file", 2, (CLEAN, "--format", "json=a", "--format", "sarif=./a")),
    ("an output for no format", 2, (CLEAN, "--format", "json=a", "--output", "b")),
    ("an output without a name", 2, (CLEAN, "--output", "")),
    ("an output that cannot be written", 2, (CLEAN, "--output", "no/such/place.txt")),
    ("an output that is a directory", 2, (CLEAN, "--format", "json=demo")),
    ("a release without a contract", 2, (CLEAN, "--vllm", "0.1")),
    ("no release", 2, (CLEAN, "--vllm", "")),
    ("a set of releases that is empty", 2, (CLEAN, "--vllm", ">=9")),
    ("no word for a release", 2, (CLEAN, "--vllm", "newest")),
    ("served as no JSON", 2, (CLEAN, "--speculative-config", "{method: dspark}")),
    ("served as no object", 2, (CLEAN, "--speculative-config", "[]")),
    ("served as too deep a value", 2, (CLEAN, "--speculative-config", "[" * 100_000)),
    ("served as nothing", 2, (CLEAN, "--speculative-config", "")),
    ("a severity that is none", 2, (CLEAN, "--fail-on", "info")),
    ("a target that is not there", 2, (CLEAN, "--target", "nowhere")),
    ("an empty target", 2, (CLEAN, "--target", "")),
    ("a contract that is not there", 2, (CLEAN, "--contract", "nowhere.yaml")),
    ("a configuration that is not there", 2, (CLEAN, "--config", "nowhere.toml")),
    ("a configuration that is a directory", 2, (CLEAN, "--config", "demo")),
    ("a configuration that is none", 2, (CLEAN, "--config", f"{CLEAN}/config.json")),
    ("a configuration without a name", 2, (CLEAN, "--config", "")),
    ("a baseline that is not there", 2, (CLEAN, "--baseline", "nowhere.json")),
    ("a baseline that is a directory", 2, (CLEAN, "--baseline", "demo")),
    ("a baseline that is something else", 2, (CLEAN, "--baseline", f"{CLEAN}/config.json")),
    ("a baseline that is no text", 2, (CLEAN, "--baseline", f"{CLEAN}/model.safetensors")),
    ("a baseline without a name", 2, (CLEAN, "--baseline", "")),
    ("a baseline to write without a name", 2, (CLEAN, "--write-baseline", "")),
    ("a baseline to write that is something else", 2, (CLEAN, "--write-baseline", f"{CLEAN}/config.json")),
    ("a baseline to write where nothing can be", 2, (CLEAN, "--write-baseline", "no/such/known.json")),
    ("the configuration in force", 0, ("--show-config",)),
    ("the configuration in force, in a format of reports", 2, ("--show-config", "--format", "sarif")),
    ("findings that are written as known", 0, (REFUSED, "--write-baseline", "known.json")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "args"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_row(code: int, args: tuple[str, ...], run: Callable[..., Ran]) -> None:
    """The code is the table's; a mistake is told on standard error in a sentence, without a traceback."""
    ran = run(*args)

    assert ran.code == code, ran
    if code == exits.USAGE:
        assert ran.out == ""
        assert ran.err
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err


PLACES: list[tuple[str, int, Callable[[Path], str], tuple[str, ...]]] = [
    ("cannot be parsed", 1, broken, ()),
    ("cannot be parsed, which is not asked about", 3, broken, ("--select", "TEN")),
    ("cannot be parsed, and nothing matters", 3, broken, ("--select", "TEN", "--fail-on", "never")),
    ("of no draft architecture", 1, stranger, ()),
    ("of no draft architecture, which is not asked about", 3, stranger, ("--select", "TEN")),
    ("of no draft architecture, which is known", 0, stranger, ("--ignore", "ARC")),
    ("no checkpoint", 3, empty, ()),
    ("no checkpoint, and nothing matters", 3, empty, ("--fail-on", "never")),
    ("rules that need more than was given", 3, lambda _: CLEAN, ("--select", "VAL004")),
]


def known(make: Callable[[Path], str]) -> Callable[[Path], str]:
    """The same with everything found there in a baseline that the configuration names."""

    def made(place: Path) -> str:
        name = make(place)
        run_tool([name, "--no-config", "--write-baseline", str(place / "known.json")])
        (place / "dspark-lint.toml").write_text('baseline = "known.json"', encoding="utf-8")
        return name

    return made


def configured(text: str, make: Callable[[Path], str]) -> Callable[[Path], str]:
    """The same with a configuration."""

    def made(place: Path) -> str:
        (place / "dspark-lint.toml").write_text(text, encoding="utf-8")
        return make(place)

    return made


def pointers(place: Path) -> str:
    """A clean checkpoint whose weights are a Git LFS pointer."""
    (place / "pointers").mkdir()
    (place / "pointers" / "config.json").write_bytes((place / CLEAN / "config.json").read_bytes())
    (place / "pointers" / "model.safetensors").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 1\n", encoding="utf-8"
    )
    return "pointers"


IGNORED = '[[ignores]]\npath = "{}"\nrules = "{}"\nreason = "a test"\n'
PLACES += [
    ("refused in a known way", 0, known(lambda _: REFUSED), ()),
    ("refused in a known way, which is told", 1, known(lambda _: REFUSED), ("--no-baseline",)),
    ("refused in a known way, elsewhere in a new one", 1, known(lambda _: REFUSED), ("demo",)),
    ("cannot be parsed, which is known", 3, known(broken), ()),
    ("cannot be parsed, which is ignored", 3, configured(IGNORED.format("broken", "FIL"), broken), ()),
    ("cannot be parsed, which is off", 3, configured('[severity]\nFIL = "off"', broken), ()),
    ("refused, which is ignored", 0, configured(IGNORED.format(REFUSED, "ARC003"), lambda _: REFUSED), ()),
    ("refused, which is ignored elsewhere", 1, configured(IGNORED.format("x", "ARC003"), lambda _: REFUSED), ()),
    ("refused, which is a warning", 0, configured('[severity]\nARC003 = "warning"', lambda _: REFUSED), ()),
    (
        "refused, which is a warning that fails",
        1,
        configured('[severity]\nARC003 = "warning"', lambda _: REFUSED),
        ("--fail-on", "warning"),
    ),
    ("pointers", 1, pointers, ()),
    ("pointers that are allowed", 0, pointers, ("--allow-lfs-pointers",)),
    ("pointers that are allowed, asked about tensors", 3, pointers, ("--allow-lfs-pointers", "--select", "TEN001")),
    ("pointers that are known", 0, known(pointers), ()),
    ("a configuration with a mistake", 2, configured("colour = 1", lambda _: CLEAN), ()),
    ("a configuration with a mistake that is not looked for", 0, configured("[", lambda _: CLEAN), ("--no-config",)),
]


@pytest.mark.parametrize(("code", "make", "args"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
def test_places(
    code: int, make: Callable[[Path], str], args: tuple[str, ...], place: Path, run: Callable[..., Ran]
) -> None:
    """A checkpoint that cannot be read is a finding; where nothing was judged the code is never 0."""
    assert run(make(place), *args).code == code


def test_unreadable_directory(place: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that cannot be listed is a finding, not an empty one."""
    empty(place)
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("empty"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "access", lambda path, _mode: not str(path).endswith("empty"))
    ran = run("empty", "--format", "json")

    assert ran.code == exits.FINDINGS
    assert [f["rule"] for f in json.loads(ran.out)["checkpoints"][0]["results"][0]["findings"]][:1] == ["FIL001"]


def test_architecture_out_of_scope(place: Path, run: Callable[..., Ran]) -> None:
    """A checkpoint that no release can judge is neither clean nor wrong."""
    ran = run(stranger(place), "--vllm", "0.32", "--format", "json", "--speculative-config", '{"method": "eagle3"}')

    assert ran.code == exits.NOTHING
    assert json.loads(ran.out)["checkpoints"][0]["results"][0]["verdict"] == "unchecked"


@pytest.mark.parametrize(
    "fault",
    [
        ValueError("a bug"),
        MemoryError(),
        RecursionError("deep"),
        KeyError("x"),
        AssertionError(),
        OSError(5, "I/O error"),
        KeyboardInterrupt(),
    ],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["", "verbose"])
def test_fault_of_the_tool(
    fault: BaseException, verbose: tuple[str, ...], run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug is code 2 with nothing on standard output; the traceback is told only when asked for."""
    import dspark_lint.api

    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(dspark_lint.api, "lint_checkpoint", fail)
    ran = run(REFUSED, "--format", "json", *verbose)

    assert (ran.code, ran.out) == (exits.USAGE, "")
    assert ("Traceback" in ran.err) is (bool(verbose) and not isinstance(fault, KeyboardInterrupt))
    assert type(fault).__name__ in ran.err or "interrupted" in ran.err


def parses(fmt: str, text: str) -> bool:
    """Whether a text is exactly one document of a machine format."""
    if fmt == "junit":
        ET.fromstring(text)  # noqa: S314 - our own output
    elif fmt == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.splitlines())
    else:
        json.loads(text)
    return text == "" or text.endswith("\n")


@pytest.mark.parametrize("fmt", sorted(MACHINE))
@pytest.mark.parametrize(
    "make",
    [lambda _: CLEAN, lambda _: REFUSED, lambda _: "demo", broken, empty, stranger],
    ids=["clean", "refused", "three", "broken", "none", "stranger"],
)
@pytest.mark.parametrize(
    "flags",
    [(), ("-v", "--explain", "--color", "always"), ("-q", "--min-severity", "error")],
    ids=["plain", "loud", "quiet"],
)
def test_one_document(
    fmt: str, make: Callable[[Path], str], flags: tuple[str, ...], place: Path, run: Callable[..., Ran]
) -> None:
    """Standard output is one document of the format whatever was found; everything else is on standard error."""
    ran = run(make(place), "--vllm", "0.31..0.32", "--format", fmt, *flags)

    assert parses(fmt, ran.out)
    assert ran.code == run(make_again(make, place), "--vllm", "0.31..0.32", "--format", "concise", *flags).code


def make_again(make: Callable[[Path], str], place: Path) -> str:
    """The checkpoint that was made already."""
    name = getattr(make, "__name__", "")
    return name if (place / name).is_dir() else make(place)


def test_files_and_standard_output_together(place: Path, run: Callable[..., Ran]) -> None:
    """Each format goes to its own place; what goes to a file is not on standard output."""
    ran = run(REFUSED, "--format", "json", *(f"--format={fmt}=out.{fmt}" for fmt in FORMATS if fmt != "json"))

    assert ran.code == exits.FINDINGS
    assert ran.err == ""
    assert json.loads(ran.out)["schema_version"] == 1
    assert {fmt for fmt in FORMATS if (place / f"out.{fmt}").is_file()} == set(FORMATS) - {"json"}
    assert all(parses(fmt, (place / f"out.{fmt}").read_text(encoding="utf-8")) for fmt in MACHINE - {"json"})


def test_output(place: Path, run: Callable[..., Ran]) -> None:
    """--output takes what would have gone to standard output, without colour codes."""
    ran = run(REFUSED, "--output", "out.txt", FORCE_COLOR="1")

    assert ran == (exits.FINDINGS, "", "")
    text = (place / "out.txt").read_text(encoding="utf-8")
    assert "ARC003" in text
    assert "\x1b" not in text


def warned(place: Path) -> str:
    """A checkpoint that draws a warning and no error: another file set of weights stands there, pickled."""
    draft = place / "warned"
    draft.mkdir()
    (draft / "config.json").write_bytes((place / CLEAN / "config.json").read_bytes())
    (draft / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    return "warned"


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), 0),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "warning", "--min-severity", "error"), 1),
        (("--fail-on", "never"), 0),
        (("--fail-on", "warning", "--ignore", "FIL012"), 0),
    ],
    ids=["", "warning", "warning, hidden", "never", "ignored"],
)
def test_fail_on(flags: tuple[str, ...], code: int, place: Path, run: Callable[..., Ran]) -> None:
    """What is shown and what fails are two settings, and it is said when they part."""
    ran = run(warned(place), *flags)

    assert ran.code == code, ran
    assert ("hides the findings" in ran.err) is ("--min-severity" in flags)


@pytest.mark.parametrize("fmt", ["text", "json", "sarif"])
@pytest.mark.parametrize("draft", [CLEAN, REFUSED])
def test_broken_pipe(fmt: str, draft: str, place: Path) -> None:
    """Where nobody reads the report the code is neither clean nor findings, quietly, and files are written."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "dspark_lint", draft, "--format", fmt, "--format", "junit=out.xml"],
            cwd=place, env=plain_environment(), stdout=nobody, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip

    assert (done.returncode, done.stderr) == (exits.USAGE, "")
    assert parses("junit", (place / "out.xml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ["rules", "explain TEN001", "--help", "contracts list"])
def test_broken_pipe_of_other_commands(command: str, place: Path) -> None:
    """Code 1 is findings, and there are none where nobody listens."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "dspark_lint", *command.split()],
            cwd=place,
            env=plain_environment(),
            stdout=nobody,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert (done.returncode, done.stderr) == (exits.USAGE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_full_disk(place: Path) -> None:
    """A report that could not be written was not given."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dspark_lint", CLEAN],
            cwd=place,
            env=plain_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (
        exits.USAGE,
        "dspark-lint: standard output cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize(("flags", "code"), [((), 2), (("--output", "out.txt"), 0)], ids=["needed", "not needed"])
def test_closed_standard_output(flags: tuple[str, ...], code: int, place: Path) -> None:
    """Without a standard output only a file can be written."""
    command = " ".join(["exec", sys.executable, "-m dspark_lint", CLEAN, *flags, ">&-"])
    done = subprocess.run(
        ["sh", "-c", command], cwd=place, env=plain_environment(), stderr=subprocess.PIPE, text=True, check=False
    )

    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(("draft", "code"), [(CLEAN, 0), (REFUSED, 1), ("nowhere", 2), ("demo/README.md", 1)])
def test_process(draft: str, code: int, tool: Callable[..., Ran]) -> None:
    """The process leaves with the code that the function returns."""
    assert tool(draft, "--vllm", "0.32").code == code


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ((CLEAN,), [CLEAN]),
        ((f"./{CLEAN}/",), [f"./{CLEAN}/"]),
        ((f"{CLEAN}/config.json",), [f"{CLEAN}/config.json"]),
        ((f"{CLEAN}/config.json", f"{CLEAN}/model.safetensors", REFUSED), [CLEAN, REFUSED]),
        ((CLEAN, f"{CLEAN}/config.json"), [CLEAN]),
        ((f"./{CLEAN}", CLEAN), [CLEAN]),
        (("demo",), [CLEAN, REFUSED, "demo/target"]),
        ((".",), [CLEAN, REFUSED, "demo/target"]),
        (("./demo/../demo/",), [CLEAN, REFUSED, "demo/target"]),
    ],
    ids=" ".join,
)
def test_paths(args: tuple[str, ...], paths: list[str], run: Callable[..., Ran]) -> None:
    """A checkpoint goes by the name the user gave it, and is looked at once however many files lead to it."""
    ran = run(*args, "--format", "json")

    assert [c["path"] for c in json.loads(ran.out)["checkpoints"]] == paths


def test_path_from_inside(place: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file named from inside its checkpoint leads to it."""
    monkeypatch.chdir(place / CLEAN)

    assert [
        c["path"] for c in json.loads(run("config.json", "model.safetensors", "--format", "json").out)["checkpoints"]
    ] == ["."]


def test_absolute_path(place: Path, run: Callable[..., Ran]) -> None:
    """An absolute path stays one."""
    ran = run(str(place / "demo"), "--format", "json")

    assert [c["path"] for c in json.loads(ran.out)["checkpoints"]] == [
        str(place / name) for name in (CLEAN, REFUSED, "demo/target")
    ]


def test_page_draws_the_inventory(run: Callable[..., Ran]) -> None:
    """The page has the picture of the tensors of each checkpoint that reached a loader."""
    ran = run(CLEAN, "--format", "html", "--vllm", "0.31..0.32")

    assert ran.out.count("Tensors, expected against found") == 1
    assert ran.out.count(": 40 as expected</summary>") == 1


@pytest.mark.parametrize(
    ("flags", "environment", "colored"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "0"}, False),
        ((), {"CLICOLOR_FORCE": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--format", "concise"), {"FORCE_COLOR": "1"}, True),
        (("--format", "json", "--color", "always"), {}, False),
    ],
    ids=str,
)
def test_color(flags: tuple[str, ...], environment: dict[str, str], *, colored: bool, run: Callable[..., Ran]) -> None:
    """The flag decides, then NO_COLOR, then FORCE_COLOR, then whether there is a terminal; a document has none."""
    assert ("\x1b[" in run(REFUSED, *flags, **environment).out) is colored


def test_quiet_and_verbose(run: Callable[..., Ran]) -> None:
    """Quiet says findings and nothing else, verbose what was not checked one by one; the codes stay."""
    plain, quiet, verbose = (run(CLEAN, *flags) for flags in ((), ("-q",), ("-v",)))

    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "no findings in 1 checkpoint" in plain.out
    assert "unchecked 11 checks not made, -v lists them: needs --deep; needs --target\n" in plain.out
    assert "unchecked VAL004, VAL005, VAL003 (all but norms and biases), " in verbose.out
    assert "FIL" not in run(REFUSED, "-q", "--select", "ARC").out
    assert run("demo/target", "-q").code == run("demo/target").code != 0


def test_auto_format(place: Path, run: Callable[..., Ran]) -> None:
    """In a CI system the format is the one that it reads, and GitHub gets its summary."""
    summary = place / "summary.md"

    assert run(REFUSED, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary)).out.startswith("::error ")
    assert "| " in summary.read_text(encoding="utf-8")
    assert isinstance(json.loads(run(REFUSED, GITLAB_CI="true").out), list)


def test_summary_that_cannot_be_written(place: Path, run: Callable[..., Ran]) -> None:
    """The summary is an extra: where it cannot be written that is said, and the code is the checkpoint's."""
    ran = run(CLEAN, "--format", "github", GITHUB_STEP_SUMMARY=str(place / "no" / "such" / "file"))

    assert ran.code == exits.CLEAN
    assert ran.err == "dspark-lint: the step summary cannot be written: No such file or directory\n"
