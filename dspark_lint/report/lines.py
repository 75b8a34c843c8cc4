"""Line and column of findings in JSON files, computed only when a format shows them; never failing."""

from __future__ import annotations

import os

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from dspark_lint.finding import CheckpointReport, Finding


#: A JSON file larger than this is not searched for lines.
LIMIT = 32 * 1024 * 1024


class Lines:
    """Finds lines in the JSON files of one checkpoint, each read once."""

    def __init__(self, checkpoint: CheckpointReport) -> None:
        self._root = checkpoint.root
        self._texts: dict[str, str | None] = {}

    def of(self, finding: Finding) -> tuple[int | None, int | None]:
        """Return the 1-based line and column, or (None, None) for what has none."""
        if finding.file is None or finding.pointer is None or not finding.file.endswith(".json"):
            return None, None
        text = self._text(finding.file)
        if text is None:
            return None, None
        from dspark_lint.checkpoint.locate import locate  # noqa: PLC0415 - only for findings that are shown

        try:
            found = locate(text, finding.pointer)
        except (ValueError, RecursionError, IndexError):
            return None, None
        return found if found is not None else (None, None)

    def _text(self, name: str) -> str | None:
        if name not in self._texts:
            path = os.path.join(self._root, name)
            self._texts[name] = None
            try:
                if os.path.isfile(path) and os.path.getsize(path) <= LIMIT:
                    with open(path, encoding="utf-8", errors="surrogateescape") as handle:
                        self._texts[name] = handle.read()
            except OSError:
                pass
        return self._texts[name]
