"""Which columns of a Delta table have values of their own in files."""

from actor.formats.delta.leaf_columns import leaf_columns, stored_fields
from actor.formats.parquet.file_columns import ParquetField
from actor.proofread.model import Field, FoundBy


def test_ids_of_rows_are_no_columns_and_structs_come_with_their_fields() -> None:
    columns = (Field("_row", "row_id"), Field("s", "struct", children=(Field("a", "int32"),)))
    assert [path for path, _, _ in leaf_columns(columns)] == [("s",), ("s", "a")]


def test_a_column_that_a_file_lacks_is_not_found_in_it() -> None:
    columns, stored = (Field("a", "int32"), Field("b", "int32")), ParquetField("b", physical="INT32")
    assert list(stored_fields(columns, [stored], FoundBy.NAME)) == [(("b",), stored)]
