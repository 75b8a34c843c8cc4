"""One checkpoint under one contract: dialect, method, architecture, resolved keys with their origins.

Binding applies the contract's clauses to this file set and judges nothing. What it could not resolve it keeps as
`UNKNOWN` with the trouble beside it, so that rules which build on it stay quiet.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from dspark_lint import runtime_config as rc
from dspark_lint.contract.expr import UNKNOWN, evaluate, names_in
from dspark_lint.contract.order import ordered
from dspark_lint.errors import ContractError
from dspark_lint.scope import as_integer, function_of, namespace_of


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dspark_lint.checkpoint.torchfile import TorchFile
    from dspark_lint.contract.model import Contract
    from dspark_lint.inventory import Inventory
    from dspark_lint.target import Target


class Key(NamedTuple):
    """One key of the family's contract, resolved by its own precedence."""

    name: str
    value: Any
    """What the loader works with; `UNKNOWN` when the key is broken."""
    raw: Any
    pointer: str
    """Where the value stands; for an absent key, where it is looked for first."""
    origin: rc.Origin
    trouble: str
    """Empty, or ``absent``, ``null``, ``mistyped``."""
    clause: Mapping[str, Any]
    says: str = ""


class Route(NamedTuple):
    """How the release comes from the file's architectures to a loader."""

    written: tuple[str, ...]
    resolved: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    """The rewriting clauses that applied."""
    architecture: str | None
    """The first resolved architecture that the registry knows."""
    family: str | None


class Binding:
    """Names and facts of one checkpoint under one release; the scope of the family's expressions."""

    def __init__(
        self,
        contract: Contract,
        config: Mapping[str, Any],
        *,
        path: str,
        serve: Mapping[str, Any] | None,
        target: Target | None,
        tensors: Mapping[str, tuple[str, dict[str, Any]]],
    ) -> None:
        self.contract = contract
        self.release = contract.release
        self.config = config
        self.path = path
        self.target = target
        self.serve = {**(serve or {}), "given": serve is not None}
        tokens = self.serve.get("num_speculative_tokens")
        if isinstance(tokens, (str, float)) and (number := as_integer(tokens)) is not None:
            self.serve["num_speculative_tokens"] = number
        self.classes = contract.classes
        self.tensors = tensors
        self.inventory: Inventory | None = None
        self.beside: frozenset[str] = frozenset()
        """What lies in the checkpoint's directory."""
        self.side_file: Callable[[str], TorchFile] | None = None
        """Looks into a file of torch.save; None where only names are known."""
        self._memo: dict[str, Any] = {}
        self._busy: set[str] = set()
        self.keys: dict[str, Key] = {}
        self.family: Mapping[str, Any] = {}
        self.notes: list[str] = []
        self.needs_target: set[str] = set()
        architectures = config.get("architectures")
        self.written = tuple(a for a in architectures if isinstance(a, str)) if isinstance(architectures, list) else ()
        self.dialect, self.mapping = self._dialect()
        base = contract["dialects"][self.dialect].get("base")
        self.own = config.get(base, config if self.dialect != "speculators" else None) if base else config
        """The mapping that the model's own keys stand in: the file, or its layer block in the speculators dialect."""
        self.runtime = self._runtime()
        self.method, self.method_clause, self.method_inferred = self._method()
        self.route = self._route()
        if self.route.family:
            self.family = contract.family(self.route.family)
            self.keys = {name: self._key(name, clause) for name, clause in self.family.get("keys", {}).items()}
            self._void()

    @cached_property
    def all_names(self) -> str:
        """The names of all tensors in one text: what is not in it is in none of them."""
        return "\n".join(self.tensors)

    # -- dialect, method, architecture ---------------------------------------------------------------------------

    def _dialect(self) -> tuple[str, Mapping[str, Any] | None]:
        scope = rc.PlainScope({"config": self.config})
        for name, clause in ordered(self.contract["dialects"]):
            if evaluate(clause["when"], scope) is True:
                if "selector" in clause:
                    selected = self.config.get(clause["selector"])
                    table = self.contract.get(name, {})
                    return name, table.get(selected) if isinstance(selected, str) else None
                return name, None
        raise ContractError(f"vLLM {self.release}: no dialect applies; the last one must always")

    def _runtime(self) -> rc.RuntimeConfig:
        if "selector" not in self.contract["dialects"][self.dialect]:
            return rc.flat(
                self.config, self.contract, self.classes, self.contract["dialects"][self.dialect].get("base")
            )
        clause = self.contract["dialects"][self.dialect]
        if self.mapping is None:
            selector = clause["selector"]
            known = ", ".join(self.contract.get(self.dialect, {}))
            trouble = rc.Trouble(
                "unknown_selector",
                selector,
                f"/{selector}",
                self.config.get(selector),
                f"one of {known}",
                clause["unknown_selector"],
            )
            return rc.RuntimeConfig({}, (trouble,), complete=False)
        if self.mapping.get("out_of_scope"):
            return rc.RuntimeConfig({}, (), complete=False)
        return rc.speculators(self.config, self.contract, self.mapping)

    def _method(self) -> tuple[str, Mapping[str, Any], bool]:
        """Return the method, the clause that chose it, and whether it was inferred for want of serve flags."""
        methods = self.contract["methods"]
        said = self.serve.get("method")
        if isinstance(said, str) and said in methods["taken_as_said"]:
            return said, {}, False
        if self.serve["given"] and (said is None or said == methods["fallback"]):
            method, clause = self.detected()
            return method, clause, False
        if isinstance(said, str) and said in methods.get("detected_anyway", ()):
            method, clause = self.detected()
            return (method, clause, False) if clause else (said, methods["undetected"], False)
        if isinstance(said, str):
            return said, {}, False
        for _, clause in ordered(methods["infer"]):
            if evaluate(clause["when"], self) is True:
                return clause["method"], clause, True
        method, clause = self.detected()
        return method, clause, True

    def detected(self) -> tuple[str, Mapping[str, Any]]:
        """Return what the release makes of a draft served without a method: words of the path, then names."""
        methods = self.contract["methods"]
        lowered = self.path.lower()
        for _, clause in ordered(methods["detect"]):
            if clause.get("word") and clause["word"] in lowered:
                return clause["method"], clause
            if clause.get("when") and evaluate(clause["when"], self) is True:
                return clause["method"], clause
        return methods["fallback"], {}

    def architectures(self) -> list[str]:
        """Return the architectures as the parsed configuration holds them, before any rewriting."""
        val = self.runtime.values.get("architectures")
        names = [a for a in val.value if isinstance(a, str)] if val and isinstance(val.value, list) else []
        if not names and self.dialect == "flat":
            fill = self.contract["missing_architectures"]["classes"]
            filled = fill.get(self.config.get("model_type"))
            return [filled] if filled else []
        return names

    def _route(self) -> Route:
        written = tuple(self.architectures())
        names = list(written)
        steps: list[Mapping[str, Any]] = []
        taken: set[str] = set()
        for _, clause in ordered(self.contract["routes"]):
            group = clause.get("group")
            if group in taken:
                continue
            self._memo["architectures"] = names
            if evaluate(clause["when"], self) is not True:
                continue
            if group:
                taken.add(group)
            rewritten = evaluate(clause["architectures"], self) if "architectures" in clause else names
            values = dict(self.runtime.values)
            for key, text in clause.get("set", {}).items():
                old = values.get(key)
                values[key] = rc.Val(
                    evaluate(text, self), old.pointer if old else f"/{key}", "derived", clause.get("says", "")
                )
            for key, origin in clause.get("copy", {}).items():
                if (
                    origin in values
                    and values[origin].value is not None
                    and (key not in values or values[key].value is None)
                ):
                    values[key] = values[origin]
            self.runtime = self.runtime._replace(values=values)
            if isinstance(rewritten, list) and (rewritten != names or "outcome" in clause):
                steps.append(clause)
                names = rewritten
        self._memo["architectures"] = names
        known = self.contract["architectures"]
        registry = self.contract["registry"]
        elsewhere = {**registry.get("others", {}), **registry.get("other_drafts", {})}
        first = next((n for n in names if n in known or n in elsewhere), None)
        return Route(written, tuple(names), tuple(steps), first, known.get(first, {}).get("family") if first else None)

    # -- keys ----------------------------------------------------------------------------------------------------

    def lookup(self, path: str) -> rc.Val | None:
        """Return the value at a dotted path of the runtime configuration, or None where a member is missing."""
        first, *rest = path.split(".")
        val = self.runtime.values.get(first)
        for name in rest:
            if val is None or not isinstance(val.value, dict):
                return None
            if val.members is not None and name in val.members:
                val = val.members[name]
            elif name in val.value:
                val = rc.Val(val.value[name], f"{val.pointer}/{rc.escape(name)}", val.origin)
            else:
                return None
        return val

    def _key(self, name: str, clause: Mapping[str, Any]) -> Key:
        steps = [s for s in clause["lookup"] if self._step_applies(s)]
        for step in steps:
            path = step if isinstance(step, str) else step["path"]
            mode = path[-1] if path[-1] in "?+" else ""
            val = self.lookup(path.rstrip("?+"))
            if val is None or val.origin == "absent":
                continue
            if val.value is UNKNOWN:
                return Key(name, UNKNOWN, None, val.pointer, val.origin, "", clause, val.says)
            if (mode == "" and val.value is None) or (mode == "+" and not val.value):
                continue
            return self._typed(name, clause, val)
        first = clause.get("place") or self._first_place(steps) or name
        path = (first if isinstance(first, str) else first["path"]).rstrip("?+")
        pointer = self._place(path)
        if "default" in clause:
            return Key(name, clause["default"], None, pointer, "absent", "", clause, clause.get("default_says", ""))
        if "default_value" in clause:
            return Key(
                name,
                evaluate(clause["default_value"], self),
                None,
                pointer,
                "absent",
                "",
                clause,
                clause.get("default_says", ""),
            )
        if not self.runtime.complete:
            return Key(name, UNKNOWN, None, pointer, "absent", "", clause)
        null = self.lookup(path)
        trouble = "null" if null is not None and null.origin == "file" and null.value is None else "absent"
        return Key(name, UNKNOWN, None, pointer, "absent", trouble, clause)

    def _first_place(self, steps: list[Any]) -> Any:
        """Return the step at which a missing key is best written: where the file's reader carries it over."""
        if self.dialect == "speculators" and self.mapping:
            carried = {
                *self.mapping.get("copy", ()),
                *self.mapping.get("copy_if_set", ()),
                *self.mapping.get("set", {}),
            }
            for step in steps:
                path = step if isinstance(step, str) else step["path"]
                if path.rstrip("?+").partition(".")[0] in carried:
                    return step
        return steps[0] if steps else None

    def _step_applies(self, step: str | Mapping[str, Any]) -> bool:
        return isinstance(step, str) or evaluate(step["when"], self) is True

    def _place(self, path: str) -> str:
        """Return the pointer where a key at a dotted path would stand in this file."""
        first, *rest = path.split(".")
        base = ""
        if self.dialect == "speculators" and self.mapping:
            members = self.mapping.get("set", {}).get(first, {}).get("members", {})
            if len(rest) == 1 and rest[0] in members:
                return "/" + rc.escape(members[rest[0]]["from"])  # the reader puts the dictionary together itself
            copied = {
                *self.mapping.get("copy", ()),
                *self.mapping.get("copy_if_set", ()),
                *self.mapping.get("set", {}),
                *self.mapping.get("required", {}),
            }
            if first not in copied:
                base = "/" + rc.escape(self.contract["dialects"]["speculators"]["base"])
        val = self.runtime.values.get(first)
        start = val.pointer if val else f"{base}/{rc.escape(first)}"
        return start + "".join(f"/{rc.escape(r)}" for r in rest)

    def _typed(self, name: str, clause: Mapping[str, Any], val: rc.Val) -> Key:
        accepted = clause.get("type", "any")
        value = val.value
        if accepted == "any":
            return Key(name, value, value, val.pointer, val.origin, "", clause, val.says)
        if accepted == "truthy":
            return Key(name, bool(value), value, val.pointer, val.origin, "", clause, val.says)
        if accepted in ("to_int", "to_float"):
            number = evaluate(f"{accepted}(it)", rc.PlainScope({"it": value}))
            trouble = "" if number is not None else ("null" if value is None else "mistyped")
            return Key(name, UNKNOWN if trouble else number, value, val.pointer, val.origin, trouble, clause, val.says)
        if rc.accepts(accepted, value):
            return Key(name, value, value, val.pointer, val.origin, "", clause, val.says)
        if isinstance(value, bool) and rc.accepts(accepted, int(value)):  # to Python it is a number
            return Key(name, int(value), value, val.pointer, val.origin, "", clause, val.says)
        return Key(
            name, UNKNOWN, value, val.pointer, val.origin, "null" if value is None else "mistyped", clause, val.says
        )

    def _void(self) -> None:
        """Make unknown what would stand inside a broken value: nothing can be said of it."""
        broken = tuple(key.pointer + "/" for key in self.keys.values() if key.trouble in ("null", "mistyped"))
        if broken:
            for name, key in self.keys.items():
                if key.pointer.startswith(broken) and not key.trouble:
                    self.keys[name] = key._replace(value=UNKNOWN)

    # -- the scope of expressions ----------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Return a name of the family: a key, a derived value, or one of the namespaces."""
        if name in self.keys:
            return self.keys[name].value
        if name in self._memo:
            return self._memo[name]
        text = self.family.get("let", {}).get(name)
        if text is not None:
            if name in self._busy:
                raise ContractError(f"vLLM {self.release}: {name} is defined by itself")
            self._busy.add(name)
            try:
                value = evaluate(text, self)
            finally:
                self._busy.discard(name)
            if name not in self._memo:
                self._memo[name] = value
            return value
        return self.namespace(name)

    def namespace(self, name: str) -> Any:
        """Return a name that every family has. Raises KeyError for one that nobody has."""
        return namespace_of(self, name)

    def target_names(self) -> Mapping[str, Any]:
        """Return the target's values, or the draft's own word for them."""
        if "target" not in self._memo:
            from dspark_lint.target import names_of  # noqa: PLC0415 - target imports nothing back; kept off import time

            names = names_of(self.target, self.contract, self)
            if not self.family and self.target is None:
                return names  # what the draft says of its target is read through the family's keys
            self._memo["target"] = names
        known: Mapping[str, Any] = self._memo["target"]
        return known

    def call(self, name: str) -> Callable[..., Any] | None:
        """Return a function over the checkpoint's tensors and raw keys."""
        return function_of(self, name)

    def pointer_of(self, at: str) -> tuple[str | None, str | None]:
        """Return (pointer, tensor) of the subject named by a clause's ``at``."""
        if at.startswith("/"):
            return at, None
        if at.startswith("tensor:"):
            return None, at[7:]
        if at in ("serve", "target") or at.startswith("file:"):
            return None, None
        if at in self.keys:
            return self.keys[at].pointer, None
        let = self.family.get("let", {})
        if at in let:
            places = [p for n in self._keys_under(at, set()) if (p := self.keys[n]).origin == "file"]
            if places:
                return places[0].pointer, None
            under = self._keys_under(at, set())
            return (self.keys[under[0]].pointer if under else None), None
        val = self.lookup(at)
        return (val.pointer if val else self._place(at)), None

    def _keys_under(self, name: str, seen: set[str]) -> list[str]:
        """Return the keys that a derived value is made of, in the order of its expression's own precedence."""
        if name in self.keys:
            return [name]
        text = self.family.get("let", {}).get(name)
        if text is None or name in seen:
            return []
        seen.add(name)
        found: list[str] = []
        for inner in sorted(names_in(text), key=text.find):
            found += [k for k in self._keys_under(inner, seen) if k not in found]
        return found
