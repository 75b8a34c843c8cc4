"""Every fault with its file's path and its line, for formats that are a list of faults."""

from __future__ import annotations

import os

from typing import TYPE_CHECKING, NamedTuple

from dspark_lint.report.lines import Lines, Place
from dspark_lint.report.merge import Merged, merge


if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_lint.finding import CheckpointReport, Finding, Report
    from dspark_lint.report.base import RenderOptions


class Located(NamedTuple):
    """One fault of one checkpoint, with its place."""

    checkpoint: CheckpointReport
    merged: Merged
    path: str
    """Of the file, as the format's readers want it; of config.json, else the directory, where no file is concerned."""
    place: Place

    @property
    def finding(self) -> Finding:
        """The fault itself."""
        return self.merged.finding


def located(report: Report, options: RenderOptions, base: str | None = None) -> Iterator[Located]:
    """Yield every fault of a report once, checkpoint by checkpoint, most severe first in each."""
    for checkpoint in report.checkpoints:
        lines = Lines(checkpoint)
        paths: dict[str | None, str] = {}
        for merged in merge(checkpoint.results):
            file = merged.finding.file
            if file not in paths:
                paths[file] = relative(checkpoint, file or stand_in(checkpoint), base or os.fspath(options.base_dir))
            yield Located(checkpoint, merged, paths[file], lines.of(merged.finding))


def stand_in(checkpoint: CheckpointReport) -> str | None:
    """Return the file that stands for the whole checkpoint where a reader wants one; None when it is not there."""
    return "config.json" if os.path.isfile(f"{checkpoint.root}/config.json") else None


def relative(checkpoint: CheckpointReport, file: str | None, base: str) -> str:
    """Return a path below `base` with forward slashes.

    What lies elsewhere keeps its absolute path, and a checkpoint named by an address (``hf://``) keeps that.
    """
    if is_address(checkpoint.path):
        return f"{checkpoint.path.rstrip('/')}/{file}" if file else checkpoint.path
    path = os.path.normpath(f"{checkpoint.root}/{file}") if file else checkpoint.root
    try:
        below = os.path.relpath(path, base)
        if below.split(os.sep, 1)[0] == os.pardir:
            below = os.path.relpath(os.path.realpath(path), os.path.realpath(base))
    except ValueError:  # another drive
        below = os.pardir
    if below.split(os.sep, 1)[0] == os.pardir:
        below = path
    return below.replace(os.sep, "/")


def is_address(path: str) -> bool:
    """Whether a checkpoint is named by an address (``hf://org/name``) and not by a path."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isalnum()


def ci_base(options: RenderOptions) -> str:
    """Return the directory a CI system counts paths from: its workspace when we run inside it, else the base."""
    base = os.path.abspath(options.base_dir)
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        workspace = options.environ.get(variable)
        if workspace and os.path.isabs(workspace):
            try:
                top = os.path.realpath(workspace)
                if os.path.commonpath([top, os.path.realpath(base)]) == top:
                    return workspace
            except ValueError:  # another drive
                continue
    return base
