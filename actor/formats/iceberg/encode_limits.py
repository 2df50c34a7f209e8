"""Obstacles to decoding and encoding a group by Spark: asked before anything is written, and answered by name."""

import re
from collections.abc import Mapping

from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field
from shared.errors import RefusedFiles
from shared.formats.iceberg.metadata import TableHead
from shared.refusals import RefusalReason

_NOT_IN_SPARK = ("time", "timestamp_ns", "timestamptz_ns", "geometry", "geography")
"""Types of columns, or their beginnings before parameters, that Spark's reader of Iceberg does not have."""

RESERVED_NAMES = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)
"""Names that Iceberg gives to columns of its own; a table may have them, but its reader in Spark then reads no row."""


def refuse_types(table: TableColumns, location: str) -> None:
    """Raise RefusedFiles for a column of a type that Spark does not have."""
    for column, above in table.each():
        if column.kind.split("(")[0] in _NOT_IN_SPARK:
            path = ".".join((*(one.name for one in above), column.name))
            raise RefusedFiles(
                f"{location}: the column {path} has the type {column.kind}, which Spark cannot decode; its files are "
                "rewritten only where row groups can be copied. Rewrite the others with the engine that wrote them",
                reason=RefusalReason.TYPES,
                field=path,
            )


def refuse_names(table: TableColumns, location: str) -> None:
    """Raise RefusedFiles for a column whose name Iceberg reserves: Spark reads no row of such a table."""
    for column in table.columns:
        if column.name in RESERVED_NAMES:
            raise RefusedFiles(
                f"{location}: the column {column.name} has a name that Iceberg reserves, so that Spark cannot read the "
                "table; its files are rewritten only where row groups can be copied. Rename the column",
                reason=RefusalReason.UNSUPPORTED,
                field=column.name,
            )


def refuse_dropped_source(head: TableHead, live: InputGroup) -> None:
    """Raise RefusedFiles for files of a spec whose column was dropped: Iceberg's writer cannot compute its values."""
    spec = live.inputs[0].spec
    fields = head.specs[spec].fields
    gone = [
        one.name for one, source in zip(fields, head.sources[spec], strict=True) if source is None and not one.is_void
    ]
    if gone:
        raise RefusedFiles(
            f"{live.group.partition} of {head.location}: the partition field {gone[0]} of the spec {spec} is computed "
            "from a column that was dropped, so that Iceberg cannot write its files again; delete these rows or "
            "rewrite them into the current spec",
            reason=RefusalReason.UNSUPPORTED,
            field=gone[0],
        )


def refuse_stored_types(footers: GroupFooters, live: InputGroup, location: str) -> None:
    """Raise RefusedFiles for a column that files store in a form that Spark does not read, or reads as other values.

    In delete files, it does not take 16 bytes for a UUID unless they are declared as one, so that no row is deleted.
    """
    of_data = ((columns.fields, False) for columns in footers.found.values())
    for fields, is_key in (*of_data, *((keys, True) for keys in footers.keys)):
        for column, above in footers.table.each():
            stored = fields.get(column.id or 0)
            if stored is None:
                continue
            is_bare = is_key and column.kind == "uuid" and not stored.logical
            if is_bare or not is_read_rightly(column.kind, stored):
                path = ".".join((*(one.name for one in above), column.name))
                how = " ".join(filter(None, (stored.physical, stored.logical)))
                files = "delete files" if is_key else "files"
                raise RefusedFiles(
                    f"{live.group.partition} of {location}: the column {path} is a {column.kind}, and {files} store it "
                    f"as {how}, which Spark does not read as other readers do; row groups are copied where that is "
                    "possible. Rewrite these files with the engine that wrote them",
                    reason=RefusalReason.TYPES,
                    field=path,
                )


def refuse_lost_keys(footers: GroupFooters, live: InputGroup, location: str) -> None:
    """Raise RefusedFiles for deletes by a column that was dropped if another has its name: Spark fails at the two."""
    known = {column.id for column, _ in footers.table.each()}
    names = {column.name for column in footers.table.columns}
    lost = [one.name for keys in footers.keys for number, one in keys.items() if number not in known]
    for name in lost:
        if name in names:
            raise RefusedFiles(
                f"{live.group.partition} of {location}: rows are deleted by a column {name} that was dropped, and "
                "another has this name since, so that Spark cannot read the files; rename the column",
                reason=RefusalReason.UNSUPPORTED,
                field=name,
            )


def refuse_structs(footers: GroupFooters, constants: Mapping[int, str | None], live: InputGroup, location: str) -> None:
    """Raise RefusedFiles for a struct that Spark would not read as it is stored.

    It takes from the first field in it that has a reader whether the struct is there: a default always is, and so is
    the null of a partition (constants: values by the ids of their columns); fields that files lack have no reader.
    """
    for found in footers.found.values():
        for column, above in footers.table.each():
            stored = found.fields.get(column.id or 0)
            if stored is None or column.kind != "struct":
                continue
            is_known = _has_known_nulls(column, found.fields, constants)
            may_be_null = stored.repetition == "OPTIONAL" or any(one.kind in ("list", "map") for one in above)
            if is_known is None or (not is_known and may_be_null):
                path = ".".join((*(one.name for one in above), column.name))
                raise RefusedFiles(
                    f"{live.group.partition} of {location}: Spark does not read where the struct {path} is null, "
                    "for its first field is one that files lack, or the null of their partition; row groups are copied "
                    "where that is possible. Rewrite these files with the engine that wrote them",
                    reason=RefusalReason.UNSUPPORTED,
                    field=path,
                )


def _has_known_nulls(
    struct: Field, fields: Mapping[int, ParquetField], constants: Mapping[int, str | None]
) -> bool | None:
    """Return whether Spark takes from files if a struct is null; None: no field of it has a reader."""
    for child in struct.children:
        number = child.id or 0
        if number in constants:
            return constants[number] is not None
        if number not in fields:
            if child.default is not None:
                return False
        elif child.kind != "struct":
            return True
        elif (is_known := _has_known_nulls(child, fields, constants)) is not None:
            return is_known
    return None


def needs_row_reader(footers: GroupFooters) -> bool:
    """Return whether only Iceberg's reader of rows reads files rightly: the other takes ms for microseconds."""
    return any(
        "(MILLIS," in stored.logical or stored.physical == "INT96"
        for found in footers.found.values()
        for stored in found.fields.values()
    )


_NOT_DESCRIBED = re.compile(r"TIMESTAMP\(MILLIS,.*|TIME\((MILLIS|NANOS),.*|INTEGER\((32|64),false\)")
"""Forms of columns whose bounds in a footer Iceberg takes for microseconds or signed numbers, or fails at."""


def can_be_described(footers: GroupFooters) -> bool:
    """Return whether Iceberg reads bounds of joined files as they are meant; others would hide rows from filters."""
    fields = (field for schema in footers.schemas.values() for top in schema.fields for field in top.each())
    return not any(_NOT_DESCRIBED.fullmatch(field.logical) for field in fields)


def is_read_rightly(kind: str, stored: ParquetField) -> bool:
    """Return whether Iceberg's readers in Spark read a stored column as its values, as far as was tried."""
    if not stored.physical:
        return kind in ("struct", "list", "map", "variant")
    word, physical, logical = kind.partition("(")[0], stored.physical, stored.logical
    if word == "decimal":
        is_known = physical in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
        return is_known and logical.startswith("DECIMAL(") and logical.split(",")[1:] == kind.split(",")[1:]
    if word in ("timestamp", "timestamptz"):
        return physical == "INT96" or logical.startswith(("TIMESTAMP(MICROS,", "TIMESTAMP(MILLIS,"))
    if word in ("fixed", "uuid"):
        length = 16 if word == "uuid" else int(kind[len("fixed(") : -1])
        return (physical, stored.length) == ("FIXED_LEN_BYTE_ARRAY", length) and logical in ("", word.upper())
    return (physical, logical) in _READ_RIGHTLY.get(word, ())


_SIGNED = tuple(("INT32", logical) for logical in ("", "INTEGER(8,true)", "INTEGER(16,true)", "INTEGER(32,true)"))
_READ_RIGHTLY: Mapping[str, tuple[tuple[str, str], ...]] = {
    "boolean": (("BOOLEAN", ""),),
    "int32": _SIGNED,
    "int64": (("INT64", ""), ("INT64", "INTEGER(64,true)"), *_SIGNED),
    "float": (("FLOAT", ""),),
    "double": (("DOUBLE", ""), ("FLOAT", "")),
    "date": (("INT32", "DATE"),),
    "string": (("BINARY", "STRING"), ("BINARY", "ENUM"), ("BINARY", "JSON")),
    "binary": (("BINARY", ""), ("BINARY", "BSON")),
}
"""Physical and logical types of leaves for each kind of column; bytes that are not declared to be text are none."""
