"""Which field of a file is which column follows from ids and the name mapping, and what neither says is unclear."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import LongType

from actor.formats.iceberg.column_search import (
    FoundColumns,
    find_columns,
    may_hold_forbidden_nulls,
    unclear_keys,
)
from actor.formats.iceberg.table_columns import MAPPING_PROPERTY, TableColumns, table_columns
from actor.formats.parquet.file_columns import FileSchema, ParquetField
from actor.proofread.model import Field, FoundBy, ProofFile
from actor.proofread.process import connect
from actor.proofread.task import ReadEnding
from tests.support.proofread_groups import group_of, read

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")


SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "s", "required": False, "type": {"type": "struct", "fields": [
            {"id": 3, "name": "a", "required": True, "type": "decimal(9, 2)", "initial-default": "1.50"}]}},
        {"id": 4, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 5, "element-required": True, "element": "int"}},
        {"id": 6, "name": "m", "required": False, "type": {
            "type": "map", "key-id": 7, "key": "string", "value-id": 8, "value-required": False, "value": "fixed[4]"}},
    ],
}  # fmt: skip
MAPPING = [
    {"field-id": 1, "names": ["id", "ID"]},
    {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}]},
    {"field-id": 4, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},
    {"field-id": 6, "names": ["m"], "fields": [{"field-id": 7, "names": ["key"]}, {"field-id": 8, "names": ["value"]}]},
    {"names": ["dropped"]},
]
PLAIN = table_columns(SCHEMA, {})
PLAIN_ELEMENT = Field("element", "int32", 5)
MAPPED = table_columns(SCHEMA, {"schema.name-mapping.default": json.dumps(MAPPING)})


def stored(*, ids: bool = True, without: tuple[str, ...] = (), **renamed: str) -> FileSchema:
    """Return a file of all columns: with ids but of those named, or without any."""

    def one(name: str, number: int | None, **more: object) -> ParquetField:
        key = number if ids and name not in without else None
        return ParquetField(renamed.get(name, name), key, **more)  # type: ignore[arg-type]

    repeated = ParquetField("list", repetition="REPEATED", children=(one("element", 5, physical="INT32"),))
    entry = ParquetField(
        "key_value", repetition="REPEATED", children=(one("key", 7, physical="BINARY"), one("value", 8, physical="X"))
    )
    fields = (
        one("id", 1, physical="INT64"),
        one("s", 2, children=(one("a", 3, physical="INT32"),)),
        one("l", 4, children=(repeated,)),
        one("m", 6, children=(entry,)),
    )
    return FileSchema(fields)


def test_a_schema_and_its_mapping_are_decoded_as_the_metadata_hold_them() -> None:
    assert PLAIN.required == frozenset({1, 3, 5, 7})
    assert (PLAIN.is_mapped, MAPPED.is_mapped) == (False, True)
    told = {".".join((*(up.name for up in above), one.name)): one for one, above in MAPPED.each()}
    assert {path: one.kind for path, one in told.items()} == {
        "id": "int64", "s": "struct", "s.a": "decimal(9,2)", "l": "list", "l.element": "int32", "m": "map",
        "m.key": "string", "m.value": "fixed(4)",
    }  # fmt: skip
    assert told["id"].mapped == ("id", "ID")
    assert (told["s.a"].default, told["id"].default) == ('"1.50"', None)
    assert (MAPPED.path(8), MAPPED.path(9)) == (("m", "value"), None)


@pytest.mark.parametrize("table", [PLAIN, MAPPED])
def test_columns_are_found_by_their_ids_whatever_their_names(table: TableColumns) -> None:
    found = find_columns(table, stored(id="v", element="item", s="x"))
    assert found.unclear == ()
    assert set(found.fields) == {1, 2, 3, 4, 5, 6, 7, 8}
    assert found.fields[1].name == "v"


def test_files_without_ids_are_read_by_the_mapping_and_never_by_place() -> None:
    found = find_columns(MAPPED, stored(ids=False, id="ID"))
    assert (found.unclear, found.fields[1].name) == ((), "ID")
    (reason,) = find_columns(PLAIN, stored(ids=False)).unclear
    assert "set schema.name-mapping.default" in reason
    assert find_columns(PLAIN, FileSchema(())).unclear == (), "a file without columns says nothing false"


def test_a_column_that_a_mapping_forgot_is_unclear_and_one_that_no_file_has_is_missing() -> None:
    forgetful = replace(MAPPED, columns=tuple(replace(one, mapped=()) for one in MAPPED.columns[:1]))
    (reason,) = find_columns(forgetful, stored(ids=False)).unclear
    assert reason == "the column id has no field id, and the table's schema.name-mapping.default does not name it"
    assert find_columns(forgetful, stored(ids=False, id="other")) == FoundColumns({}, ())


@pytest.mark.parametrize("table", [PLAIN, MAPPED])
@pytest.mark.parametrize(
    ("name", "path"),
    [("id", "id"), ("a", "s.a"), ("element", "l.element"), ("key", "m.key"), ("value", "m.value"), ("l", "l")],
)
def test_a_field_without_id_beside_others_with_ids_is_unclear(table: TableColumns, name: str, path: str) -> None:
    (reason,) = find_columns(table, stored(without=(name,))).unclear
    assert path in reason


def test_a_field_of_no_column_needs_no_id_and_two_fields_never_share_one() -> None:
    more = FileSchema((*stored().fields, ParquetField("_hoodie_commit_time", physical="BINARY")))
    assert find_columns(MAPPED, more).unclear == ()
    twice = FileSchema((*stored().fields, ParquetField("again", 1, physical="INT64")))
    assert find_columns(MAPPED, twice).unclear == ("the columns id and again have one field id",)


@pytest.mark.parametrize(
    "old",
    [
        ParquetField("element", 5, "REPEATED", physical="INT32"),
        ParquetField("array", 5, "REPEATED", children=(ParquetField("x", 9, physical="INT32"),)),
        ParquetField("l_tuple", 5, "REPEATED", children=(ParquetField("x", 9, physical="INT32"),)),
        ParquetField("two", 5, "REPEATED", children=(ParquetField("x", 9, physical="INT32"), ParquetField("y", 10))),
    ],
)
def test_lists_of_old_writers_hold_their_elements_without_a_layer(old: ParquetField) -> None:
    element = Field("element", "struct", 5, children=(Field("x", "int32", 9),)) if old.children else PLAIN_ELEMENT
    table = TableColumns((Field("l", "list", 4, children=(element,)),))
    found = find_columns(table, FileSchema((ParquetField("l", 4, children=(old,)),)))
    assert (found.unclear, found.fields[5]) == ((), old)


def test_a_repeated_field_that_no_list_wraps_is_its_own_element() -> None:
    element = replace(PLAIN_ELEMENT, mapped=("element",))
    table = TableColumns((Field("l", "list", 4, children=(element,), mapped=("l",)),), is_mapped=True)
    bare = ParquetField("l", None, "REPEATED", physical="INT32")
    assert find_columns(table, FileSchema((bare,))) == FoundColumns({4: bare, 5: bare})
    (reason,) = find_columns(table, FileSchema((replace(bare, id=4),))).unclear
    assert reason == "l.element has not the field id 5, so that some readers find nothing there"


def test_a_column_that_is_stored_as_another_kind_of_thing_is_unclear() -> None:
    leaf, group = (
        ParquetField("c", 1, physical="INT32"),
        ParquetField("c", 1, children=(ParquetField("x", 2, physical="INT32"),)),
    )
    for kind, stored_as in (("struct", leaf), ("int32", group), ("list", group), ("map", group)):
        parts = {"struct": 1, "int32": 0, "list": 1, "map": 2}[kind]
        column = Field("c", kind, 1, children=tuple(Field("x", "int32", 2 + part) for part in range(parts)))
        (reason,) = find_columns(TableColumns((column,)), FileSchema((stored_as,))).unclear
        assert reason == f"the column c is a {kind}, and is stored as something else"


def test_keys_of_delete_files_are_found_by_their_ids_alone() -> None:
    keys = ((1, "id"), (3, "s.a"))
    assert unclear_keys(keys, stored()) == ()
    assert len(unclear_keys(keys, stored(ids=False))) == 2
    (reason,) = unclear_keys(keys, stored(without=("a",)))
    assert reason.startswith("the column s.a of the delete file has no field id (3)")
    twice = FileSchema((*stored().fields, ParquetField("again", 1, physical="INT64")))
    assert unclear_keys(keys, twice) == ("several columns of the delete file have the field id 1 of id",)


def test_nulls_are_forbidden_where_the_schema_requires_a_value_and_may_be_where_a_file_does_not() -> None:
    assert may_hold_forbidden_nulls(PLAIN, find_columns(PLAIN, stored()))
    required = FileSchema(tuple(_required(one) for one in stored().fields))
    assert not may_hold_forbidden_nulls(PLAIN, find_columns(PLAIN, required))
    lacking = FileSchema(required.fields[1:])
    assert may_hold_forbidden_nulls(PLAIN, find_columns(PLAIN, lacking)), "a column that a file lacks is null"
    assert not may_hold_forbidden_nulls(PLAIN, find_columns(PLAIN, FileSchema((required.fields[0],)))), "no list at all"
    bare = ParquetField("s", 2, "OPTIONAL", children=(ParquetField("b", 99),))
    assert not may_hold_forbidden_nulls(PLAIN, find_columns(PLAIN, FileSchema((required.fields[0], bare)))), "a default"


def _required(one: ParquetField) -> ParquetField:
    repetition = one.repetition if one.repetition == "REPEATED" else "REQUIRED"
    return replace(one, repetition=repetition, children=tuple(map(_required, one.children)))


def field(name: str, number: int, type_: object, **more: object) -> dict[str, object]:
    return {"name": name, "id": number, "type": type_, "required": False, **more}


def schema(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": fields}


@pytest.mark.parametrize(
    ("stored", "kind"),
    [("int", "int32"), ("long", "int64"), ("fixed[16]", "fixed(16)"), ("decimal(9, 2)", "decimal(9,2)")]
    + [(same, same) for same in ("uuid", "timestamptz", "timestamp_ns", "timestamptz_ns", "variant", "unknown")],
)
def test_types_are_those_of_files(stored: str, kind: str) -> None:
    assert table_columns(schema(field("c", 1, stored)), {}) == TableColumns((Field("c", kind, 1),))


def test_ids_names_and_defaults_are_found_at_every_level() -> None:
    struct = {"type": "struct", "fields": [field("x", 5, "binary", **{"initial-default": "00ff"})]}
    listed = {"type": "list", "element-id": 4, "element": struct, "element-required": True}
    entries = {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "long", "value-required": False}
    fields = (
        field("l", 1, listed),
        field("m", 2, entries),
        field("d", 3, "double", **{"initial-default": 1.5, "write-default": 2.5}),
    )
    element = {"field-id": 4, "names": ["element"], "fields": [{"field-id": 5, "names": ["x"]}]}
    mapping = [{"field-id": 1, "names": ["l", "L"], "fields": [element]}, {"names": ["another"]}]
    found = table_columns(schema(*fields), {MAPPING_PROPERTY: json.dumps(mapping)})
    x = Field("x", "binary", 5, ("x",), '"00ff"')
    assert (found.is_mapped, found.required) == (True, {4, 6})
    assert found.columns == (
        Field("l", "list", 1, ("l", "L"), children=(Field("element", "struct", 4, ("element",), children=(x,)),)),
        Field("m", "map", 2, children=(Field("key", "string", 6), Field("value", "int64", 7))),
        Field("d", "double", 3, default="1.5"),
    )


def test_a_table_of_another_writer_whose_columns_were_renamed_and_widened_is_read_by_ids(tmp_path) -> None:
    catalog = InMemoryCatalog("c", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    before = pa.table({"a": pa.array([1, None], pa.int32()), "b": [["x", None], None]})
    table = catalog.create_table("n.t", before.schema)
    table.append(before)
    with table.update_schema() as update:
        update.update_column("a", field_type=LongType())
        update.rename_column("a", "c")
    files = [ProofFile(task.file.file_path, 0) for task in table.scan().plan_files()]
    rows = table.scan().to_arrow()
    table.overwrite(rows)
    written = [ProofFile(task.file.file_path, 0) for task in table.scan().plan_files()]
    columns = table_columns(json.loads(table.schema().model_dump_json()), table.properties).columns
    found = read(connect(str(tmp_path)), group_of(columns, files, written, FoundBy.ID))
    assert (found.ending, found.rows) == (ReadEnding.SAME, 2), found
