"""Statistics of an output: those that Spark's Delta writes, and those that the inputs had and it leaves out.

Spark's Delta writes no bounds of booleans, none of columns that the table's properties no longer index, and cuts
timestamps to milliseconds, so that the greatest value lies above what is written. Other engines skip files by these
numbers. What is added here comes from the output's own footer, so it is exact whatever deletion vectors hid, and it is
added only where an input had it: a table's properties are never overruled.
"""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.columns import Column

_LONGEST_TEXT = 32  # Characters of a bound, as Delta cuts them.
_GREATEST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECTIONS = ("minValues", "maxValues", "nullCount")


class Number(str):
    """A number as the log spells it: a decimal of 38 digits does not survive as a float."""

    __slots__ = ()


def columns_to_complete(written: str, inputs: Iterable[str], columns: Iterable[Column]) -> list[Column]:
    """Return the columns for which an input's statistics have a bound that the output's lack or have truncated."""
    ours, theirs = load_statistics(written), [load_statistics(text) for text in inputs]
    return [
        column
        for column in columns
        if not column.nested
        and any(
            get_statistic(statistics, section, column.path) is not None
            and (
                get_statistic(ours, section, column.path) is None
                or (column.kind == "timestamp" and section != "nullCount")
            )
            for statistics in theirs + ([ours] if column.kind == "timestamp" else [])
            for section in _SECTIONS
        )
    ]


def completed(written: str, inputs: Iterable[str], bounds: Mapping[Column, Bounds]) -> str:
    """Return the output's statistics with the bounds of these columns where an input had them."""
    ours, theirs = load_statistics(written), [load_statistics(text) for text in inputs]
    for column, known in bounds.items():
        had = {s for s in _SECTIONS if any(get_statistic(t, s, column.path) is not None for t in (*theirs, ours))}
        if "nullCount" in had:
            put_statistic(ours, "nullCount", column.path, known.nulls)
        if {"minValues", "maxValues"} & had and known.least is not None:
            try:
                least, greatest = _least(known.least, column), _greatest(known, column)
            except UnicodeDecodeError:
                continue  # Bytes that are no text have no bound in JSON.
            for section, value in (("minValues", least), ("maxValues", greatest)):
                if value is not None:
                    put_statistic(ours, section, column.path, value)
    return dump_statistics(ours)


def _least(value: Any, column: Column) -> Any:
    if column.kind == "text":
        return value.decode()[:_LONGEST_TEXT]
    return _logged(value, column)


def _greatest(known: Bounds, column: Column) -> Any:
    if column.kind != "text":
        return _logged(known.greatest, column)
    text = known.greatest.decode()
    if len(text) <= _LONGEST_TEXT:
        return text
    cut = text[:_LONGEST_TEXT] + _GREATEST_CHARACTER
    return cut if cut >= text else None


def _logged(value: Any, column: Column) -> Any:
    """Return a bound as the log's JSON has it (protocol, "Per-file Statistics"), None if JSON cannot express it."""
    match column.kind:
        case "boolean" | "int":
            return value
        case "float" | "double":
            return value if math.isfinite(value) else None
        case "decimal":
            return Number(_decimal(int(value), column.detail[1]))
        case "date":
            day = value + date(1970, 1, 1).toordinal()
            return date.fromordinal(day).isoformat() if 0 < day <= date.max.toordinal() else None
        case "timestamp":
            return _instant(value, in_utc=bool(column.detail[1]))
        case _:
            return None


def _decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def _instant(micros: int, *, in_utc: bool) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if in_utc else "")


def load_statistics(text: str) -> dict[str, Any]:
    """Read a file's statistics; numbers with a fraction keep their spelling."""
    try:
        loaded = json.loads(text or "{}", parse_float=Number)
    except ValueError:
        return {}  # It says nothing of the file, as no text does.
    return loaded if isinstance(loaded, dict) else {}


def dump_statistics(value: Any) -> str:
    """Write what `load_statistics` read."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{dump_statistics(inside)}" for name, inside in value.items()) + "}"
    return str(value) if isinstance(value, Number) else json.dumps(value, allow_nan=False)


def get_statistic(statistics: Mapping[str, Any], section: str, path: tuple[str, ...]) -> Any:
    """Return what a section says of a column, None if it says nothing."""
    found: Any = statistics.get(section)
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def put_statistic(statistics: dict[str, Any], section: str, path: tuple[str, ...], value: object) -> None:
    """Set what a section says of a column."""
    place = statistics.setdefault(section, {})
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
