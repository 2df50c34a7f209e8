"""Columns of Iceberg tables as files store them: ids, names of the mapping, and initial defaults."""

import json

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.types import LongType

from actor.formats.iceberg.table_columns import MAPPING_PROPERTY, TableColumns, table_columns
from actor.proofread.model import Field, FoundBy, ProofFile
from actor.proofread.process import connect
from actor.proofread.task import ReadEnding
from tests.support.proofread_groups import group_of, read


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
