"""TEN: tensors that are missing, have no place, or have another size than the configuration says."""

from __future__ import annotations

import re

from collections import Counter
from typing import TYPE_CHECKING, Any

from dspark_lint.contract.expr import evaluate
from dspark_lint.rules.base import Context, Rule, config_file, finding, in_contract, plural
from dspark_lint.rules.explained import explained, layer_shift, prefix_of
from dspark_lint.rules.naming import dims, file_of, layer_names
from dspark_lint.rules.renamed import Rename, renames, substitution
from dspark_lint.rules.sizes import among, misshapen, told_by_checks
from dspark_lint.rules.strays import dropped, unexpected
from dspark_lint.words import show


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.finding import Finding
    from dspark_lint.inventory import Expected, Stray


def _outcome(ctx: Context, exp: Expected) -> Mapping[str, Any]:
    """Return the clause that says what the release does when this tensor is missing.

    An outcome may hold under a condition (`when`) and name the one that holds otherwise (`otherwise`).
    """
    name = exp.clause.get("absent", "optional")
    outcomes = ctx.binding.family.get("outcomes", {})
    outcome: Mapping[str, Any] = outcomes.get(name, {}) if isinstance(name, str) else name
    while "otherwise" in outcome and evaluate(outcome["when"], ctx.binding) is not True:
        outcome = outcomes[outcome["otherwise"]]
    return outcome


def _absent(ctx: Context) -> list[Expected]:
    """Return the missing tensors, without those of a file that FIL006 or FIL007 speaks of."""
    selection = ctx.selection
    if selection.index is None or not (selection.missing or selection.unlisted):
        return ctx.inventory.missing
    gone = set(selection.missing)
    lost = {
        name for name, file in selection.index.value["weight_map"].items() if isinstance(file, str) and file in gone
    }
    for file in selection.unlisted:
        lost.update(ctx.checkpoint.header(file).tensors)
    return [exp for exp in ctx.inventory.missing if exp.name not in lost]


def missing(ctx: Context) -> Iterator[Finding]:
    """TEN001: a tensor that the loader has a place for is in no file it opens."""
    known = explained(ctx)
    absent = _absent(ctx)
    told = told_by_checks(ctx) if absent else set()
    groups: dict[tuple[str, str], list[Expected]] = {}
    whole_layers = _whole_layers(ctx, absent)
    for exp in absent:
        if exp.name in known.missing or among(told, exp.name):
            continue
        outcome = exp.clause.get("absent")
        layer = re.match(r"layers\.(\d+)\.", exp.name)
        if layer and int(layer.group(1)) in whole_layers:
            continue
        groups.setdefault((exp.pattern, str(outcome)), []).append(exp)
    if len(whole_layers) > 0 and not known.missing:
        yield _layer_finding(ctx, whole_layers)
    few = [g for g in groups.values() if g]
    if len(few) > 8:
        yield _many(ctx, [e for g in few for e in g])
        return
    for exps in few:
        clause = {
            **_outcome(ctx, exps[0]),
            "source": exps[0].clause.get("absent_source") or _outcome(ctx, exps[0]).get("source"),
        }
        shape = exps[0].shape
        where = layer_names([e.name for e in exps], exps[0].pattern)
        yield finding(
            ctx,
            "TEN001",
            clause,
            f"{where} {'is' if len(exps) == 1 else 'are'} missing; vLLM {ctx.release} expects {dims(shape) if shape else 'it'}: {clause.get('says', '')}.",
            tensor=exps[0].name if len(exps) == 1 else exps[0].pattern,
            expected=f"{exps[0].pattern} {dims(shape)}" if shape else exps[0].pattern,
            found="nothing",
            count=len(exps),
            fix=f"export {exps[0].pattern if len(exps) > 1 else exps[0].name}",
        )


def _whole_layers(ctx: Context, absent: list[Expected]) -> list[int]:
    """Return layers of which every tensor is missing, when others are there."""
    wanted: Counter[int] = Counter()
    gone: Counter[int] = Counter()
    for name, exp in ctx.inventory.expected.items():
        if (
            (m := re.match(r"layers\.(\d+)\.", name))
            and exp.certain
            and exp.clause.get("absent", "optional") != "optional"
        ):
            wanted[int(m.group(1))] += 1
    for exp in absent:
        if m := re.match(r"layers\.(\d+)\.", exp.name):
            gone[int(m.group(1))] += 1
    whole = sorted(layer for layer, number in gone.items() if number == wanted[layer] and number > 1)
    return whole if len(whole) < len(wanted) else []


def _worst(ctx: Context, exps: list[Expected]) -> Mapping[str, Any]:
    outcomes = [_outcome(ctx, e) for e in exps]
    return next((o for o in outcomes if o.get("effect") == "refused"), outcomes[0] if outcomes else {})


def _layer_finding(ctx: Context, layers: list[int]) -> Finding:
    exps = [
        e for e in ctx.inventory.missing if (m := re.match(r"layers\.(\d+)\.", e.name)) and int(m.group(1)) in layers
    ]
    clause = _worst(ctx, exps)
    present = sorted({int(m.group(1)) for n in ctx.inventory.disk_of if (m := re.match(r"layers\.(\d+)\.", n))})
    key = ctx.binding.keys.get("num_hidden_layers")
    tail = bool(present) and layers == list(range(len(present), len(present) + len(layers)))
    return finding(
        ctx,
        "TEN001",
        clause,
        f"every tensor of {plural(len(layers), 'layer')} ({', '.join(map(str, layers[:8]))}) is missing: num_hidden_layers is"
        f" {show(ctx.binding.get('num_hidden_layers'))} and the files hold {plural(len(present), 'layer')}; vLLM {ctx.release}: {clause.get('says', '')}.",
        file=config_file(ctx) if key else None,
        pointer=key.pointer if key else None,
        tensor="layers.{i}.*",
        expected=f"{len(exps)} tensors",
        found="nothing",
        count=len(exps),
        fix=f'"num_hidden_layers": {len(present)}, or export the missing layers'
        if tail
        else "export the missing layers",
    )


def _many(ctx: Context, exps: list[Expected]) -> Finding:
    clause = _worst(ctx, exps)
    sample = ", ".join(e.name for e in exps[:4])
    return finding(
        ctx,
        "TEN001",
        clause,
        f"{len(exps)} of the {len(ctx.inventory.expected)} tensors that vLLM {ctx.release} expects are missing ({sample}, …): {clause.get('says', '')}.",
        tensor=exps[0].name,
        expected=f"{len(ctx.inventory.expected)} tensors",
        found=f"{len(ctx.inventory.tensors)} tensors",
        count=len(exps),
    )


def _unplaced(ctx: Context, strays: list[Stray], missing: list[Expected] | None = None) -> Mapping[str, Any]:
    """Return what becomes of names without a place: the loader's own refusal, else what their absence leads to."""
    refusal = next((s.clause for s in strays if s.clause.get("effect") == "refused"), None)
    if refusal is not None:
        return refusal
    missed = [e for e in (missing or ctx.inventory.missing) if _outcome(ctx, e)]
    return _worst(ctx, missed) if missed else {"effect": "refused", **strays[0].clause}


def misnamed(ctx: Context) -> Iterator[Finding]:
    """TEN003: tensors that are there under another name."""
    prefix = prefix_of(ctx)
    clause: Mapping[str, Any]
    if prefix:
        strays = [s for s in ctx.inventory.strays if s.canonical.startswith(prefix)]
        clause = _unplaced(ctx, strays)
        yield finding(
            ctx,
            "TEN003",
            clause,
            f"{len(strays)} tensor names start with {prefix!r}, which vLLM {ctx.release} does not take off: {clause.get('says', '')}.",
            file=file_of(ctx, strays[0].disk),
            tensor=strays[0].disk,
            expected=strays[0].canonical[len(prefix) :],
            found=strays[0].disk,
            count=len(strays),
            fix=f"take {prefix!r} off every tensor name",
        )
        return
    shift = layer_shift(ctx)
    if shift:
        strays = [s for s in ctx.inventory.strays if s.canonical.startswith("layers.")]
        clause = _unplaced(ctx, strays)
        yield finding(
            ctx,
            "TEN003",
            clause,
            f"layer numbers on disk start at {shift} where vLLM {ctx.release} expects the draft's own, from 0: {clause.get('says', '')}.",
            file=file_of(ctx, strays[0].disk),
            tensor=strays[0].disk,
            expected="layers.0.*",
            found=f"layers.{shift}.*",
            count=len(strays),
            fix=f"subtract {shift} from every layer number",
        )
        return
    groups: dict[tuple[str, str], list[Rename]] = {}
    for pair in renames(ctx):
        groups.setdefault(substitution(pair), []).append(pair)
    for (wanted, there), pairs in groups.items():
        if wanted and there and len({pair.expected.pattern for pair in pairs}) > 1:
            yield _renamed_module(ctx, wanted, there, pairs)
        else:
            yield from _renamed_tensors(ctx, pairs)


def _renamed_module(ctx: Context, wanted: str, there: str, pairs: list[Rename]) -> Finding:
    clause = _unplaced(ctx, [pair.stray for pair in pairs], [pair.expected for pair in pairs])
    first = pairs[0]
    return finding(
        ctx,
        "TEN003",
        clause,
        f"{len(pairs)} tensors are called {there} where vLLM {ctx.release} expects {wanted} ({first.stray.disk} for {first.expected.name}): {clause.get('says', '')}.",
        file=file_of(ctx, first.stray.disk),
        tensor=first.stray.disk,
        expected=wanted,
        found=there,
        count=len(pairs),
        fix=f"rename {there} to {wanted} in every tensor name",
    )


def _renamed_tensors(ctx: Context, pairs: list[Rename]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[Rename]] = {}
    for pair in pairs:
        generic = (
            re.sub(r"\d+", "{i}", pair.stray.canonical, count=1)
            if "{i}" in pair.expected.pattern
            else pair.stray.canonical
        )
        groups.setdefault((pair.expected.pattern, generic), []).append(pair)
    for (pattern, generic), same in groups.items():
        clause = _unplaced(ctx, [pair.stray for pair in same], [pair.expected for pair in same])
        yield finding(
            ctx,
            "TEN003",
            clause,
            f"{generic} has no place in the model that vLLM {ctx.release} builds, while {pattern} of the same shape is missing: {clause.get('says', '')}.",
            file=file_of(ctx, same[0].stray.disk),
            tensor=same[0].stray.disk,
            expected=pattern,
            found=generic,
            count=len(same),
            fix=f"rename {generic} to {pattern}",
        )


def fused_on_disk(ctx: Context) -> Iterator[Finding]:
    """TEN007: projections that are fused on disk already."""
    fused = set(ctx.inventory.fused_found)
    if fused:
        first = min(fused)
        yield finding(
            ctx,
            "TEN007",
            {"effect": "advice", "severity": "warning", "source": ctx.binding.family.get("loader")},
            f"{plural(len(fused), 'tensor')} ({first}, …) hold fused projections; vLLM {ctx.release} happens to take them, but the published form of this family is split, and other readers drop them.",
            file=file_of(ctx, ctx.inventory.disk_of[first]),
            tensor=ctx.inventory.disk_of[first],
            expected="q_proj, k_proj, v_proj; gate_proj, up_proj",
            found=first,
            count=len(fused),
            fix="write the projections one by one",
        )


RULES = (
    Rule(
        "TEN001",
        "A tensor is missing",
        "Most draft loaders never notice that a parameter was not written: it keeps uninitialised memory (a norm keeps ones) and the draft serves noise at near-zero acceptance. Loaders that do check refuse the checkpoint.",
        "Export the tensor, or correct the key that makes the loader expect it.",
        "error",
        "silent",
        missing,
        ("family", "weights"),
        fires="a draft without fc.weight",
        quiet="the same draft with it",
    ),
    Rule(
        "TEN002",
        "A tensor has no place in the model",
        "The loader looks every name up among the parameters of the model it built; one that is not there stops the load.",
        "Rename the tensor, leave it out of the export, or correct the key that decides whether its module is built.",
        "error",
        "refused",
        unexpected,
        ("family", "weights"),
        fires="verifier_norm.weight in a Qwen3 DSpark draft",
        quiet="a draft without it",
    ),
    Rule(
        "TEN003",
        "Tensors are there under another name",
        "A prefix, an offset layer number or an old module name hides tensors from the loader.",
        "Rename them as the message says.",
        "error",
        "refused",
        misnamed,
        ("family", "weights"),
        fires="model.layers.0.mlp.up_proj.weight",
        quiet="layers.0.mlp.up_proj.weight",
    ),
    Rule(
        "TEN004",
        "A tensor's size contradicts the configuration",
        "Too small a tensor, and any other size of a tensor that must be equal, stops the load. Too large a projection is worse: the loader takes a slice of the configured size and serves it without a word.",
        "Correct the key that the message names, or export the tensor again.",
        "error",
        "refused",
        misshapen,
        ("family", "weights"),
        fires='"intermediate_size": 6144 over weights of 12288 rows',
        quiet='"intermediate_size": 12288',
    ),
    Rule(
        "TEN005",
        "A tensor is thrown away",
        "The release skips the tensor while it loads. If the draft was trained with it, it serves without.",
        "Set the flag that builds its module, or leave the tensor out.",
        "info",
        "advice",
        dropped,
        ("family", "weights"),
        fires="a confidence head under vLLM 0.27, which serves none",
        quiet="the same under vLLM 0.28",
    ),
    Rule(
        "TEN006",
        "Tensors and flags contradict each other",
        "A head whose tensors are only partly there, or are there although its flag is off.",
        "Export the whole head or none of it, and set the flag accordingly.",
        "error",
        "silent",
        in_contract,
        ("family", "weights"),
        fires="confidence_head.proj.weight without its bias",
        quiet="both",
    ),
    Rule(
        "TEN007",
        "Projections are fused on disk",
        "The runtime fuses q, k, v and gate, up while it loads, from tensors that are split on disk; a file that is fused already is taken by some readers and dropped by others.",
        "Write the projections one by one.",
        "warning",
        "advice",
        fused_on_disk,
        ("family", "weights"),
        fires="layers.0.self_attn.qkv_proj.weight",
        quiet="layers.0.self_attn.q_proj.weight and its siblings",
    ),
)
