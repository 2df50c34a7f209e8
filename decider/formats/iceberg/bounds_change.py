"""The property with which a table's writers note bounds of a column that its properties leave out.

A column's own mode decides, else the table's default; without one, the first columns have bounds, 100 by default.
Source: `MetricsConfig` of Apache Iceberg.
"""

from collections.abc import Mapping

MODES = "write.metadata.metrics."
COLUMN, DEFAULT, INFERRED = f"{MODES}column.", f"{MODES}default", f"{MODES}max-inferred-column-defaults"
DEFAULT_COUNT = "100"
WITH_BOUNDS = "truncate(16)"
"""The mode that columns have by default."""


def bounds_change(configuration: Mapping[str, str], columns: Mapping[str, object], column: str) -> Mapping[str, str]:
    """Return the property and its value; none if the properties do not leave the column out.

    `columns`: the schema's, in its order. `column`: one of their names.
    """
    mode = configuration.get(COLUMN + column, configuration.get(DEFAULT))
    is_left_out = _is_beyond(configuration, columns, column) if mode is None else mode.lower() in ("none", "counts")
    return {COLUMN + column: WITH_BOUNDS} if is_left_out else {}


def _is_beyond(configuration: Mapping[str, str], columns: Mapping[str, object], column: str) -> bool:
    try:
        count = int(configuration.get(INFERRED, DEFAULT_COUNT))
    except ValueError:
        return False
    return 0 <= count <= [*columns].index(column)
