"""Values of a Case as SQL text, for each dialect that an engine here speaks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from tests.interop.engines.protocol import Predicate
from tests.interop.table_case import Case

_DAY_0 = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(micros: int) -> datetime:
    """Return the instant of this number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def day(days: int) -> date:
    """Return the day of this number of days since 1970."""
    return date.fromordinal(_DAY_0 + days)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine writes names, strings, and types in a CAST; `instant` and `local` write timestamps."""

    quote: str
    text: Callable[[str], str]
    types: dict[pa.DataType, str]
    instant: Callable[[str], str]
    local: Callable[[str], str]

    def name(self, name: str) -> str:
        """Quote a name."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def literal(self, kind: pa.DataType, value: Any) -> str:
        """Write a value of this Arrow type."""
        if kinds.is_boolean(kind):
            return "TRUE" if value else "FALSE"
        if kinds.is_string(kind):
            return self.text(value)
        if kinds.is_date(kind):
            return f"DATE '{day(value).isoformat()}'"
        if kinds.is_timestamp(kind):
            text = moment(value).strftime("%H:%M:%S.%f")
            written = f"{day(value // 86_400_000_000).isoformat()} {text}"
            return self.instant(written) if kind.tz else self.local(written)
        if kinds.is_decimal(kind):
            return f"CAST('{value:f}' AS DECIMAL({kind.precision},{kind.scale}))"
        return f"CAST('{value}' AS {self.types[kind]})"

    def comparison(self, case: Case, predicate: Predicate) -> str:
        """Write a predicate as a condition."""
        column = case.column(predicate.column)
        return f"{self.name(predicate.column)} {predicate.op} {self.literal(column.arrow, predicate.value)}"

    def equality(self, case: Case, values: Iterable[tuple[str, Any]]) -> str:
        """Write the condition that columns have these values, null included."""
        parts = [
            f"{self.name(name)} IS NULL" if value is None else f"{self.name(name)} = {self.literal(kind, value)}"
            for name, value in values
            for kind in [case.column(name).arrow]
        ]
        return " AND ".join(parts) or "TRUE"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())


def _types(*names: str) -> dict[pa.DataType, str]:
    return dict(zip(_NUMBERS, names, strict=True))


SPARK = Dialect(
    "`",
    _escaped,
    _types("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    lambda text: f"TIMESTAMP '{text}'",
    lambda text: f"TIMESTAMP_NTZ '{text}'",
)
DATAFUSION = Dialect(
    '"',
    _doubled,
    _types("TINYINT", "SMALLINT", "INT", "BIGINT", "REAL", "DOUBLE"),
    lambda text: f"arrow_cast('{text.replace(' ', 'T')}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
    lambda text: f"arrow_cast('{text.replace(' ', 'T')}', 'Timestamp(Microsecond, None)')",
)
DUCKDB = Dialect(
    '"',
    _doubled,
    _types("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"),
    lambda text: f"TIMESTAMPTZ '{text}+00'",
    lambda text: f"TIMESTAMP '{text}'",
)
CLICKHOUSE = Dialect(
    "`",
    _escaped,
    _types("Int8", "Int16", "Int32", "Int64", "Float32", "Float64"),
    lambda text: f"toDateTime64('{text}', 6, 'UTC')",
    lambda text: f"toDateTime64('{text}', 6, 'UTC')",
)
