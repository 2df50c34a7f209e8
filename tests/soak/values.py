"""One spelling for each value, whoever wrote or read it: rows are compared in it, and it is what journals hold.

A long or a string is itself, a timestamp is microseconds since 1970 in UTC, a date is days since 1970, null is None.
An empty partition value is null, as the Delta protocol has it.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

import pyarrow as pa

Value = int | str | None
Row = dict[str, Value]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class Kind(StrEnum):
    """Types of columns, by the names that Delta's schemas use."""

    LONG = "long"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DATE = "date"


ARROW = {
    Kind.LONG: pa.int64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.DATE: pa.date32(),
}
_NUMBERS = {Kind.TIMESTAMP: pa.int64(), Kind.DATE: pa.int32()}


def micros(text: str) -> int:
    """Return the microseconds since 1970 of a timestamp in ISO 8601; one without a zone is in UTC."""
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MICROSECOND


def days(text: str) -> int:
    """Return the days since 1970 of a date in ISO 8601."""
    return (date.fromisoformat(text) - _FIRST_DAY).days


def from_log(kind: Kind, text: str | None) -> Value:
    """Read a partition value as a log spells it."""
    if text is None or text == "":
        return None
    match kind:
        case Kind.LONG:
            return int(text)
        case Kind.TIMESTAMP:
            return micros(text)
        case Kind.DATE:
            return days(text)
    return text


def to_arrow(kind: Kind, values: Iterable[Value]) -> pa.Array:
    """Return an array of the column's own type."""
    return pa.array(list(values), _NUMBERS.get(kind, ARROW[kind])).cast(ARROW[kind])


def from_arrow(kind: Kind, column: Any) -> list[Value]:
    """Return the values of a column that a reader found; one of another unit of time is converted."""
    number = _NUMBERS.get(kind)
    return list((column if number is None else column.cast(ARROW[kind]).cast(number)).to_pylist())


def literal_for_datafusion(kind: Kind, value: Value) -> str:
    """Return a literal that deltalake can turn into text and back: it cannot for TIMESTAMP '…'."""
    match kind:
        case Kind.LONG:
            return str(value)
        case Kind.TIMESTAMP:
            return f"arrow_cast({value}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case Kind.DATE:
            return f"arrow_cast({value}, 'Date32')"
    return "'" + str(value).replace("'", "''") + "'"


def literal_for_spark(kind: Kind, value: Value) -> str:
    """Return a literal of Spark's SQL."""
    match kind, value:
        case Kind.TIMESTAMP, int(number):
            return f"TIMESTAMP '{(_EPOCH + number * _MICROSECOND).replace(tzinfo=None).isoformat(' ')} UTC'"
        case Kind.DATE, int(number):
            return f"DATE '{(_FIRST_DAY + timedelta(number)).isoformat()}'"
        case Kind.LONG, int(number):
            return str(number)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
