"""By which column of a Delta table rows may be deleted by their age: decided by its properties, metadata and schema."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.errors import Unsupported
from shared.formats.delta import PHYSICAL_NAME
from shared.formats.delta_keys import append_only_problem
from shared.policy.expiry_column import expiry_column
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn, TableMetadata


def delta_expiry_column(
    rule: RowExpiry, metadata: TableMetadata, fields: Iterable[Mapping[str, Any]]
) -> PartitionColumn:
    """Return the column of a rule with its own name, its name in statistics, and its type.

    fields: of the table's schema. Raises Unsupported where rows must not be deleted by the rule.
    """
    problem = append_only_problem(metadata)
    if problem is not None:
        raise Unsupported(f"{problem.message}; no row was deleted", field=problem.property)
    is_mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    return expiry_column(rule, (_column(one, is_mapped=is_mapped) for one in fields), metadata.partition_columns)


def _column(field: Mapping[str, Any], *, is_mapped: bool) -> PartitionColumn:
    name, kind = str(field.get("name")), field.get("type")
    physical = (field.get("metadata") or {}).get(PHYSICAL_NAME, name) if is_mapped else name
    return PartitionColumn(name, str(physical), kind if isinstance(kind, str) else "")
