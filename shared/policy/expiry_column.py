"""By which column of a table rows may be deleted by their age, whatever its format is."""

from collections.abc import Iterable

from shared.errors import Unsupported
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn

TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types of columns that hold a time."""

DAYS = ("string", "integer", "long")
"""Types of partition columns that may hold days, such as 2026-01-31 or 20260131."""


def expiry_column(
    rule: RowExpiry, columns: Iterable[PartitionColumn], partitioned: Iterable[PartitionColumn]
) -> PartitionColumn:
    """Return the column of a rule: one that the table is partitioned by as it is there.

    columns: of the table's schema, with their names in statistics; the type of one that holds other columns is empty.
    Raises Unsupported where rows must not be deleted by the rule.
    """
    named = f"lakewright.delete-rows-after names the column {rule.column!r}, "
    alike = [one for one in columns if one.name.lower() == rule.column.lower()]
    found = [one for one in alike if one.name == rule.column] or alike
    if len(found) != 1:
        raise Unsupported(f"{named}which the table does not have; no row was deleted", field="delete-rows-after")
    (column,) = found
    partition = next((one for one in partitioned if one.name == column.name), None)
    if column.type not in (TIMES if partition is None else (*TIMES, *DAYS)):
        raise Unsupported(
            f"{named}which is no date or timestamp (nor a partition column with days, as text or number); no row was "
            "deleted",
            field="delete-rows-after",
        )
    return partition or column
