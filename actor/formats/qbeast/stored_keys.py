"""Indexed columns that tasks can read as files store them: those whose values Spark reads as they are there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.columns import Column
from actor.formats.delta.stored_schema import physical_name
from shared.formats.qbeast.transformations import Coordinate

_STORED = {
    "byte": ("int", "INT32"),
    "short": ("int", "INT32"),
    "integer": ("int", "INT32"),
    "long": ("int", "INT64"),
    "float": ("float", "FLOAT"),
    "double": ("double", "DOUBLE"),
    "boolean": ("boolean", "BOOLEAN"),
    "string": ("text", "BINARY"),
    "date": ("date", "INT32"),
}
"""The kind and the physical type in files of a table's type; of decimals and instants there are several."""

_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
_MAPPED = {
    "linear": _NUMBERS,
    "hashing": _NUMBERS | {"boolean", "string"},  # Texts of days and instants depend on the JVM's zone.
    "histogram": frozenset({"string"}),
    "constant": _NUMBERS | {"boolean", "string"},  # Spark reads days and instants of its old calendar as others.
}


@dataclass(frozen=True, slots=True)
class StoredKey:
    """An indexed column: its path in files, and its type in the table."""

    path: tuple[str, ...]
    type: str


def stored_keys(
    coordinates: Sequence[Coordinate], fields: Iterable[Mapping[str, Any]], schemas: Iterable[Sequence[Column]]
) -> tuple[StoredKey, ...] | None:
    """Return the columns of coordinates; None unless all of them are stored plainly in files of these schemas.

    fields: of the table's schema.
    """
    by_name = {field["name"].lower(): field for field in fields}
    leaves = tuple({leaf.path: leaf for leaf in schema} for schema in schemas)
    found = tuple(_stored_key(one, by_name.get(one.column.lower(), {}), leaves) for one in coordinates)
    return None if None in found else tuple(one for one in found if one is not None)


def _stored_key(
    one: Coordinate, field: Mapping[str, Any], schemas: Iterable[Mapping[tuple[str, ...], Column]]
) -> StoredKey | None:
    kind = field.get("type")
    if not isinstance(kind, str) or not _is_mapped(one, kind.partition("(")[0]):
        return None
    path = (physical_name(field),)
    is_plain = all(path in schema and _is_plain(kind, schema[path]) for schema in schemas)
    return StoredKey(path, kind) if is_plain else None


def _is_mapped(one: Coordinate, kind: str) -> bool:
    if one.is_day or one.is_instant:
        return kind == ("date" if one.is_day else "timestamp")
    return kind in _MAPPED[one.kind]


def _is_plain(kind: str, leaf: Column) -> bool:
    if kind == "timestamp":
        return (leaf.kind, leaf.detail) == ("timestamp", ("MICROS", True))
    if leaf.kind == "decimal":
        precision, scale = leaf.detail
        return kind == f"decimal({precision},{scale})"
    return _STORED.get(kind) == (leaf.kind, leaf.physical)
