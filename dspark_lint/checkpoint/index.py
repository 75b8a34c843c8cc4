"""The index of a sharded checkpoint: whether ``weight_map`` is a map from names to files of this directory."""

from __future__ import annotations

from typing import Any, Final

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.files import leads_out, written_outside
from dspark_lint.checkpoint.problems import MAX_REPEATS, Problem, pointer_to, quote, show


#: Distinct files of an index beyond which links on the way to them are not followed.
MAX_LOOKED_AT: Final = 10_000


def check_index(value: dict[str, Any], name: str, root: str) -> tuple[Problem, ...]:
    """What is wrong with the parsed index `name` of the directory `root`."""
    if "weight_map" not in value:
        detail = f"{quote(name)} has no `weight_map`"
        return (Problem(p.INDEX_NO_WEIGHT_MAP, name, "/weight_map", detail=detail, fatal=True),)
    weight_map = value["weight_map"]
    if not isinstance(weight_map, dict):
        detail = f"`weight_map` of {quote(name)} is {show(weight_map)}, not an object"
        return (Problem(p.INDEX_BAD_WEIGHT_MAP, name, "/weight_map", detail=detail, expected="an object", fatal=True),)
    if not weight_map:
        return (Problem(p.INDEX_EMPTY, name, "/weight_map", detail=f"`weight_map` of {quote(name)} lists no tensor"),)
    try:
        # A few dozen files for tens of thousands of tensors: ask once a file, look for the tensor only on a hit.
        files = set(weight_map.values())
    except TypeError:
        files = {None}
    wrong: list[str] = []
    if not all(type(file) is str and file for file in files):
        wrong = [key for key, file in weight_map.items() if type(file) is not str or not file]
        files = {file for file in weight_map.values() if type(file) is str and file}
    found = [
        Problem(
            p.INDEX_BAD_ENTRY,
            name,
            pointer_to("weight_map", key),
            key,
            f"`weight_map` names {show(weight_map[key])} as the file of {quote(key)}",
            "a file name",
            show(weight_map[key]),
        )
        for key in wrong[:MAX_REPEATS]
    ]
    if len(wrong) > MAX_REPEATS:
        found[-1] = found[-1]._replace(detail=f"{found[-1].detail} (and {len(wrong) - MAX_REPEATS:,} more like it)")
    if len(files) > MAX_LOOKED_AT:
        out = sorted(filter(written_outside, files))
    else:
        out = sorted(file for file in files if leads_out(root, file))
    for file in out[:MAX_REPEATS]:
        key = next(key for key, value in weight_map.items() if value == file)
        more = sum(value == file for value in weight_map.values()) - 1
        detail = f"{quote(file)}, the file of {quote(key)}" + (f" and {more:,} more" if more else "")
        found.append(
            Problem(
                p.INDEX_ESCAPES,
                name,
                pointer_to("weight_map", key),
                key,
                f"{detail}, leads out of the checkpoint directory",
                "a file name",
                show(file),
            )
        )
    if len(out) > MAX_REPEATS:
        found[-1] = found[-1]._replace(detail=f"{found[-1].detail} (and {len(out) - MAX_REPEATS:,} more files)")
    return tuple(found)
