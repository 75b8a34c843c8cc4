"""The resolved contract of one release: a read-only mapping with typed access to what everything else asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from dspark_lint.contract.load import family_mapping, load_classes, load_raw


Clause = Mapping[str, Any]
"""One clause as the YAML states it; contracts/schema.json says which members each kind has."""


class Contract(Mapping[str, Any]):
    """What one release expects; immutable, shared by every check against that release."""

    __slots__ = ("_families", "_raw")

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = MappingProxyType(dict(raw))
        self._families: dict[str, Clause] = {}

    def __getitem__(self, key: str) -> Any:
        """Return a top-level section."""
        return self._raw[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the sections."""
        return iter(self._raw)

    def __len__(self) -> int:
        """Count the sections."""
        return len(self._raw)

    @property
    def release(self) -> str:
        """Full release number, such as ``0.32.0``."""
        return str(self._raw["release"])

    @property
    def classes(self) -> Clause:
        """The transformers part: model types and their configuration classes."""
        return load_classes(self._raw["transformers"])

    def family(self, name: str) -> Clause:
        """Return a family with what it is ``like`` merged underneath.

        Raises ContractError for an unknown family and for a circle.
        """
        if name not in self._families:
            self._families[name] = MappingProxyType(family_mapping(self._raw, name))
        return self._families[name]

    def cite(self, clause: Clause) -> str | None:
        """Return ``path:line`` of a clause's source in this release; path and definition when no line is recorded."""
        source = clause.get("source")
        if isinstance(source, list):
            source = source[0] if source else None
        if not source:
            return None
        line = self._raw.get("lines", {}).get(source)
        if line:
            return str(line)
        alias, _, rest = source.partition("::")
        path = self._raw.get("sources", {}).get(alias, alias.removeprefix("transformers:"))
        name = rest.split("::")[0]
        return f"{path} ({name})" if name else str(path)


@lru_cache(maxsize=64)
def _shipped(release: str) -> Contract:
    return Contract(load_raw(release))


def load_contract(release: str, extra: Mapping[str, str] | None = None) -> Contract:
    """Return the contract of a full release number; `extra` names contract files of one's own by release.

    Raises ContractError when there is none.
    """
    return Contract(load_raw(release, extra)) if extra else _shipped(release)
