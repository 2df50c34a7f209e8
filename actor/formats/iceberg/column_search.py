"""Search for the field of a column in a file: by its id, by the name mapping without ids, never by its place.

Readers disagree where a file says it in part: Iceberg's reader in Spark takes a field without id for a column that is
missing as soon as any other has one, while the specification and others ask the name mapping. Without any id and
without a mapping it counts places. A rewrite would make what it reads final, so such files are not rewritten.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from actor.formats.iceberg.table_columns import MAPPING_PROPERTY, TableColumns
from actor.formats.parquet.file_columns import FileSchema, ParquetField
from actor.proofread.model import Field

_BY_PLACE = (
    f"no column has a field id, and the table has no {MAPPING_PROPERTY}, so that readers would take columns by their "
    f"place; set {MAPPING_PROPERTY}"
)


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """The fields of files by the ids of the table's columns, and why a column is unclear, for each that is."""

    fields: Mapping[int, ParquetField] = field(default_factory=dict, hash=False)
    unclear: tuple[str, ...] = ()


def find_columns(table: TableColumns, files: FileSchema) -> FoundColumns:
    """Find the columns of a table in files of one schema."""
    search = _Search(has_ids=files.has_ids, is_mapped=table.is_mapped)
    if files.fields and not files.has_ids and not table.is_mapped:
        return FoundColumns(unclear=(_BY_PLACE,))
    search.struct(table.columns, files.fields, "")
    return FoundColumns(search.fields, tuple(search.unclear))


def unclear_keys(keys: Sequence[tuple[int, str]], files: FileSchema) -> tuple[str, ...]:
    """Return why the columns with these ids and names are unclear in delete files, which readers find by ids alone."""
    counts: dict[int | None, int] = {}
    for top in files.fields:
        for one in top.each():
            counts[one.id] = counts.get(one.id, 0) + 1
    return tuple(
        f"the column {name} of the delete file has no field id ({column_id}), so that some readers take it by its place"
        if not counts.get(column_id)
        else f"several columns of the delete file have the field id {column_id} of {name}"
        for column_id, name in keys
        if counts.get(column_id) != 1
    )


def may_hold_forbidden_nulls(table: TableColumns, found: FoundColumns) -> bool:
    """Return whether files may hold nulls in required columns, as writers without checks leave them.

    An engine that trusts the schema reads any value there.
    """
    return any(
        one.id in table.required and _may_be_null(one, found.fields)
        for one, above in table.each()
        if all(parent.id in found.fields for parent in above)
    )


def _may_be_null(column: Field, fields: Mapping[int, ParquetField]) -> bool:
    stored = None if column.id is None else fields.get(column.id)
    return column.default is None if stored is None else stored.repetition == "OPTIONAL"


@dataclass(slots=True)
class _Search:
    """A walk over both trees."""

    has_ids: bool
    is_mapped: bool
    fields: dict[int, ParquetField] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    def struct(self, columns: Sequence[Field], stored: Sequence[ParquetField], above: str) -> None:
        by_id: dict[int, ParquetField] = {}
        for one in stored:
            if one.id is not None and by_id.setdefault(one.id, one) is not one:
                self.unclear.append(f"the columns {above}{by_id[one.id].name} and {above}{one.name} have one field id")
        nameless = [one for one in stored if one.id is None]
        for column in columns:
            path = f"{above}{column.name}"
            self._column(column, by_id.get(column.id or 0) or self._by_name(column, nameless, path), path)

    def _by_name(self, column: Field, nameless: Sequence[ParquetField], path: str) -> ParquetField | None:
        """Return the field without id that is a column: the one that the mapping names, where all readers ask it."""
        mapped = next((one for one in nameless if one.name in column.mapped), None)
        if mapped is not None and not self.has_ids:
            return mapped
        if mapped is not None:
            self.unclear.append(
                f"the column {path} has no field id, while others have: some readers find it by the table's "
                f"{MAPPING_PROPERTY}, and others read null"
            )
        elif any(one.name == column.name for one in nameless):
            self.unclear.append(
                f"the column {path} has no field id, and the table's {MAPPING_PROPERTY} does not name it"
                if self.is_mapped
                else f"the column {path} has no field id, while others have, and the table has no {MAPPING_PROPERTY}"
            )
        return None

    def _column(self, column: Field, stored: ParquetField | None, path: str) -> None:
        if stored is None or column.id is None:
            return
        if not _is_alike(column, stored):
            self.unclear.append(f"the column {path} is a {column.kind}, and is stored as something else")
            return
        self.fields[column.id] = stored
        if column.kind == "struct":
            self.struct(column.children, stored.children, f"{path}.")
            return
        for part, inner in _parts(column, stored):
            self._part(part, inner, f"{path}.{part.name}")

    def _part(self, part: Field, inner: ParquetField, path: str) -> None:
        """An element, a key or a value: the only one at its place, but readers want its id all the same."""
        if inner.id == part.id or (not self.has_ids and part.name in part.mapped):
            self._column(part, inner, path)
        else:
            self.unclear.append(
                f"{path} has not the field id {part.id}, so that some readers find nothing there"
                if self.has_ids
                else f"the table's {MAPPING_PROPERTY} does not name {path}"
            )


def _is_alike(column: Field, stored: ParquetField) -> bool:
    match column.kind:
        case "list":
            return stored.element is not None
        case "map":
            return stored.entry is not None
        case kind:
            return not stored.physical if kind in ("struct", "variant") else bool(stored.physical)


def _parts(column: Field, stored: ParquetField) -> Iterator[tuple[Field, ParquetField]]:
    if column.kind == "list" and stored.element is not None:
        yield column.children[0], stored.element
    elif column.kind == "map" and stored.entry is not None:
        yield from zip(column.children, stored.entry, strict=True)
