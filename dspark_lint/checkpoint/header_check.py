"""A header looked at tensor by tensor, as the safetensors library does, with a name for everything it refuses."""

from __future__ import annotations

from typing import Any, Final

from dspark_lint.checkpoint import problems as p
from dspark_lint.checkpoint.dtypes import BITS
from dspark_lint.checkpoint.header_json import MAX_DEPTH, Pairs, as_object, nested_too_deep, pairs_of
from dspark_lint.checkpoint.jsonfile import too_deep
from dspark_lint.checkpoint.problems import MAX_REPEATS, Problem, count, quote, show


_U64: Final = (1 << 64) - 1
_FIELDS: Final = ("dtype", "shape", "data_offsets")
#: Broken entries after which the rest of a header is not looked at any more.
_ENOUGH: Final = 1_000


def check(
    written: Pairs | dict[str, Any], data_size: int, name: str
) -> tuple[dict[str, dict[str, Any]], dict[str, str] | None, tuple[Problem, ...]]:
    """Tensors, metadata and problems of a header that is `written` and has `data_size` bytes of data after it."""
    reader = _Reader(name)
    reader.read(written)
    if not reader.fatal:
        reader.cover(data_size)
    return reader.tensors, reader.metadata, reader.told()


class _Reader:
    """Collects the entries of one header and what is wrong with them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[str, dict[str, Any]] = {}
        self.metadata: dict[str, str] | None = None
        self.problems: list[Problem] = []
        self.counts: dict[tuple[str, bool], int] = {}
        self.fatal = 0

    def add(
        self,
        kind: str,
        detail: str,
        tensor: str | None = None,
        *,
        expected: str | None = None,
        found: str | None = None,
        fatal: bool = True,
    ) -> None:
        self.fatal += fatal
        times = self.counts[kind, fatal] = self.counts.get((kind, fatal), 0) + 1
        if times <= MAX_REPEATS:
            self.problems.append(Problem(kind, self.name, None, tensor, detail, expected, found, fatal))

    def told(self) -> tuple[Problem, ...]:
        """The problems; the last of a kind says how many more there are."""
        told: list[Problem] = []
        seen: dict[tuple[str, bool], int] = {}
        for problem in self.problems:
            key = (problem.kind, problem.fatal)
            seen[key] = seen.get(key, 0) + 1
            more = self.counts[key] - MAX_REPEATS
            if seen[key] == MAX_REPEATS and more > 0:
                told.append(problem._replace(detail=f"{problem.detail} (and {more:,} more like it)"))
            else:
                told.append(problem)
        return tuple(told)

    def read(self, written: Pairs | dict[str, Any]) -> None:
        """The entries one by one, the ones that a later entry of the same name replaces included."""
        metadata_seen = False
        for key, value in pairs_of(written):
            if self.fatal >= _ENOUGH:
                return
            if key == "__metadata__":
                if metadata_seen:
                    self.add(p.DUPLICATE_KEY, f"`__metadata__` stands twice in the header of {quote(self.name)}")
                metadata_seen = True
                self._read_metadata(value)
                continue
            entry = self._entry(key, value)
            if entry is None:
                continue
            if key in self.tensors:
                same = self.tensors[key] == entry
                what = "with the same content" if same else "and differs; the last one counts"
                self.add(p.DUPLICATE_KEY, f"tensor {quote(key)} stands twice in the header {what}", key, fatal=False)
            self.tensors[key] = entry

    def _read_metadata(self, value: Any) -> None:
        if value is None:
            return
        if as_object(value) is None:
            self.add(p.BAD_METADATA, f"`__metadata__` is {_plain(value)}, not an object", found=_plain(value))
            return
        self.metadata = {}
        for key, item in pairs_of(value):
            if type(item) is not str:
                self.add(
                    p.BAD_METADATA,
                    f"{quote(key)} of `__metadata__` is {_plain(item)}, not a string",
                    found=_plain(item),
                )
                continue
            if key in self.metadata:
                self.add(
                    p.DUPLICATE_KEY, f"{quote(key)} stands twice in `__metadata__`; the last one counts", fatal=False
                )
            self.metadata[key] = item

    def _entry(self, tensor: str, value: Any) -> dict[str, Any] | None:
        """One entry, valid in itself, or None."""
        before = self.fatal
        fields = as_object(value)
        if type(value) is Pairs:
            self._repeated_members(tensor, value)
        elif type(value) is list and len(value) == 3:
            # The library takes the three members in order as well.
            fields = dict(zip(_FIELDS, value, strict=True))
        if fields is None:
            found = _plain(value)
            detail = f"the entry of tensor {quote(tensor)} is {found}, not an object with dtype, shape and data_offsets"
            self.add(p.BAD_ENTRY, detail, tensor, expected="an object", found=found)
            return None
        missing = [field for field in _FIELDS if field not in fields]
        if missing:
            detail = f"tensor {quote(tensor)} has no {' and no '.join(missing)}"
            self.add(
                p.BAD_ENTRY,
                detail,
                tensor,
                expected="dtype, shape and data_offsets",
                found=show(list(fields)),
            )
            return None
        fields["dtype"] = self._dtype(tensor, fields["dtype"])
        self._shape(tensor, fields["shape"])
        self._offsets(tensor, fields["data_offsets"])
        if len(fields) > 3:
            # What else stands there is ignored, as long as it can be read.
            self._surplus(tensor, value)
        return fields if self.fatal == before else None

    def _repeated_members(self, tensor: str, pairs: Pairs) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                detail = f"tensor {quote(tensor)} has {quote(key)} twice"
                self.add(p.DUPLICATE_KEY, detail, tensor, fatal=key in _FIELDS)
            seen.add(key)

    def _surplus(self, tensor: str, value: Any) -> None:
        # The header is one level, the entry another.
        if any(nested_too_deep(item, 2) for _, item in pairs_of(value)):
            problem = too_deep(f"the entry of tensor {quote(tensor)}", self.name, MAX_DEPTH)
            self.add(problem.kind, problem.detail, tensor, expected=problem.expected)

    def _dtype(self, tensor: str, value: Any) -> str | None:
        if type(value) is dict and list(value.values()) == [None]:
            # The long form of a bare name, to the library's reader.
            value = next(iter(value))
        if type(value) is str and value in BITS:
            return value
        found = _plain(value)
        hint = f"; write {value.upper()}" if type(value) is str and value.upper() in BITS else ""
        self.add(
            p.BAD_DTYPE,
            f"tensor {quote(tensor)} has dtype {found}, which safetensors does not know{hint}",
            tensor,
            found=found,
        )
        return None

    def _shape(self, tensor: str, value: Any) -> None:
        if type(value) is not list:
            found = _plain(value)
            self.add(p.BAD_SHAPE, f"the shape of tensor {quote(tensor)} is {found}, not an array", tensor, found=found)
            return
        for dim in value:
            if type(dim) is not int or not 0 <= dim <= _U64:
                detail = f"tensor {quote(tensor)} has the shape {_plain(value)}, in which {_plain(dim)} is no size"
                self.add(p.BAD_SHAPE, detail, tensor, expected="integers from 0 on", found=_plain(value))
                return

    def _offsets(self, tensor: str, value: Any) -> None:
        if type(value) is list and len(value) == 2 and all(type(x) is int and 0 <= x <= _U64 for x in value):
            return
        found = _plain(value)
        detail = f"tensor {quote(tensor)} has the data_offsets {found}, not two integers from 0 on"
        self.add(p.BAD_OFFSETS, detail, tensor, expected="[begin, end]", found=found)

    def cover(self, data_size: int) -> None:
        """The sizes of the tensors, and whether they cover the data without a gap.

        A wrong size mostly displaces what follows: it is told alone.
        """
        order = sorted(self.tensors, key=lambda tensor: self.tensors[tensor]["data_offsets"])
        position = 0
        previous: str | None = None
        for tensor in order:
            entry = self.tensors[tensor]
            begin, end = entry["data_offsets"]
            if end < begin:
                detail = f"tensor {quote(tensor)} ends at byte {end:,} of the data, before it begins at {begin:,}"
                self.add(p.BAD_OFFSETS, detail, tensor, expected=f"an end from {begin} on", found=str(end))
                return
            if begin != position:
                if not self.fatal:
                    self._misplaced(tensor, begin, position, previous)
                return
            self._size(tensor, entry, end - begin)
            position, previous = end, tensor
        if self.fatal:
            return
        if position < data_size:
            detail = f"{quote(self.name)} has {count(data_size - position, 'byte')} after the data of its last tensor"
            self.add(p.TRAILING_BYTES, detail, expected=f"{position} bytes of data", found=f"{data_size} bytes")
        elif position > data_size:
            cut = next(t for t in order if self.tensors[t]["data_offsets"][1] > data_size)
            detail = (
                f"{quote(self.name)} ends {count(position - data_size, 'byte')} before the data of its tensors does; "
                f"{quote(cut)} is the first tensor that is cut"
            )
            self.add(p.TRUNCATED_DATA, detail, cut, expected=f"{position} bytes of data", found=f"{data_size} bytes")

    def _misplaced(self, tensor: str, begin: int, position: int, previous: str | None) -> None:
        after = f"tensor {quote(previous)} ends at {position:,}" if previous is not None else "the data begins at 0"
        if begin > position:
            gap = count(begin - position, "byte")
            detail = f"tensor {quote(tensor)} begins at byte {begin:,} of the data, {gap} late: {after}"
            self.add(p.GAP, detail, tensor, expected=f"begin {position}", found=f"begin {begin}")
            return
        detail = f"tensor {quote(tensor)} begins at byte {begin:,} of the data, inside another: {after}"
        self.add(p.OVERLAP, detail, tensor, expected=f"begin {position}", found=f"begin {begin}")

    def _size(self, tensor: str, entry: dict[str, Any], size: int) -> None:
        dtype, shape = entry["dtype"], entry["shape"]
        elements = 1
        for dim in shape:
            elements *= dim
            if elements > _U64:
                break
        bits = elements * BITS[dtype]
        if elements <= _U64 and bits <= _U64 and bits == size * 8:
            return
        what = f"tensor {quote(tensor)} of shape {show(shape)} and dtype {dtype}"
        if elements > _U64 or bits > _U64:
            detail = f"{what} has a size that does not fit 64 bits"
            self.add(p.SHAPE_OVERFLOW, detail, tensor, found=show(shape))
        elif bits % 8:
            detail = f"{what} takes {count(bits, 'bit')}, which is no whole number of bytes"
            self.add(p.SIZE_MISMATCH, detail, tensor, expected="a multiple of 8 bits", found=f"{bits} bits")
        else:
            detail = f"{what} needs {count(bits // 8, 'byte')}, but its data_offsets give it {size:,}"
            self.add(p.SIZE_MISMATCH, detail, tensor, expected=f"{bits // 8} bytes", found=f"{size} bytes")


def _plain(value: Any) -> str:
    """A written value for a message."""
    return show(dict(value) if type(value) is Pairs else value)
