"""Groups that are rewritten although they are odd, or refused once by name; each output is compared with its inputs."""

from typing import TYPE_CHECKING

import pytest

from actor.formats.iceberg.encode_limits import RESERVED_NAMES
from actor.ports import GroupStatus
from actor.proofread.model import Reading
from shared.errors import Difference, RefusedFiles
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, PartitionKey

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]


def test_partitions_of_a_uuid_are_rewritten(ice: "IcebergLab") -> None:
    """py4j gives its objects every attribute: a UUID was once taken for a buffer of bytes."""
    table = ice.create("t")
    java, resolve = ice.java(table), ice.engine._scala.resolve
    java.updateSchema().addColumn("u", resolve("org.apache.iceberg.types.Types$UUIDType").get()).commit()
    java.updateSpec().addField("u").commit()
    value = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    for number in range(2):
        ice.sql(f"INSERT INTO {table} VALUES ({number}, 'v', 1, NULL, NULL, '{value}')")
    live = ice.live(table, PartitionKey(f'{{"#spec":"1","u":"{value}"}}'))
    assert len(live) == 2
    (end,) = ice.rewrite(table, live).groups
    assert (end.status, end.proof is not None and end.proof.reading) == (GroupStatus.COMMITTED, Reading.ROWS)
    assert [row[0] for row in ice.sql(f"SELECT DISTINCT u FROM {table}").collect()] == [value]


def test_a_spec_whose_column_was_dropped_is_refused_by_name_where_it_cannot_be_copied(ice: "IcebergLab") -> None:
    table = ice.create("t", by="x")
    for number in range(2):
        ice.sql(f"INSERT INTO {table} VALUES ({number}, 'v', 1, NULL, NULL)")
    java = ice.java(table)
    java.updateSpec().removeField("x").commit()
    java.updateSchema().deleteColumn("x").commit()
    partition = next(file.partition for file in _files(ice, table))
    (end,) = ice.rewrite(table, ice.live(table, partition)).groups
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert (end.error.reason, end.error.field) == ("unsupported", "x")


def test_a_table_with_names_that_iceberg_reserves_is_copied_or_refused_by_name(ice: "IcebergLab") -> None:
    """Spark reads none of its rows, and would fail each time that the rewrite was tried again."""
    from py4j.protocol import Py4JJavaError

    from tests.support.iceberg_foreign import stored_rows

    table, names = "ice.db.n", sorted(RESERVED_NAMES)
    columns = ", ".join(f"{name} BIGINT" for name in names)
    ice.sql(f"CREATE TABLE {table} (id BIGINT, {columns}) USING iceberg TBLPROPERTIES ('format-version'='2')")
    for number in range(2):
        ice.sql(f"INSERT INTO {table} VALUES ({number}, {', '.join(map(str, range(len(names))))})")
    with pytest.raises(Py4JJavaError) as unread:
        ice.sql(f"SELECT * FROM {table}").collect()
    assert all(name in str(unread.value) for name in names)
    rows = stored_rows(ice, table)
    end = ice.rewrite_all(table, may_copy=False)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert (end.error.reason, end.error.field in RESERVED_NAMES) == ("unsupported", True)
    assert ice.rewrite_all(table).status is GroupStatus.COMMITTED
    assert stored_rows(ice, table) == rows


def test_files_of_orc_are_compared_as_those_of_parquet_are(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default'='orc')")
    ice.sql(f"ALTER TABLE {table} ADD COLUMNS (s STRUCT<a: INT, m: MAP<STRING, ARRAY<DECIMAL(38, 9)>>>)")
    for number, at in enumerate(("1969-12-31 23:59:59.000001", "2026-03-29 01:30:00.5", "1883-11-18 12:01:02")):
        ice.sql(
            f"INSERT INTO {table} SELECT id, IF(id = 1, NULL, 'v'), {number}, NULL, timestamp'{at}', "
            "IF(id = 2, NULL, named_struct('a', IF(id = 3, NULL, {number}), 'm', map('k', array(1.5BD, NULL)))) "
            "FROM range(9)".replace("{number}", str(number))
        )
    rows = [row[0] for row in ice.sql(f"SELECT to_json(struct(*)) FROM {table} ORDER BY 1").collect()]
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.COMMITTED, end.error
    assert end.proof is not None
    assert (end.proof.reading, end.proof.reader) == (Reading.ROWS, "pyarrow"), end.proof.unverified_because
    assert all(file.path.endswith(".orc") for file in _files(ice, table))
    assert [row[0] for row in ice.sql(f"SELECT to_json(struct(*)) FROM {table} ORDER BY 1").collect()] == rows


def _files(ice: "IcebergLab", table: str) -> list[DataFile]:
    import asyncio

    return list(asyncio.run(ice.reader(table).snapshot()).files)


def test_deletes_by_a_column_inside_a_struct_are_applied(ice: "IcebergLab") -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    ice.sql(
        "CREATE TABLE ice.db.n (id BIGINT, s STRUCT<k: INT, w: STRING>) USING iceberg "
        "TBLPROPERTIES ('format-version'='2', 'write.distribution-mode'='none')"
    )
    for number in range(2):
        ice.sql(f"INSERT INTO ice.db.n VALUES ({number}, named_struct('k', {number}, 'w', 'w')), (9, NULL)")
    key = field("k", pa.int32(), {"k": 3})
    rows = pa.table([[{"k": 1}]], schema=pa.schema([field("s", pa.struct([key]), {"s": 2})]))
    ForeignWriter(ice, "ice.db.n").delete_values(rows, [3])
    seen = sorted(map(str, ice.sql("SELECT * FROM ice.db.n").collect()))
    assert len(seen) == 3
    end = ice.rewrite_all("ice.db.n")
    assert (end.status, end.rows) == (GroupStatus.COMMITTED, 3)
    assert sorted(map(str, ice.sql("SELECT * FROM ice.db.n").collect())) == seen


def test_keys_that_became_longs_between_two_rewrites_delete_rows_in_both(ice: "IcebergLab") -> None:
    """Spark's executors keep what they have read of a delete file by its path, and an Integer equals no Long."""
    from tests.support.iceberg_foreign import ForeignWriter, field

    ice.sql("CREATE TABLE ice.db.n (k INT, v STRING) USING iceberg TBLPROPERTIES ('format-version'='2')")
    for number in range(2):
        rows = f"SELECT CAST(id AS INT), concat(id, ' of {number}') FROM range(1, 3, 1, 1)"
        ice.sql(f"INSERT INTO ice.db.n {rows}")
    keys = pa.table([[1]], schema=pa.schema([field("k", pa.int32(), {"k": 1})]))
    ForeignWriter(ice, "ice.db.n").delete_values(keys, [1])
    for _ in range(2):
        file = next(one for one in ice.live("ice.db.n", WHOLE_TABLE) if one.dv_id is not None)
        (end,) = ice.rewrite("ice.db.n", (file,)).groups
        assert (end.status, end.rows) == (GroupStatus.COMMITTED, 1), end.error
        ice.sql("ALTER TABLE ice.db.n ALTER COLUMN k TYPE BIGINT")
    assert sorted(row.v for row in ice.sql("SELECT v FROM ice.db.n").collect()) == ["2 of 0", "2 of 1"]


@pytest.mark.parametrize("more", [7, 2**20, -3])
def test_a_file_of_another_size_than_its_manifest_says_is_refused_by_name(ice: "IcebergLab", more: int) -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = ice.create("t")
    rows = pa.table([[1, 2]], schema=pa.schema([field("id", pa.int64(), {"id": 1})]))
    writer = ForeignWriter(ice, table)
    writer.add(rows)
    wrong = writer.add(rows, size_more=more)
    end = ice.rewrite_all(table)
    assert end.status is GroupStatus.REFUSED
    assert isinstance(end.error, RefusedFiles)
    assert end.error.reason == "damaged"
    assert f"{wrong.name} " in str(end.error)


@pytest.mark.parametrize(("version", "reading"), [(2, Reading.ROWS), (3, Reading.ROWS)])
def test_groups_with_deleted_rows_are_compared_by_rows(ice: "IcebergLab", version: int, reading: Reading) -> None:
    table = ice.create("t", version=version, by="dt", properties={"write.delete.mode": "merge-on-read"})
    for number in range(3):
        ice.append(table, number)
    ice.sql(f"DELETE FROM {table} WHERE id % 7 = 1")
    rows, seen = ice.rows(table), ice.lineage(table) if version > 2 else None
    groups = {file.partition for file in _files(ice, table)}  # type: ignore[attr-defined]
    outcome = ice.rewrite(table, *(ice.live(table, partition) for partition in sorted(groups)))
    assert [(end.status, end.proof and end.proof.unverified_because) for end in outcome.groups] == [
        (GroupStatus.COMMITTED, "")
    ] * len(groups)
    assert {end.proof.reading for end in outcome.groups if end.proof} == {reading}
    assert ice.rows(table) == rows
    assert seen is None or ice.lineage(table) == seen
    summary = ice.sql(f"SELECT summary FROM {table}.snapshots ORDER BY committed_at DESC").first()[0]
    assert summary["lakewright.proofread"] == "rows"


def test_a_difference_is_refused_its_output_deleted_and_the_others_land(
    ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch
) -> None:
    from actor.formats.iceberg.write import StagedWriter

    table = ice.create("t", by="dt")
    for number in range(2):
        ice.append(table, number)
    groups = sorted({file.partition for file in _files(ice, table)})  # type: ignore[attr-defined]
    rows, before, read = ice.rows(table), ice.files_on_disk(table), StagedWriter._read

    def changed(self: StagedWriter, name: str, *, by_row: bool) -> object:
        frame = read(self, name, by_row=by_row)
        return frame.selectExpr("id", "v", "if(id = 5, 596, x) as x", "dt", "ts")  # It is 595, of the second day.

    monkeypatch.setattr(StagedWriter, "_read", changed)
    first, second = ice.rewrite(table, *(ice.live(table, partition) for partition in groups), may_copy=False).groups
    assert (first.status, second.status) == (GroupStatus.COMMITTED, GroupStatus.REFUSED)
    assert isinstance(second.error, Difference)
    assert second.error.columns == ("x",)
    assert ice.rows(table) == rows
    assert len(ice.files_on_disk(table) - before) == 1
