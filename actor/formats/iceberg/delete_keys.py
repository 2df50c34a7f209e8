"""Keys of deletes by value that all readers take for the same values, so that rows which have them can be found by us.

Only columns of the table that still exist, of types whose values have one form and one equality, found by their ids,
stored as all readers take them.
"""

from collections.abc import Iterator, Mapping, Sequence

from actor.formats.iceberg.encode_limits import is_read_rightly
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field

KEY_KINDS = frozenset({"int32", "int64", "string", "date", "timestamp", "timestamptz"})
"""Types of keys that are converted, beside decimals: all readers compare their values alike."""

_ZONES = {"timestamp": ",false)", "timestamptz": ",true)"}
"""End of the logical type that files give times: whether they are adjusted to UTC."""


def are_keys_clear(footers: GroupFooters, inputs: Sequence[LiveInput]) -> bool:
    """Return whether the keys of all deletes by value that apply to these files, whose footers say so, are such."""
    columns = {one.id: one for one in footers.table.columns if one.id is not None}
    values = {delete.path: delete for one in inputs for delete in one.deletes if not delete.is_positional}
    if any(why_unusable(delete, columns) for delete in values.values()):
        return False
    keys = [columns[number] for number in {number for one in values.values() for number in one.key_ids}]
    return next(read_otherwise(keys, footers), None) is None


def why_unusable(delete: AppliedDelete, columns: Mapping[int, Field]) -> str:
    """Return why the keys of a delete by value may mean other rows to others, empty if they do not.

    columns: the table's own, not those in others, by their ids.
    """
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


def read_otherwise(keys: Sequence[Field], footers: GroupFooters) -> Iterator[tuple[Field, ParquetField]]:
    """Yield keys with how a file stores them, which not all readers read alike."""
    for fields in (*(found.fields for found in footers.found.values()), *footers.keys):
        for one in keys:
            stored = fields.get(one.id or 0)
            if stored is not None and not _is_read_alike(one.kind, stored):
                yield one, stored


def _is_read_alike(kind: str, stored: ParquetField) -> bool:
    """Return whether all readers take a stored key for the same value.

    Of nanoseconds (INT96) before 1970, Iceberg's reader of records cuts what Spark and DuckDB round down.
    """
    if stored.physical == "INT96" or not is_read_rightly(kind, stored):
        return False
    zone = _ZONES.get(kind)
    return zone is None or stored.logical.endswith(zone)
