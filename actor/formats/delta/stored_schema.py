"""A table's schema as its files are read and written by in a rewrite: names and types, and nothing that is enforced.

A rewrite changes no row, so it checks none: nulls where the table forbids them, texts longer or shorter than declared,
values that a constraint or a generated column contradicts are read and written as they are. An engine that trusts the
declaration would read something else than the file holds.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_KEPT = ("delta.columnMapping.", "delta.typeChanges")
"""Metadata of a field that concern files: how columns are found, and which types older files have.

All else asks a session to pad, to check, to compute or to fill in."""

_CONSTRAINT = "delta.constraints."
_SIZED_TEXT = re.compile(r"(var)?char\(\d+\)")
_NULL = re.compile(r"NULL|CAST\(NULL AS .*\)", re.IGNORECASE | re.DOTALL)
"""A default that Spark fills in as every reader does."""


def as_stored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `metaData` action without constraints, its schema without what is only declared.

    The very same fields if there is nothing of that.
    """
    configuration = metadata.get("configuration") or {}
    kept = {name: value for name, value in configuration.items() if not name.startswith(_CONSTRAINT)}
    declared = json.loads(metadata["schemaString"])
    schema = _type(declared)
    if (schema, kept) == (declared, configuration):
        return dict(metadata)
    return {**metadata, "configuration": kept, "schemaString": json.dumps(schema)}


def columns_with_default(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the names in files, by the names for users, of columns that Spark fills in where a file lacks them.

    Partition columns are none of them: their values are in the log, and no file need have them.
    """
    fields = json.loads(metadata.get("schemaString") or '{"fields":[]}')["fields"]
    partitioned = metadata.get("partitionColumns") or ()
    return {
        field["name"]: physical_name(field)
        for field in fields
        if field["name"] not in partitioned and _is_filled_in(field.get("metadata") or {})
    }


def _is_filled_in(details: Mapping[str, Any]) -> bool:
    return _NULL.fullmatch(str(details.get("EXISTS_DEFAULT", "NULL"))) is None


def physical_name(field: Mapping[str, Any]) -> str:
    """Return the name that files have for a field."""
    name: str = (field.get("metadata") or {}).get("delta.columnMapping.physicalName", field["name"])
    return name


def _type(given: Any) -> Any:
    if isinstance(given, str):
        return "string" if _SIZED_TEXT.fullmatch(given) else given
    match given["type"]:
        case "struct":
            return {**given, "fields": [_field(field) for field in given["fields"]]}
        case "array":
            return {**given, "elementType": _type(given["elementType"]), "containsNull": True}
        case "map":
            values = {"valueType": _type(given["valueType"]), "valueContainsNull": True}
            return {**given, "keyType": _type(given["keyType"]), **values}
    return given


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in (field.get("metadata") or {}).items() if name.startswith(_KEPT)}
    return {**field, "type": _type(field["type"]), "nullable": True, "metadata": metadata}
