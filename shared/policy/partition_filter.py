"""A table's filter: which partitions may be touched at all, as a small predicate that means the same everywhere.

    dt >= '2026-01-01' and country in ('de', 'fr') and region is not null
    dt >= current_date - 7 days and hour < current_timestamp - 2 hours

Only partition columns can be named, comparisons are joined by `and`, and null satisfies nothing but `is null`. Numbers
compare as numbers where both sides are numbers, everything else as text, in which dates and timestamps sort rightly.
With moments (see `moments`), values compare as the moments that they name; one that names none satisfies nothing.

Partitions enter and leave a filter with moving moments as time goes on. Who evaluates it says as of when.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypeVar

from shared.partitions import partition_values
from shared.policy.moments import EXPECTED, LITERAL, MOVING, Moment, MovingMoment, changes_ms, moment_of, parse_moment
from shared.table import PartitionColumn, PartitionKey

MAX_CHARS = 2_000
"""Longest filter: it is kept with every decision."""

_NAME = r"(?:`(?P<quoted>[^`]+)`|(?P<name>[A-Za-z_]\w*))"
_LITERAL = r"(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?)"
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?:(?P<op>=|==|!=|<>|<=|>=|<|>)\s*(?P<literal>{_LITERAL}|{LITERAL}|{MOVING})"
    rf"|(?P<in>in)\s*\(\s*(?P<list>{_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)"
    r"|is\s+(?P<not>not\s+)?null)\s*(?P<and>and\b|$)",
    re.IGNORECASE,
)
_MOMENT = re.compile(r"\b(?:current_date|current_timestamp|now|date|timestamp)\b", re.IGNORECASE)
_SIGNS = {"=": {0}, "in": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}
"""Outcomes of a comparison that satisfy an operator: -1 less, 0 equal, 1 greater."""

_SPELLINGS = {"==": "=", "<>": "!="}

_T = TypeVar("_T", str, Decimal, datetime)


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison; `operator` is =, !=, <, <=, >, >=, in, null or not null, `values` what is compared with.

    moment: compared with instead of values. span: where that is in the filter.
    """

    column: str
    operator: str
    values: tuple[str, ...] = ()
    moment: Moment | MovingMoment | None = None
    span: tuple[int, int] = (0, 0)

    def holds(self, value: str | None, at_ms: int = 0) -> bool:
        """Return whether a partition value satisfies the comparison at a time in ms since 1970."""
        if self.operator in ("null", "not null"):
            return (value is None) == (self.operator == "null")
        if value is None:
            return False
        if self.moment is not None:
            named = moment_of(value)
            return named is not None and _sign(named, self.moment.when(at_ms).at) in _SIGNS[self.operator]
        signs = [_compare(value, other) for other in self.values]
        return any(sign in _SIGNS[self.operator] for sign in signs)

    def changes_ms(self, value: str | None) -> tuple[int, ...]:
        """Return the only times at which `holds` may change for a value."""
        if value is None or not isinstance(self.moment, MovingMoment):
            return ()
        named = moment_of(value)
        return () if named is None else changes_ms(self.moment, named)


@lru_cache(maxsize=1_024)
def parse_filter(text: str) -> tuple[Condition, ...]:
    """Read a filter; raises ValueError with what is expected."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"expected at most {MAX_CHARS} characters")
    conditions: list[Condition] = []
    position, goes_on = 0, True
    while goes_on:
        found = _CONDITION.match(text, position)
        if found is None:
            or_moments = f", or {EXPECTED}" if _MOMENT.search(text, position) else ""
            raise ValueError(
                f"expected conditions such as dt >= '2026-01-01' and country in ('de'){or_moments}, "
                f"stopped at {text[position : position + 60]!r}"
            )
        conditions.append(_condition(found))
        position, goes_on = found.end(), bool(found["and"])
    return tuple(conditions)


def permits(text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn], at_ms: int) -> bool:
    """Return whether a filter lets a partition be touched at a time in ms since 1970.

    A column that it is not partitioned by lets none.
    """
    if text is None:
        return True
    by_name = _values_by_name(partition, columns)
    return all(
        condition.column.lower() in by_name and condition.holds(by_name[condition.column.lower()], at_ms)
        for condition in parse_filter(text)
    )


def is_relative(text: str | None) -> bool:
    """Return whether partitions enter or leave a filter as time goes on."""
    return text is not None and any(isinstance(one.moment, MovingMoment) for one in parse_filter(text))


def lets_in(text: str | None) -> bool:
    """Return whether partitions may enter a filter as time goes on, instead of only leaving it."""
    return text is not None and any(
        isinstance(one.moment, MovingMoment) and one.operator not in (">", ">=") for one in parse_filter(text)
    )


def literal_filter(text: str, at_ms: int) -> str:
    """Return a filter with literals instead of moving moments, as of a time in ms since 1970."""
    for condition in reversed(parse_filter(text)):
        if isinstance(condition.moment, MovingMoment):
            start, end = condition.span
            text = f"{text[:start]}{condition.moment.when(at_ms)}{text[end:]}"
    return text


def describe_moving(text: str | None, at_ms: int) -> tuple[str, ...]:
    """Return a note on which literals a filter with moving moments has at a time in ms since 1970; else none."""
    if text is None or not is_relative(text):
        return ()
    return (f"lakewright.filter = {text} is now {literal_filter(text, at_ms)}",)


def permitted_from_ms(
    text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn], at_ms: int
) -> int | None:
    """Return the first time from `at_ms` on at which a filter lets a partition be touched; None: it never does."""
    return at_ms if permits(text, partition, columns, at_ms) else next_entry_ms(text, partition, columns, at_ms)


def next_entry_ms(
    text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn], at_ms: int
) -> int | None:
    """Return when a partition enters a filter next, after a time in ms since 1970; None: it never does."""
    changes = sorted({at for at in _changes_ms(text, partition, columns) if at > at_ms})
    return next((at for at in changes if _enters(text, partition, columns, at)), None)


def _enters(text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn], at_ms: int) -> bool:
    return permits(text, partition, columns, at_ms) and not permits(text, partition, columns, at_ms - 1)


def _changes_ms(text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn]) -> Iterator[int]:
    """Yield all times at which a filter may let a partition in or out."""
    if text is None or not is_relative(text):
        return
    by_name = _values_by_name(partition, columns)
    for condition in parse_filter(text):
        yield from condition.changes_ms(by_name.get(condition.column.lower()))


def _values_by_name(partition: PartitionKey, columns: Sequence[PartitionColumn]) -> Mapping[str, str | None]:
    """Return a partition's values by the names that users know, in small letters."""
    values = partition_values(partition)
    if not columns:
        return {name.lower(): value for name, value in values.items()}
    return {column.name.lower(): values[column.physical] for column in columns if column.physical in values}


def _condition(found: re.Match[str]) -> Condition:
    column = found["quoted"] or found["name"]
    if found["op"]:
        operator, literal = _SPELLINGS.get(found["op"], found["op"]), found["literal"]
        if literal[0].isalpha():
            return Condition(column, operator, moment=parse_moment(literal), span=found.span("literal"))
        return Condition(column, operator, (_value(literal),))
    if found["in"]:
        return Condition(column, "in", tuple(_value(one) for one in re.findall(_LITERAL, found["list"])))
    return Condition(column, "not null" if found["not"] else "null")


def _value(literal: str) -> str:
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def _compare(one: str, other: str) -> int:
    """Return -1, 0 or 1 for less, equal, greater."""
    try:
        numbers = Decimal(one), Decimal(other)
    except InvalidOperation:
        return _sign(one, other)
    if not all(number.is_finite() for number in numbers):
        return _sign(one, other)
    return _sign(*numbers)


def _sign(one: _T, other: _T) -> int:
    return (one > other) - (one < other)
