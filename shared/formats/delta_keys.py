"""Why no row of a Delta table may be removed by its key: decided by its properties, metadata and schema alone."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import Unsupported
from shared.formats.delta import PHYSICAL_NAME
from shared.policy.expiry_column import expiry_column
from shared.policy.key_rule import KeyRule
from shared.policy.policy import KeyScope
from shared.policy.row_expiry import RowExpiry
from shared.table import PartitionColumn, TableMetadata

APPEND_ONLY = "delta.appendOnly"
"""Delta's property that forbids to remove rows."""

_COMPARABLE = re.compile(r"byte|short|integer|long|string|date|timestamp|timestamp_ntz|boolean|decimal\(\d+,\s*-?\d+\)")
"""Types whose equality and order are the same in every engine: no floating point, which has NaN and two zeros."""

_COLLATIONS = "__COLLATIONS"
"""Metadata of a field of text that is compared otherwise than by its bytes."""


_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of a field of text that was declared as CHAR or VARCHAR; it has the declaration."""


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """Why no row may be removed by a rule: the property to change, and the reason as a sentence."""

    property: str
    message: str


def append_only_problem(metadata: TableMetadata) -> KeyProblem | None:
    """Return the problem of a table whose owner forbids to remove rows, None for any other."""
    if metadata.configuration.get(APPEND_ONLY, "false").lower() != "true":
        return None
    return KeyProblem(APPEND_ONLY, f"the table has {APPEND_ONLY} = true, which forbids to remove rows")


def find_problem(
    rule: KeyRule, metadata: TableMetadata, fields: Iterable[Mapping[str, Any]] | None = None
) -> KeyProblem | None:
    """Return why rows of a table must not be removed by a rule, None if they may be.

    fields: of the table's schema; None where only its metadata is known, so that columns are not checked.
    """
    if (forbidden := append_only_problem(metadata)) is not None:
        return forbidden
    keys = {name.lower() for name in rule.keys}
    loose = [column.name for column in metadata.partition_columns if column.name.lower() not in keys]
    if loose and rule.scope is KeyScope.TABLE:
        return KeyProblem(
            "key-scope",
            f"the partition column {loose[0]!r} is not in the primary key, so rows of one key can lie in several "
            "partitions, and only those of one partition are compared; add it to lakewright.primary-key, or set "
            "lakewright.key-scope = partition if keys of different partitions are different rows",
        )
    marker = (rule.delete_marker or "").lower()
    if marker in keys | {column.name.lower() for column in metadata.partition_columns}:
        return KeyProblem(
            "delete-marker",
            f"lakewright.delete-marker: {rule.delete_marker!r} is a column of the key or of the partitions, so a "
            "marked row is never compared with the rows that it deletes: without it they would be back",
        )
    if fields is None:
        return None
    by_name = {str(field["name"]).lower(): field for field in fields}
    return _padded_partition(rule, metadata, by_name) or _column_problem(rule, by_name)


def _padded_partition(
    rule: KeyRule, metadata: TableMetadata, fields: Mapping[str, Mapping[str, Any]]
) -> KeyProblem | None:
    """Return the problem of a partition column whose equal values may lie in several partitions."""
    for column in metadata.partition_columns if rule.scope is KeyScope.TABLE else ():
        declared = (fields.get(column.name.lower(), {}).get("metadata") or {}).get(_DECLARED, "")
        if str(declared).lower().startswith("char("):
            return KeyProblem(
                "key-scope",
                f"the partition column {column.name!r} is of type CHAR, whose values are stored with and without the "
                "blanks at their end: rows of one key can lie in several partitions, and only those of one partition "
                "are compared; set lakewright.key-scope = partition if these are different rows",
            )
    return None


def _column_problem(rule: KeyRule, fields: Mapping[str, Mapping[str, Any]]) -> KeyProblem | None:
    named = [("primary-key", name) for name in rule.keys] + [("sequence-by", name) for name in rule.sequence]
    for prop, name in named:
        field = fields.get(name.lower())
        if field is None:
            return KeyProblem(prop, f"lakewright.{prop} names the column {name!r}, which the table does not have")
        kind = field.get("type")
        if not isinstance(kind, str) or not _COMPARABLE.fullmatch(kind) or _COLLATIONS in (field.get("metadata") or {}):
            return KeyProblem(
                prop, f"lakewright.{prop} names the column {name!r}, whose type is not compared alike by all engines"
            )
    if rule.delete_marker is None:
        return None
    marker = fields.get(rule.delete_marker.lower())
    if marker is None or marker.get("type") != "boolean":
        return KeyProblem("delete-marker", f"lakewright.delete-marker: {rule.delete_marker!r} is no boolean column")
    return None


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
