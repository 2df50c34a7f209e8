"""The property with which a table's writers note bounds of a column that its properties leave out.

Writers note bounds of the columns that `delta.dataSkippingStatsColumns` names; without it, of the first fields that are
no structs, partition columns aside, 32 by default. Source: `StatisticsCollection` of Delta.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from shared.paths.sql_text import quoted
from shared.policy.row_order import split_columns

NAMED, COUNTED = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
DEFAULT_COUNT = "32"
GENERATED = "delta.generationExpression"
MOST_MORE = 32
"""Columns that are given bounds besides: the bounds of more in each entry of the log would cost all its readers."""


def bounds_change(
    configuration: Mapping[str, str],
    fields: Collection[Mapping[str, Any]],
    partition_columns: Collection[str],
    column: str,
) -> Mapping[str, str]:
    """Return the property and its value; none if the properties do not leave the column out, or too many before it.

    None either if a partition column is generated from it: these partitions spare its reads files already. `fields`: of
    the table's schema. `column`: one of their names, not a partition column.
    """
    mention = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)", re.IGNORECASE)
    if any(mention.search(_generated(one)) for one in fields if one["name"] in partition_columns):
        return {}
    if NAMED in configuration:
        names = configuration[NAMED].strip()
        is_named = quoted(column).lower() in map(_spelled, split_columns(names))
        return {} if is_named else {NAMED: f"{names},{quoted(column)}" if names else quoted(column)}
    try:
        count = int(configuration.get(COUNTED, DEFAULT_COUNT))
    except ValueError:
        return {}
    place = 0
    for field in fields:
        place += 0 if field["name"] in partition_columns else _leaves(field.get("type"))
        if field["name"] == column:
            break
    return {COUNTED: str(place)} if 0 <= count < place <= count + MOST_MORE else {}


def _generated(field: Mapping[str, Any]) -> str:
    """Return the expression that generates a field's values; empty if others write them."""
    properties = field.get("metadata")
    return str(properties.get(GENERATED, "")) if isinstance(properties, Mapping) else ""


def _spelled(name: str) -> str:
    """Return a name of the list as `quoted` has it; with a point outside of backticks, it is of a field in a struct."""
    name = name.strip().lower()
    return name if "`" in name or "." in name else quoted(name)


def _leaves(kind: object) -> int:
    """Return how many fields of a type are no structs; an array or a map is one."""
    if not isinstance(kind, Mapping) or kind.get("type") != "struct":
        return 1
    return sum(_leaves(one.get("type")) for one in kind.get("fields") or ())
