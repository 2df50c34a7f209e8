"""Deletes by value as positions: which of them can be converted, and what is written and compared.

Readers must agree on every key: only columns of the table that still exist, of types whose values have one form and one
equality, found by their ids, stored as all readers take them. Everything else is refused by name, and stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from actor.formats.iceberg import proof_request
from actor.formats.iceberg.copy_choice import PARQUET
from actor.formats.iceberg.encode_limits import is_read_rightly
from actor.formats.iceberg.group_footers import ColumnSource, read_group
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.value_groups import LiveValues
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field, Proof, Rewritten
from shared.errors import RefusedFiles
from shared.formats.iceberg.metadata import TableHead
from shared.refusals import RefusalReason

KEY_KINDS = frozenset({"int32", "int64", "string", "date", "timestamp", "timestamptz"})
"""Types of keys that are converted, beside decimals: all readers compare their values alike."""

_ZONES = {"timestamp": ",false)", "timestamptz": ",true)"}
"""End of the logical type that files give times: whether they are adjusted to UTC."""


class ValueDeletes(Protocol):
    """The delete files by value of a table; methods raise what Iceberg raises."""

    def by_value(self, head: TableHead) -> LiveValues | None:
        """Return the deletes of the newest snapshot, which has one, with their data files; None: too many to hold."""

    def converted(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> Sequence[NewDeletes | None]:
        """Write the rows that delete files of one look and place hide in each data file; None: they hide none there."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of one table's deletes by value.

    columns: the table's by these properties; source: reads footers of its files. `prove` compares which rows are
    deleted before and after; it raises Difference, and RefusedFiles where it cannot.
    """

    deletes: ValueDeletes
    columns: Callable[[Mapping[str, str]], TableColumns]
    source: ColumnSource
    prove: Callable[[Rewritten], Proof]

    def unusable(self, found: LiveValues, head: TableHead) -> dict[str, str]:
        """Return why delete files cannot be converted, by their names."""
        columns = {one.id: one for one in self.columns(head.metadata.configuration).columns if one.id is not None}
        return {one.path: why for one in found.deletes if (why := _why_unusable(one, columns))}

    def require_clear(self, group: InputGroup, found: LiveValues, head: TableHead) -> None:
        """Raise RefusedFiles for files that are not what their manifest says, or whose keys are not clear.

        And for a group that lacks a data file, of which readers would see rows again.
        """
        if (missing := found.uncovered(group)) is not None:
            raise _refused(head, missing, "is read with one of them, which does not apply to it by the numbers of both")
        columns = self.columns(head.metadata.configuration)
        for one in group.inputs:
            if one.entry.format.lower() != PARQUET or one.entry.is_encrypted:
                raise _refused(head, one.path, "is no Parquet file, or encrypted")
        footers = read_group(self.source, columns, group, head.location)
        ids = {number for one in group.inputs for delete in one.deletes for number in delete.key_ids}
        keys = [one for one in columns.columns if one.id in ids]
        for fields in (*(found.fields for found in footers.found.values()), *footers.keys):
            _require_read_alike(keys, fields, head)

    def check(self, group: InputGroup, written: Sequence[NewDeletes | None], head: TableHead) -> Proof:
        """Compare the rows that the deletes of a group hide, by the format's rule, with those that new ones name."""
        columns = self.columns(head.metadata.configuration)
        return self.prove(proof_request.converted(columns, head, [*zip(group.inputs, written, strict=True)]))


def _why_unusable(delete: AppliedDelete, columns: Mapping[int, Field]) -> str:
    if not delete.is_parquet:
        return "it is no Parquet file"
    if not delete.sequence or not delete.key_ids:
        return "its sequence number or its columns are not known"
    keys = [columns.get(number) for number in delete.key_ids]
    if None in keys:
        return "a column of its keys was dropped, or is a part of another"
    odd = next((one for one in keys if one is not None and not _is_key_kind(one.kind)), None)
    return f"its column {odd.name} is a {odd.kind}, whose values readers may compare in several ways" if odd else ""


def _is_key_kind(kind: str) -> bool:
    return kind in KEY_KINDS or kind.startswith("decimal(")


def _require_read_alike(keys: Sequence[Field], fields: Mapping[int, ParquetField], head: TableHead) -> None:
    for one in keys:
        stored = fields.get(one.id or 0)
        if stored is not None and not _is_read_alike(one.kind, stored):
            how = " ".join(filter(None, (stored.physical, stored.logical)))
            raise _refused(head, f"the column {one.name}", f"is a {one.kind}, and files store it as {how}")


def _is_read_alike(kind: str, stored: ParquetField) -> bool:
    """Return whether all readers take a stored key for the same value.

    Of nanoseconds (INT96) before 1970, Iceberg's reader of records cuts what Spark and DuckDB round down.
    """
    if stored.physical == "INT96" or not is_read_rightly(kind, stored):
        return False
    zone = _ZONES.get(kind)
    return zone is None or stored.logical.endswith(zone)


def _refused(head: TableHead, what: str, why: str) -> RefusedFiles:
    return RefusedFiles(
        f"{head.location}: deletes by value are not converted: {what} {why}; a full rewrite removes them",
        reason=RefusalReason.TYPES,
    )
