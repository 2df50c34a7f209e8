"""The columns of Parquet files, as footers store them and as DuckDB names them.

DuckDB renames columns whose names differ in nothing but case (`V_1` beside `v`), so its names are taken by place. Lists
have one child, their element, and maps two, whatever the groups between them are called.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from actor.proofread.model import CannotRead
from actor.proofread.sql import literal, quoted, read_parquet

NESTED = frozenset({"struct", "list", "map"})


@dataclass(frozen=True, slots=True)
class FileField:
    """A field of a file: its name in the footer, its id if it has one, and what DuckDB calls it.

    type: `struct`, `list`, `map`, or a type of DuckDB.
    """

    name: str
    id: int | None
    type: str
    sql: str = ""
    children: tuple["FileField", ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaFiles:
    """Files whose footers hold the same columns."""

    fields: tuple[FileField, ...]
    paths: tuple[str, ...]


def require_positions(fields: Iterable[FileField]) -> None:
    """Raise CannotRead where a column has a name that DuckDB gives to places and positions."""
    for field in fields:
        if field.name.casefold() in ("filename", "file_row_number"):
            raise CannotRead(f"a column called {quoted(field.name)}, beside deleted rows or row ids")


_Entry = tuple[Any, ...]
_FOOTER = (
    "name, type, num_children, repetition_type, converted_type, field_id, logical_type, type_length, scale, precision"
)


def read_footers(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> dict[str, tuple[_Entry, ...]]:
    """Return the schema of each file, depth first, by one query."""
    found: dict[str, list[_Entry]] = {}
    for row in connection.execute(f"SELECT file_name, {_FOOTER} FROM parquet_schema([{_list(paths)}])").fetchall():
        found.setdefault(row[0], []).append(row[1:])
    return {path: tuple(found[path]) for path in paths}


def read_schemas(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> tuple[SchemaFiles, ...]:
    """Return the files by their columns."""
    by_footer: dict[tuple[_Entry, ...], list[str]] = {}
    for path, footer in read_footers(connection, paths).items():
        by_footer.setdefault(footer[1:], []).append(path)
    return tuple(SchemaFiles(_fields(connection, same[0], footer), tuple(same)) for footer, same in by_footer.items())


def _list(paths: Iterable[str]) -> str:
    return ", ".join(map(literal, paths))


@dataclass(frozen=True, slots=True)
class _Group:
    entry: _Entry
    children: tuple["_Group", ...]


def _fields(connection: duckdb.DuckDBPyConnection, path: str, entries: tuple[_Entry, ...]) -> tuple[FileField, ...]:
    remaining = iter(entries)
    groups = tuple(_tree(remaining, entry) for entry in remaining)
    relation = connection.sql(f"SELECT * FROM {read_parquet([path])} LIMIT 0")
    described = zip(groups, relation.columns, relation.types, strict=True)
    return tuple(_field(group, sql, type_) for group, sql, type_ in described)


def _tree(remaining: Iterator[_Entry], entry: _Entry) -> _Group:
    return _Group(entry, tuple(_tree(remaining, next(remaining)) for _ in range(entry[2] or 0)))


def _field(group: _Group, sql: str, type_: DuckDBPyType) -> FileField:
    """Join a column of the footer with the type that DuckDB gives it."""
    name, _, _, _, _, number, *_ = group.entry
    match type_.id:
        case "struct":
            children: Any = type_.children
            parts = zip(group.children, children, strict=True)
            below = tuple(_field(one, part, part_type) for one, (part, part_type) in parts)
            return FileField(name, number, "struct", sql, below)
        case "list":
            return FileField(name, number, "list", sql, (_element(group, _parts(type_)["child"]),))
        case "map":
            sides, entries = _parts(type_), group.children[0].children
            below = tuple(_field(one, "", sides[side]) for one, side in zip(entries, ("key", "value"), strict=True))
            return FileField(name, number, "map", sql, below)
        case _:
            if group.children and type_.id != "variant":
                raise CannotRead(f"column {quoted(name)}: DuckDB reads a group as {type_}")
            return FileField(name, number, str(type_), sql)


def _parts(type_: DuckDBPyType) -> dict[str, Any]:
    """Return the types within a list or a map by their role."""
    parts: Any = type_.children
    return dict(parts)


def _element(group: _Group, type_: DuckDBPyType) -> FileField:
    """Return the element of a list, by the rules of Parquet for lists of older writers."""
    if not group.children:  # A repeated column without a list around it: it is its own element.
        return FileField("element", None, str(type_))
    repeated = group.children[0]
    if group.entry[3] == "REPEATED":  # A repeated group without a list around it.
        return _field(_once(group), "", type_)
    name = repeated.entry[0]
    is_element = len(repeated.children) != 1 or name == "array" or name == f"{group.entry[0]}_tuple"
    return _field(_once(repeated) if is_element else repeated.children[0], "", type_)


def _once(group: _Group) -> _Group:
    """Return a repeated group as the element that it repeats."""
    return _Group((*group.entry[:3], "OPTIONAL", *group.entry[4:]), group.children)
