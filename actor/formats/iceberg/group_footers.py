"""Footers of a group's files, read once before anything is written, and the obstacles in them.

Files that do not say which column is which, or that are not what their manifest says, are refused by name: every reader
would make something else of them, and a rewrite would make one of these final.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from actor.formats.iceberg.column_search import FoundColumns, find_columns, may_hold_forbidden_nulls, unclear_keys
from actor.formats.iceberg.copy_choice import PARQUET
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason
from shared.table import DeleteKind

POSITION_KEYS = ((2147483546, "file_path"), (2147483545, "pos"))
"""Columns of a file of positions, with the field ids that the specification reserves for them."""


class ColumnSource(Protocol):
    """Reads footers of the files of one table."""

    def columns(self, inputs: Sequence[LiveInput]) -> DescribedFiles:
        """Return what the footers of these inputs say, in their order."""

    def delete_columns(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> DescribedFiles:
        """Return the same of delete files that apply to these inputs."""


@dataclass(frozen=True, slots=True)
class GroupFooters:
    """Footers of a group's inputs of Parquet in their order, their schemas by digest, and the table's columns there.

    keys: the columns of each delete file by value, by their ids.
    """

    table: TableColumns
    files: tuple[FooterSummary, ...] = ()
    schemas: Mapping[str, FileSchema] = field(default_factory=dict, hash=False)
    found: Mapping[str, FoundColumns] = field(default_factory=dict, hash=False)
    has_other_formats: bool = False
    keys: tuple[Mapping[int, ParquetField], ...] = field(default=(), hash=False)

    @property
    def may_hold_forbidden_nulls(self) -> bool:
        """True if an input may hold nulls in columns that the schema requires."""
        if self.has_other_formats and self.table.required:
            return True
        return any(may_hold_forbidden_nulls(self.table, found) for found in self.found.values())


def read_group(reader: ColumnSource, table: TableColumns, live: InputGroup, location: str) -> GroupFooters:
    """Read the footers of a group's inputs, and of the delete files that apply to them.

    Raises RefusedFiles for files that are not what their manifest says, or whose columns are unclear.
    """
    inputs = [one for one in live.inputs if one.entry.format.lower() == PARQUET and not one.entry.is_encrypted]
    described = reader.columns(inputs) if inputs else DescribedFiles((), {})
    found = {digest: find_columns(table, schema) for digest, schema in described.schemas.items()}
    where = f"in {live.group.partition} of {location}"
    for one, summary in zip(inputs, described.files, strict=True):
        _require_footer(one.path, one.size_bytes, summary, where)
    _require_clear(
        {one.path: found.get(summary.schema) for one, summary in zip(inputs, described.files, strict=True)}, where
    )
    of_deletes = _delete_schemas(reader, live)
    _require_clear({one.path: _keys_found(one, table, schema) for one, schema in of_deletes}, where)
    keys = tuple(_stored_keys(one, schema) for one, schema in of_deletes if schema is not None and one.key_ids)
    return GroupFooters(table, described.files, described.schemas, found, len(inputs) < len(live.inputs), keys)


def _delete_schemas(reader: ColumnSource, live: InputGroup) -> list[tuple[AppliedDelete, FileSchema | None]]:
    """Return the delete files of a group with their schemas, None for those without a footer."""
    deletes = _parquet_deletes(live)
    if not deletes:
        return []
    found = reader.delete_columns(live.inputs, deletes)
    return [(one, found.schemas.get(summary.schema)) for one, summary in zip(deletes, found.files, strict=True)]


def _stored_keys(delete: AppliedDelete, schema: FileSchema) -> Mapping[int, ParquetField]:
    return {
        one.id: one for top in schema.fields for one in top.each() if one.id is not None and one.id in delete.key_ids
    }


def _parquet_deletes(live: InputGroup) -> list[AppliedDelete]:
    """Return the delete files of a group that have columns, each once."""
    found = {one.path: one for file in live.inputs for one in file.deletes if one.is_parquet}
    return [found[path] for path in sorted(found)]


def _keys_found(delete: AppliedDelete, table: TableColumns, schema: FileSchema | None) -> FoundColumns | None:
    if schema is None:
        return None
    keys: Sequence[tuple[int, str]] = POSITION_KEYS
    if delete.kind is DeleteKind.EQUALITY:
        keys = tuple((one, ".".join(table.path(one) or (f"with id {one}",))) for one in delete.key_ids)
    return FoundColumns(unclear=unclear_keys(keys, schema))


def _require_footer(path: str, size_bytes: int, summary: FooterSummary, where: str) -> None:
    if summary.obstacle == EncodeReason.NO_FOOTER:
        raise RefusedFiles(
            f"{path} {where} is no Parquet file of {size_bytes} bytes, as its manifest says: it was cut or written "
            "again since, or its writer gave another size. Restore it, or replace it in the table by a sound copy",
            reason=RefusalReason.DAMAGED,
            files=(path,),
        )


def _require_clear(found: Mapping[str, FoundColumns | None], where: str) -> None:
    unclear = {path: one.unclear for path, one in found.items() if one is not None and one.unclear}
    if not unclear:
        return
    path, reasons = next(iter(unclear.items()))
    more = f", and {len(unclear) - 1} more files" if len(unclear) > 1 else ""
    raise RefusedFiles(
        f"files {where} do not say which column is which, so that no rewrite can keep what all readers see: "
        f"{path}{more}: {'; '.join(reasons[:3])}. Or write the files again with field ids",
        reason=RefusalReason.COLUMNS_UNCLEAR,
        files=tuple(unclear),
    )
