"""From YAML files to one mapping a release: inheritance, the cache, and where the files are found."""

from __future__ import annotations

import json

from pathlib import Path
from typing import Any

import pytest

from dspark_lint.contract import load, paths
from dspark_lint.contract.load import chain_files, family_mapping, load_raw, merge, shipped_releases
from dspark_lint.contract.model import load_contract
from dspark_lint.errors import ContractError


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    home = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.delenv("DSPARK_LINT_NO_CACHE", raising=False)
    return home / "dspark-lint"


def contract(folder: Path, release: str, text: str) -> dict[str, str]:
    """Write a contract of one's own; {release: file}."""
    path = folder / f"{release}.yaml"
    path.write_text(text, encoding="utf-8")
    return {release: str(path)}


def unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every parsing of YAML fail."""

    def fail(text: str, path: str) -> dict[str, Any]:
        raise AssertionError(f"{path} was parsed ({len(text)} characters)")

    monkeypatch.setattr(load, "_yaml", fail)


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        ({"a": 1}, {"b": None}, {"a": 1, "b": None}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": {"b": {"c": 2}}}, {"a": {"b": {"c": 2}}}),
        ({}, {}, {}),
    ],
    ids=[
        "new", "inside", "null removes inside", "null removes all", "null of nothing", "lists replace",
        "plain replaces", "mapping replaces", "empty",
    ],
)  # fmt: skip
def test_merge(base: dict[str, Any], over: dict[str, Any], merged: dict[str, Any]) -> None:
    """Mappings merge key by key, null removes what stands there, anything else replaces; nothing given is changed."""
    before = json.dumps([base, over])

    assert merge(base, over) == merged
    assert json.dumps([base, over]) == before


def test_chain_is_the_oldest_first() -> None:
    """A release is made of its own file and every file it extends."""
    files = [Path(file).stem for file in chain_files("0.27.1")]

    assert files == ["0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1"]


def test_one_s_own_contract_extends_a_shipped_one(tmp_path: Path) -> None:
    """A contract of one's own adds to, replaces in and removes from the release it extends."""
    extra = contract(
        tmp_path,
        "9.0.0",
        'contract: 1\nruntime: vllm\nrelease: "9.0.0"\nextends: "0.32.0"\n'
        "architectures:\n  Mine: {family: qwen3_dflash}\n  Qwen3DSparkModel: null\n",
    )

    own, base = load_contract("9.0.0", extra), load_contract("0.32.0")

    assert own.release == "9.0.0"
    assert {**own["architectures"]} == {
        **{k: v for k, v in base["architectures"].items() if k != "Qwen3DSparkModel"},
        "Mine": {"family": "qwen3_dflash"},
    }
    assert "extends" not in own
    assert own["files"] == base["files"]


def test_one_s_own_contract_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    """A contract of one's own for a shipped release is used instead of it, and its lines are not the shipped ones'."""
    extra = contract(tmp_path, "0.32.0", 'contract: 1\nruntime: vllm\nrelease: "0.32.0"\nextends: "0.31.0"\n')

    assert load_raw("0.32.0", extra)["lines"] == {}
    assert len(load_raw("0.32.0")["lines"]) > 100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('release: "9.0.0"\nextends: "9.0.0"\n', ("9.0.0", "circle")),
        ('release: "9.0.0"\nextends: "8.0.0"\n', ("no contract for vLLM 8.0.0", "0.32.0")),
        ('release: "9.0.0"\n - x: [\n', ("9.0.0.yaml", "not YAML")),
        ("- a\n", ("a contract is a mapping, not a list",)),
    ],
    ids=["circle", "no ancestor", "no YAML", "no mapping"],
)
def test_broken_files(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """A file that cannot be used is an error that names it."""
    with pytest.raises(ContractError) as raised:
        load_raw("9.0.0", contract(tmp_path, "9.0.0", text))

    assert [word for word in words if word not in str(raised.value)] == []


def test_unknown_release() -> None:
    """A release without a contract is an error that names those that have one."""
    with pytest.raises(ContractError, match=r"no contract for vLLM 9\.9\.9; known: 0\.24\.0, "):
        load_raw("9.9.9")


def test_family_builds_on_another() -> None:
    """A family takes over what it is like, but for the parts that it replaces and what it takes out."""
    families = {
        "base": {"title": "base", "keys": {"a": {"type": "integer"}, "b": {}}, "tensors": {"x": {}}},
        "own": {
            "like": "base",
            "replaces": ["tensors"],
            "keys": {"a": {"default": 1}, "b": None},
            "tensors": {"y": {}},
        },
    }

    resolved = family_mapping({"families": families}, "own")

    assert resolved == {"title": "base", "keys": {"a": {"type": "integer", "default": 1}}, "tensors": {"y": {}}}


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ({"a": {"like": "b"}, "b": {"like": "a"}}, "circle"),
        ({"a": {"like": "b"}}, "no family 'b'"),
        ({}, "no family 'a'"),
    ],
)
def test_broken_families(families: dict[str, Any], message: str) -> None:
    """A family that is like itself, or like nothing, is an error."""
    with pytest.raises(ContractError, match=message):
        family_mapping({"release": "1.0", "families": families}, "a")


@pytest.mark.parametrize("release", ["0.24.0", "0.32.0"])
def test_cached(release: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the same files are asked for, no YAML is parsed, and the answer is the same."""
    monkeypatch.setattr(load, "_cache_dirs", lambda: [str(cache)] * 2)
    first = load_raw(release)
    kept = sorted(cache.iterdir())
    unparsed(monkeypatch)

    assert load_raw(release) == first
    assert sorted(cache.iterdir()) == kept
    assert kept != []


def test_a_changed_file_never_meets_an_old_answer(tmp_path: Path) -> None:
    """What is kept is found by the content of every file of the chain: another content, another answer."""
    text = 'contract: 1\nruntime: vllm\nrelease: "{}"\nextends: "{}"\n'
    extra = {
        **contract(tmp_path, "9.0.0", text.format("9.0.0", "0.32.0") + "flat: {x: 1}\n"),
        **contract(tmp_path, "9.1.0", text.format("9.1.0", "9.0.0")),
    }
    before = load_raw("9.1.0", extra)["flat"]["x"]
    contract(tmp_path, "9.0.0", text.format("9.0.0", "0.32.0") + "flat: {x: 2}\n")

    assert (before, load_raw("9.1.0", extra)["flat"]["x"]) == (1, 2)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"null"], ids=["empty", "cut", "list", "bytes", "null"]
)
def test_broken_cache(content: bytes, cache: Path, tmp_path: Path) -> None:
    """A kept answer that cannot be read is made again."""
    extra = contract(tmp_path, "9.0.0", 'release: "9.0.0"\nextends: "0.32.0"\nflat: {x: 1}\n')
    first = load_raw("9.0.0", extra)
    for file in cache.iterdir():
        file.write_bytes(content)

    assert load_raw("9.0.0", extra) == first


@pytest.mark.parametrize("kind", ["a file in the folder's place", "no right to write"])
def test_cache_that_cannot_be_written(kind: str, cache: Path, tmp_path: Path) -> None:
    """Without a place to keep answers everything works as before."""
    cache.parent.mkdir()
    if kind == "no right to write":
        cache.mkdir(mode=0o500)
    else:
        cache.write_text("")
    extra = contract(tmp_path, "9.0.0", 'release: "9.0.0"\nextends: "0.32.0"\nflat: {x: 1}\n')

    assert load_raw("9.0.0", extra)["flat"]["x"] == 1
    assert load_raw("9.0.0", extra)["flat"]["x"] == 1


def test_no_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DSPARK_LINT_NO_CACHE keeps nothing."""
    monkeypatch.setenv("DSPARK_LINT_NO_CACHE", "1")

    load_raw("9.0.0", contract(tmp_path, "9.0.0", 'release: "9.0.0"\nextends: "0.32.0"\n'))

    assert not cache.exists()


def test_found_in_the_checkout() -> None:
    """The contracts of a checkout stand at its top, and every file there is a release."""
    assert Path(paths.contracts_dir()) == ROOT / "contracts"
    assert shipped_releases() == tuple(
        sorted(
            (p.stem for p in (ROOT / "contracts" / "vllm").glob("*.yaml")), key=lambda r: [int(n) for n in r.split(".")]
        )
    )


def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without its contracts says what is wrong with it."""
    monkeypatch.setattr(paths, "_PACKAGE", str(tmp_path / "dspark_lint"))

    with pytest.raises(ContractError, match="reinstall dspark-lint"):
        paths.contracts_dir()


def test_packaged_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package uses its own contracts, whatever lies beside it."""
    for folder in (tmp_path / "dspark_lint" / "contracts" / "vllm", tmp_path / "contracts" / "vllm"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(paths, "_PACKAGE", str(tmp_path / "dspark_lint"))

    assert Path(paths.contracts_dir()) == tmp_path / "dspark_lint" / "contracts"
