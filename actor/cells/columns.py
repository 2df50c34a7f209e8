"""The clustering columns of a table in cells: their values in rows, and cuts, as SQL and as files store them.

All give the same numbers (`key_values`), so that a row which a cut sends to one side has its place there by the bounds
of its file, too. Texts are compared by their first bytes, and instants by their milliseconds, because bounds may hold
no more.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from shared.layout.cells.boxes import NULL, Point, number_of_row
from shared.layout.cells.tags import ColumnPath
from shared.layout.key_values import DECIMAL_DIGITS, TEXT_BYTES
from shared.paths.sql_text import quoted

FLOATS = ("float", "double")
INSTANTS = ("timestamp", "timestamp_ntz")
MS = 1000
"""Microseconds: bounds of instants are whole milliseconds."""

FIRST_DAY = date(1970, 1, 1).toordinal()
"""The number of the day that files store as 0."""

_SIGN = 1 << 63
_INFINITY = struct.unpack(">q", struct.pack(">d", float("inf")))[0]


@dataclass(frozen=True, slots=True)
class CellColumn:
    """One clustering column: its names in files and in the table, of the outermost field first, and its type.

    text_bytes: the first bytes of a text, which alone count.
    """

    path: ColumnPath
    name: ColumnPath
    type: str
    text_bytes: int = TEXT_BYTES

    @property
    def value(self) -> str:
        """The value of a row as SQL: a number, a day since 1970, microseconds, or the first bytes of a text."""
        name = ".".join(map(quoted, self.name))
        if self.type == "string":
            return f"CAST({name} AS BINARY)"
        if self.type == "date":
            return f"unix_date({name})"
        if self.type in INSTANTS:
            return f"unix_micros(CAST({name} AS TIMESTAMP))"
        # As statistics spell it, which is not the nearest number of twice the length.
        return f"CAST(CAST({name} AS STRING) AS DOUBLE)" if self.type == "float" else name

    @property
    def text(self) -> str:
        """The value of a row as a text, in SQL."""
        if self.type == "string":
            return f"hex(substring({self.value}, 1, {self.text_bytes}))"
        return f"CAST({self.value} AS STRING)"

    def number(self, text: str | None) -> int:
        """Return the number of a row by its text."""
        if text is None:
            return NULL
        if self.type == "string":
            return number_of_text(text, self.text_bytes)
        if self.type == "date":
            return int(text) + FIRST_DAY
        if self.type in INSTANTS:
            return int(text) // MS * MS
        value = float(text) if self.type in FLOATS else Decimal(text) if self.type.startswith("decimal") else int(text)
        number = number_of_row(value, self.type)
        if number is None:
            raise ValueError(f"{text!r} is no {self.type}")
        return number

    def below(self, at: int) -> str:
        """Return as SQL whether a row has a number below this one; null is below all, and NaN below none."""
        return f"coalesce({self._below(at)}, true)"

    def _below(self, at: int) -> str:
        if self.type == "string":
            least = min(max(0, at), (1 << 8 * TEXT_BYTES) - 1).to_bytes(TEXT_BYTES).rstrip(bytes(1))
            return f"{self.value} < X'{least.hex()}'"
        if self.type in FLOATS:
            bits = min(max(at, -_INFINITY), _INFINITY)
            (bound,) = struct.unpack(">d", struct.pack(">q", bits if bits >= 0 else -bits - _SIGN))
            return f"NOT isnan({self.value})" if at > _INFINITY else f"{self.value} < DOUBLE('{bound!r}')"
        if self.type.startswith("decimal"):
            scale = int(self.type.rstrip(")").rpartition(",")[2])
            at = -(-at // 10 ** (DECIMAL_DIGITS - scale))
            if abs(at) >= 10**DECIMAL_DIGITS:
                return f"{at > 0}"
            return f"{self.value} < CAST('{at}E-{scale}' AS DECIMAL({DECIMAL_DIGITS},{scale}))"
        at -= FIRST_DAY if self.type == "date" else 0
        return f"{self.value} < {at}" if -_SIGN <= at < _SIGN else f"{at > 0}"


@dataclass(frozen=True, slots=True)
class Stored:
    """The values of a column as files store them, which have the order of its numbers: whole numbers, or texts.

    A number is the value times `factor` plus `first`, and one of `every`; a text is 0 `every`, and its first
    `text_bytes` count.
    """

    factor: int = 1
    first: int = 0
    every: int = 1
    text_bytes: int = TEXT_BYTES

    def number(self, value: int | str | None) -> int:
        """Return the number of a row by its value; a text is spelled as the hexadecimal digits of its bytes."""
        if value is None:
            return NULL
        if isinstance(value, str):
            return number_of_text(value, self.text_bytes)
        return value // self.every * self.every * self.factor + self.first

    def bound(self, at: int) -> int | str | None:
        """Return what the values of rows with numbers below this one are below; None where all values are."""
        if not self.every:
            least = min(max(0, at), (1 << 8 * TEXT_BYTES) - 1)
            return least.to_bytes(TEXT_BYTES).rstrip(bytes(1)).hex()
        found = -(-(at - self.first) // self.factor)
        return None if found >= _SIGN else max(found, -_SIGN)


TEXTS = Stored(every=0)
"""How files store texts in their order."""


def number_of_text(spelled: str, text_bytes: int) -> int:
    """Return the number of a text, of which so many bytes count, by the hexadecimal digits of its bytes."""
    return int.from_bytes(bytes.fromhex(spelled)[:text_bytes].ljust(TEXT_BYTES, b"\0"))


def stored_points(stored: Sequence[Stored], rows: Sequence[Sequence[Any]]) -> list[Point]:
    """Return rows as points, by their values as files store them: by column, as a sample is thousands of rows."""
    columns = zip(*rows, strict=True)
    return list(zip(*(map(one.number, column) for one, column in zip(stored, columns, strict=bool(rows))), strict=True))


def texts_of(columns: Sequence[CellColumn]) -> list[str]:
    """Return the columns of a row that `point_of` reads, as SQL."""
    return [f"{column.text} AS c{at}" for at, column in enumerate(columns)]


def point_of(columns: Sequence[CellColumn], row: Mapping[str, str]) -> Point:
    """Return a row as a point, by its texts; a column that is null may be left out."""
    return tuple(column.number(row.get(f"c{at}")) for at, column in enumerate(columns))
