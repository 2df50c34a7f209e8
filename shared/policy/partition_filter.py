"""A table's filter: which partitions may be touched at all, as a small predicate that means the same everywhere.

    dt >= '2026-01-01' and country in ('de', 'fr') and region is not null

Only partition columns can be named, comparisons are joined by `and`, and null satisfies nothing but `is null`. Numbers
compare as numbers where both sides are numbers, everything else as text, in which dates and timestamps sort rightly.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from shared.partitions import partition_values
from shared.table import PartitionColumn, PartitionKey

MAX_CHARS = 2_000
"""Longest filter: it is kept with every decision."""

_NAME = r"(?:`(?P<quoted>[^`]+)`|(?P<name>[A-Za-z_]\w*))"
_LITERAL = r"(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?)"
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?:(?P<op>=|==|!=|<>|<=|>=|<|>)\s*(?P<literal>{_LITERAL})"
    rf"|(?P<in>in)\s*\(\s*(?P<list>{_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)"
    r"|is\s+(?P<not>not\s+)?null)\s*(?P<and>and\b|$)",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\b(?:current_date|current_timestamp|now)\b", re.IGNORECASE)
_SIGNS = {"=": {0}, "in": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}
"""Outcomes of a comparison that satisfy an operator: -1 less, 0 equal, 1 greater."""

_SPELLINGS = {"==": "=", "<>": "!="}


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison; `operator` is =, !=, <, <=, >, >=, in, null or not null, `values` what is compared with."""

    column: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, value: str | None) -> bool:
        """Return whether a partition value satisfies the comparison."""
        if self.operator in ("null", "not null"):
            return (value is None) == (self.operator == "null")
        if value is None:
            return False
        signs = [_compare(value, other) for other in self.values]
        return any(sign in _SIGNS[self.operator] for sign in signs)


@lru_cache(maxsize=1_024)
def parse_filter(text: str) -> tuple[Condition, ...]:
    """Read a filter; raises ValueError with what is expected."""
    if len(text) > MAX_CHARS:
        raise ValueError(f"expected at most {MAX_CHARS} characters")
    conditions: list[Condition] = []
    position, goes_on = 0, True
    while goes_on:
        found = _CONDITION.match(text, position)
        if found is None and _RELATIVE.search(text, position):
            raise ValueError(
                "expected literals such as dt >= '2026-01-01', and current_date, current_timestamp and now are none: "
                "partitions would enter and leave the filter without a commit. Set the property again as time passes"
            )
        if found is None:
            raise ValueError(
                "expected conditions such as dt >= '2026-01-01' and country in ('de'), "
                f"stopped at {text[position : position + 30]!r}"
            )
        conditions.append(_condition(found))
        position, goes_on = found.end(), bool(found["and"])
    return tuple(conditions)


def permits(text: str | None, partition: PartitionKey, columns: Sequence[PartitionColumn]) -> bool:
    """Return whether a filter lets a partition be touched; a column that it is not partitioned by lets none."""
    if text is None:
        return True
    values = partition_values(partition)
    by_name: Mapping[str, str | None] = (
        {column.name.lower(): values[column.physical] for column in columns if column.physical in values}
        if columns
        else {name.lower(): value for name, value in values.items()}
    )
    return all(
        condition.column.lower() in by_name and condition.holds(by_name[condition.column.lower()])
        for condition in parse_filter(text)
    )


def _condition(found: re.Match[str]) -> Condition:
    column = found["quoted"] or found["name"]
    if found["op"]:
        return Condition(column, _SPELLINGS.get(found["op"], found["op"]), (_value(found["literal"]),))
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
        return (one > other) - (one < other)
    if not all(number.is_finite() for number in numbers):
        return (one > other) - (one < other)
    return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
