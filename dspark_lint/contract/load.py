"""From YAML files to one resolved mapping a release: inheritance, the transformers part, cited lines, a cache.

A release's file holds what changed against the file it ``extends``: mappings merge key by key, null removes, anything
else replaces. Parsing YAML is the dearest step of a whole run, so the resolved mapping is kept as JSON under a name
made from the content of every file it came from: a changed file never meets an old answer.
"""

from __future__ import annotations

import contextlib
import json
import os

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias

from dspark_lint.contract.paths import contracts_dir
from dspark_lint.errors import ContractError


#: Raised whenever what `load_raw` makes of the same files changes.
_FORMAT = 5

_Layers: TypeAlias = tuple[tuple[str, str], ...]
"""Files of a chain as paths with their text, the oldest ancestor first."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `over` into `base` key by key: mappings recurse, null removes what stands there, anything else replaces."""
    merged = dict(base)
    for key, value in over.items():
        if value is None and key in merged:
            del merged[key]
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        elif isinstance(value, Mapping):
            merged[key] = merge({}, value)
        else:
            merged[key] = value
    return merged


def _yaml(text: str, path: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - only on a cache miss

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(text, Loader=loader)  # noqa: S506 - both candidates are safe loaders
    except yaml.YAMLError as e:
        raise ContractError(f"{path}: not YAML: {e}") from e
    if not isinstance(value, dict):
        raise ContractError(f"{path}: a contract is a mapping, not a {type(value).__name__}")
    return value


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except (OSError, UnicodeDecodeError) as e:
        raise ContractError(f"{path}: {e}") from e


def _head(text: str, key: str) -> str | None:
    """Read a plain top-level scalar without parsing YAML: the chain must be known before the cache can be asked."""
    for line in text.splitlines():
        if line.startswith(key + ":"):
            value = line[len(key) + 1 :].split(" #")[0].strip().strip("\"'")
            return value or None
    return None


@lru_cache(maxsize=1)
def shipped_releases() -> tuple[str, ...]:
    """Full release numbers with a shipped contract, oldest first."""
    folder = os.path.join(contracts_dir(), "vllm")
    found = [name[:-5] for name in os.listdir(folder) if name.endswith(".yaml")]
    return tuple(sorted(found, key=lambda r: tuple(int(p) for p in r.split("."))))


def release_of(path: str) -> str:
    """Return the release that a contract file says it is for; ContractError when it says none."""
    release = _head(_read(path), "release")
    if not release:
        raise ContractError(f"{path}: no `release:` at the top level")
    return release


def layer_of(path: str) -> dict[str, Any]:
    """Return one contract file as it stands, its ancestors left alone; ContractError when it is no YAML mapping."""
    return _yaml(_read(path), path)


def chain_files(release: str, extra: Mapping[str, str] | None = None) -> list[str]:
    """Return the files a release is made of, the oldest ancestor first.

    `extra` maps release names to files of one's own, beside or instead of the shipped ones. Raises ContractError for
    an unknown release and for a circle.
    """
    extra = extra or {}
    files: list[str] = []
    seen: set[str] = set()
    name: str | None = release
    while name:
        if name in seen:
            raise ContractError(f"contract {release}: `extends` goes round in a circle at {name}")
        seen.add(name)
        path = extra.get(name) or os.path.join(contracts_dir(), "vllm", f"{name}.yaml")
        if not os.path.isfile(path):
            raise ContractError(f"no contract for vLLM {name}; known: {', '.join(shipped_releases())}")
        files.append(path)
        name = _head(_read(path), "extends")
    return files[::-1]


def load_raw(release: str, extra: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the resolved mapping of a release: its chain merged, cited lines under ``lines``."""
    layers, lines, key = _contents(release, extra)
    cached = _from_cache(key)
    if cached is not None:
        return cached
    resolved = _resolve(layers, lines)
    _to_cache(key, resolved)
    return resolved


def _contents(release: str, extra: Mapping[str, str] | None) -> tuple[_Layers, str, str]:
    """Return a chain's files, the recorded lines, and the name under which what they make is kept."""
    layers = tuple((path, _read(path)) for path in chain_files(release, extra))
    recorded = os.path.join(contracts_dir(), "vllm", "sources", f"{release}.json")
    lines = _read(recorded) if release not in (extra or {}) and os.path.isfile(recorded) else "{}"
    return layers, lines, _content_key([*(text for _, text in layers), lines])


def _resolve(layers: _Layers, lines: str) -> dict[str, Any]:
    cited = {text: f"{entry['path']}:{entry['line']}" for text, entry in json.loads(lines).items()}
    return {**_merged(layers), "lines": cited}


@lru_cache(maxsize=32)
def _merged(layers: _Layers) -> Mapping[str, Any]:
    """Merge the files of a chain.

    Kept, so that of several releases whose answers are not in the cache yet no file is parsed twice.
    """
    if not layers:
        return {}
    path, text = layers[-1]
    layer = _yaml(text, path)
    layer.pop("extends", None)
    # what a release changed is not inherited
    return merge({k: v for k, v in _merged(layers[:-1]).items() if k != "changes"}, layer)


@cache
def load_classes(version: str) -> dict[str, Any]:
    """Return the shipped part about one transformers release: model types and their configuration classes.

    Kept apart from the releases' own mappings because all of them share it.
    """
    path = os.path.join(contracts_dir(), "transformers", f"{version}.yaml")
    text = _read(path)
    key = _content_key([text])
    cached = _from_cache(key)
    if cached is None:
        cached = _yaml(text, path)
        _to_cache(key, cached)
    return cached


def _content_key(texts: list[str]) -> str:
    digest = _blake2b()
    digest.update(f"{_FORMAT}".encode())
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return str(digest.hexdigest())


def _blake2b() -> Any:
    """A hash of 16 bytes, taken from where hashlib takes it: hashlib itself brings OpenSSL along, four milliseconds."""
    try:
        from _blake2 import blake2b  # noqa: PLC0415 - not needed by --version and --help
    except ImportError:  # another Python
        from hashlib import blake2b  # noqa: PLC0415 - not needed by --version and --help
    return blake2b(digest_size=16)


def _cache_dirs() -> list[str]:
    """Where resolved contracts may lie: shipped in the wheel, then the user's own cache."""
    dirs = [os.path.join(contracts_dir(), "compiled")]
    if not os.environ.get("DSPARK_LINT_NO_CACHE"):
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        dirs.append(os.path.join(base, "dspark-lint"))
    return dirs


def _from_cache(key: str) -> dict[str, Any] | None:
    for folder in _cache_dirs():
        try:
            with open(os.path.join(folder, f"{key}.json"), encoding="utf-8") as handle:
                value = json.load(handle)
        except (OSError, ValueError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _to_cache(key: str, resolved: Mapping[str, Any]) -> None:
    """Keep the answer for the next run; a folder that cannot be written is no trouble."""
    for folder in _cache_dirs()[1:]:
        with contextlib.suppress(OSError):
            _write(folder, key, resolved)


def _write(folder: str, key: str, resolved: Mapping[str, Any]) -> None:
    temporary = os.path.join(folder, f"{key}.{os.getpid()}.tmp")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(temporary, "w", encoding="utf-8") as handle:
        json.dump(resolved, handle, separators=(",", ":"))
    os.replace(temporary, os.path.join(folder, f"{key}.json"))


def write_resolved(folder: str) -> None:
    """Write what `load_raw` and `load_classes` make of every shipped file into a folder, for a wheel to carry.

    Found there (`contracts/compiled`) as in a user's cache: by the content of the files, so that one that was edited
    after the installation is read and not what it used to be. Raises OSError where it cannot be written.
    """
    versions = set()
    for release in shipped_releases():
        layers, lines, key = _contents(release, None)
        resolved = _resolve(layers, lines)
        versions.add(resolved["transformers"])
        _write(folder, key, resolved)
    for version in sorted(versions):
        path = os.path.join(contracts_dir(), "transformers", f"{version}.yaml")
        text = _read(path)
        _write(folder, _content_key([text]), _yaml(text, path))


def family_mapping(contract: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a family with what it is ``like`` merged underneath.

    Raises ContractError for an unknown family and for a circle.
    """
    layers: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    current: str | None = name
    while current:
        if current in seen:
            raise ContractError(f"family {name}: `like` goes round in a circle at {current}")
        seen.add(current)
        family = contract.get("families", {}).get(current)
        if family is None:
            raise ContractError(f"no family {current!r} in the contract of {contract.get('release')}")
        layers.append(family)
        current = family.get("like")
    resolved: dict[str, Any] = {}
    for layer in reversed(layers):
        inherited = {k: v for k, v in resolved.items() if k not in layer.get("replaces", ())}
        resolved = merge(inherited, {k: v for k, v in layer.items() if k not in ("like", "replaces")})
    return resolved
