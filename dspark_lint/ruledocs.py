"""What the contracts say of each rule: the clauses it judges by, the lines of the release they cite, the releases."""

from __future__ import annotations

import json
import re

from fnmatch import translate
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.load import shipped_releases
from dspark_lint.contract.model import load_contract


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dspark_lint.contract.model import Contract


#: Where the clauses of a rule stand that do not name it, as globs over dotted places in a resolved contract.
CLAUSES: dict[str, tuple[str, ...]] = {
    "FIL001": ("files.config_unusable",),
    "FIL002": ("files.config_unusable",),
    "FIL003": ("files.unreadable",),
    "FIL004": ("files.unreadable",),
    "FIL005": ("files.none",),
    "FIL006": ("files.index.missing_shard",),
    "FIL007": ("files.index.unlisted",),
    "FIL008": ("files.duplicate", "files.index.missing_shard"),
    "FIL009": ("files.duplicate",),
    "FIL010": ("files.index.unusable", "files.index.missing_shard"),
    "FIL011": ("files.sets.*",),
    "FIL012": ("files.sets.*",),
    "ARC001": ("registry", "registry.unknown", "missing_architectures"),
    "ARC002": ("routes.*",),
    "ARC003": ("layouts.*",),
    "ARC004": ("methods", "methods.detect.*", "methods.fallback_outcome"),
    "ARC005": ("families.*.other_method", "methods.fallback_outcome"),
    "ARC006": ("dialect_checks.*",),
    "ARC007": ("dialects.speculators.unknown_selector",),
    "ARC008": ("serve.*", "methods.unsupported"),
    "KEY001": ("families.*.keys.*.absent", "flat.missing_model_type", "speculators.*.required.*"),
    "KEY002": ("flat.mistyped", "families.*.keys.*"),
    "KEY003": ("flat.checks.*", "flat.unknown_model_type"),
    "KEY004": ("families.*.keys.*",),
    "KEY005": ("families.*.keys.*",),
    "KEY007": ("families.*.keys.*",),
    "DRF001": ("families.*.same_fact.*", "families.*.keys.*"),
    "DRF007": ("quantization.places.*",),
    "QNT001": ("quantization.routes.*", "quantization.backends.*.checks.*", "quantization.unusable"),
    "QNT002": ("quantization.routes.*",),
    "QNT003": ("quantization.backends.*", "families.*.entries.*"),
    "QNT004": ("quantization.backends.*", "families.*.modules.*"),
    "QNT005": ("quantization.schemes.*.cast",),
    "QNT006": ("quantization.schemes.*.tensors.*", "quantization.schemes.*.tensors.*.absent"),
    "QNT007": ("quantization.leaves.*", "quantization.unscaled"),
    "QNT008": ("quantization.schemes.*.divides", "quantization.schemes.*.tensors.*"),
    "QNT009": ("quantization.backends.*.fused", "quantization.backends.*"),
    "QNT010": ("quantization.cache_scales",),
    "QNT011": ("quantization.embedded", "quantization.embedded.*"),
    "TEN001": ("families.*.outcomes.*",),
    "TEN002": ("families.*.names.*",),
    "TEN003": ("families.*.outcomes.*",),
    "TEN004": ("parameter_loaders.*",),
    "TEN005": ("families.*.names.*",),
    "TEN007": ("families.*.names.*",),
    "VAL001": ("families.*.tables.*",),
    "VAL002": ("families.*.tables.*",),
    "VAL003": ("values.nonfinite",),
    "VAL004": ("values.zero.*",),
    "VAL005": ("values.rows",),
    "VAL006": ("values.scales",),
    "VAL007": ("quantization.schemes.*.tensors.*.across",),
}


class Rests(NamedTuple):
    """What a rule rests on."""

    lines: tuple[str, ...]
    """``path:line`` in the newest release, each once."""
    releases: tuple[str, ...]
    """Releases with a clause of the rule, oldest first."""


def example_of(rule: str) -> Mapping[str, str]:
    """Return the worked example of a rule: the ``difference`` that fires it, and the ``words`` of its finding.

    scripts/docs.py writes them by running the tool.
    """
    return _examples()[rule]


@cache
def _examples() -> Mapping[str, Mapping[str, str]]:
    file = resources.files("dspark_lint.rules") / "examples.json"
    examples: Mapping[str, Mapping[str, str]] = json.loads(file.read_text("utf-8"))
    return examples


def rests_on(rule: str) -> Rests:
    """Return the cited lines of the newest release that has a clause of the rule, and all releases that have one."""
    having = [(release, lines) for release in shipped_releases() if (lines := _cited(release).get(rule))]
    return Rests(tuple(having[-1][1]) if having else (), tuple(release for release, _ in having))


@cache
def _cited(release: str) -> Mapping[str, Iterable[str]]:
    """Return the lines that the clauses of each rule cite, each once, in the order of the contract."""
    contract = load_contract(release)
    found: dict[str, dict[str, None]] = {}
    for where, clause in _walked(contract):
        line = contract.cite(clause)
        if line is not None:
            for rule in (clause["rule"],) if "rule" in clause else _rules_at(where):
                found.setdefault(rule, {})[line] = None
    return found


@cache
def _rules_at(where: str) -> tuple[str, ...]:
    """Return the rules that judge by what stands in that place."""
    return tuple(rule for rule, place in _places() if place.match(where))


@cache
def _places() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((rule, re.compile("|".join(map(translate, globs)))) for rule, globs in CLAUSES.items())


def by_file(lines: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of ``path:line`` by their path, in the order of the first of each file."""
    numbers: dict[str, set[int]] = {}
    for line in lines:
        path, _, number = line.rpartition(":")
        numbers.setdefault(path, set()).add(int(number))
    return {path: sorted(of) for path, of in numbers.items()}


def _walked(contract: Contract) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every mapping of a resolved contract with its dotted place; families come resolved."""
    for section, value in contract.items():
        if section in ("audit", "lines", "sources", "changes", "config_classes", "model_types"):
            continue
        if section == "families":
            for name in value:
                yield from _below(f"families.{name}", contract.family(name))
        else:
            yield from _below(section, value)


def _below(where: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if hasattr(value, "items"):
        yield where, value
        for key, inner in value.items():
            yield from _below(f"{where}.{key}", inner)
