"""The property with which a table's writers note bounds of a column that its properties leave out.

Writers note bounds of the columns that `delta.dataSkippingStatsColumns` names; without it, of the first fields that are
no structs, partition columns aside, 32 by default. Source: `StatisticsCollection` of Delta.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.paths.sql_text import quoted

NAMED, COUNTED = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
DEFAULT_COUNT = "32"


def bounds_change(
    configuration: Mapping[str, str], fields: Iterable[Mapping[str, Any]], partition_columns: Iterable[str], column: str
) -> Mapping[str, str]:
    """Return the property and its value; none if the properties do not leave the column out.

    `fields`: of the table's schema. `column`: one of their names, not a partition column.
    """
    if NAMED in configuration:
        names = [name for one in configuration[NAMED].split(",") if (name := one.strip())]
        is_named = {column.lower(), quoted(column).lower()} & {name.lower() for name in names}
        return {} if is_named else {NAMED: ",".join([*names, quoted(column)])}
    try:
        count = int(configuration.get(COUNTED, DEFAULT_COUNT))
    except ValueError:
        return {}
    place, partitions = 0, {*partition_columns}
    for field in fields:
        place += 0 if field["name"] in partitions else _leaves(field.get("type"))
        if field["name"] == column:
            break
    return {COUNTED: str(place)} if 0 <= count < place else {}


def _leaves(kind: object) -> int:
    """Return how many fields of a type are no structs; an array or a map is one."""
    if not isinstance(kind, Mapping) or kind.get("type") != "struct":
        return 1
    return sum(_leaves(one.get("type")) for one in kind.get("fields") or ())
