"""The clustering columns of a table in cells: their bounds in statistics, their values in rows, and cuts as SQL.

All three give the same numbers (`key_values`), so that a row which a cut sends to one side has its place there by the
statistics of its file, too. Texts are compared by their first bytes, and instants by their milliseconds, because the
bounds that Delta writes hold no more.
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.columns import INT_BITS, Column
from actor.formats.delta.statistics import get_statistic
from actor.formats.delta.stored_schema import physical_name
from shared.errors import RefusedFiles
from shared.layout.cells.boxes import EVERYTHING, NAN, NULL, Box, Span, number_of_row, span_of
from shared.layout.cells.tags import CELL_TAG, ColumnPath
from shared.layout.key_values import DECIMAL_DIGITS, TEXT_BYTES, is_sortable
from shared.paths.sql_text import quoted
from shared.refusals import RefusalReason

_FLOATS = ("float", "double")
_INSTANTS = ("timestamp", "timestamp_ntz")
_MS = 1000
"""Microseconds: bounds of instants are whole milliseconds."""

_SIGN = 1 << 63
_INFINITY = struct.unpack(">q", struct.pack(">d", float("inf")))[0]
_FIRST_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class CellColumn:
    """One clustering column: its names in files and in the table, of the outermost field first, and its type."""

    path: ColumnPath
    name: ColumnPath
    type: str

    def span(self, statistics: Mapping[str, Any], *, is_new: bool) -> Span:
        """Return the span of a file; the bounds of others' files leave out NaN."""
        low, high, nulls = (get_statistic(statistics, of, self.path) for of in ("minValues", "maxValues", "nullCount"))
        first, end = span_of(low, high, self.type, nulls=nulls, rows=statistics.get("numRecords"))
        return first, NAN + 1 if is_new and self.type in _FLOATS and end > NULL + 1 else end

    def is_bounded(self, statistics: Mapping[str, Any]) -> bool:
        """Return whether statistics say something of a file's place."""
        low, high, nulls = (get_statistic(statistics, of, self.path) for of in ("minValues", "maxValues", "nullCount"))
        is_null = nulls is not None and nulls == statistics.get("numRecords")
        return is_null or span_of(low, high, self.type, nulls=0, rows=None) != EVERYTHING

    @property
    def value(self) -> str:
        """The value of a row as SQL: a number, a day since 1970, microseconds, or the first bytes of a text."""
        name = ".".join(map(quoted, self.name))
        if self.type == "string":
            return f"CAST({name} AS BINARY)"
        if self.type == "date":
            return f"unix_date({name})"
        if self.type in _INSTANTS:
            return f"unix_micros(CAST({name} AS TIMESTAMP))"
        # As statistics spell it, which is not the nearest number of twice the length.
        return f"CAST(CAST({name} AS STRING) AS DOUBLE)" if self.type == "float" else name

    @property
    def text(self) -> str:
        """The value of a row as a text, in SQL."""
        if self.type == "string":
            return f"hex(substring({self.value}, 1, {TEXT_BYTES}))"
        return f"CAST({self.value} AS STRING)"

    def number(self, text: str | None) -> int:
        """Return the number of a row by its text."""
        if text is None:
            return NULL
        if self.type == "string":
            return int.from_bytes(bytes.fromhex(text).ljust(TEXT_BYTES, b"\0"))
        if self.type == "date":
            return int(text) + _FIRST_DAY
        if self.type in _INSTANTS:
            return int(text) // _MS * _MS
        value = float(text) if self.type in _FLOATS else Decimal(text) if self.type.startswith("decimal") else int(text)
        number = number_of_row(value, self.type)
        if number is None:
            raise ValueError(f"{text!r} is no {self.type}")
        return number

    def stored(self, schemas: Iterable[Sequence[Column]]) -> "Stored | None":
        """Return how all of these files store the column, if so that its order is plain there; None otherwise."""
        found = {next((leaf for leaf in schema if leaf.path == self.path), None) for schema in schemas}
        return None if None in found else _stored(self.type, [leaf for leaf in found if leaf is not None])

    def below(self, at: int) -> str:
        """Return as SQL whether a row has a number below this one; null is below all, and NaN below none."""
        return f"coalesce({self._below(at)}, true)"

    def _below(self, at: int) -> str:
        if self.type == "string":
            least = min(max(0, at), (1 << 8 * TEXT_BYTES) - 1).to_bytes(TEXT_BYTES).rstrip(bytes(1))
            return f"{self.value} < X'{least.hex()}'"
        if self.type in _FLOATS:
            bits = min(max(at, -_INFINITY), _INFINITY)
            (bound,) = struct.unpack(">d", struct.pack(">q", bits if bits >= 0 else -bits - _SIGN))
            return f"NOT isnan({self.value})" if at > _INFINITY else f"{self.value} < DOUBLE('{bound!r}')"
        if self.type.startswith("decimal"):
            scale = int(self.type.rstrip(")").rpartition(",")[2])
            at = -(-at // 10 ** (DECIMAL_DIGITS - scale))
            if abs(at) >= 10**DECIMAL_DIGITS:
                return f"{at > 0}"
            return f"{self.value} < CAST('{at}E-{scale}' AS DECIMAL({DECIMAL_DIGITS},{scale}))"
        at -= _FIRST_DAY if self.type == "date" else 0
        return f"{self.value} < {at}" if -_SIGN <= at < _SIGN else f"{at > 0}"


@dataclass(frozen=True, slots=True)
class Stored:
    """The values of a column as files store them, which have the order of its numbers: whole numbers, or texts.

    A number is the value times `factor` plus `first`, and one of `every`; a text is 0 `every`.
    """

    factor: int = 1
    first: int = 0
    every: int = 1

    def number(self, value: int | str | None) -> int:
        """Return the number of a row by its value; a text is spelled as the hexadecimal digits of its bytes."""
        if value is None:
            return NULL
        if isinstance(value, str):
            return int.from_bytes(bytes.fromhex(value)[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0"))
        return value // self.every * self.every * self.factor + self.first

    def bound(self, at: int) -> int | str | None:
        """Return what the values of rows with numbers below this one are below; None where all values are."""
        if not self.every:
            least = min(max(0, at), (1 << 8 * TEXT_BYTES) - 1)
            return least.to_bytes(TEXT_BYTES).rstrip(bytes(1)).hex()
        found = -(-(at - self.first) // self.factor)
        return None if found >= _SIGN else max(found, -_SIGN)


_TEXTS = Stored(every=0)


def _stored(kind: str, leaves: Sequence[Column]) -> Stored | None:
    """Return how leaves of files store a type of a table."""
    kinds = {leaf.kind for leaf in leaves}
    if kind == "string":
        return _TEXTS if kinds == {"text"} else None
    if kind == "date":
        return Stored(first=_FIRST_DAY) if kinds == {"date"} else None
    if kind in _INSTANTS:
        return (
            Stored(every=_MS) if kinds == {"timestamp"} and all(leaf.detail[0] == "MICROS" for leaf in leaves) else None
        )
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        is_whole = all(leaf.physical in INT_BITS and leaf.detail[1] == scale for leaf in leaves)
        return Stored(factor=10 ** (DECIMAL_DIGITS - scale)) if kinds == {"decimal"} and is_whole else None
    return Stored() if kinds == {"int"} and kind not in _FLOATS else None


def read_statistics(text: str | None) -> Mapping[str, Any]:
    """Read the statistics of a file, with decimals as they are spelled; what is no JSON object says nothing."""
    try:
        found = json.loads(text or "{}", parse_float=Decimal)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def box_of(columns: Sequence[CellColumn], logged: LoggedFile) -> Box:
    """Return the box of a file by its statistics in the log."""
    statistics = read_statistics(json.loads(logged.json).get("stats"))
    return tuple(column.span(statistics, is_new=CELL_TAG not in logged.file.tags) for column in columns)


def cell_columns(
    paths: Iterable[ColumnPath], metadata: Mapping[str, Any], statistics: Mapping[str, Any], location: str
) -> tuple[CellColumn, ...]:
    """Return the clustering columns of a table, by the paths in its files.

    metadata: fields of its `metaData` action. statistics: schema of those that its writers note. Raises RefusedFiles
    for a column without bounds: every file would lie at the root again and again.
    """
    schema = json.loads(metadata["schemaString"])
    return tuple(_column(path, schema, statistics, location) for path in paths)


def _column(path: ColumnPath, schema: Mapping[str, Any], statistics: Mapping[str, Any], location: str) -> CellColumn:
    fields, noted = _fields(schema, path), _fields(statistics, ("minValues", *path))
    kind = fields[-1]["type"] if len(fields) == len(path) else None
    if len(noted) <= len(path) or not isinstance(kind, str) or not is_sortable(kind):
        named = ".".join(field["name"] for field in fields) or ".".join(path)
        raise RefusedFiles(
            f"the table at {location} is not kept in cells: its writers note no minima and maxima of {named!r}, a "
            "clustering column, so no file would ever have its place; let delta.dataSkippingStatsColumns name it, or "
            "unset that property and delta.dataSkippingNumIndexedCols",
            reason=RefusalReason.BOUNDS,
            field=named,
        )
    return CellColumn(path, tuple(field["name"] for field in fields), kind)


def _fields(schema: Mapping[str, Any], path: ColumnPath) -> list[Mapping[str, Any]]:
    """Return the fields along a path, as far as there are any."""
    found: list[Mapping[str, Any]] = []
    inside: Any = schema
    for name in path:
        fields = inside.get("fields", ()) if isinstance(inside, Mapping) else ()
        field = next((one for one in fields if physical_name(one) == name), None)
        if field is None:
            break
        found.append(field)
        inside = field["type"]
    return found
