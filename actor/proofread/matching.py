"""Matching of a file's fields with the table's columns, as the format says; never by place, never by DuckDB's options.

By id: the field with the column's id. In a file without any ids, the field whose name the table's name mapping allows.
A file with ids in part is read in different ways by different readers, so it is refused, as is one without ids where
there is no mapping. By name: the field of exactly this name; columns in which Delta keeps what identifies rows have
no ids, and are found so in every file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from actor.proofread.file_fields import NESTED, FileField
from actor.proofread.model import CannotRead, ColumnsUnclear, Field, FoundBy
from actor.proofread.sql import quoted


@dataclass(frozen=True, slots=True)
class Found:
    """A column with its field, None where the file lacks it; then `text` is its value, None is null.

    A struct that the file lacks has a `text` if it is not null; its children have values of their own.
    """

    column: Field
    field: FileField | None
    children: tuple["Found", ...] = ()
    text: str | None = None


def match(
    columns: Sequence[Field],
    fields: Sequence[FileField],
    found_by: FoundBy,
    constants: Mapping[int, str | None] | None = None,
) -> tuple[Found, ...]:
    """Return each column with its field, or with the value that its absence means.

    Raises ColumnsUnclear, and CannotRead where a field is nested in another way than its column.
    """
    has_ids = any(map(_has_id, fields))
    if found_by is FoundBy.ID and not has_ids and not any(map(_is_mapped, columns)):
        raise ColumnsUnclear("a file has no field ids, and the table has no name mapping")
    return _Matching(found_by, has_ids, constants or {}).structs(columns, fields)


def absent(column: Field, text: str | None = None) -> Found:
    """Return what a column has that a file lacks: its default or null; `text`: the value of its partition."""
    value = _plain(column) if text is None else text
    children = column.children
    if column.kind == "struct" and value is not None:
        return Found(column, None, tuple(map(absent, children)), value)
    if column.kind in NESTED and value is not None:
        raise CannotRead(f"column {quoted(column.name)}: a default of a {column.kind}")
    nothing = (replace(child, default=None) for child in children)
    return Found(column, None, tuple(map(absent, nothing)), value)


@dataclass(frozen=True, slots=True)
class _Matching:
    found_by: FoundBy
    has_ids: bool
    constants: Mapping[int, str | None]

    def structs(self, columns: Sequence[Field], fields: Sequence[FileField]) -> tuple[Found, ...]:
        """Match the columns of one level."""
        if self._is_by_id:
            named = {column.name for column in columns if _is_named(column)}
            for field in fields:
                if field.id is None and field.name not in named:
                    raise ColumnsUnclear(f"a file gives ids to some fields, and none to {quoted(field.name)}")
        by_key: dict[str | int | None, list[FileField]] = {}
        for field in fields:
            is_by_id = self._is_by_id and field.id is not None
            by_key.setdefault(field.id if is_by_id else field.name, []).append(field)
        cases = {field.name.casefold(): field.name for field in fields} if self.found_by is FoundBy.NAME else {}
        return tuple(self._one(column, by_key, cases) for column in columns)

    @property
    def _is_by_id(self) -> bool:
        return self.found_by is FoundBy.ID and self.has_ids

    def _one(
        self, column: Field, by_key: Mapping[str | int | None, Sequence[FileField]], cases: Mapping[str, str]
    ) -> Found:
        hits = [field for key in self._keys(column) for field in by_key.get(key, ())]
        if len(hits) > 1:
            raise ColumnsUnclear(f"a file has {len(hits)} fields for the column {quoted(column.name)}")
        if hits:
            return self._below(column, hits[0])
        if column.id is not None and column.id in self.constants:
            return absent(replace(column, default=None), self.constants[column.id])
        if other := cases.get(column.name.casefold()):
            # Some readers take it for the column, others read nulls.
            raise ColumnsUnclear(f"a file has a field {quoted(other)} for the column {quoted(column.name)}")
        return absent(column)

    def _keys(self, column: Field) -> tuple[str | int, ...]:
        """Return the ids or names that a column has in the file."""
        if self.found_by is FoundBy.NAME or _is_named(column):
            return (column.name,)
        if not self.has_ids:
            return tuple(dict.fromkeys(column.mapped))
        if column.id is None:
            raise ColumnsUnclear(f"the table gives no id to the column {quoted(column.name)}")
        return (column.id,)

    def _below(self, column: Field, field: FileField) -> Found:
        if (column.kind in NESTED or field.type in NESTED) and column.kind != field.type:
            raise CannotRead(f"column {quoted(column.name)}: a file has {field.type} for {column.kind}")
        match column.kind:
            case "struct":
                return Found(column, field, self.structs(column.children, field.children))
            case "list" | "map":
                return Found(column, field, tuple(map(self._part, column.children, field.children)))
            case _:
                return Found(column, field)

    def _part(self, column: Field, field: FileField) -> Found:
        """Match an element, a key or a value: there is only one that it can be."""
        if self.found_by is FoundBy.ID and column.id is not None:
            if self.has_ids and field.id != column.id:
                raise ColumnsUnclear(f"a file gives the id {field.id} to {quoted(column.name)}, the table {column.id}")
            if not self.has_ids and not column.mapped:
                raise ColumnsUnclear(f"a file gives no id to {quoted(column.name)}, and the table's mapping has none")
        return self._below(column, field)


def _has_id(field: FileField) -> bool:
    return field.id is not None or any(map(_has_id, field.children))


def _is_named(column: Field) -> bool:
    return column.kind in ("row_id", "row_version") and column.id is None


def _is_mapped(column: Field) -> bool:
    return bool(column.mapped) or any(map(_is_mapped, column.children))


def _plain(column: Field) -> str | None:
    """Return a default, which is JSON, as the text that a cast understands."""
    if column.default is None:
        return None
    value = json.loads(column.default, parse_float=str, parse_int=str)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else column.default
