"""Columns are found as the format says, and what a file leaves open is refused."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from duckdb.sqltypes import DuckDBPyType

from actor.proofread.file_fields import FileField, _Entry, _field, _Group, read_schemas
from actor.proofread.matching import match
from actor.proofread.model import CannotRead, ColumnsUnclear, Field, FoundBy, Proof, Reading
from tests.support.proofread_groups import stored

A, B = Field("a", "int64", 1, mapped=("a", "alpha")), Field("b", "int64", 2)


def leaf(name: str, number: int | None = None) -> FileField:
    return FileField(name, number, "BIGINT", name)


def fields_of(columns: tuple[Field, ...], fields: tuple[FileField, ...], found_by: FoundBy) -> list[str | None]:
    return [found.field.name if found.field else None for found in match(columns, fields, found_by)]


def test_by_id_a_renamed_column_is_found_and_one_of_its_old_name_is_not() -> None:
    assert fields_of((A, B), (leaf("b", 1), leaf("a", 9)), FoundBy.ID) == ["b", None]


def test_by_name_only_the_exact_name_counts_and_ids_do_not() -> None:
    assert fields_of((A, B), (leaf("b", 1), leaf("c", 2)), FoundBy.NAME) == [None, "b"]


def test_a_file_without_ids_is_read_by_the_name_mapping_alone() -> None:
    """B has no name in the mapping: a field called b is another column."""
    assert fields_of((A, B), (leaf("alpha"), leaf("b")), FoundBy.ID) == ["alpha", None]


@pytest.mark.parametrize(
    ("columns", "fields", "found_by", "text"),
    [
        ((B,), (leaf("b"),), FoundBy.ID, "no field ids"),
        ((A, B), (leaf("a"), leaf("b", 2)), FoundBy.ID, "none to"),
        ((A,), (leaf("x", 1), leaf("y", 1)), FoundBy.ID, "2 fields"),
        ((A,), (leaf("a"), leaf("alpha")), FoundBy.ID, "2 fields"),
        ((Field("a", "int64"),), (leaf("a", 1),), FoundBy.ID, "no id to the column"),
        ((Field("Aa", "int64"),), (leaf("aA"),), FoundBy.NAME, '"aA" for the column'),
    ],
)
def test_what_two_readers_may_read_differently_is_refused(
    columns: tuple[Field, ...], fields: tuple[FileField, ...], found_by: FoundBy, text: str
) -> None:
    with pytest.raises(ColumnsUnclear, match=text):
        match(columns, fields, found_by)


def test_ids_within_structs_lists_and_maps_count_as_those_of_columns_do() -> None:
    inner = Field("s", "struct", 3, children=(A, B))
    column = Field("l", "list", 4, children=(Field("element", "struct", 5, children=inner.children),))

    def file(element: int | None, of_a: int | None) -> tuple[FileField, ...]:
        parts = (leaf("b", 2), leaf("z", of_a))
        return (FileField("l", 4, "list", "l", (FileField("element", element, "struct", "", parts),)),)

    (found,) = match((column,), file(5, 1), FoundBy.ID)
    assert [one.field and one.field.name for one in found.children[0].children] == ["z", "b"]
    for element, of_a in ((6, 1), (None, 1), (5, None)):
        with pytest.raises(ColumnsUnclear):
            match((column,), file(element, of_a), FoundBy.ID)


def test_what_identifies_a_row_of_delta_is_found_by_name_beside_columns_of_ids() -> None:
    """Spark writes such columns without ids into files whose other columns have some; a stranger's stays unclear."""
    rows = (Field("_row-id-1", "row_id"), Field("_row-version-1", "row_version"))
    assert fields_of((A, *rows), (leaf("x", 1), leaf("_row-id-1")), FoundBy.ID) == ["x", "_row-id-1", None]
    assert fields_of((Field("_row_id", "row_id", 9),), (leaf("_row_id", 8), leaf("y", 9)), FoundBy.ID) == ["y"]
    with pytest.raises(ColumnsUnclear, match="none to"):
        match((A, *rows), (leaf("x", 1), leaf("_row-id-2")), FoundBy.ID)


def test_a_partitions_value_counts_before_a_default_and_a_field_of_the_file_before_both() -> None:
    column = Field("a", "int64", 1, default="7")
    assert match((column,), (leaf("b", 2),), FoundBy.ID, {1: "5"})[0].text == "5"
    assert match((column,), (leaf("b", 2),), FoundBy.ID, {1: None})[0].text is None
    assert match((column,), (leaf("b", 2),), FoundBy.ID)[0].text == "7"
    assert match((column,), (leaf("a", 1),), FoundBy.ID, {1: "5"})[0].field == leaf("a", 1)


def test_a_field_that_is_nested_in_another_way_is_not_guessed_at() -> None:
    """DuckDB reads a list of an older writer's one-field structs as a list of the field."""
    structs = Field("l", "list", children=(Field("element", "struct", children=(Field("x", "int64"),)),))
    with pytest.raises(CannotRead, match="BIGINT for struct"):
        match((structs,), (FileField("l", None, "list", "l", (leaf("element"),)),), FoundBy.NAME)


def test_a_mapping_without_an_element_finds_no_list() -> None:
    column = Field("l", "list", 1, ("l",), children=(Field("element", "int64", 2),))
    with pytest.raises(ColumnsUnclear, match="mapping has none"):
        match((column,), (FileField("l", None, "list", "l", (leaf("element"),)),), FoundBy.ID)


def test_a_default_of_a_list_is_not_guessed_and_that_of_a_struct_is_those_of_its_fields() -> None:
    with pytest.raises(CannotRead, match="default of a list"):
        match((Field("l", "list", 1, default="[]", children=(A,)),), (leaf("b", 2),), FoundBy.ID)
    inner = Field("x", "int64", 4, default="5")
    for default, expected in (("{}", "5"), (None, None)):
        (found,) = match((Field("s", "struct", 3, default=default, children=(inner,)),), (leaf("b", 2),), FoundBy.ID)
        assert (found.text is None, found.children[0].text) == (default is None, expected)


def test_names_that_differ_in_case_only_are_taken_by_their_place(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """DuckDB calls the second `v_1`, in structs, too."""
    table = pa.table({"V": [1], "v": [2], "s": [{"x": 3, "X": 4}]})
    file = stored(tmp_path / "*[1]?.parquet", table)
    (schema,) = read_schemas(connection, [file.path])
    assert [field.name for field in schema.fields] == ["V", "v", "s"]
    columns = (Field("v", "int64"), Field("s", "struct", children=(Field("X", "int64"),)))
    v, s = match(columns, schema.fields, FoundBy.NAME)
    (x,) = s.children
    assert (v.field, x.field) != (None, None)
    query = f'SELECT "{v.field.sql}", s."{x.field.sql}" FROM read_parquet(?)'  # type: ignore[union-attr]
    assert connection.execute(query, [file.path]).fetchall() == [(2, 4)]


def test_a_group_that_was_compared_twice_is_as_sure_as_the_weaker_comparison() -> None:
    rows, unread = Proof(Reading.ROWS, 5, cpu_ms=2), Proof(Reading.NONE, unverified_because="unknown", cpu_ms=3)
    for found in (rows.joined(unread), unread.joined(rows)):
        assert (found.reading, found.unverified_because, found.cpu_ms) == (Reading.NONE, "unknown", 5)
    assert rows.joined(rows).reading is Reading.ROWS


def group(name: str, *children: _Group, repetition: str = "OPTIONAL", number: int | None = None) -> _Group:
    entry: _Entry = (name, None if children else "INT32", len(children) or None, repetition, None, number, None)
    return _Group(entry, children)


def type_of(text: str) -> DuckDBPyType:
    type_: Any = duckdb.sqltype(text)
    return type_


X = group("x", number=3)
PAIR = (X, group("y", number=4))


@pytest.mark.parametrize(
    ("stored", "type_", "element"),
    [
        (group("l", group("list", X, repetition="REPEATED")), "INTEGER[]", ("x", 3)),
        (group("l", group("bag", X, repetition="REPEATED")), "INTEGER[]", ("x", 3)),
        (group("l", group("array", repetition="REPEATED", number=3)), "INTEGER[]", ("array", 3)),
        (group("l", group("array", X, repetition="REPEATED")), "STRUCT(x INTEGER)[]", ["x"]),
        (group("l", group("l_tuple", X, repetition="REPEATED")), "STRUCT(x INTEGER)[]", ["x"]),
        (group("l", group("entry", *PAIR, repetition="REPEATED")), "STRUCT(x INTEGER, y INTEGER)[]", ["x", "y"]),
        (group("l", *PAIR, repetition="REPEATED"), "STRUCT(x INTEGER, y INTEGER)[]", ["x", "y"]),
        (group("l", repetition="REPEATED"), "INTEGER[]", ("element", None)),
    ],
)
def test_the_element_of_a_list_is_found(stored: _Group, type_: str, element: tuple[str, int] | list[str]) -> None:
    (inner,) = _field(stored, "l", type_of(type_)).children
    if isinstance(element, tuple):
        assert (inner.name, inner.id) == element
    else:
        assert (inner.type, [part.name for part in inner.children]) == ("struct", element)


def test_a_list_of_lists_of_an_older_writer_has_two_levels() -> None:
    inner = group("array", group("array", repetition="REPEATED"), repetition="REPEATED")
    found = _field(group("l", inner), "l", type_of("INTEGER[][]"))
    assert [found.type, found.children[0].type, found.children[0].children[0].type] == ["list", "list", "INTEGER"]


def test_what_duckdb_sees_in_another_way_is_no_column() -> None:
    with pytest.raises(ValueError, match="zip"):
        _field(group("s", X), "s", type_of("STRUCT(x INTEGER, y INTEGER)"))
    with pytest.raises(CannotRead, match="reads a group"):
        _field(group("s", X), "s", type_of("VARCHAR"))
