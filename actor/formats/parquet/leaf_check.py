"""Footers of outputs against their inputs': counts, types and bounds of every leaf column that must agree.

It asks no reader of rows. Footers of inputs that were read to choose how to write are not read again. What writers
count in several ways is not compared: nulls below structs and lists.
"""

import re
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field
from shared.errors import Difference

_NANOSECONDS = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}
_DAY_NS = 86_400 * 10**9
_SCALE = re.compile(r"DECIMAL\(\d+, ?(\d+)\)")

LeafColumn = tuple[Hashable, Field, tuple[Field, ...]]
"""A column at any level: by what it is found in files, itself, and those above it."""


@dataclass(frozen=True, slots=True)
class Footing:
    """Both sides of a rewrite: columns found in the schemas of inputs and of outputs; `rows` that readers see.

    may_store: whether a kind may be stored in a way in which no input has it. filled: columns that files lack and
    readers fill with a value. has_deletes: rows of inputs are left out.
    """

    inputs: Sequence[Mapping[Any, ParquetField]]
    outputs: Sequence[Mapping[Any, ParquetField]]
    rows: int
    may_store: Callable[[str, ParquetField], bool]
    has_deletes: bool = False
    filled: frozenset[Hashable] = frozenset()


def require_agreement(columns: Iterable[LeafColumn], footing: Footing, where: str, files: Iterable[str]) -> None:
    """Raise Difference, naming these inputs, for what footers of outputs say that cannot be of the same rows."""
    found: dict[str, str] = {}
    for key, column, above in columns:
        if column.children or column.kind == "variant":
            continue
        if reason := _Sides(key, column, above, footing).reason():
            found[".".join(one.shown or one.name for one in (*above, column))] = reason
    if found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(found.items()))
        raise Difference(
            f"{where}: the footers of the output contradict its inputs', so nothing was committed: {reasons}",
            files=tuple(files),
            columns=tuple(sorted(found)),
        )


class _Sides:
    """One leaf column on both sides."""

    def __init__(self, key: Hashable, column: Field, above: tuple[Field, ...], footing: Footing) -> None:
        self._column = column
        self._footing = footing
        self._is_flat = all(one.kind == "struct" for one in above)
        self._is_top = not above
        self._read = [one[key] for one in footing.inputs if key in one]
        self._written = [one[key] for one in footing.outputs if key in one]
        self._is_everywhere = len(self._read) == len(footing.inputs)
        self._is_filled = not self._is_everywhere and (column.default is not None or key in footing.filled)

    def reason(self) -> str:
        """Return what contradicts, an empty string if nothing does."""
        if not self._written:
            has_values = any(one.leaf is not None and one.leaf.values != one.leaf.nulls for one in self._read)
            return "the output lacks it" if has_values and self._footing.rows and not self._footing.has_deletes else ""
        return self._type() or self._counts() or self._bounds()

    def _type(self) -> str:
        known = {(one.physical, one.logical, one.length) for one in self._read}
        new = [one for one in self._written if (one.physical, one.logical, one.length) not in known]
        odd = next((one for one in new if not self._footing.may_store(self._column.kind, one)), None)
        return "" if odd is None else f"it is stored as {odd.physical} {odd.logical}".rstrip()

    def _counts(self) -> str:
        values, nulls = _sum(self._written, "values"), _sum(self._written, "nulls")
        if self._is_flat and values != self._footing.rows:
            return f"{values} values of {self._footing.rows} rows"
        if not self._is_everywhere:
            return ""
        before = _sum(self._read, "values")
        if not self._is_flat and (values != before if not self._footing.has_deletes else (values or 0) > (before or 0)):
            return f"{before} values in, {values} out"
        nulls_before = _sum(self._read, "nulls")
        if not self._is_top or nulls is None or nulls_before is None:
            return ""
        differs = nulls > nulls_before if self._footing.has_deletes else nulls != nulls_before
        return f"{nulls_before} nulls in, {nulls} out" if differs else ""

    def _bounds(self) -> str:
        if self._is_filled:
            return ""
        read, written = self._range(self._read), self._range(self._written)
        if read is None or written is None:
            return ""
        is_inside = read[0] <= written[0] and written[1] <= read[1]
        return "" if is_inside else "values lie outside of the bounds of the inputs"

    def _range(self, fields: Sequence[ParquetField]) -> tuple[Any, Any] | None:
        """Return the bounds over fields, None where they are not known, or where there is no value."""
        least: list[Any] = []
        greatest: list[Any] = []
        for one in fields:
            if one.leaf is None or not one.leaf.is_bounded:
                return None
            if one.leaf.least is None or one.leaf.greatest is None:
                continue
            low, high = (_comparable(self._column.kind, one, text) for text in (one.leaf.least, one.leaf.greatest))
            if low is None or high is None:
                return None
            least.append(low)
            greatest.append(high)
        return (min(least), max(greatest)) if least else None


def _sum(fields: Sequence[ParquetField], name: str) -> int | None:
    numbers: list[int | None] = [None if one.leaf is None else getattr(one.leaf, name) for one in fields]
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _comparable(kind: str, stored: ParquetField, text: str) -> float | Decimal | bytes | None:
    """Return a bound in a form that does not depend on how a file stores it, None for what has no order here."""
    word = kind.partition("(")[0]
    is_bytes = stored.physical in ("BINARY", "FIXED_LEN_BYTE_ARRAY")
    if word == "decimal":
        unscaled = int.from_bytes(bytes.fromhex(text), "big", signed=True) if is_bytes else int(text)
        scale = _SCALE.match(stored.logical)
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -int(scale[1]) if scale else 0))
    if is_bytes:
        return bytes.fromhex(text)
    if word in ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "time"):
        unit = next((size for name, size in _NANOSECONDS.items() if f"({name}," in stored.logical), None)
        unit = _DAY_NS if stored.logical == "DATE" else unit
        return None if unit is None else int(text) * unit
    if stored.physical == "FLOAT":  # Its text has the digits that distinguish floats.
        return float(struct.unpack("f", struct.pack("f", float(text)))[0])
    if stored.physical == "DOUBLE":
        return float(text)
    return {"true": 1, "false": 0}[text] if stored.physical == "BOOLEAN" else int(text)
