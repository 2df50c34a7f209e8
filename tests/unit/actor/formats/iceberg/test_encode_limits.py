"""Which stored forms Spark reads as the values that files have; the others are refused. Tests of tables try each."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.column_search import FoundColumns
from actor.formats.iceberg.encode_limits import (
    can_be_described,
    is_read_rightly,
    needs_row_reader,
    refuse_lost_keys,
    refuse_stored_types,
    refuse_structs,
)
from actor.formats.iceberg.group_footers import GroupFooters
from actor.formats.iceberg.inputs import InputGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.parquet.file_columns import FileSchema, ParquetField
from actor.proofread.model import Field
from shared.errors import RefusedFiles
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import group, live


@pytest.mark.parametrize(
    ("kind", "physical", "logical", "is_right"),
    [
        ("int32", "INT32", "INTEGER(16,true)", True),
        ("int32", "INT32", "INTEGER(16,false)", False),
        ("int64", "INT32", "INTEGER(32,false)", False),
        ("int64", "INT32", "", True),
        ("int32", "INT64", "", False),
        ("string", "BINARY", "STRING", True),
        ("string", "BINARY", "", False),
        ("binary", "BINARY", "STRING", False),
        ("timestamp", "INT64", "TIMESTAMP(MICROS,true)", True),
        ("timestamptz", "INT64", "TIMESTAMP(MILLIS,true)", True),
        ("timestamp", "INT64", "TIMESTAMP(NANOS,false)", False),
        ("timestamp", "INT96", "", True),
        ("timestamp", "INT64", "", False),
        ("timestamp", "INT32", "DATE", False),
        ("decimal(18,2)", "INT32", "DECIMAL(9,2)", True),
        ("decimal(18,2)", "INT64", "DECIMAL(18,3)", False),
        ("decimal(18,2)", "BINARY", "DECIMAL(18,2)", False),
        ("decimal(18,2)", "INT64", "", False),
        ("double", "FLOAT", "", True),
        ("float", "DOUBLE", "", False),
        ("date", "INT32", "", False),
        ("geometry", "BINARY", "", False),
    ],
)
def test_each_stored_form_is_read_rightly_or_known_not_to_be(
    kind: str, physical: str, logical: str, *, is_right: bool
) -> None:
    assert is_read_rightly(kind, ParquetField("c", 1, physical=physical, logical=logical)) is is_right


def test_bytes_of_a_fixed_length_need_exactly_that_length() -> None:
    def read(kind: str, length: int, logical: str = "") -> bool:
        stored = ParquetField("c", 1, physical="FIXED_LEN_BYTE_ARRAY", length=length, logical=logical)
        return is_read_rightly(kind, stored)

    assert (read("fixed(4)", 4), read("fixed(4)", 5), read("fixed(4)", 4, "FLOAT16")) == (True, False, False)
    assert (read("uuid", 16), read("uuid", 16, "UUID"), read("uuid", 4)) == (True, True, False)
    assert is_read_rightly("struct", ParquetField("s", 1, children=(ParquetField("x", 2),)))


def footers(kind: str, stored: ParquetField) -> GroupFooters:
    inside = Field("s", "struct", 9, children=(Field("c", kind, 1),))
    return GroupFooters(TableColumns((inside,)), found={"d": FoundColumns({1: stored})})


def test_a_stored_form_that_spark_does_not_read_rightly_is_refused_by_name() -> None:
    of_files = InputGroup(group(live("a")), (live("a"),))
    nanoseconds = ParquetField("c", 1, physical="INT64", logical="TIMESTAMP(NANOS,false)")
    with pytest.raises(
        RefusedFiles, match=r"s\.c is a timestamp, and files store it as INT64 TIMESTAMP\(NANOS"
    ) as refused:
        refuse_stored_types(footers("timestamp", nanoseconds), of_files, "t")
    assert (refused.value.reason, refused.value.field) == ("types", "s.c")
    refuse_stored_types(footers("int64", ParquetField("c", 1, physical="INT64")), of_files, "t")


@pytest.mark.parametrize(
    ("kind", "logical", "is_right"),
    [("uuid", "", False), ("uuid", "UUID", True), ("fixed(16)", "", True), ("string", "", False)],
)
def test_keys_of_delete_files_are_bytes_that_are_declared_as_what_they_are(
    kind: str, logical: str, *, is_right: bool
) -> None:
    stored = ParquetField("c", 1, physical="FIXED_LEN_BYTE_ARRAY", length=16, logical=logical)
    given = replace(footers(kind, stored), found={}, keys=({1: stored},))
    expected = nullcontext() if is_right else pytest.raises(RefusedFiles, match=r"s\.c is a .*, and delete files store")
    with expected:
        refuse_stored_types(given, InputGroup(group(live("a")), (live("a"),)), "t")
    refuse_stored_types(footers("uuid", stored), InputGroup(group(live("a")), (live("a"),)), "t")


def test_deletes_by_a_dropped_column_are_refused_where_another_has_its_name() -> None:
    table = TableColumns((Field("c", "int64", 4), Field("s", "struct", 9, children=(Field("d", "int64", 5),))))
    of_files = InputGroup(group(live("a")), (live("a"),))
    lost = {name: GroupFooters(table, keys=({1: ParquetField(name, 1, physical="INT64")},)) for name in ("c", "d")}
    with pytest.raises(RefusedFiles, match="rename the column") as refused:
        refuse_lost_keys(lost["c"], of_files, "t")
    assert (refused.value.reason, refused.value.field) == ("unsupported", "c")
    refuse_lost_keys(lost["d"], of_files, "t")
    refuse_lost_keys(replace(lost["c"], keys=({4: ParquetField("c", 4)},)), of_files, "t")


X, Y = Field("x", "int32", 1), Field("y", "int32", 2)
FILLED = replace(Y, default="7")
IN_X, IN_Y = (ParquetField(name, number, physical="INT32") for name, number in (("x", 1), ("y", 2)))
INNER, IN_N = Field("n", "struct", 3, children=(FILLED,)), ParquetField("n", 3, "REQUIRED", children=(IN_X,))


@pytest.mark.parametrize(
    ("children", "in_files", "constants", "more", "is_read"),
    [
        ((X, FILLED), (IN_X,), {}, {}, True),
        ((FILLED, X), (IN_X,), {}, {}, False),
        ((FILLED, X), (IN_X, IN_Y), {}, {}, True),
        ((FILLED, X), (IN_X,), {}, {"repetition": "REQUIRED"}, True),
        ((Y, X), (IN_X,), {}, {}, True),
        ((Y,), (IN_X,), {}, {}, False),
        ((Y,), (IN_X,), {}, {"repetition": "REQUIRED"}, False),
        ((X, Y), (IN_X, IN_Y), {1: None}, {}, False),
        ((X, Y), (IN_X, IN_Y), {1: "5"}, {}, True),
        ((Y, X), (IN_X, IN_Y), {1: None}, {}, True),
        ((INNER, X), (IN_X, IN_N), {}, {}, False),
        ((replace(INNER, children=(Y,)), X), (IN_X, IN_N), {}, {}, False),
    ],
)
def test_a_struct_is_encoded_only_if_the_first_field_in_it_that_spark_reads_is_in_the_files(
    children: tuple[Field, ...],
    in_files: tuple[ParquetField, ...],
    constants: dict[int, str | None],
    more: dict[str, str],
    *,
    is_read: bool,
) -> None:
    fields = {one.id or 0: one for one in (*in_files, ParquetField("s", 9, children=in_files, **more))}
    table = TableColumns((Field("s", "struct", 9, children=children),))
    given = GroupFooters(table, found={"d": FoundColumns(fields)})
    expected = nullcontext() if is_read else pytest.raises(RefusedFiles, match=r"where the struct s(\.n)? is null")
    with expected:
        refuse_structs(given, constants, InputGroup(group(live("a")), (live("a"),)), "t")


def test_a_struct_in_a_list_is_encoded_only_if_its_first_field_is_in_the_files() -> None:
    """A default ends each list after one element, whether the element may be null or not."""
    element = Field("element", "struct", 9, children=(FILLED, X))
    stored = ParquetField("element", 9, "REQUIRED", children=(IN_X,))
    table = TableColumns((Field("l", "list", 8, children=(element,)),))
    given = GroupFooters(table, found={"d": FoundColumns({9: stored, 1: IN_X})})
    with pytest.raises(RefusedFiles, match=r"where the struct l\.element is null") as refused:
        refuse_structs(given, {}, InputGroup(group(live("a")), (live("a"),)), "t")
    assert (refused.value.reason, refused.value.field) == ("unsupported", "l.element")


@pytest.mark.parametrize(
    ("logical", "is_described"),
    [
        *((one, True) for one in ("", "TIMESTAMP(MICROS,true)", "TIMESTAMP(NANOS,false)", "TIME(MICROS,false)")),
        *((one, True) for one in ("INTEGER(64,true)", "INTEGER(16,false)", "STRING")),
        *((one, False) for one in ("TIMESTAMP(MILLIS,true)", "TIME(MILLIS,false)", "TIME(NANOS,true)")),
        *((one, False) for one in ("INTEGER(32,false)", "INTEGER(64,false)")),
    ],
)
def test_files_are_joined_only_if_iceberg_reads_their_bounds_as_they_are_meant(
    logical: str, *, is_described: bool
) -> None:
    """Also in columns that the table does not have: Iceberg fails at those of a file as a whole."""
    inside = ParquetField("s", 9, children=(ParquetField("c", 1, physical="INT64", logical=logical),))
    found = GroupFooters(TableColumns(()), schemas={"d": FileSchema((ParquetField("x", physical="INT32"), inside))})
    assert can_be_described(found) is is_described


def test_milliseconds_and_old_timestamps_are_read_by_row() -> None:
    plain = ParquetField("c", 1, physical="INT64", logical="TIMESTAMP(MICROS,false)")
    millis = ParquetField("c", 1, physical="INT64", logical="TIMESTAMP(MILLIS,false)")
    given = [
        needs_row_reader(footers("timestamp", one)) for one in (plain, millis, ParquetField("c", 1, physical="INT96"))
    ]
    assert given == [False, True, True]
