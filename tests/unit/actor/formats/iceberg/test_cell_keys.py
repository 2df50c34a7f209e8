"""Tasks move rows by columns that files store in their plain order; Spark moves all others."""

import pytest

from actor.cells.columns import CellColumn, Stored
from actor.formats.iceberg.cell_keys import RowKeys, find_keys, stored_as
from actor.formats.iceberg.column_search import FoundColumns
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import FileSchema, ParquetField
from shared.layout.cells.boxes import NULL


def column(kind: str, field_id: int = 1) -> CellColumn:
    return CellColumn((str(field_id), "n"), ("a",), kind, 15)


@pytest.mark.parametrize(
    ("kind", "physical", "logical", "stored"),
    [
        ("integer", "INT32", "", Stored()),
        ("long", "INT64", "INTEGER(64,true)", Stored()),
        ("long", "INT64", "INTEGER(64,false)", None),
        ("long", "BINARY", "", None),
        ("string", "BINARY", "STRING", Stored(every=0, text_bytes=15)),
        ("string", "BINARY", "", None),
        ("date", "INT32", "DATE", Stored(first=719163)),
        ("date", "INT32", "", None),
        ("timestamp", "INT64", "TIMESTAMP(MICROS,true)", Stored(every=1000)),
        ("timestamp_ntz", "INT64", "TIMESTAMP(MICROS,false)", Stored(every=1000)),
        ("timestamp", "INT64", "TIMESTAMP(MILLIS,true)", None),
        ("timestamp", "INT96", "", None),
        ("decimal(18,2)", "INT64", "DECIMAL(18,2)", Stored(factor=10**36)),
        ("decimal(18,2)", "INT64", "DECIMAL(18,3)", None),
        ("decimal(38,2)", "FIXED_LEN_BYTE_ARRAY", "DECIMAL(38,2)", None),
        ("decimal(9,2)", "INT32", "", None),
        ("double", "DOUBLE", "", None),
    ],
)
def test_a_column_is_known_by_its_type_and_how_files_store_it(
    kind: str, physical: str, logical: str, stored: Stored | None
) -> None:
    assert stored_as(column(kind), ParquetField("a", 1, physical=physical, logical=logical)) == stored


def test_texts_count_by_as_many_bytes_as_bounds_have() -> None:
    text = Stored(every=0, text_bytes=2)
    assert text.number("616263") == text.number("6162") == int.from_bytes(b"ab".ljust(32, b"\0"))
    assert (text.number(None), text.bound(text.number("6162"))) == (NULL, "6162")


NUMBER = ParquetField("a", 1, physical="INT64")
INSIDE = ParquetField("s", 2, children=(ParquetField("x", 3, physical="INT64"), ParquetField("y", 4, physical="INT64")))


def footers(*schemas: FileSchema) -> GroupFooters:
    named = {str(number): schema for number, schema in enumerate(schemas)}
    found = {
        digest: FoundColumns({one.id: one for top in schema.fields for one in top.each() if one.id is not None})
        for digest, schema in named.items()
    }
    return GroupFooters(TableColumns(()), schemas=named, found=found)


def test_keys_are_found_in_structs() -> None:
    found = find_keys(footers(FileSchema((NUMBER, INSIDE))), [column("long", 4), column("long")])
    assert found == RowKeys((Stored(), Stored()), (("s", "y"), ("a",)))
    assert (found.points([[7, None], [8, 9]]), found.points([])) == ([(7, NULL), (8, 9)], [])


def test_files_that_store_keys_otherwise_are_left_to_spark() -> None:
    schema = FileSchema((NUMBER,))
    assert find_keys(footers(schema, schema), [column("long")]) is not None
    assert find_keys(footers(schema), [column("long"), column("long", 9)]) is None
    renamed = FileSchema((ParquetField("b", 1, physical="INT64"),))
    assert find_keys(footers(schema, renamed), [column("long")]) is None
