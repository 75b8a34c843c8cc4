"""KEY: keys of config.json that are missing, mistyped, misplaced, misspelt or out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import UNKNOWN, evaluate
from dspark_lint.rules.arc import tells_architectures
from dspark_lint.rules.base import Context, Rule, clause_findings, config_file, finding, in_contract, key_place
from dspark_lint.rules.flat import FlatView
from dspark_lint.rules.spelling import fits, misspelt_as, wanted_names
from dspark_lint.words import as_json


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.binding import Key
    from dspark_lint.finding import Finding


def places_of(config: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    """Return (pointer, value) of every place in the file, up to two levels deep, where a key of that name stands."""
    found = [(f"/{name}", config[name])] if name in config else []
    for outer, inner in config.items():
        if isinstance(inner, dict) and name in inner:
            found.append((f"/{outer}/{name}", inner[name]))
    return found


def _elsewhere(ctx: Context, key: Key) -> tuple[str, Any] | None:
    """Return a place where the key stands although this release does not look there."""
    read = set()
    for step in key.clause["lookup"]:
        val = ctx.binding.lookup((step if isinstance(step, str) else step["path"]).rstrip("?+"))
        if val is not None:
            read.add(val.pointer)
    for name in dict.fromkeys([*wanted_names(key), *key.clause.get("also_called", [])]):
        for pointer, value in places_of(ctx.binding.config, name):
            if pointer not in read and value is not None:
                return pointer, value
    return None


def _says(clause: Mapping[str, Any], trouble: str) -> str:
    absent = clause.get("absent", {})
    if trouble == "null":
        return str(clause.get("null_says") or absent.get("says") or "a null is not accepted there")
    if trouble == "mistyped":
        return str(clause.get("mistyped_says", "the value is used as it stands and breaks the loader"))
    return str(absent.get("says", "the loader needs it"))


def _broken(ctx: Context, trouble: str) -> Iterator[Key]:
    """Yield the broken keys of the family, each place once, and not what stands inside a broken one."""
    seen: set[str] = set()
    reported = {t.pointer for t in ctx.binding.runtime.troubles}
    outer = tuple(key.pointer + "/" for key in ctx.binding.keys.values() if key.trouble)
    for key in ctx.binding.keys.values():
        if key.pointer.startswith(outer):
            continue
        if trouble == "mistyped" and evaluate(key.clause.get("judged_when", "true"), ctx.binding) is not True:
            continue  # nobody comes to it
        if key.trouble == trouble and key.pointer not in seen and key.pointer not in reported:
            seen.add(key.pointer)
            yield key


def _suggestion(ctx: Context, key: Key) -> str | None:
    text = key.clause.get("suggest")
    value = evaluate(text, ctx.binding) if text else None
    return as_json(value) if value is not None and value is not UNKNOWN else None


def missing(ctx: Context) -> Iterator[Finding]:
    """KEY001: a key that the release needs and that stands nowhere."""
    for trouble in ctx.binding.runtime.troubles:
        if trouble.kind == "absent":
            value = ctx.binding.config.get(trouble.key)
            yield finding(
                ctx,
                "KEY001",
                trouble.clause,
                f"{trouble.key} is missing, and vLLM {ctx.release} needs it: {trouble.clause.get('says', '')}.",
                file=config_file(ctx),
                pointer=trouble.pointer,
                expected=trouble.key,
                found="nothing" if value is None else as_json(value),
                fix=f'add "{trouble.key}" to {config_file(ctx)}',
            )
    for key in _broken(ctx, "absent"):
        if _elsewhere(ctx, key) or misspelt_as(ctx, key):
            continue
        suggestion = _suggestion(ctx, key)
        name = key_place(key)
        clause = {
            **key.clause,
            **key.clause.get("absent", {}),
            "source": key.clause.get("absent", {}).get("source", key.clause.get("source")),
        }
        yield finding(
            ctx,
            "KEY001",
            clause,
            f"{name} is missing, and vLLM {ctx.release} needs it: {_says(key.clause, 'absent')}.",
            file=config_file(ctx),
            pointer=key.pointer,
            expected=name,
            found="nothing",
            fix=f'add "{name}": {suggestion}' if suggestion else f'add "{name}"',
        )


_WORDS = {
    "to_int": "an integer, or what int() takes",
    "to_float": "a number, or what float() takes",
    "integer": "an integer",
    "number": "a number",
    "float": "a float",
    "string": "a string",
    "boolean": "a boolean",
    "array": "a list",
    "object": "an object",
}


def _accepted(types: str | list[str]) -> str:
    """Return accepted types in words: ``an integer or null``."""
    words = []
    for one in [types] if isinstance(types, str) else types:
        outer, of, inner = one.partition(" of ")
        words.append(_WORDS.get(outer, outer) + (f" of {inner}s" if of else ""))
    return " or ".join(words)


def mistyped(ctx: Context) -> Iterator[Finding]:
    """KEY002: a value of a type that the release refuses, and nulls where none may stand."""
    for trouble in ctx.binding.runtime.troubles:
        if trouble.kind in ("mistyped", "unmappable"):
            if trouble.key == "architectures" and tells_architectures(ctx):
                continue
            expected = _accepted(trouble.expected) if trouble.kind == "mistyped" else trouble.expected
            yield finding(
                ctx,
                "KEY002",
                {"effect": "refused", "source": (ctx.binding.mapping or {}).get("source"), **trouble.clause},
                f"{trouble.key} is {as_json(trouble.found)}, where vLLM {ctx.release} expects {expected}: {trouble.clause.get('says', 'reading it raises')}.",
                file=config_file(ctx),
                pointer=trouble.pointer,
                expected=expected,
                found=as_json(trouble.found),
            )
    for trouble_kind in ("null", "mistyped"):
        for key in _broken(ctx, trouble_kind):
            expected = _accepted(key.clause.get("type", ""))
            yield finding(
                ctx,
                "KEY002",
                {"effect": "refused", **{k: v for k, v in key.clause.items() if k in ("source", "effect")}},
                f"{key_place(key)} is {as_json(key.raw)}, where vLLM {ctx.release} expects {expected}: {_says(key.clause, trouble_kind)}.",
                file=config_file(ctx),
                pointer=key.pointer,
                expected=expected,
                found=as_json(key.raw),
            )


def misplaced(ctx: Context) -> Iterator[Finding]:
    """KEY004: a key that stands where this release does not look, and nowhere that it does."""
    for key in ctx.binding.keys.values():
        if (
            key.origin not in ("absent", "default")
            or key.clause.get("quiet_elsewhere")
            or key.trouble in ("null", "mistyped")
        ):
            continue
        place = _elsewhere(ctx, key)
        if place is None:
            continue
        pointer, value = place
        if key.trouble == "" and (key.value is UNKNOWN or value == key.value):
            continue
        wanted = key_place(key)
        stands = pointer.lstrip("/").replace("/", ".")
        if key.trouble:
            clause = {**key.clause, **key.clause.get("absent", {}), "source": key.clause.get("source")}
            outcome = _says(key.clause, "absent")
            yield finding(
                ctx,
                "KEY004",
                clause,
                f"{stands} is not read by vLLM {ctx.release}, which looks for {wanted}: {outcome}.",
                file=config_file(ctx),
                pointer=pointer,
                expected=wanted,
                found=stands,
                fix=f'move it: "{wanted}": {as_json(value)}',
            )
        else:
            yield finding(
                ctx,
                "KEY004",
                {**key.clause, "effect": "silent", "severity": key.clause.get("misplaced_severity", "warning")},
                f"{stands} is {as_json(value)}, but vLLM {ctx.release} looks for {wanted}, does not find it and takes {as_json(key.value)}.",
                file=config_file(ctx),
                pointer=pointer,
                expected=f"{wanted}: {as_json(value)}",
                found=f"{stands}: {as_json(value)}",
                fix=f'write "{wanted}": {as_json(value)}',
            )


def misspelt(ctx: Context) -> Iterator[Finding]:
    """KEY005: a key that nobody reads, spelt almost like one that the release misses."""
    for key in ctx.binding.keys.values():
        if (
            key.origin not in ("absent", "default")
            or key.trouble in ("null", "mistyped")
            or (key.trouble == "" and key.value is UNKNOWN)
        ):
            continue
        if _elsewhere(ctx, key):
            continue
        place = misspelt_as(ctx, key)
        if place is None:
            continue
        pointer, value = place
        wanted, stands = key_place(key), pointer.lstrip("/").replace("/", ".")
        if key.trouble:
            clause = {**key.clause, **key.clause.get("absent", {}), "source": key.clause.get("source")}
            outcome = _says(key.clause, "absent")
        else:
            if value == key.value or not fits(key, value):
                continue
            clause = {**key.clause, "effect": "silent", "severity": "warning"}
            outcome = f"it takes {as_json(key.value)} instead"
        yield finding(
            ctx,
            "KEY005",
            clause,
            f"{stands} is read by nobody; vLLM {ctx.release} looks for {wanted}: {outcome}.",
            file=config_file(ctx),
            pointer=pointer,
            expected=wanted,
            found=stands,
            fix=f'rename it: "{wanted}": {as_json(value)}',
        )


def out_of_range(ctx: Context) -> Iterator[Finding]:
    """KEY003: a value that the release refuses or cannot work with."""
    flat = ctx.contract.get("flat", {}).get("checks", {}) if ctx.binding.dialect == "flat" else {}
    if flat:
        yield from clause_findings(FlatView(ctx), "KEY003", flat)  # type: ignore[arg-type]


RULES = (
    Rule(
        "KEY001",
        "A key the release needs is missing",
        "The loader reads the key by name and has no default for it, or the class that parses the file has none; the engine stops before it serves.",
        "Write the key where the message says. Where the value follows from the weights, the fix gives it.",
        "error",
        "refused",
        missing,
        fires='a DSpark config.json with "markov_rank" nowhere',
        quiet='"markov_rank": 256 at the top level',
    ),
    Rule(
        "KEY002",
        "A value has a type the release refuses",
        "Strict configuration classes refuse a wrong JSON type while they parse; keys read later break where they are used. A null counts as a type: some look-ups stop at it instead of going on.",
        "Write the type that the message names; leave a key out rather than writing null.",
        "error",
        "refused",
        mistyped,
        fires='"hidden_size": "4096"',
        quiet='"hidden_size": 4096',
    ),
    Rule(
        "KEY003",
        "A value is out of the range the release accepts",
        "The release checks the value, or cannot build the model from it.",
        "Correct the value; the message says what is accepted.",
        "error",
        "refused",
        out_of_range,
        fires='"layer_types" of one entry for two layers',
        quiet="an entry a layer",
    ),
    Rule(
        "KEY004",
        "A key stands where the release does not look",
        "Exporters nest keys under dflash_config that a release reads at the top level, or the other way round. The value is then not read: the engine stops for want of it, or takes a default without a word.",
        "Move or copy the key to the place that the message names.",
        "error",
        "refused",
        misplaced,
        fires='"dflash_config": {"markov_rank": 256} and no top-level markov_rank',
        quiet='"markov_rank": 256 at the top level',
    ),
    Rule(
        "KEY005",
        "A key is misspelt",
        "A key that no loader reads stands in the file while a key of almost the same name is missed.",
        "Rename it as the message says.",
        "error",
        "refused",
        misspelt,
        fires='"mask_token": 151669',
        quiet='"mask_token_id": 151669',
    ),
    Rule(
        "KEY006",
        "A default is taken that may not fit the training",
        "The release fills in a value for a key that is not there, and whether that is what the draft was trained with cannot be seen in the file.",
        "Write the key with the value that was trained.",
        "warning",
        "silent",
        in_contract,
        fires="a flat DSpark file without sample_from_anchor",
        quiet='"sample_from_anchor": true',
    ),
    Rule(
        "KEY007",
        "A key is read by its truthiness",
        'The value is used as a condition, so the string "false" and any other non-empty value count as true, and null counts as false.',
        "Write a JSON boolean.",
        "warning",
        "silent",
        in_contract,
        fires='"sample_from_anchor": "false"',
        quiet='"sample_from_anchor": false',
    ),
    Rule(
        "KEY008",
        "A key that changes the forward pass is not read by this release",
        "The draft was trained with a setting that this release does not know; it serves without it.",
        "Serve the draft with a release that reads the key, or retrain without it.",
        "warning",
        "silent",
        in_contract,
        fires="dflash_config.attention_value_scale under vLLM 0.30",
        quiet="the same file under vLLM 0.31",
    ),
    Rule(
        "KEY009",
        "Worth knowing about a key",
        "The key, or its absence, is served as intended here, but another release or another reader does something else with it.",
        "Write the key explicitly.",
        "info",
        "advice",
        in_contract,
        fires="a DeepSpec DSpark file without sample_from_anchor",
        quiet='"sample_from_anchor": true',
    ),
)
