"""Statistics of a file that was joined from others, computed from theirs: never tighter than the data.

What one input leaves out of a bound is left out of the output, unless all of its values are null: absent statistics
say nothing, and readers then read the file. What the footers know better is added later (`statistics`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from actor.formats.delta.columns import Column
from actor.formats.delta.statistics import Number, dump_statistics, get_statistic, load_statistics, put_statistic

_INFINITIES = {"NaN": (1, 0.0, 0.0), "Infinity": (0, math.inf, 0.0), "-Infinity": (0, -math.inf, 0.0)}
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DIGITS_OF_DOUBLES = 15
"""Decimals of more digits are logged as rounded doubles by some writers, tighter than the data: footers are exact."""

_ALMOST_A_MILLISECOND = timedelta(microseconds=999)


def merged(inputs: Sequence[str], columns: Iterable[Column], *, rows: int, hides_rows: bool = False) -> str:
    """Return the statistics of the file that holds the rows of these inputs, which its footer counts as `rows`.

    `inputs` are the texts of their logged statistics, `columns` the leaves of their one schema. hides_rows: a vector
    will hide rows of the file, so bounds may be wider than what is left, and nothing is known of nulls.
    """
    logged = [load_statistics(text) for text in inputs]
    output: dict[str, Any] = {"numRecords": rows}
    # Bounds that are not tight were left by deletions: they may be wide, and counts of nulls mean nothing.
    are_tight = all(statistics.get("tightBounds", True) is True for statistics in logged)
    if are_tight or hides_rows:
        for column in columns:
            # A number of nulls that may be wide does not say that there is no other value.
            held = logged if hides_rows else [one for one in logged if not _is_all_null(one, column)]
            if held and not column.nested:
                _merge_bounds(output, held, column)
    if are_tight and not hides_rows:
        nulls = _sums([statistics.get("nullCount") for statistics in logged])
        if nulls:
            output["nullCount"] = nulls
        if any("tightBounds" in statistics for statistics in logged):
            output["tightBounds"] = True
    return dump_statistics(output)


def _merge_bounds(output: dict[str, Any], held: Sequence[Mapping[str, Any]], column: Column) -> None:
    order = _ORDERS.get(column.kind)
    is_rounded = column.kind == "decimal" and column.detail[0] > _DIGITS_OF_DOUBLES
    if order is None or is_rounded:
        return
    for section, choose in (("minValues", min), ("maxValues", max)):
        values = [get_statistic(statistics, section, column.path) for statistics in held]
        try:
            best = choose(values, key=order)
        except (ValueError, TypeError):
            continue  # Absent, or of an unknown form: left out.
        if section == "maxValues" and column.kind == "timestamp":
            best = _not_cut(best)
        put_statistic(output, section, column.path, best)


def _is_all_null(statistics: Mapping[str, Any], column: Column) -> bool:
    nulls, rows = get_statistic(statistics, "nullCount", column.path), statistics.get("numRecords")
    return nulls is not None and nulls == rows


def _sums(counts: Sequence[Any]) -> Any:
    """Add numbers of nulls, of a column or of all columns of a struct; None where one is missing."""
    if all(type(count) is int for count in counts):
        return sum(counts)
    if not all(isinstance(count, dict) for count in counts):
        return None
    common = [name for name in counts[0] if all(name in count for count in counts)]
    sums = {name: _sums([count[name] for count in counts]) for name in common}
    return {name: total for name, total in sums.items() if total is not None} or None


def _number(value: object) -> Any:
    if type(value) is int or isinstance(value, Number):
        return Decimal(value)
    raise TypeError(value)


def _float(value: object) -> tuple[int, float, float]:
    """Order floating-point numbers as readers of Delta do: not-a-number is the greatest."""
    if isinstance(value, str) and not isinstance(value, Number):
        return _INFINITIES[value] if value in _INFINITIES else _reject(value)
    number = float(_number(value))
    return (0, number, math.copysign(1.0, number))


def _boolean(value: object) -> bool:
    return value if isinstance(value, bool) else _reject(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else _reject(value)  # Code points order as the bytes of UTF-8 do.


def _day(value: object) -> tuple[str, ...]:
    match = _DATE.fullmatch(_text(value))  # Four digits of a year, of which the text orders as the days do.
    return match.groups() if match else _reject(value)


def _instant(value: object) -> datetime:
    text = _text(value)
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _not_cut(text: str) -> str:
    """Return a greatest instant that no instant exceeds: Spark's Delta cuts them to milliseconds."""
    fraction = re.search(r"\.(\d+)", text)
    if fraction is not None and len(fraction[1]) > 3:  # noqa: PLR2004 - digits of a millisecond
        return text
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return (moment + _ALMOST_A_MILLISECOND).isoformat(timespec="microseconds")
    above = moment.astimezone(UTC) + _ALMOST_A_MILLISECOND
    return above.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _reject(value: object) -> Any:
    raise TypeError(value)


_ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "int": _number,
    "decimal": _number,
    "float": _float,
    "double": _float,
    "text": _text,
    "date": _day,
    "timestamp": _instant,
}
"""How the bounds of a kind of column order; bounds of other kinds are not merged."""
