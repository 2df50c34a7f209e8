"""Schemas of Avro for files that tests write: a record is its name and the types of its fields."""

from typing import Any


def record(name: str, **fields: Any) -> dict[str, Any]:
    """Return the schema of a record; a field's type is a name, a union or another record."""
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}
