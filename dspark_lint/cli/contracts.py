"""``contracts``: list, show and verify what the tool knows."""

from __future__ import annotations

import json

import click

from dspark_lint.contract.load import load_raw, shipped_releases
from dspark_lint.contract.model import load_contract
from dspark_lint.contract.releases import resolve


@click.group("contracts")
def contracts_group() -> None:
    """Look at the contracts and hold them against a release's source."""


@contracts_group.command("list")
def list_releases() -> int:
    """List the releases that have a contract, and the draft architectures each knows."""
    for release in shipped_releases():
        known = load_contract(release)["architectures"]
        click.echo(f"{release}  {', '.join(sorted(n for n, c in known.items() if c and c.get('family')))}")
    return 0


@contracts_group.command("show")
@click.argument("release")
@click.argument("architecture", required=False)
def show(release: str, architecture: str | None) -> int:
    """Print a release's resolved contract as JSON, or the family of one architecture."""
    contract = load_contract(resolve(release)[0])
    if architecture is None:
        shown = {k: v for k, v in contract.items() if k not in ("lines", "registry")}
    else:
        entry = contract["architectures"].get(architecture)
        if not entry or not entry.get("family"):
            raise click.UsageError(f"vLLM {contract.release} has no draft family for {architecture}")
        shown = dict(contract.family(entry["family"]))
    click.echo(json.dumps(shown, indent=2))
    return 0


@contracts_group.command("changes")
@click.argument("release")
def changes(release: str) -> int:
    """Print what changed in a release for draft checkpoints."""
    raw = load_raw(resolve(release)[0])
    for clause in raw.get("changes", {}).values():
        click.echo(f"{clause['area']} ({clause['kind']}): {clause['says']}")
    return 0


@contracts_group.command("verify")
@click.argument("release")
@click.option("--vllm-source", "source", required=True, metavar="PATH", help="An unpacked wheel, a wheel file or a site-packages.")
def verify_release(release: str, source: str) -> int:
    """Check that the cited code of a release is still the code that was read."""
    import os  # noqa: PLC0415 - a maintainer's command

    from dspark_lint.contract.paths import contracts_dir  # noqa: PLC0415
    from dspark_lint.provenance.source import SourceTree  # noqa: PLC0415
    from dspark_lint.provenance.verify import verify  # noqa: PLC0415

    full = resolve(release)[0]
    with open(os.path.join(contracts_dir(), "vllm", "sources", f"{full}.json"), encoding="utf-8") as handle:
        recorded = json.load(handle)
    issues = verify(load_raw(full), recorded, SourceTree(source))
    for issue in issues:
        click.echo(f"{issue.kind}: {issue.subject}: {issue.message}")
    click.echo(f"{len(issues)} issues in {len(recorded)} citations")
    return 1 if issues else 0
