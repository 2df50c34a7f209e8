"""By which column of a Delta table rows may be deleted by their age: decided by its properties, metadata and schema."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.errors import Unsupported
from shared.formats.delta import PHYSICAL_NAME
from shared.formats.delta_keys import append_only_problem
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn, TableMetadata

TIMES = ("date", "timestamp", "timestamp_ntz")
"""Types of columns that hold a time."""

DAYS = ("string", "integer", "long")
"""Types of partition columns that may hold days, such as 2026-01-31 or 20260131."""


def expiry_column(rule: RowExpiry, metadata: TableMetadata, fields: Iterable[Mapping[str, Any]]) -> PartitionColumn:
    """Return the column of a rule with its own name, its name in statistics, and its type.

    fields: of the table's schema. Raises Unsupported where rows must not be deleted by the rule.
    """
    problem = append_only_problem(metadata)
    if problem is not None:
        raise Unsupported(f"{problem.message}; no row was deleted", field=problem.property)
    named = f"lakewright.delete-rows-after names the column {rule.column!r}, "
    field = next((one for one in fields if str(one.get("name")).lower() == rule.column.lower()), None)
    if field is None:
        raise Unsupported(f"{named}which the table does not have; no row was deleted", field="delete-rows-after")
    name, kind = str(field["name"]), field.get("type")
    partitioned = next((one for one in metadata.partition_columns if one.name == name), None)
    if not isinstance(kind, str) or kind not in (TIMES if partitioned is None else (*TIMES, *DAYS)):
        raise Unsupported(
            f"{named}which is no date or timestamp (nor a partition column with days, as text or number); no row was "
            "deleted",
            field="delete-rows-after",
        )
    if partitioned is not None:
        return partitioned
    is_mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    physical = (field.get("metadata") or {}).get(PHYSICAL_NAME, name) if is_mapped else name
    return PartitionColumn(name, str(physical), kind)
