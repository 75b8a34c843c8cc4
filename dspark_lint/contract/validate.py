"""Check contract files: one's own before use, the shipped ones in the tests.

A file alone is held against ``contracts/schema.json``; then its whole chain is resolved and what the schema cannot see
is checked: expressions that parse and name what exists, families, loaders, outcomes, rules and aliases that are there.
"""

from __future__ import annotations

import difflib
import json

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import compile_expr, names_in
from dspark_lint.contract.load import family_mapping, load_raw, release_of
from dspark_lint.contract.paths import contracts_dir
from dspark_lint.errors import ContractError


if TYPE_CHECKING:
    import jsonschema
    import yaml

Place = tuple[str, ...]
"""Keys from the top of the file."""

#: Names that every expression of a family may use beside the family's own keys and derived values.
NAMESPACES = frozenset({
    "architecture", "architectures", "config", "dialect", "directory", "layer_types_allowed", "method", "model_type",
    "own", "release", "serve", "serving_target", "target", "tensor_heads", "written",
    "true", "false", "null", "unknown",
})  # fmt: skip
#: Members of a family's clauses that are expressions, and those that are sentences with expressions in braces.
_EXPRESSIONS = ("when", "require", "default_value", "suggest", "unless")
_SENTENCES = ("found", "expected", "message", "says", "fix", "at")
_PARTS = ("keys", "tensors", "fused", "names", "checks", "outcomes", "other_method", "same_fact", "tables")
_ALWAYS_ABSENT = "optional"


class Problem(NamedTuple):
    """One thing that is wrong with a contract file."""

    file: str
    line: int
    """1-based; 0 where the problem has no line in this file."""
    path: str
    """Dotted place in the file."""
    message: str

    def __str__(self) -> str:
        """Write it the way compilers do."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


def validate(path: str, extra: Mapping[str, str] | None = None) -> list[Problem]:
    """Return what is wrong with a contract file and with the chain that ends in it; empty when nothing is.

    `extra` names further files of one's own by release, for a chain of several.
    """
    lines: dict[Place, int] = {}
    try:
        text = Path(path).read_text(encoding="utf-8")
        problems, value = _parse(path, text, lines)
    except (OSError, UnicodeDecodeError) as e:
        return [Problem(path, 0, "", str(e))]
    if not isinstance(value, dict):
        return problems or [
            Problem(path, 1, "", "a contract is a mapping with `contract`, `runtime` and `release` at the top")
        ]
    if broken := list(_schema(path, value, lines)):  # references can be followed only where everything has its type
        return sorted({*problems, *broken}, key=_order)
    try:
        raw = load_raw(release_of(path), {**(extra or {}), release_of(path): path})
    except ContractError as e:
        return [*problems, Problem(path, lines.get(("extends",), 1), "extends", str(e))]
    for place, message in references(raw):
        problems.append(Problem(path, _line(lines, place), ".".join(place), message))
    return sorted(dict.fromkeys(problems), key=_order)


def _order(problem: Problem) -> tuple[int, str, str]:
    return problem.line or 1 << 30, problem.path, problem.message


# -- the file alone ----------------------------------------------------------------------------------------------------


def _parse(path: str, text: str, lines: dict[Place, int]) -> tuple[list[Problem], Any]:
    """Parse YAML and fill `lines` with the line of every key; a key given twice is a problem that YAML itself hides."""
    import yaml  # noqa: PLC0415 - only to validate

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        return [Problem(path, mark.line + 1 if mark else 0, "", f"not YAML: {getattr(e, 'problem', None) or e}")], None
    problems: list[Problem] = []
    todo: list[tuple[yaml.Node | None, Place]] = [(root, ())]
    while todo:
        node, place = todo.pop()
        if isinstance(node, yaml.MappingNode):
            for key, inner in node.value:
                below = (*place, str(key.value))
                line = key.start_mark.line + 1
                if below in lines and key.value != "<<":
                    problems.append(
                        Problem(
                            path,
                            line,
                            ".".join(below),
                            f"given twice, first in line {lines[below]}; only the last counts",
                        )
                    )
                lines.setdefault(below, line)
                todo.append((inner, below))
        elif isinstance(node, yaml.SequenceNode):
            todo += [(inner, (*place, str(number))) for number, inner in enumerate(node.value)]
    return problems, value


def _schema(path: str, value: Any, lines: Mapping[Place, int]) -> Iterator[Problem]:
    import jsonschema  # noqa: PLC0415 - only to validate

    schema = json.loads(Path(contracts_dir(), "schema.json").read_text(encoding="utf-8"))
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        place = tuple(str(p) for p in error.absolute_path)
        for member, message in _worded(error):
            below = (*place, member) if member else place
            yield Problem(path, _line(lines, below), ".".join(below) or "(top)", message)


def _worded(error: jsonschema.ValidationError) -> Iterator[tuple[str, str]]:
    """Yield (member, message) of a schema error, in words about contracts."""
    schema: Any = error.schema
    stated: Any = error.validator_value
    instance: Any = error.instance
    what = f" ({schema['description']})" if isinstance(schema, Mapping) and "description" in schema else ""
    if error.validator == "additionalProperties" and isinstance(instance, dict):
        known = list(schema.get("properties", {}))
        for name in instance:
            if str(name) not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"
                yield str(name), f"no such member; {hint}"
    elif error.validator == "required":
        for name in stated:
            if name not in instance:
                yield "", f"needs a member {name}"
    elif error.validator == "enum":
        yield "", f"is {instance!r}; one of {', '.join(str(v) for v in stated if v is not None)}"
    elif error.validator == "anyOf" and error.context:
        inner = max(error.context, key=lambda e: len(e.absolute_path))
        yield "", inner.message + what
    else:
        yield "", error.message + what


def _line(lines: Mapping[Place, int], place: Place) -> int:
    """Return the line of the innermost part of a place that stands in the file; 0 when at most its section does."""
    inner = place
    while inner and inner not in lines:
        inner = inner[:-1]
    return lines.get(inner, 0) if len(inner) > 1 or inner == place else 0


# -- the resolved chain ------------------------------------------------------------------------------------------------


def references(raw: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for everything in a resolved contract that refers to what is not there."""
    families = raw.get("families", {})
    for name, clause in raw.get("architectures", {}).items():
        family = clause.get("family") if clause else None
        if family is not None and family not in families:
            yield ("architectures", name, "family"), _unknown("family", family, families)
    for name, family in families.items():
        if not family:
            continue
        if (like := family.get("like")) is not None and like not in families:
            yield ("families", name, "like"), _unknown("family", like, families)
            continue
        try:
            resolved = family_mapping(raw, name)
        except ContractError as e:
            yield ("families", name, "like"), str(e)
            continue
        for place, message in _family(resolved, raw):
            yield ("families", name, *place), message
    from dspark_lint.contract.validate_quant import quantization  # noqa: PLC0415 - only to validate

    yield from quantization(raw)
    yield from _citations(raw)


def _family(family: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    known = NAMESPACES | family.get("keys", {}).keys() | family.get("let", {}).keys()
    loops = frozenset(family.get("loops", {}))
    loaders, outcomes = raw.get("parameter_loaders", {}), family.get("outcomes", {})
    for name, text in (*family.get("let", {}).items(), *((n, t) for n, t in family.get("loops", {}).items())):
        yield from _expression(("let" if name in family.get("let", {}) else "loops", name), text, known)
    for part in _PARTS:
        for name, clause in family.get(part, {}).items():
            if not isinstance(clause, Mapping):
                continue
            here = known | (loops if part in ("tensors", "fused") else frozenset())
            yield from _clause((part, name), clause, here)
            if clause.get("loader") is not None and clause["loader"] not in loaders:
                yield (part, name, "loader"), _unknown("parameter loader", clause["loader"], loaders)
            if part == "tensors" and (absent := clause.get("absent", _ALWAYS_ABSENT)) not in (
                _ALWAYS_ABSENT,
                *outcomes,
            ):
                yield (part, name, "absent"), _unknown("outcome", absent, outcomes)
            if part == "tensors" and clause.get("fused") is not None and clause["fused"] not in family.get("fused", {}):
                yield (part, name, "fused"), _unknown("fused tensor", clause["fused"], family.get("fused", {}))


def _clause(place: Place, clause: Mapping[str, Any], known: frozenset[str]) -> Iterator[tuple[Place, str]]:
    for member in _EXPRESSIONS:
        if clause.get(member) is not None:
            yield from _expression((*place, member), clause[member], known)
    for number, text in enumerate(clause.get("shape") or ()):
        yield from _expression((*place, "shape", str(number)), text, known)
    for member in _SENTENCES:
        if isinstance(clause.get(member), str):
            for inner in _braces(clause[member]):
                yield from _expression((*place, member), inner, known)
    if (rule := clause.get("rule")) is not None:
        from dspark_lint.rules import REGISTRY  # noqa: PLC0415 - the rules are not needed to load a contract

        if rule not in REGISTRY:
            yield (*place, "rule"), _unknown("rule", rule, REGISTRY)


def _braces(text: str) -> Iterator[str]:
    while "{" in text:
        _, _, text = text.partition("{")
        inner, closing, text = text.partition("}")
        if closing:
            yield inner


def _expression(place: Place, text: Any, known: frozenset[str] | None) -> Iterator[tuple[Place, str]]:
    try:
        compile_expr(str(text))
        unknown = sorted(names_in(str(text)) - known) if known is not None else []
    except (ContractError, SyntaxError) as e:
        yield place, str(e)
        return
    for name in unknown:
        yield place, f"in {str(text)!r}: " + _unknown("key or derived value", name, known or ())


def _citations(raw: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    from dspark_lint.provenance.cite import citations_in  # noqa: PLC0415 - only to validate

    sources = raw.get("sources", {})
    for text, path in citations_in(raw):
        head = text.partition("::")[0].removeprefix("transformers:")
        if head not in sources and not head.endswith(".py"):
            place = path if path and path[-1].endswith(("source", "loader")) else (*path, "source")
            yield place, _unknown("alias of `sources`", head, sources)


def _unknown(what: str, name: Any, known: Any) -> str:
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f"there is no {what} {name}" + (f"; did you mean {close[0]}?" if close else "")
