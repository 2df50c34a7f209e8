"""The columns of an Iceberg table as its schema and its name mapping list them: what its files are compared with."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from actor.proofread.model import Field

MAPPING_PROPERTY = "schema.name-mapping.default"
"""The property of a table that names columns of files without field ids."""

_WIDTHS = {"int": "int32", "long": "int64"}


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Columns of a table, the ids of those that the schema requires, and whether the table has a name mapping."""

    columns: tuple[Field, ...]
    required: frozenset[int] = frozenset()
    is_mapped: bool = False

    def each(self) -> Iterator[tuple[Field, tuple[Field, ...]]]:
        """Yield every column at every level, each with those above it."""
        return _each(self.columns, ())

    def path(self, column_id: int) -> tuple[str, ...] | None:
        """Return the names that lead to a column, None if there is none with this id."""
        for one, above in self.each():
            if one.id == column_id:
                return tuple(parent.name for parent in (*above, one))
        return None


def table_columns(schema: Mapping[str, Any], properties: Mapping[str, str]) -> TableColumns:
    """Decode a schema as Iceberg's metadata hold it, with the mapping that the same metadata name."""
    text = properties.get(MAPPING_PROPERTY)
    decoder = _Decoder()
    if text is not None:
        decoder.note_names(json.loads(text))
    columns = decoder.fields(schema)
    return TableColumns(columns, frozenset(decoder.required), text is not None)


def _each(columns: Iterable[Field], above: tuple[Field, ...]) -> Iterator[tuple[Field, tuple[Field, ...]]]:
    for one in columns:
        yield one, above
        yield from _each(one.children, (*above, one))


class _Decoder:
    """Decodes a schema; `names` are those that the mapping gives to each id."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[str, ...]] = {}
        self.required: set[int] = set()

    def note_names(self, mapped: Iterable[Mapping[str, Any]]) -> None:
        for one in mapped:
            if one.get("field-id") is not None:
                self.names[int(one["field-id"])] = tuple(map(str, one.get("names") or ()))
            self.note_names(one.get("fields") or ())

    def fields(self, struct: Mapping[str, Any]) -> tuple[Field, ...]:
        self.required.update(int(one["id"]) for one in struct["fields"] if one.get("required"))
        return tuple(
            self._column(str(one["name"]), one["type"], int(one["id"]), one.get("initial-default"))
            for one in struct["fields"]
        )

    def _column(self, name: str, kind: Any, column_id: int, default: Any = None) -> Field:
        text = None if default is None else json.dumps(default)
        word, children = self._kind(kind)
        return Field(name, word, column_id, self.names.get(column_id, ()), text, children)

    def _kind(self, kind: Any) -> tuple[str, tuple[Field, ...]]:
        if isinstance(kind, str):
            word = kind.replace(" ", "").replace("[", "(").replace("]", ")")
            return _WIDTHS.get(word, word), ()
        if kind["type"] == "struct":
            return "struct", self.fields(kind)
        parts = ("element",) if kind["type"] == "list" else ("key", "value")
        self.required.update(int(kind[f"{part}-id"]) for part in parts if part == "key" or kind.get(f"{part}-required"))
        return str(kind["type"]), tuple(self._column(part, kind[part], int(kind[f"{part}-id"])) for part in parts)
