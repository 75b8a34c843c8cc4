"""What a rule is, and the few words every rule shares for saying what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint.contract.expr import UNKNOWN, evaluate, names_in
from dspark_lint.finding import Effect, Finding, Severity
from dspark_lint.words import fill


if TYPE_CHECKING:
    from dspark_lint.binding import Binding, Key
    from dspark_lint.checkpoint import Checkpoint
    from dspark_lint.contract.model import Contract
    from dspark_lint.inventory import Inventory
    from dspark_lint.quant.statement import Statement
    from dspark_lint.rules.renamed import Rename
    from dspark_lint.scan.store import Store
    from dspark_lint.scan.tally import TensorStats
    from dspark_lint.selection import Selection


class Context:
    """Everything a rule may look at: one checkpoint under one release. Rules read it and never change it."""

    def __init__(self, checkpoint: Checkpoint, contract: Contract, *, deep: Store | None = None) -> None:
        self.checkpoint = checkpoint
        self.contract = contract
        self.deep = deep
        """Where all tensor data can be asked about; None without --deep."""
        self.pointers_allowed = False
        """Whether Git LFS pointers may stand in the place of weights; what can be checked without them is."""
        self.statistics: Mapping[str, TensorStats] | None = None
        """What the tensors hold, by their names on disk; filled when a rule asks."""
        self._binding: Binding | None = None
        self._selection: Selection | None = None
        self._inventory: Inventory | None = None
        self.accused: dict[str, str] | None = None
        """Keys that the sizes of tensors show to be wrong; filled when a rule asks."""
        self.unread: dict[str, tuple[str, Any]] | None = None
        """Keys of config.json that the family does not read, with place and value; filled when a rule asks."""
        self.renames: list[Rename] | None = None
        """Missing tensors that stand under another name; filled when a rule asks."""
        self.statement: Statement | None = None
        """The quantization that counts; None when the checkpoint states none."""

    @property
    def release(self) -> str:
        """Full release number."""
        return self.contract.release

    @property
    def binding(self) -> Binding:
        """The checkpoint bound to the contract; only for rules that require ``config``."""
        assert self._binding is not None
        return self._binding

    @property
    def selection(self) -> Selection:
        """The weight files of the release; only for rules that require ``files``."""
        assert self._selection is not None
        return self._selection

    @property
    def inventory(self) -> Inventory:
        """The tensors compared; only for rules that require ``weights``."""
        assert self._inventory is not None
        return self._inventory

    def have(self, requirement: str) -> bool:
        """Whether a rule's requirement is met: ``files``, ``config``, ``family``, ``weights``, ``deep``."""
        if requirement == "files":
            return self._selection is not None
        if requirement == "deep":
            return self.deep is not None
        if requirement == "config":
            return self._binding is not None
        if requirement == "family":
            return self._binding is not None and bool(self._binding.family)
        return self._inventory is not None


Check = Callable[[Context], Iterator[Finding]]


class Rule(NamedTuple):
    """One rule: what it is called, why it exists, what to do about it, and how it is checked."""

    id: str
    title: str
    rationale: str
    remedy: str
    severity: Severity
    effect: Effect
    check: Check
    requires: tuple[str, ...] = ("config",)
    fires: str = ""
    """A checkpoint that fires it, in words or as a snippet."""
    quiet: str = ""
    """The same, as it should be."""


_DEFAULT_SEVERITY: dict[str, Severity] = {"refused": "error", "silent": "error", "advice": "info"}


def finding(
    ctx: Context,
    rule: str,
    clause: Mapping[str, Any],
    message: str,
    *,
    effect: Effect | None = None,
    severity: Severity | None = None,
    file: str | None = None,
    pointer: str | None = None,
    tensor: str | None = None,
    module: str | None = None,
    expected: str | None = None,
    found: str | None = None,
    count: int = 1,
    fix: str | None = None,
) -> Finding:
    """Make a finding from a clause: its effect, its severity where it states one, its cited line."""
    what: Effect = effect or clause.get("effect", "refused")
    return Finding(
        rule=rule,
        severity=severity or clause.get("severity") or _DEFAULT_SEVERITY[what],
        effect=what,
        message=message,
        file=file,
        pointer=pointer,
        tensor=tensor,
        module=module,
        expected=expected,
        found=found,
        count=count,
        source=ctx.contract.cite(clause),
        fix=fix,
    )


def config_file(ctx: Context) -> str:
    """Return the name of the configuration file."""
    return str(ctx.contract["files"]["config"])


def clause_findings(ctx: Context, rule: str, checks: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield a finding for every check clause of that rule whose ``require`` is false here.

    A clause whose condition or requirement is unknown concludes nothing; what it would have needed is noted.
    """
    binding = ctx.binding
    for clause in checks.values():
        if not clause or clause.get("rule") != rule:
            continue
        when = evaluate(str(clause.get("when", "true")), binding)
        if when is not UNKNOWN and not when:
            if "target.known and" in str(clause["when"]) and not binding.get("target").get("known"):
                binding.needs_target.add(rule)
            continue
        holds = evaluate(str(clause["require"]), binding) if when is not UNKNOWN else UNKNOWN
        if holds is UNKNOWN:
            if not binding.get("target").get("known") and _mentions(binding, clause, "target"):
                binding.needs_target.add(rule)
            continue
        if not holds and not _follows(ctx, clause):
            yield from_clause(ctx, rule, clause)


def violated(ctx: Context, clause: Mapping[str, Any]) -> bool:
    """Whether a check clause applies here and its requirement is known to be false."""
    if evaluate(str(clause.get("when", "true")), ctx.binding) is not True:
        return False
    holds = evaluate(str(clause["require"]), ctx.binding)
    return holds is not UNKNOWN and not holds


def _follows(ctx: Context, clause: Mapping[str, Any]) -> bool:
    """Whether a violated clause only repeats what TEN003 or TEN004 says: another name, a key that contradicts tensors."""
    if not ctx.have("weights"):
        return False
    from dspark_lint.rules.explained import explained  # noqa: PLC0415 - as above
    from dspark_lint.rules.sizes import accused  # noqa: PLC0415 - only for a clause that is violated

    if clause["rule"] == "TEN006" and explained(ctx).missing & set(clause.get("explains", ())):
        return True
    if not ctx.inventory.mismatches:
        return False
    keys = accused(ctx)
    return any(
        n in keys and (keys[n] == "refused" or clause.get("effect", "refused") != "refused")
        for n in _names_behind(ctx.binding, clause)
    )


def _mentions(binding: Binding, clause: Mapping[str, Any], namespace: str) -> bool:
    return namespace in _names_behind(binding, clause)


def _names_behind(binding: Binding, clause: Mapping[str, Any]) -> set[str]:
    """Return every name that a clause depends on, through derived values down to keys and namespaces."""
    seen: set[str] = set()
    todo = list(names_in(str(clause.get("when", "true"))) | names_in(str(clause["require"])))
    let = binding.family.get("let", {})
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += names_in(let[name]) if name in let else ()
    return seen


def from_clause(ctx: Context, rule: str, clause: Mapping[str, Any]) -> Finding:
    """Make the finding of a violated check clause."""
    binding = ctx.binding
    at = fill(clause.get("at", "serve"), binding)
    pointer, tensor = binding.pointer_of(at)
    file = config_file(ctx) if pointer is not None else at.removeprefix("file:") if at.startswith("file:") else None
    if tensor is not None:
        disk = ctx.inventory.disk_of.get(tensor) if ctx.have("weights") else None
        file = ctx.inventory.tensors[disk][0] if disk else None
    found = fill(str(clause["found"]), binding) if "found" in clause else None
    expected = fill(str(clause["expected"]), binding) if "expected" in clause else None
    if "message" in clause:
        message = fill(clause["message"], binding)
        if ctx.release not in message:
            message = f"vLLM {ctx.release}: {message}"
    else:
        stands = _stands(tensor or (pointer or "").rpartition("/")[2], found or "")
        message = f"{stands}, where vLLM {ctx.release} expects {expected}: {fill(clause['says'], binding)}."
    fix = fill(clause["fix"], binding) if "fix" in clause else None
    return finding(
        ctx, rule, clause, message, file=file, pointer=pointer, tensor=tensor, expected=expected, found=found, fix=fix
    )


def _stands(subject: str, found: str) -> str:
    """Return ``subject is found``; where what was found is a phrase of its own, that phrase."""
    if subject and found.startswith(f"{subject} "):
        return f"{subject} is {found[len(subject) + 1 :]}"
    phrase = " " in found and found[:1].isalpha() and not found.startswith(("a ", "an "))
    return found if phrase or not subject else f"{subject} is {found}"


def in_contract(ctx: Context) -> Iterator[Finding]:  # noqa: ARG001 - the signature of every check
    """Check nothing in Python: the rule lives in the contract's clauses, which the engine runs for every rule."""
    yield from ()


def key_place(key: Key) -> str:
    """Return a key's place as people write it: ``dflash_config.mask_token_id``."""
    return key.pointer.lstrip("/").replace("/", ".").replace("~1", "/").replace("~0", "~")


def plural(number: int, noun: str, many: str | None = None) -> str:
    """Return ``1 tensor``, ``3 tensors``; `many` where an s does not make the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"
