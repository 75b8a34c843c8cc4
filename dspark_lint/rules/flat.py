"""The parsed configuration of a flat file as a scope of its own, for checks that need no family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Mapping

    from dspark_lint.rules.base import Context


class FlatView:
    """The context with the parsed configuration's own names in scope, for checks that need no family."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.binding = FlatScope(ctx)

    def __getattr__(self, name: str) -> Any:
        """Return what the context itself has."""
        return getattr(self._ctx, name)

    def have(self, requirement: str) -> bool:
        """Whether a requirement is met; the weights and the family's keys are out of sight here."""
        return requirement not in ("weights", "family") and self._ctx.have(requirement)


class FlatScope:
    """Names: every key of the parsed configuration, null for what is not there."""

    def __init__(self, ctx: Context) -> None:
        self._binding = ctx.binding
        self.needs_target = ctx.binding.needs_target
        self.family: Mapping[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return a configuration value, or one of the binding's namespaces."""
        val = self._binding.runtime.values.get(name)
        if val is not None:
            return val.value
        try:
            return self._binding.namespace(name)
        except KeyError:
            return None

    def call(self, name: str) -> Any:
        """Return the binding's functions."""
        return self._binding.call(name)

    def pointer_of(self, at: str) -> tuple[str | None, str | None]:
        """Return where a configuration key stands."""
        val = self._binding.runtime.values.get(at)
        return (val.pointer if val else f"/{at}"), None
