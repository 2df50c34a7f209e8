"""Columns of Delta tables as files store them, and tables of another writer read by them."""

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from actor.formats.delta.proofreading import proof_columns
from actor.proofread.model import Field, FoundBy, ProofFile
from actor.proofread.process import connect
from actor.proofread.task import ReadEnding
from tests.support.proofread_groups import group_of, read


def schema(*fields: dict[str, object]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def field(name: str, type_: object, number: int | None = None) -> dict[str, object]:
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"} if number else {}
    return {"name": name, "type": type_, "nullable": True, "metadata": mapped}


KINDS = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "varchar(9)": "string",
    "char(3)": "string",
    **{same: same for same in ("decimal(9,2)", "double", "variant", "void")},
}


@pytest.mark.parametrize(("stored", "kind"), KINDS.items())
def test_types_are_those_of_files(stored: str, kind: str) -> None:
    assert proof_columns(schema(field("c", stored)), (), "none") == ((Field("c", kind),), FoundBy.NAME)


def test_partition_columns_are_not_read_and_defaults_are_not_values() -> None:
    fields = (field("p", "string"), {**field("c", "long"), "metadata": {"EXISTS_DEFAULT": "7"}})
    assert proof_columns(schema(*fields), ("p",), "none")[0] == (Field("c", "int64"),)


@pytest.mark.parametrize(("mode", "found_by"), [("name", FoundBy.NAME), ("id", FoundBy.ID)])
def test_mapped_columns_have_their_names_in_files_at_every_level(mode: str, found_by: FoundBy) -> None:
    inner = {"type": "struct", "fields": [field("x", "long", 3)]}
    nested = {"type": "array", "elementType": inner, "containsNull": True}
    entries = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    columns, by = proof_columns(schema(field("l", nested, 1), field("m", entries, 2)), (), mode)
    x = Field("col-3", "int64", 3, shown="x")
    struct = Field("element", "struct", children=(x,))
    assert by is found_by
    assert columns == (
        Field("col-1", "list", 1, children=(struct,), shown="l"),
        Field(
            "col-2",
            "map",
            2,
            children=(Field("key", "string"), Field("value", "struct", children=(x,))),
            shown="m",
        ),
    )


def test_without_mapping_names_that_an_earlier_mapping_left_do_not_count() -> None:
    assert proof_columns(schema(field("c", "long", 4)), (), "none")[0] == (Field("c", "int64"),)


def test_ids_of_rows_are_compared_where_the_table_tracks_them() -> None:
    columns, _ = proof_columns(schema(field("c", "long")), (), "none", ("_row-id-1", "_row-version-1"))
    assert columns[1:] == (Field("_row-id-1", "row_id"), Field("_row-version-1", "row_version"))


def test_a_table_of_another_writer_has_equal_rows_before_and_after_its_own_compaction(tmp_path: Path) -> None:
    """Older files lack a column that newer ones have."""
    location = str(tmp_path / "t")
    newer = pa.schema([("a", pa.int64()), ("l", pa.list_(pa.float64())), ("b", pa.struct([("x", pa.int64())]))])
    tables = [
        pa.table({"a": [1, None], "l": [[1.5, None], None]}),
        pa.table({"a": [3], "l": [[]], "b": [{"x": 1}]}, newer),
    ]
    for table in tables:
        deltalake.write_deltalake(location, table, mode="append", schema_mode="merge")
    table = deltalake.DeltaTable(location)
    files = [[ProofFile(uri, 0) for uri in table.file_uris()]]
    table.optimize.compact()
    files.append([ProofFile(uri, 0) for uri in table.file_uris()])
    assert [len(one) for one in files] == [2, 1]
    columns, found_by = proof_columns(table.schema().to_json(), (), "none")
    connection = connect(str(tmp_path))
    found = read(connection, group_of(columns, *files, found_by))
    assert (found.ending, found.rows) == (ReadEnding.SAME, 3), found
    found = read(connection, group_of(columns, files[0][:1], files[1], found_by))
    assert (found.ending, "rows" in found.text) == (ReadEnding.DIFFERENT, True)


def test_a_type_of_the_users_is_a_word_that_no_reader_reads() -> None:
    field = {"name": "v", "type": {"type": "udt", "class": "x.Vector"}, "nullable": True, "metadata": {}}
    columns, _ = proof_columns(json.dumps({"type": "struct", "fields": [field]}), (), "none")
    assert columns == (Field("v", "udt"),)
