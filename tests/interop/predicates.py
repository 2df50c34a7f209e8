"""Predicates for a table's columns, from the values that its rows have: what they find is known from the model."""

import pyarrow.types as kinds

from tests.interop.engines.protocol import Predicate
from tests.interop.operations import Model
from tests.interop.table_case import Case, Column
from tests.interop.values import plain

_MOST_VALUES = 4


def predicates_of(case: Case) -> tuple[Predicate, ...]:
    """Return some predicates for each column that all engines can compare; floats only for equality, for NaN's sake."""
    return tuple(predicate for column in case.all_columns for predicate in _for_column(case, column))


def _for_column(case: Case, column: Column) -> list[Predicate]:
    kind = column.arrow
    if kinds.is_nested(kind) or kinds.is_binary(kind):
        return []
    rows = [case.python_row(key)[column.name] for number in range(case.batches) for key in case.batch(number)]
    values = list(dict.fromkeys(value for value in rows if value is not None))
    if kinds.is_boolean(kind):
        return [Predicate(column.name, "=", value) for value in values]
    if kinds.is_floating(kind):
        return [Predicate(column.name, "=", value) for value in values if value and abs(value) < 10]
    if not values:
        return []
    values.sort()
    chosen = list(dict.fromkeys([values[0], values[-1], *values[1:-1]]))[:_MOST_VALUES]
    return [
        *(Predicate(column.name, "=", value) for value in chosen),
        Predicate(column.name, ">=", values[-1]),
        Predicate(column.name, ">", values[-1], is_impossible=True),
        Predicate(column.name, "<", values[0], is_impossible=True),
    ]


def expected_keys(case: Case, model: Model, predicate: Predicate) -> tuple[int, ...]:
    """Return the keys of the rows that satisfy a predicate."""
    wanted = plain(case.column(predicate.column).arrow, predicate.value)
    return tuple(sorted(key for key, row in model.items() if _holds(row[predicate.column], predicate.op, wanted)))


def _holds(value: object, op: str, wanted: object) -> bool:
    if value is None:
        return False
    match op:
        case "=":
            return value == wanted
        case ">=":
            return bool(value >= wanted)  # type: ignore[operator]
        case ">":
            return bool(value > wanted)  # type: ignore[operator]
        case _:
            return bool(value < wanted)  # type: ignore[operator]
