"""The configuration file: ``[tool.dspark-lint]`` of a pyproject.toml, or dspark-lint.toml, read and checked.

Imported only where such a file was found. Paths in it are relative to its directory; every mistake is a UsageError
that names the file, the key and what was expected.
"""

from __future__ import annotations

import os
import re
import sys

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from dspark_lint.errors import UsageError
from dspark_lint.finding import SEVERITIES, Severity
from dspark_lint.rules import REGISTRY


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


OFF = "off"
FAIL_ON = ("error", "warning", "never")


class Ignore(NamedTuple):
    """Rules that are not to be told of the checkpoints that a glob matches, and why."""

    path: str
    """As written, relative to the configuration file."""
    rules: tuple[str, ...]
    """Ids or prefixes, as written."""
    reason: str


class Config(NamedTuple):
    """What one configuration file says; a field is empty or None where it says nothing."""

    file: str
    """Absolute path of the file."""
    paths: tuple[str, ...] = ()
    """Paths or globs, absolute."""
    releases: tuple[str, ...] = ()
    nearest: bool | None = None
    contracts: tuple[str, ...] = ()
    """Files, absolute."""
    targets: Mapping[str, str] = {}
    """Glob as written: the target's absolute path. The first that matches counts."""
    speculative_config: Mapping[str, Any] | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, str] = {}
    """Id or prefix: ``error``, ``warning``, ``info`` or ``off``. The longest prefix of a rule's id counts."""
    ignores: tuple[Ignore, ...] = ()
    fail_on: str | None = None
    min_severity: str | None = None
    baseline: str | None = None
    """File, absolute."""
    allow_lfs_pointers: bool | None = None

    @property
    def root(self) -> str:
        """The directory that its paths are relative to."""
        return os.path.dirname(self.file)

    def matches(self, pattern: str, directory: str) -> bool:
        """Whether a glob of the file means a checkpoint's directory (absolute), or one that holds it."""
        place = directory if os.path.isabs(pattern) else os.path.relpath(directory, self.root)
        return bool(glob_regex(pattern).match(place.replace(os.sep, "/")))

    def target_of(self, directory: str) -> str | None:
        """The target's path for a checkpoint's directory; None when no glob matches."""
        return next((path for pattern, path in self.targets.items() if self.matches(pattern, directory)), None)


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Compile a glob: ``*`` and ``?`` stay within a name, ``**`` crosses directories, what lies below matches too."""
    pattern = pattern.replace(os.sep, "/").removeprefix("./").rstrip("/")
    out: list[str] = []
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]+\])", "**" if pattern in ("", ".") else pattern):
        fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part)
        if fixed is not None:
            out.append(fixed)
        elif part.startswith("[") and part.endswith("]"):
            out.append(part.replace("[!", "[^", 1).replace("\\", "\\\\"))
        else:
            out.append(re.escape(part))
    return re.compile("".join(out) + r"(?:/.*)?\Z", re.DOTALL)


def read_config(file: str, *, table: bool) -> Config:
    """Read a configuration file; `table` looks for it under ``[tool.dspark-lint]``.

    Raises UsageError for a file that cannot be read and for everything in it that is not understood.
    """
    file = os.path.abspath(file)
    try:
        with open(file, "rb") as handle:
            document = _toml(handle.read())
    except OSError as e:
        raise UsageError(f"{file} cannot be read: {e.strerror or e}") from e
    except ValueError as e:  # TOMLDecodeError and UnicodeDecodeError are
        raise UsageError(f"{file} is not TOML: {e}") from e
    if table:
        tool = document.get("tool", {})
        if not isinstance(tool, dict) or "dspark-lint" not in tool:
            raise UsageError(f"{file} has no table [tool.dspark-lint]")
        document = tool["dspark-lint"]
        if not isinstance(document, dict):
            raise UsageError(f"{file}: [tool.dspark-lint] is not a table")
    return _config(file, document)


def _toml(raw: bytes) -> dict[str, Any]:
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        reader = import_module(name)
    except ImportError as e:
        raise UsageError("to read TOML under Python 3.10: pip install 'dspark-lint[toml]'") from e
    document: dict[str, Any] = reader.loads(raw.decode("utf-8"))
    return document


def _config(file: str, document: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {}
    at = _Place(file, os.path.dirname(file))
    for key, value in document.items():
        reader = KEYS.get(key)
        if reader is None:
            raise UsageError(f"{file}: unknown key {key!r}{_meant(key, KEYS, _OTHER_NAMES)}")
        values[key.replace("-", "_")] = reader(at._replace(key=key), value)
    return Config(file, **values)


class _Place(NamedTuple):
    """Where a value stands, for messages and for what it is relative to."""

    file: str
    root: str
    key: str = ""

    def wrong(self, expected: str, value: object) -> UsageError:
        return UsageError(f"{self.file}: {self.key} must be {expected}, not {_shown(value)}")

    def path(self, text: str) -> str:
        return os.path.normpath(os.path.join(self.root, os.path.expanduser(text)))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _meant(key: str, known: Iterable[str], others: Mapping[str, str]) -> str:
    near = others.get(key) or next(iter(get_close_matches(key.replace("_", "-"), list(known), 1)), None)
    return f"; did you mean {near!r}?" if near else f"; known are {', '.join(known)}"


def _text(at: _Place, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise at.wrong("a string", value)
    return value


def _texts(at: _Place, value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise at.wrong("a string or a list of strings", value)
    return tuple(_text(at, one) for one in values)


def _path(at: _Place, value: object) -> str:
    return at.path(_text(at, value))


def _paths(at: _Place, value: object) -> tuple[str, ...]:
    return tuple(at.path(one) for one in _texts(at, value))


def _truth(at: _Place, value: object) -> bool:
    if not isinstance(value, bool):
        raise at.wrong("true or false", value)
    return value


def _one_of(*allowed: str) -> Callable[[_Place, object], str]:
    def read(at: _Place, value: object) -> str:
        if value not in allowed:
            raise at.wrong(f"one of {', '.join(allowed)}", value)
        return value

    return read


def _mapping(at: _Place, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise at.wrong("a table", value)
    return value


def _json_object(at: _Place, value: object) -> Mapping[str, Any]:
    """Read a table that stands for vLLM's JSON, which has no dates."""
    table = _mapping(at, value)
    for key, inner in table.items():
        here = at._replace(key=f"{at.key}.{key}")
        if isinstance(inner, dict):
            _json_object(here, inner)
        elif not isinstance(inner, (str, int, float, list)):
            raise here.wrong("a value that JSON has", inner)
    return table


def rule_prefix(text: str, where: str) -> str:
    """Return an id of a rule or a prefix of ids in capitals. Raises UsageError when no rule begins like that."""
    prefix = text.strip().upper()
    if not prefix or not any(rule.startswith(prefix) for rule in REGISTRY):
        raise UsageError(f"{where}: unknown rule or prefix {text!r}; `dspark-lint rules` lists them")
    return prefix


def _rules(at: _Place, value: object) -> tuple[str, ...]:
    return tuple(rule_prefix(one, f"{at.file}: {at.key}") for one in _texts(at, value))


def _targets(at: _Place, value: object) -> Mapping[str, str]:
    return {glob: _path(at._replace(key=f"targets.{glob}"), path) for glob, path in _mapping(at, value).items()}


def _severities(at: _Place, value: object) -> Mapping[str, str]:
    read = _one_of(OFF, *reversed(SEVERITIES))
    found = {}
    for rule, severity in _mapping(at, value).items():
        found[rule_prefix(rule, f"{at.file}: {at.key}")] = read(at._replace(key=f"severity.{rule}"), severity)
    return found


def _ignores(at: _Place, value: object) -> tuple[Ignore, ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise at.wrong("an array of tables ([[tool.dspark-lint.ignores]])", value)
    found = []
    for i, one in enumerate(value):
        here = at._replace(key=f"ignores[{i}]")
        if unknown := next((key for key in one if key not in Ignore._fields), None):
            raise UsageError(f"{at.file}: {here.key}: unknown key {unknown!r}{_meant(unknown, Ignore._fields, {})}")
        if missing := next((key for key in Ignore._fields if key not in one), None):
            why = "; say why, for whoever meets it later" if missing == "reason" else ""
            raise UsageError(f"{at.file}: {here.key} has no {missing}{why}")
        found.append(
            Ignore(
                _text(here._replace(key=f"{here.key}.path"), one["path"]),
                _rules(here._replace(key=f"{here.key}.rules"), one["rules"]),
                _text(here._replace(key=f"{here.key}.reason"), one["reason"]).strip(),
            )
        )
    return tuple(found)


#: Every key of the file and what reads it; the fields of `Config` in TOML's spelling.
KEYS: dict[str, Callable[[_Place, Any], object]] = {
    "paths": _paths,
    "releases": _texts,
    "nearest": _truth,
    "contracts": _paths,
    "targets": _targets,
    "speculative-config": _json_object,
    "select": _rules,
    "ignore": _rules,
    "severity": _severities,
    "ignores": _ignores,
    "fail-on": _one_of(*FAIL_ON),
    "min-severity": _one_of(*SEVERITIES),
    "baseline": _path,
    "allow-lfs-pointers": _truth,
}
_OTHER_NAMES = {
    "vllm": "releases",
    "release": "releases",
    "target": "targets",
    "contract": "contracts",
    "path": "paths",
    "severities": "severity",
    "per-path-ignores": "ignores",
    "per-file-ignores": "ignores",
}


def severity_of(rule: str, severities: Mapping[str, str]) -> Severity | None:
    """Return the severity that a table of prefixes gives a rule, None for none; ``off`` is for `turned_off`."""
    prefix = max((p for p in severities if rule.startswith(p)), key=len, default=None)
    said = severities[prefix] if prefix is not None else None
    return None if said in (None, OFF) else cast("Severity", said)


def turned_off(severities: Mapping[str, str]) -> frozenset[str]:
    """Return the ids of the rules that a table of prefixes turns off."""
    off = set()
    for rule in REGISTRY:
        prefix = max((p for p in severities if rule.startswith(p)), key=len, default=None)
        if prefix is not None and severities[prefix] == OFF:
            off.add(rule)
    return frozenset(off)
