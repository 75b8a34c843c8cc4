"""``contracts validate``: whatever a file of one's own holds is told with its line, and nothing of it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dspark_lint.contract.validate import validate


if TYPE_CHECKING:
    from pathlib import Path


HEAD = 'contract: 1\nruntime: vllm\nrelease: "9.0.0"\n'
ON = HEAD + 'extends: "0.33.0"\n'


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (ON, []),
        ("", ["1: a contract is a mapping with `contract`, `runtime` and `release` at the top"]),
        ("a: [", ["1: not YAML: expected the node content, but found '<stream end>'"]),
        ("[1]", ["1: a contract is a mapping with `contract`, `runtime` and `release` at the top"]),
        (HEAD + "families: 5\n", ["4: families: 5 is not of type 'object', 'null'"]),
        (HEAD + "architectures: [a]\n", ["4: architectures: ['a'] is not of type 'object', 'null'"]),
        (ON + "families: {qwen3_dspark: 5}\n", ["5: families.qwen3_dspark: 5 is not of type 'object', 'null'"]),
        (HEAD + 'extends: "0.1.0"\n', ["4: extends: no contract for vLLM 0.1.0; known: "]),
        (HEAD + 'extends: "9.0.0"\n', ["4: extends: contract 9.0.0: `extends` goes round in a circle at 9.0.0"]),
        (ON + 'release: "9.0.0"\n', ["5: release: given twice, first in line 3; only the last counts"]),
    ],
    ids=[
        "good", "empty", "no YAML", "a list", "families", "architectures", "a family", "nothing to extend", "a circle",
        "twice",
    ],
)  # fmt: skip
def test_validate(text: str, problems: list[str], tmp_path: Path) -> None:
    """Each fault once, with the line that it stands in."""
    path = tmp_path / "own.yaml"
    path.write_text(text, encoding="utf-8")

    found = [str(problem).removeprefix(f"{path}:") for problem in validate(str(path))]

    assert len(found) == len(problems), found
    assert [one for one, begin in zip(found, problems, strict=True) if not one.startswith(begin)] == []
