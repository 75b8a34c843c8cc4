"""One checkpoint under one release, from files to findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dspark_lint.assumed import notes_of
from dspark_lint.binding import Binding
from dspark_lint.finding import SEVERITIES, Finding, Result
from dspark_lint.inventory import Inventory
from dspark_lint.rules import REGISTRY, Rule
from dspark_lint.rules.base import Context, clause_findings
from dspark_lint.selection import Selection, select
from dspark_lint.words import fill


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dspark_lint.checkpoint import Checkpoint
    from dspark_lint.contract.model import Contract
    from dspark_lint.scan.store import Store
    from dspark_lint.target import Target


def judge(
    checkpoint: Checkpoint,
    contract: Contract,
    *,
    target: Target | None = None,
    serve: Mapping[str, Any] | None = None,
    selected: frozenset[str] | None = None,
    deep: Store | None = None,
    allow_lfs_pointers: bool = False,
) -> tuple[Result, Binding | None]:
    """Run the rules over a checkpoint under one resolved contract.

    `selected` are the rule ids to report; all of them run, because some keep others quiet. Returns the result and the
    binding, which reporters of inventories may look at; None when config.json could not be bound.
    """
    ctx = Context(checkpoint, contract, deep=deep)
    ctx.pointers_allowed = allow_lfs_pointers
    selection = select(checkpoint, contract)
    ctx._selection = selection  # noqa: SLF001 - the context is filled here and nowhere else
    config = checkpoint.config.value
    binding: Binding | None = None
    if isinstance(config, dict):
        binding = Binding(
            contract, config, path=checkpoint.root_dir, serve=serve, target=target, tensors=selection.tensors
        )
        binding.beside = frozenset(entry.name for entry in checkpoint.files)
        binding.side_file = checkpoint.pt_storage
        ctx._binding = binding  # noqa: SLF001 - see above
        if _states_quantization(checkpoint, contract):
            from dspark_lint.quant.statement import statement_of  # noqa: PLC0415 - most drafts are not quantized

            ctx.statement = statement_of(checkpoint, contract, binding)
        if binding.family and _weights_readable(selection):
            inventory = Inventory(binding, selection.tensors)
            binding.inventory = inventory
            if "only" not in binding.family and (ctx.statement is not None or _keeps_packed(selection, contract)):
                from dspark_lint.quant.fit import Fit  # noqa: PLC0415 - see above

                inventory.fit = Fit(binding, ctx.statement)
            inventory.compare()
            ctx._inventory = inventory  # noqa: SLF001 - see above
    findings, checked, unchecked, covers = _run(ctx)
    if selected is not None:  # what a finding keeps quiet is unchecked where that finding is not reported
        unchecked += [
            (rule, f"{cover} stands before it, and is left out")
            for rule, cover in covers.items()
            if cover not in selected
        ]
        checked = [rule for rule in checked if rule not in covers or covers[rule] in selected]
    if binding is not None:
        unchecked += _scope_notes(binding, contract)
        unchecked += [
            (f"{rule} ({part})", _WHY["deep"]) for rule, part in _PARTLY.items() if deep is None and rule in checked
        ]
        unchecked += [(rule, "needs --target") for rule in sorted(binding.needs_target) if rule in checked]
    kept = [f for f in findings if selected is None or f.rule in selected]
    kept.sort(key=lambda f: SEVERITIES.index(f.severity))
    fits = (
        binding is not None
        and bool(binding.family)
        and not _unfit(ctx)
        and (selected is None or not selected.isdisjoint(checked))
    )
    result = Result(
        runtime=contract["runtime"],
        release=contract["release"],
        findings=tuple(kept),
        checked=tuple(checked),
        unchecked=tuple(unchecked),
        notes=notes_of(binding) if binding else (),
        architecture=binding.route.architecture or (binding.route.resolved[0] if binding.route.resolved else None)
        if binding
        else None,
        method=binding.method if binding else None,
        judged=fits or any(f.effect == "refused" for f in kept),
        fits=fits,
        covers=tuple((rule, cover) for rule, cover in covers.items() if rule in checked),
    )
    return result, binding


def _weights_readable(selection: Selection) -> bool:
    return bool(selection.headers) and all(not h.fatal for h in selection.headers)


def _run(ctx: Context) -> tuple[list[Finding], list[str], list[tuple[str, str]], dict[str, str]]:
    """Return findings, checked and unchecked rules, and of the rules that a finding keeps quiet that finding's rule."""
    findings: list[Finding] = []
    covers: dict[str, str] = {}
    cover = ""
    checked: list[str] = []
    unchecked: list[tuple[str, str]] = []
    seen: dict[tuple[str, str | None, str | None, str], int] = {}
    covered: tuple[str, ...] = ()
    unfit = _unfit(ctx)
    for rule in REGISTRY.values():
        lacking = next((r for r in rule.requires if not ctx.have(r)), None)
        if lacking:
            unchecked.append((rule.id, _WHY[lacking]))
            continue
        if unfit and rule.id in _BLIND:
            unchecked.append((rule.id, _unfit_because(ctx)))
            continue
        checked.append(rule.id)
        if covered and rule.id.startswith(covered):
            covers[rule.id] = cover
            continue
        for found in _all(ctx, rule):
            subject = (found.rule[:3], found.file, found.pointer or found.tensor, found.found or "")
            if not found.pointer or subject not in seen:
                seen[subject] = len(findings)
                findings.append(found)
            elif _graver(found, findings[seen[subject]]):
                findings[seen[subject]] = found
            if rule.id in _COVERS and found.effect == "refused":
                covered, cover = _COVERS[rule.id], rule.id
    return _quiet(findings), checked, unchecked, covers


def _graver(one: Finding, other: Finding) -> bool:
    """Whether `one` says more than `other` of the same fault: that it is refused, or that it is worse."""
    return (one.effect == "refused", -SEVERITIES.index(one.severity)) > (
        other.effect == "refused",
        -SEVERITIES.index(other.severity),
    )


#: Rules that compare names and sizes, and need to know what each module keeps.
_BLIND = frozenset(
    {"TEN001", "TEN002", "TEN003", "TEN004", "QNT003", "QNT004", "QNT005", "QNT006", "QNT007", "QNT008", "QNT009"}
)


def _unfit(ctx: Context) -> bool:
    """Whether the draft is quantized in a way that no contract describes, so that its tensors cannot be held to any."""
    if not ctx.have("weights"):
        return False
    fit = ctx.inventory.fit
    return fit is not None and not fit.judged


def _states_quantization(checkpoint: Checkpoint, contract: Contract) -> bool:
    for clause in contract["quantization"]["places"].values():
        value = checkpoint.document(clause["file"]).value
        for part in clause["pointer"].split("/")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return True
    return False


def _keeps_packed(selection: Selection, contract: Contract) -> bool:
    """Whether any tensor has a type that only quantized weights have."""
    packed = frozenset(contract["quantization"]["packed_dtypes"])
    return any(entry["dtype"] in packed for _, entry in selection.tensors.values())


def _unfit_because(ctx: Context) -> str:
    if ctx.statement is not None and ctx.statement.unjudged:
        return fill(ctx.statement.unjudged, ctx.statement)
    return "the draft is quantized, and no contract says which of its modules are"


def _all(ctx: Context, rule: Rule) -> Iterator[Finding]:
    yield from rule.check(ctx)
    if ctx.have("family"):
        yield from clause_findings(ctx, rule.id, ctx.binding.family.get("checks", {}))


#: When one of these fires, the rules of the named families would only repeat its consequences.
_COVERS: dict[str, tuple[str, ...]] = {
    "FIL001": ("ARC", "KEY", "DRF", "TEN", "TGT", "QNT", "VAL"),
    "ARC001": ("ARC002", "ARC004", "ARC005", "KEY001", "KEY004", "KEY005", "KEY006", "DRF", "TEN", "TGT", "QNT"),
    "ARC002": ("ARC004", "ARC005", "KEY001", "KEY004", "KEY005", "KEY006", "DRF", "TEN", "TGT", "QNT"),
    "ARC003": ("ARC004", "ARC005", "KEY", "DRF", "TEN", "TGT", "QNT"),
    "QNT001": (
        "TEN001",
        "TEN002",
        "TEN003",
        "TEN004",
        "QNT003",
        "QNT004",
        "QNT005",
        "QNT006",
        "QNT007",
        "QNT008",
        "QNT009",
    ),
    "ARC007": ("ARC001", "ARC002", "KEY", "DRF", "TEN", "TGT", "QNT"),
}
_WHY = {
    "files": "the weight files could not be looked at",
    "config": "config.json could not be read",
    "family": "no draft loader of this release is reached",
    "weights": "no complete set of safetensors headers could be read",
    "deep": "needs --deep",
}
#: Rules that look at a part without --deep.
_PARTLY = {"VAL003": "all but norms and biases", "VAL006": "all but scales of one number"}


def _quiet(findings: list[Finding]) -> list[Finding]:
    """Drop routing findings that a recognised layout explains, and everything that a wholly misread file leads to."""
    if any(f.rule == "ARC003" for f in findings):
        return [f for f in findings if f.rule not in ("ARC001", "ARC002")]
    findings = _joined(findings)
    misread = next((f for f in findings if f.rule == "ARC006" and f.severity == "error"), None)
    if misread is None:
        return findings
    consequences = [f for f in findings if f.rule.startswith(_OF_CONTENT)]
    refusal = next((f for f in consequences if f.effect == "refused"), None)
    if refusal is not None:
        told = f"{misread.message[:-1]}. Read so, the load stops: {refusal.message}"
        misread = misread._replace(effect="refused", message=told)
    return [misread if f.rule == "ARC006" and f.severity == "error" else f for f in findings if f not in consequences]


def _joined(findings: list[Finding]) -> list[Finding]:
    """Join what is said of one place twice: a missing key and where it stands instead, a value that is refused anyway."""
    stopped = {(f.rule, f.pointer) for f in findings if f.effect == "refused" and f.pointer}
    findings = [f for f in findings if f.effect == "refused" or (f.rule, f.pointer) not in stopped]
    places = {(f.file, f.pointer) for f in findings if f.rule.startswith("KEY")}
    found = [f for f in findings if f.rule != "FIL002" or f.pointer is None or (f.file, f.pointer) not in places]
    if any(f.rule == "DRF002" for f in found):  # what the block was trained for is in doubt then
        found = [f for f in found if f.rule != "ARC009" or f.severity != "info"]
    unfit = next((f for f in found if f.rule == "TGT001" and f.effect == "refused"), None)
    if unfit is not None:  # the wrong vocabulary, or the wrong target: the rest follows from it
        found = [
            f
            for f in found
            if f is unfit
            or f.rule not in ("TGT001", "TGT005")
            or (f.effect == "refused" and f.pointer != unfit.pointer)
        ]
    for told in [f for f in found if f.rule in ("KEY004", "KEY005")]:
        wanted = (told.expected or "").partition(":")[0]
        there = [f for f in found if f.rule not in ("KEY004", "KEY005") and _dotted(f.pointer) == wanted]
        joined = told
        for f in there:
            if f.rule == "KEY001" or _graver(f, joined):
                first, _, rest = f.message.partition(" ")
                first = first if "_" in first else first[:1].upper() + first[1:]  # a key is written as it is
                message = f"{joined.message[:-1]}. {first} {rest}"
                joined = joined._replace(severity=f.severity, effect=f.effect, message=message)
        found = [joined if f is told else f for f in found if f not in there]
    return found


def _dotted(pointer: str | None) -> str:
    return (pointer or "").lstrip("/").replace("/", ".")


_OF_CONTENT = ("ARC001", "ARC002", "KEY", "DRF", "TEN", "TGT", "QNT")


def _scope_notes(binding: Binding, contract: Contract) -> list[tuple[str, str]]:
    notes: list[tuple[str, str]] = []
    if not binding.family and binding.route.architecture:
        known = contract["architectures"].get(binding.route.architecture, {})
        why = known.get(
            "out_of_scope", "it is no DSpark or DFlash draft, so nothing here speaks of its keys and tensors"
        )
        notes.append((binding.route.architecture, why))
    if binding.inventory is not None and binding.inventory.untold:
        notes.append(("tensors", f"no clause speaks of {binding.inventory.untold[0]}"))
    return notes
