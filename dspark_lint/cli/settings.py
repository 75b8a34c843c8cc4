"""What a run goes by: flags over the configuration file over defaults, each value with where it comes from."""

from __future__ import annotations

import os
import re

from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.cli.output import tell
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.config import Config


#: Names a configuration file may have, the first that is there counts; the second only with its table in it.
FILES = ("dspark-lint.toml", "pyproject.toml")
#: How TOML may open the table: by its header, by dotted keys, or inside of `tool`; a dependency of that name is none.
_TABLE = rb"""(?mx)
    ^[ \t]* (?:\[{1,2}[ \t]*)? ["']?tool["']? [ \t]*\.[ \t]* ["']?dspark-lint["']? [ \t]*[].=]
  | ^[ \t]* \[[ \t]*["']?tool["']?[ \t]*\] (?s:.*) ^[ \t]* ["']?dspark-lint["']? [ \t]*[.=]
  | ^[ \t]* ["']?tool["']? [ \t]*=.* dspark-lint
"""

#: Configuration key: the flag's name among the command's options, and the default.
_FLAGS: dict[str, tuple[str, Any]] = {
    "paths": ("paths", ()),
    "releases": ("vllm", ()),
    "nearest": ("nearest", False),
    "contracts": ("contracts", ()),
    "targets": ("target", {}),
    "speculative-config": ("serve", None),
    "select": ("select", ()),
    "ignore": ("ignore", ()),
    "severity": ("", {}),
    "ignores": ("", ()),
    "fail-on": ("fail_on", "error"),
    "min-severity": ("min_severity", "info"),
    "baseline": ("baseline", None),
    "allow-lfs-pointers": ("allow_lfs_pointers", False),
}


class Settings(NamedTuple):
    """The values of one run, by configuration key, and their origins."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    """``a flag``, ``default``, or the configuration file."""
    config: Config | None

    def target_of(self, directory: str) -> str | None:
        """Return the target's path for a checkpoint's directory (absolute): the flag's, or the first glob's."""
        value = self.values["targets"]
        if isinstance(value, str):
            return value
        return self.config.target_of(directory) if self.config is not None else None


def find(start: str) -> tuple[str, bool] | None:
    """Return the nearest configuration file from a directory upwards, and whether it is a table of a pyproject.toml.

    The search ends at the first directory with a ``.git`` in it: what lies above a repository does not speak of it.
    """
    place = os.path.abspath(start)
    while True:
        for name in FILES:
            file = os.path.join(place, name)
            if os.path.isfile(file) and (name == FILES[0] or _has_table(file)):
                return file, name != FILES[0]
        above = os.path.dirname(place)
        if above == place or os.path.lexists(os.path.join(place, ".git")):
            return None
        place = above


def _has_table(file: str) -> bool:
    try:
        with open(file, "rb") as handle:
            text = handle.read()
    except OSError:
        return False  # it is no file of ours until it says so
    return b"dspark-lint" in text and re.search(_TABLE, text) is not None


def settle(options: Mapping[str, Any]) -> Settings:
    """Join flags, configuration file and defaults.

    Raises UsageError for a configuration that cannot be read or has anything in it that is not understood.
    """
    config: Config | None = None
    place: tuple[str, bool] | None = None
    if options["config"] is not None:
        if not os.path.isfile(options["config"]):
            raise UsageError(f"--config {options['config']}: no such file")
        place = options["config"], os.path.basename(options["config"]) == FILES[1]
    elif not options["no_config"]:
        place = find(os.getcwd())
    if place is not None:
        from dspark_lint.config import read_config  # noqa: PLC0415 - only where there is one

        config = read_config(place[0], table=place[1])
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, (flag, default) in _FLAGS.items():
        given = options[flag] if flag else None
        if given == "":
            raise UsageError(f"--{key}: no file named")
        written = getattr(config, key.replace("-", "_")) if config is not None else None
        if key == "baseline" and options["no_baseline"]:
            values[key], origins[key] = None, "a flag"
        elif given is not None and given != ():
            values[key], origins[key] = given, "a flag"
        elif config is not None and written not in ((), {}, None):
            values[key], origins[key] = written, config.file
        else:
            values[key], origins[key] = default, "default"
    return Settings(values, origins, config)


def expanded(settings: Settings) -> list[str]:
    """Return the paths to check: the arguments as they were named, or what the configuration's globs lead to.

    Raises UsageError when there are none to go by, or a configured path leads nowhere.
    """
    paths = list(settings.values["paths"])
    if settings.config is None or settings.origins["paths"] != settings.config.file:
        if not paths:
            raise UsageError(
                "nothing to check: give a checkpoint (dspark-lint CKPT --vllm 0.32), or `paths` in a configuration file"
            )
        return paths
    from glob import glob, has_magic  # noqa: PLC0415 - only for configured paths

    found: list[str] = []
    for pattern in paths:
        if not has_magic(pattern) and not os.path.lexists(pattern):
            raise UsageError(f"{settings.config.file}: paths: {pattern}: no such file or directory")
        hits = sorted(glob(pattern, recursive=True)) if has_magic(pattern) else [pattern]
        if os.path.basename(pattern) in ("*", "**"):  # whatever lies beside checkpoints is none
            hits = [hit for hit in hits if os.path.isdir(hit)]
        if not hits:
            tell(f"{settings.config.file}: paths: {_near(pattern)} matches nothing")
        found += [shown for hit in hits if (shown := _near(hit)) not in found]
    return found


def _near(path: str) -> str:
    """Return a path as a user in this directory would write it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def shown(settings: Settings, *, as_json: bool) -> str:
    """Return the configuration that is in force, a line a key with its origin, or one JSON object."""
    import json  # noqa: PLC0415 - only for --show-config

    rows = {key: (_plain(value), settings.origins[key]) for key, value in settings.values.items()}
    if not rows["releases"][0]:
        rows["releases"] = (["latest"] if not rows["contracts"][0] else ["those of the contracts"], "default")
    if as_json:
        document = {
            "schema_version": 1,
            "file": settings.config.file if settings.config is not None else None,
            "values": {key: {"value": value, "from": origin} for key, (value, origin) in rows.items()},
        }
        return json.dumps(document, indent=2) + "\n"
    width = max(map(len, rows))
    lines = [f"{key:<{width}}  {json.dumps(value)}  ({origin})" for key, (value, origin) in rows.items()]
    head = f"configuration file: {settings.config.file}" if settings.config is not None else "no configuration file"
    return "\n".join([head, *lines]) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(inner) for key, inner in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return value
