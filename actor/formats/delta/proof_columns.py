"""The columns of a Delta table as its files store them: what proofreading compares.

Partition columns are not among them: files need not hold them, and a group has one value of each. What a file lacks is
null, whatever defaults the schema names: those are for rows that are written.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from actor.proofread.model import Field, FoundBy

_KINDS: Mapping[str, str] = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_ID, _PHYSICAL_NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"


def proof_columns(
    schema: str, partition_columns: Collection[str], mapping_mode: str, row_columns: tuple[str, str] | None = None
) -> tuple[tuple[Field, ...], FoundBy]:
    """Return the columns of a `schemaString`, and how files name them.

    mapping_mode: `none`, `name` or `id`. row_columns: names of the materialized row id and row commit version, where
    the table tracks rows.
    """
    fields = [field for field in json.loads(schema)["fields"] if field["name"] not in partition_columns]
    columns = _struct(fields, is_mapped=mapping_mode != "none")
    if row_columns is not None:
        columns += (Field(row_columns[0], "row_id"), Field(row_columns[1], "row_version"))
    return columns, FoundBy.ID if mapping_mode == "id" else FoundBy.NAME


def _struct(fields: Collection[Mapping[str, Any]], *, is_mapped: bool) -> tuple[Field, ...]:
    return tuple(_field(field, is_mapped=is_mapped) for field in fields)


def _field(field: Mapping[str, Any], *, is_mapped: bool) -> Field:
    metadata = field.get("metadata") or {}
    if not is_mapped:
        return _column(field["name"], field["type"], is_mapped=False)
    physical, number = metadata.get(_PHYSICAL_NAME, field["name"]), metadata.get(_ID)
    return _column(physical, field["type"], is_mapped=True, id=number, shown=field["name"])


def _column(name: str, type_: Any, *, is_mapped: bool, **given: Any) -> Field:
    if isinstance(type_, str):
        return Field(name, "string" if type_.startswith(("char(", "varchar(")) else _KINDS.get(type_, type_), **given)
    match type_["type"]:
        case "struct":
            children, kind = _struct(type_["fields"], is_mapped=is_mapped), "struct"
        case "array":
            children, kind = (_column("element", type_["elementType"], is_mapped=is_mapped),), "list"
        case "map":
            sides = (("key", type_["keyType"]), ("value", type_["valueType"]))
            children, kind = tuple(_column(side, its, is_mapped=is_mapped) for side, its in sides), "map"
        case other:  # A type of the user's, which no reader reads.
            children, kind = (), str(other)
    return Field(name, kind, children=children, **given)
