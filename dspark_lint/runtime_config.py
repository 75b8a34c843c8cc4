"""The configuration as the runtime sees it: what stands in the file, what its reader drops, renames and fills in.

Every value remembers where it came from, because a finding has to point at the file and a default has to be told
from a choice. Which reader does what is knowledge of the contract; this module only applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.contract.load import merge


Origin = Literal["file", "default", "derived", "absent"]


class Val(NamedTuple):
    """One value of the runtime configuration."""

    value: Any
    pointer: str
    """RFC 6901 pointer into config.json: where it stands, or where it would."""
    origin: Origin
    says: str = ""
    """For a default or derived value: who fills it in."""
    members: Mapping[str, Val] | None = None
    """For a dictionary the reader put together from several places: its members' own origins."""


class Trouble(NamedTuple):
    """Something that stopped the reader; the rules turn it into a finding."""

    kind: str
    key: str
    pointer: str
    found: Any
    expected: Any
    """In words; of a mistyped value the types as the contract states them."""
    clause: Mapping[str, Any]


class RuntimeConfig(NamedTuple):
    """What the loader's ``hf_config`` holds."""

    values: Mapping[str, Val]
    troubles: tuple[Trouble, ...]
    complete: bool
    """Whether a key that is not here is really absent; false when the class's defaults are not known."""


class PlainScope:
    """A scope over a mapping of names."""

    __slots__ = ("_names",)

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def get(self, name: str) -> Any:
        """Return a name's value."""
        return self._names[name]

    def call(self, name: str) -> Callable[..., Any] | None:  # noqa: ARG002 - the protocol's signature
        """Return None: no checkpoint functions here."""
        return None


def escape(token: str) -> str:
    """Escape one token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def json_type(value: Any) -> str:
    """Return the type of a JSON value as a reader's strict field sees it (``integer`` and ``float`` are two)."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "float"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def accepts(accepted: str | list[str], value: Any) -> bool:
    """Whether a strict field of that type takes the value as it is (``number``: integer or float)."""
    for one in [accepted] if isinstance(accepted, str) else accepted:
        if one.startswith("array of "):
            if isinstance(value, list) and all(accepts(one[9:], v) for v in value):
                return True
        elif one == "number":
            if json_type(value) in ("integer", "float"):
                return True
        elif json_type(value) == one:
            return True
    return False


def _file_values(mapping: Mapping[str, Any], prefix: str) -> dict[str, Val]:
    return {k: Val(v, f"{prefix}/{escape(k)}", "file") for k, v in mapping.items()}


def flat(
    config: Mapping[str, Any], contract: Mapping[str, Any], classes: Mapping[str, Any], inner: str | None = None
) -> RuntimeConfig:
    """Return what a flat file becomes: the class of its ``model_type`` with its strict types and defaults.

    `inner` names a block whose members count as the file's own (the text part of a multimodal target that carries its
    draft inside).
    """
    values = _file_values(config, "")
    block = config.get(inner) if inner else None
    if isinstance(block, Mapping):
        values.update({k: v for k, v in _file_values(block, f"/{inner}").items() if k != "model_type"})
    troubles: list[Trouble] = []
    clause = contract.get("flat", {})
    model_type = config.get("model_type")
    names = {**classes.get("model_types", {}), **contract.get("model_types", {})}
    if model_type is None:
        troubles.append(
            Trouble(
                "missing_model_type",
                "model_type",
                "/model_type",
                None,
                "a model_type",
                clause.get("missing_model_type", {}),
            )
        )
        return RuntimeConfig(values, tuple(troubles), complete=False)
    if not isinstance(model_type, str) or model_type not in names:
        troubles.append(
            Trouble(
                "unknown_model_type",
                "model_type",
                "/model_type",
                model_type,
                "a model_type with a configuration class",
                clause.get("unknown_model_type", {}),
            )
        )
        return RuntimeConfig(values, tuple(troubles), complete=False)
    class_name = names[model_type]
    own = class_clause(str(class_name), contract, classes)
    if own is None:
        return RuntimeConfig(values, (), complete=False)
    for key, field in own["keys"].items():
        if key in values:
            accepted = field.get("type")
            if accepted and not accepts(accepted, values[key].value):
                troubles.append(
                    Trouble(
                        "mistyped",
                        key,
                        values[key].pointer,
                        values[key].value,
                        accepted,
                        {**clause.get("mistyped", {}), **({"source": own["source"]} if "source" in own else {})},
                    )
                )
                values[key] = values[key]._replace(value=UNKNOWN)
        elif "default" in field:
            values[key] = Val(
                field["default"], f"/{escape(key)}", "default", f"{class_name} fills in {_short(field['default'])}"
            )
    _post(values, own.get("post", {}), class_name)
    fold = own.get("fold", contract["dialects"]["flat"].get("fold", {}))
    theta = own.get("default_theta")
    names_of_fold = {"own": config, "default_theta": theta if not isinstance(theta, dict) else None}
    troubles += _fold(values, fold, names_of_fold)
    return RuntimeConfig(values, tuple(troubles), complete=True)


def class_clause(name: str, contract: Mapping[str, Any], classes: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the clause of a configuration class; one of vLLM's own may be ``like`` one of transformers'."""
    own: Mapping[str, Any] | None = contract.get("config_classes", {}).get(name)
    if own is None:
        shipped: Mapping[str, Any] | None = classes.get("config_classes", {}).get(name)
        return shipped
    base = class_clause(own["like"], contract, classes) if "like" in own else None
    return merge(base, own) if base else own


def _short(value: Any) -> str:
    import json  # noqa: PLC0415 - imported by everyone anyway; kept local to the one use

    return json.dumps(value, default=str)


def _post(values: dict[str, Val], post: Mapping[str, Any], class_name: str) -> None:
    """Apply what the class does after its fields are set, in the order of the clauses.

    `place` names the key at which a derived value is to be corrected; ``constant`` in an expression is the clause's own.
    """
    written = [name for name, val in values.items() if val.origin == "file"]
    for key, clause in post.items():
        names = {name: val.value for name, val in values.items()}
        before = values.get(key)
        names.update({"it": before.value if before else None, "written": written, "constant": clause.get("constant")})
        try:
            after = evaluate(clause["value"], PlainScope(_Lenient(names)))
        except Exception as e:  # pragma: no cover - a slip in a contract, named where it happens
            raise type(e)(f"{class_name}.post.{key}: {e}") from e
        if before is None or after != before.value or after is UNKNOWN:
            pointer = before.pointer if before else f"/{escape(clause.get('place', key))}"
            values[key] = Val(
                after,
                pointer,
                "derived" if before is None or before.origin == "file" else before.origin,
                clause.get("says", f"{class_name} derives it"),
            )


class _Lenient(dict[str, Any]):
    """A class body may name a field that this file's class does not have: it is null there."""

    def __missing__(self, key: str) -> Any:
        return None


def _chosen(values: Mapping[str, Val], clause: Mapping[str, Any]) -> str | None:
    """Return the key that a fold starts from: the first that is not empty, or whichever the file sets last."""
    if "last" in clause:
        return next((k for k in reversed(tuple(values)) if k in clause["last"]), None)
    return next((k for k in clause["first"] if k in values and (values[k].value is UNKNOWN or values[k].value)), None)


def _fold(
    values: dict[str, Val], folds: Mapping[str, Any], names: Mapping[str, Any], prefix: str = ""
) -> list[Trouble]:
    """Fold several keys into one dictionary (``rope_scaling``, ``rope_theta`` into ``rope_parameters``)."""
    troubles: list[Trouble] = []
    for key, clause in folds.items():
        start = _chosen(values, clause)
        chosen = values[start] if start else None
        if chosen is not None and chosen.value is None:
            chosen = None  # as if it were not there, and whatever stands before it
        if start and chosen is not None and not isinstance(chosen.value, dict):
            if chosen.value is not UNKNOWN and "mistyped" in clause:
                troubles.append(
                    Trouble("mistyped", start, chosen.pointer, chosen.value, ["object", "null"], clause["mistyped"])
                )
            values[key] = chosen._replace(value=UNKNOWN)
            continue
        pointer = values[start].pointer if start else f"{prefix}/{escape(key)}"
        members = {k: Val(v, f"{pointer}/{escape(k)}", "file") for k, v in (chosen.value.items() if chosen else ())}
        folded = dict(chosen.value) if chosen else {}
        for member, fill in clause.get("fill", {}).items():
            if member in folded:
                continue
            value = evaluate(fill["value"], PlainScope(_Lenient({**names, "it": folded})))
            place = fill.get("place")
            in_file = place is not None and place in values and values[place].origin == "file"
            folded[member] = value
            members[member] = Val(
                value,
                values[place].pointer if in_file and place else f"{pointer}/{escape(member)}",
                "file" if in_file else "default",
                fill.get("says", ""),
            )
        origin: Origin = "file" if start or any(m.origin == "file" for m in members.values()) else "default"
        values[key] = Val(folded, pointer, origin, clause.get("says", ""), members)
    return troubles


def speculators(config: Mapping[str, Any], contract: Mapping[str, Any], mapping: Mapping[str, Any]) -> RuntimeConfig:
    """Return what the speculators reader makes of its own format: the layer block plus what it copies."""
    dialect = contract["dialects"]["speculators"]
    troubles: list[Trouble] = []
    base_key = dialect["base"]
    base = config.get(base_key, {})
    pointer = f"/{escape(base_key)}"
    whole = isinstance(base, dict) and base_key in config
    if not isinstance(base, dict):
        troubles.append(Trouble("mistyped", base_key, pointer, base, "object", dialect["base_mistyped"]))
        base = {}
    elif not whole:
        troubles.append(Trouble("absent", base_key, pointer, None, "", dialect["base_missing"]))
    values = _file_values({k: v for k, v in base.items() if k not in dialect.get("base_drop", ())}, pointer)
    for key, clause in mapping.get("required", {}).items():
        if key not in config:
            troubles.append(Trouble("absent", key, f"/{escape(key)}", None, "", clause))
    for key in mapping.get("copy", ()):
        values[key] = Val(
            config.get(key),
            f"/{escape(key)}",
            "file" if key in config else "default",
            "the speculators reader copies the top-level key",
        )
    for key in mapping.get("copy_if_set", ()):
        if config.get(key) is not None:
            values[key] = Val(config[key], f"/{escape(key)}", "file")
    for key, clause in mapping.get("set", {}).items():
        values[key] = _set(config, clause, f"/{escape(key)}", troubles, values)
    troubles += _fold(values, dialect.get("fold", {}), {"own": base, "default_theta": None}, pointer)
    return RuntimeConfig(values, tuple(troubles), complete=whole)


def _set(
    config: Mapping[str, Any],
    clause: Mapping[str, Any],
    pointer: str,
    troubles: list[Trouble],
    values: Mapping[str, Val],
) -> Val:
    if "members" in clause:
        members: dict[str, Val] = {}
        for name, inner in clause["members"].items():
            if inner.get("if_set") and config.get(inner["from"]) is None:
                continue
            members[name] = _set(config, inner, f"{pointer}/{escape(name)}", troubles, values)
        return Val({k: m.value for k, m in members.items()}, pointer, "derived", "", members)
    source = clause.get("from")
    present = source in config if source else False
    value = config.get(source) if source else None
    where = f"/{escape(source)}" if source else pointer
    if source and not present:
        if "absent" in clause:
            return Val(clause["absent"], where, "default", clause.get("says", "the speculators reader fills it in"))
        value = UNKNOWN
    if "value" in clause:
        names = {"it": value, "config": config, **{k: v.value for k, v in values.items()}}
        result = evaluate(clause["value"], PlainScope(_Lenient(names)))
        if result is UNKNOWN and value is not UNKNOWN and source:
            troubles.append(
                Trouble("unmappable", source, where, value, clause.get("expected", "a list of integers"), clause)
            )
        return Val(
            result, where, "derived" if source is None else ("file" if present else "default"), clause.get("says", "")
        )
    return Val(value, where, "file" if present else "absent")
