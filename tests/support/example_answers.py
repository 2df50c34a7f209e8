"""Answers composed of the API's own description: every field of a schema is there, and a text is the field's name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

VALUES: Mapping[str, Any] = MappingProxyType(
    {
        "complete": True,
        "oldest_waits_s": {"bands": {}, "tenants": {"sales": 12.5}, "tables": {}},
        "quota_occupation": {"tenants": {}, "tables": {}},
        "refusal": None,
    }
)
"""Values of fields by which a command decides what it does or shows."""

_BY_TYPE: Mapping[str, Any] = MappingProxyType({"integer": 3, "number": 12.5, "boolean": False, "null": None})
_BY_FORMAT: Mapping[str, Any] = MappingProxyType({"date-time": "2026-01-01T14:03:07Z"})


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], field: str = "value") -> Any:
    """Return an example for the schema of a field."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, field)
    if "properties" in schema:
        return {name: example_of(part, schemas, name) for name, part in schema["properties"].items()}
    if field in VALUES:
        return VALUES[field]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas, field)
    return _example_by_type(schema, schemas, field)


def _example_by_type(schema: Mapping[str, Any], schemas: Mapping[str, Any], field: str) -> Any:
    match schema.get("type", ""):
        case "array":
            return [example_of(part, schemas, field) for part in schema.get("prefixItems", [schema.get("items", {})])]
        case "object":
            values = schema.get("additionalProperties")
            return {"1": example_of(values, schemas, field)} if isinstance(values, dict) else {}
        case other:
            default = _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(other, field))
            return next(iter(schema.get("enum", ())), default)
