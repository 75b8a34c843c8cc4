"""``dspark-lint manifest``: make a manifest of a checkpoint, or a checkpoint of a manifest."""

from __future__ import annotations

from pathlib import Path

import click

from dspark_lint.manifest.model import dump_manifest, load_manifest
from dspark_lint.manifest.rows import ManifestError
from dspark_lint.manifest.snapshot import snapshot
from dspark_lint.manifest.write import materialise


@click.group("manifest")
def manifest_group() -> None:
    """Checkpoints without their weights."""


@manifest_group.command("materialise")
@click.argument("manifest", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--target",
    "target_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write what is known of the target's config.json there.",
)
def materialise_command(manifest: Path, directory: Path, target_dir: Path | None) -> None:
    """Write the checkpoint of MANIFEST into DIRECTORY: real headers, sparse data, full size."""
    try:
        made = materialise(load_manifest(manifest), directory, target_dir=target_dir)
    except (ManifestError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{made.draft}: {made.tensors:,} tensors, {made.size:,} bytes (sparse)", err=True)
    if target_dir is not None:
        click.echo(f"{made.target}: target" if made.target else "the target's config.json is not known", err=True)


@manifest_group.command("snapshot")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True), default="-")
@click.option("--values", is_flag=True, help="Take the vocabulary maps along (integer and boolean tables).")
def snapshot_command(checkpoint: Path, output: Path, *, values: bool) -> None:
    """Write a manifest of CHECKPOINT to OUTPUT (standard output without one): headers and config only, no weights."""
    try:
        text = dump_manifest(snapshot(checkpoint, values=values))
        if str(output) == "-":
            click.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8")
    except (ManifestError, OSError) as error:
        raise click.ClickException(str(error)) from error
