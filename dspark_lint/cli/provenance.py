"""``contracts verify``, ``contracts new`` and ``contracts record``: the contracts beside vLLM's own source."""

from __future__ import annotations

import json
import re

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspark_lint.cli import exits
from dspark_lint.contract.load import load_raw, shipped_releases
from dspark_lint.contract.paths import contracts_dir
from dspark_lint.contract.releases import nearest_to, parts, resolve
from dspark_lint.errors import UsageError


if TYPE_CHECKING:
    from dspark_lint.provenance.draft import ReviewItem
    from dspark_lint.provenance.record import Record
    from dspark_lint.provenance.source import SourceTree

_SOURCE = click.option(
    "--vllm-source", "source", required=True, metavar="PATH",
    help="An unpacked wheel, a wheel file, a site-packages or a checkout; or a directory of such, one a release.",
)  # fmt: skip
_TRANSFORMERS = click.option(
    "--transformers-source", metavar="PATH", help="The same of transformers: its citations are checked too."
)


def tree_of(release: str, path: str, package: str = "vllm") -> SourceTree:
    """Open the source of a release: at the path itself, or below it under a name that carries the release's number."""
    from dspark_lint.provenance.source import SourceTree  # noqa: PLC0415 - maintainers' commands only

    try:
        return SourceTree(path, package)
    except UsageError:
        named = re.compile(rf"(?:^|[-_v]){re.escape(release)}(?![\d.]*\d)")
        below = Path(path)
        for child in sorted(below.iterdir()) if below.is_dir() else ():
            if named.search(child.name):
                return SourceTree(child, package)
        raise


def recorded_of(release: str) -> Record:
    """Return the recorded lines and fingerprints of a release; empty when there are none."""
    path = record_file(release)
    if not path.is_file():
        return {}
    record: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return record


def record_file(release: str) -> Path:
    """Return the file of recorded lines of a release."""
    return Path(contracts_dir(), "vllm", "sources", f"{release}.json")


@click.command("verify")
@click.argument("releases", metavar="RELEASE...", nargs=-1, required=True)
@_SOURCE
@_TRANSFORMERS
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify_release(releases: tuple[str, ...], source: str, transformers_source: str | None, fmt: str) -> int:
    """Check contracts against the source of their releases.

    Every citation stands there and is the code that was read, at whatever line; the registry's architectures and the other lists are the
    contract's; every key that the loaders read by name has a clause with the same default. The source is read as text.
    """
    from dspark_lint.provenance.verify import HARMLESS, verify  # noqa: PLC0415 - maintainers' commands only

    found = []
    code = exits.CLEAN
    for release in resolve(releases):
        raw = load_raw(release)
        tree = tree_of(release, source)
        other = tree_of(raw["transformers"], transformers_source, "transformers") if transformers_source else None
        recorded = recorded_of(release)
        issues = verify(raw, recorded, tree, other)
        if any(issue.kind not in HARMLESS for issue in issues):
            code = exits.FINDINGS
        found.append(
            {
                "release": release,
                "source": tree.path,
                "citations": len(recorded),
                "issues": [i._asdict() for i in issues],
            }
        )
        if fmt == "text":
            for issue in issues:
                click.echo(f"{release}: {issue.kind}: {issue.subject}: {issue.message}")
                if issue.kind in ("changed", "moved"):
                    click.echo(f"    recorded {issue.old}, found {issue.new}")
            click.echo(f"{release}: {len(issues)} issues, {len(recorded)} citations recorded", err=True)
    if fmt == "json":
        click.echo(json.dumps(found, indent=2))
    return code


@click.command("record")
@click.argument("releases", metavar="RELEASE...", nargs=-1, required=True)
@_SOURCE
@_TRANSFORMERS
def record_lines(releases: tuple[str, ...], source: str, transformers_source: str | None) -> int:
    """Record the lines and fingerprints of what releases cite: whoever does it has read the code.

    Rewrites contracts/vllm/sources/RELEASE.json. Citations of transformers keep what was recorded unless its source is
    given.
    """
    from dspark_lint.provenance.record import dump, record  # noqa: PLC0415 - maintainers' commands only

    code = exits.CLEAN
    for release in resolve(releases):
        raw = load_raw(release)
        other = tree_of(raw["transformers"], transformers_source, "transformers") if transformers_source else None
        tree = tree_of(release, source)
        if (version := tree.version()) not in (None, release):
            raise UsageError(f"the source at {tree.path} is vLLM {version}, not {release}")
        before = recorded_of(release)
        now = record(raw, tree, other)
        entries = {**now.record, **{text: dict(before[text]) for text in now.unread if text in before}}
        path = record_file(release)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump(entries), encoding="utf-8")
        changed = [t for t in entries if t in before and before[t].get("fingerprint") != entries[t]["fingerprint"]]
        for text in changed:
            click.echo(f"{release}: read anew: {text} ({entries[text]['path']}:{entries[text]['line']})")
        for text, lost in now.lost.items():
            code = exits.FINDINGS
            click.echo(f"{release}: lost: {text}: {lost}")
        fresh, gone = len(entries.keys() - before.keys()), len(before.keys() - entries.keys())
        counts = f"{fresh} new, {len(changed)} read anew, {gone} dropped, {len(now.lost)} lost"
        click.echo(f"{release}: {len(entries)} citations, {counts}", err=True)
    return code


@click.command("new")
@click.argument("release")
@click.option(
    "--from", "previous", metavar="RELEASE", help="The release to start from. [default: the nearest older one]"
)
@_SOURCE
@click.option(
    "--previous-source",
    metavar="PATH",
    help="The source of the release before: shows differences and what is no longer read.",
)
@click.option(
    "--output",
    metavar="FILE",
    help="Where to write, - for standard output. [default: beside the contracts of a checkout, else here]",
)
@click.option(
    "--diff-lines", default=30, show_default=True, metavar="N", help="Lines of a definition's difference to show."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def new(
    release: str,
    *,
    previous: str | None,
    source: str,
    previous_source: str | None,
    output: str | None,
    diff_lines: int,
    force: bool,
) -> int:
    """Write the contract of the next release: what is unchanged is inherited, the rest is listed for review.

    \b
    dspark-lint contracts new 0.34.0 --vllm-source vllm-0.34.0.whl --previous-source vllm-0.33.0.whl
    ... decide every review item, then
    dspark-lint contracts record 0.34.0 --vllm-source vllm-0.34.0.whl
    dspark-lint contracts verify 0.34.0 --vllm-source vllm-0.34.0.whl
    """  # noqa: D301 - the mark is a backspace, by which click keeps lines as they are
    from dspark_lint.provenance.scaffold import scaffold  # noqa: PLC0415 - maintainers' commands only

    try:
        numbers = parts(release)
    except ValueError:
        raise UsageError(f"{release}: give the full number of a release, such as 0.34.0") from None
    older = [r for r in shipped_releases() if parts(r) < numbers]
    if not older and previous is None:
        raise UsageError(f"{release}: no older release has a contract; give --from")
    base = resolve(previous)[0] if previous else nearest_to(numbers, older)
    if base == release:
        raise UsageError(f"{release} cannot extend itself; give an older release as --from")
    tree = tree_of(release, source)
    if (version := tree.version()) not in (None, release):
        raise UsageError(f"the source at {tree.path} is vLLM {version}, not {release}")
    before = tree_of(base, previous_source) if previous_source else None
    target = Path(output) if output else _beside(release)
    if output != "-" and target.exists() and not force:
        raise UsageError(f"{target} is there already; --force overwrites it")
    made = scaffold(load_raw(base), recorded_of(base), tree, release, previous_tree=before, diff_lines=diff_lines)
    if output == "-":
        click.echo(made.yaml_text, nl=False)
    else:
        target.write_text(made.yaml_text, encoding="utf-8")
    _tell(made.review, made.inherited, "standard output" if output == "-" else str(target))
    return exits.CLEAN


def _beside(release: str) -> Path:
    folder = Path(contracts_dir())
    checkout = (folder.parent / "pyproject.toml").is_file()
    return folder / "vllm" / f"{release}.yaml" if checkout else Path(f"{release}.yaml")


def _tell(review: tuple[ReviewItem, ...], inherited: int, where: str) -> None:
    from dspark_lint.provenance.draft import KINDS  # noqa: PLC0415 - maintainers' commands only

    click.echo(f"wrote {where}: {inherited} citations inherited, {len(review)} items to review", err=True)
    for kind, title in KINDS.items():
        items = [item for item in review if item.kind == kind]
        if items:
            click.echo(f"  {len(items):>3}  {title}", err=True)
