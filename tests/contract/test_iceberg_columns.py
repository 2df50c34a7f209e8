"""Columns of Iceberg files are found by ids, or by the name mapping without ids; what is unclear is refused by name."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus
from shared.errors import RefusedFiles
from shared.partitions import WHOLE_TABLE

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

IDS = {"id": 1, "v": 2, "x": 3}
MAPPING = json.dumps([{"field-id": number, "names": [name]} for name, number in IDS.items()])


def create(ice: "IcebergLab", name: str, *, mapping: str = "", more: str = "") -> str:
    properties = f", 'schema.name-mapping.default'='{mapping}'" if mapping else ""
    ice.sql(
        f"CREATE TABLE ice.db.{name} (id BIGINT, v STRING, x INT{more}) USING iceberg "
        f"TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='none'{properties})"
    )
    return f"ice.db.{name}"


def rows_of(ids: dict[str, int], *names: str, count: int = 5) -> Any:
    from tests.support.iceberg_foreign import field

    columns = {
        "id": ([*range(count)], pa.int64()),
        "v": ([f"v{n}" for n in range(count)], pa.string()),
        "x": ([n * 10 for n in range(count)], pa.int32()),
    }
    chosen = names or tuple(columns)
    schema = pa.schema([field(name, columns[name][1], ids) for name in chosen])
    return pa.table([columns[name][0] for name in chosen], schema=schema)


def require_refused(ice: "IcebergLab", table: str, *words: str) -> RefusedFiles:
    """A rewrite refuses all files of a table for their columns, in these words, and leaves no file."""
    before = ice.files_on_disk(table)
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert end.error.reason == "columns_unclear"
    for word in words:
        assert word in str(end.error), end.error
    assert ice.files_on_disk(table) == before
    return end.error


@pytest.mark.parametrize("mapping", ["", MAPPING])
def test_a_column_without_id_beside_columns_with_ids_is_refused_by_name(ice: "IcebergLab", mapping: str) -> None:
    """Iceberg's reader in Spark takes it for a missing column; pyiceberg and DuckDB ask the mapping."""
    from tests.support.iceberg_foreign import ForeignWriter

    table = create(ice, "t", mapping=mapping)
    writer = ForeignWriter(ice, table)
    files = [writer.add(rows_of({"id": 1, "x": 3})) for _ in range(2)]
    error = require_refused(ice, table, files[0].name, "column v has no field id", "schema.name-mapping.default")
    assert {path.rpartition("/")[2] for path in error.files} == {path.name for path in files}


def test_files_without_ids_are_read_by_the_mapping_in_force_and_refused_without_one(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter, read_by_others

    table = create(ice, "t")
    writer = ForeignWriter(ice, table)
    for _ in range(2):
        writer.add(rows_of({}, "x", "v", "id"))
    require_refused(ice, table, "no column has a field id", "set schema.name-mapping.default")
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('schema.name-mapping.default'='{MAPPING}')")
    seen = read_by_others(ice, table)
    rows = [repr((n, f"v{n}", n * 10)) for n in range(5) for _ in range(2)]
    assert seen == {"pyiceberg": rows, "duckdb": rows}
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert read_by_others(ice, table) == seen


def test_fields_inside_structs_lists_and_maps_need_ids_as_well(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = create(ice, "t", more=", s STRUCT<a: INT, b: INT>, l ARRAY<INT>, m MAP<STRING, INT>")
    columns = ice.engine._scala.resolve("org.apache.iceberg.SchemaParser").toJson(ice.java(table).schema())
    told = {one["name"]: one for one in json.loads(columns)["fields"]}
    ids = {name: one["id"] for name, one in told.items()}
    struct, part = told["s"]["type"]["fields"], told["l"]["type"]["element-id"]
    whole = pa.struct([field("a", pa.int32(), {"a": struct[0]["id"]}), field("b", pa.int32(), {"b": struct[1]["id"]})])
    cases = {
        "s.b": (field("s", pa.struct([whole[0], field("b", pa.int32(), {})]), ids), {"a": 1, "b": 2}),
        "l.element": (field("l", pa.list_(pa.field("element", pa.int32())), ids), [1, None]),
        "m.key": (field("m", pa.map_(pa.string(), pa.int32()), ids), [("k", 1)]),
    }
    for number, (path, (given, value)) in enumerate(cases.items()):
        other = create(ice, f"c{number}", more=", s STRUCT<a: INT, b: INT>, l ARRAY<INT>, m MAP<STRING, INT>")
        schema = pa.schema([field("id", pa.int64(), ids), given])
        ForeignWriter(ice, other).add(pa.table([[1], [value]], schema=schema))
        require_refused(ice, other, path)
    sound = field("l", pa.list_(field("element", pa.int32(), {"element": part})), ids)
    ForeignWriter(ice, table).add(pa.table([[1], [[1, None]]], schema=pa.schema([field("id", pa.int64(), ids), sound])))
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert [tuple(row) for row in ice.sql(f"SELECT id, l FROM {table}").collect()] == [(1, [1, None])]


@pytest.mark.parametrize("mapping", ["", MAPPING])
def test_delete_files_without_ids_are_refused_whatever_the_mapping_says(ice: "IcebergLab", mapping: str) -> None:
    """Readers of Iceberg's Java take their columns by place, and none of them asks the mapping."""
    from tests.support.iceberg_foreign import ForeignWriter

    table = create(ice, "values", mapping=mapping)
    writer = ForeignWriter(ice, table)
    writer.add(rows_of(IDS))
    deletes = writer.delete_values(rows_of({}, "x", count=1), [3])
    require_refused(ice, table, deletes.name, "column x of the delete file has no field id")
    table = create(ice, "places", mapping=mapping)
    writer = ForeignWriter(ice, table)
    data = writer.add(rows_of(IDS))
    deletes = writer.delete_places([(data.as_uri(), 1)], with_ids=False)
    require_refused(ice, table, deletes.name, "column file_path of the delete file has no field id")


def test_a_refused_group_leaves_the_others_to_land(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter

    table = create(ice, "t")
    writer = ForeignWriter(ice, table)
    for ids in (IDS, IDS, {"id": 1}):
        writer.add(rows_of(ids))
    live = ice.live(table, WHOLE_TABLE)
    unclear = tuple(file for file in live if file.path.endswith("foreign-3.parquet"))
    outcome = ice.rewrite(table, unclear, tuple(file for file in live if file not in unclear))
    assert [end.status for end in outcome.groups] == [GroupStatus.REFUSED, GroupStatus.COMMITTED]
    assert {path.path for path in ice.live(table, WHOLE_TABLE)} & {file.path for file in live} == {unclear[0].path}
