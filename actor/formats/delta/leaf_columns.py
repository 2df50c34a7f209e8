"""The leaf columns of a Delta table in the schemas of its files: found by name or id at every level, never by place."""

from collections.abc import Iterator, Sequence

from actor.formats.parquet.file_columns import ParquetField
from actor.formats.parquet.leaf_check import LeafColumn
from actor.proofread.model import Field, FoundBy

Path = tuple[str, ...]


def leaf_columns(columns: Sequence[Field], above: tuple[Field, ...] = ()) -> Iterator[LeafColumn]:
    """Yield the columns at every level with the paths by which `stored_fields` finds them."""
    for column in columns:
        if not column.kind.startswith("row_"):  # Rows without an id of their own inherit one.
            yield tuple(one.name for one in (*above, column)), column, above
            yield from leaf_columns(column.children, (*above, column))


def stored_fields(
    columns: Sequence[Field], fields: Sequence[ParquetField], found_by: FoundBy, above: Path = ()
) -> Iterator[tuple[Path, ParquetField]]:
    """Yield the fields of one schema of files with the paths of their columns."""
    by_key = {one.id if found_by is FoundBy.ID else one.name: one for one in fields}
    for column in columns:
        field = by_key.get(column.id if found_by is FoundBy.ID else column.name)
        if field is not None:
            yield from _below(column, field, found_by, (*above, column.name))


def _below(column: Field, field: ParquetField, found_by: FoundBy, path: Path) -> Iterator[tuple[Path, ParquetField]]:
    yield path, field
    if column.kind == "struct":
        yield from stored_fields(column.children, field.children, found_by, path)
    elif column.kind == "list" and field.element is not None:
        yield from _below(column.children[0], field.element, found_by, (*path, "element"))
    elif column.kind == "map" and field.entry is not None:
        for side, stored in zip(column.children, field.entry, strict=True):
            yield from _below(side, stored, found_by, (*path, side.name))
