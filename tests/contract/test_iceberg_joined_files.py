"""Iceberg files are joined only where readers, which choose files by their metadata, find each row in the output."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_copy import entries, forced, local, metadata_file
from tests.iceberg_stress.readers import _DuckDb
from tests.support.iceberg_foreign import ForeignWriter, field
from tests.support.uncounted_nulls import NULLS, write_uncounted

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark


@pytest.fixture
def copying(ice: "IcebergLab") -> "IcebergLab":
    return forced(ice)


def test_bounds_of_floats_that_one_input_leaves_out_are_left_out(copying: "IcebergLab") -> None:
    """Those of the others would be the file's, and hide the rows of that one."""
    table, mode = "ice.db.t", "write.metadata.metrics.column.d"
    copying.sql(f"CREATE TABLE {table} (id BIGINT, d DOUBLE) USING iceberg TBLPROPERTIES ('{mode}'='counts')")
    copying.sql(f"INSERT INTO {table} VALUES (0, 100.5D)")
    copying.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{mode}')")
    copying.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, id + 0.5D FROM range(1, 3)")
    files = sorted(copying.live(table, WHOLE_TABLE), key=lambda file: file.rows or 0)
    assert [file.rows for file in files] == [1, 2], "the one without bounds comes first"
    (end,) = copying.rewrite(table, tuple(files)).groups
    assert end.is_copied
    (entry,) = entries(copying, table)
    assert entry["nan_value_counts"] == {2: 0}
    assert 2 not in entry["lower_bounds"]
    assert 2 not in entry["upper_bounds"]
    assert copying.sql(f"SELECT id FROM {table} WHERE d > 50").collect() == [(0,)]


def test_files_of_several_partitions_are_never_joined(copying: "IcebergLab") -> None:
    """The output would have the partition of the first, and a reader that looks for the others would pass it over."""
    from actor.formats.iceberg.parquet_task import IcebergTasks

    table = copying.create("t", by="dt")
    copying.append(table, 0)
    copying.append(table, 1)
    java = copying.engine._tables.load(copying.location(table))
    head = java.refresh()
    assert head.current is not None
    paths = java.inputs(head, head.current, partitions=None)
    parts: dict[Any, list[Any]] = {}
    for one in java.inputs(
        head, head.current, partitions={one.file.partition for one in paths.values()}, paths=paths
    ).values():
        parts.setdefault(one.file.partition, []).append(one)
    (first, second), (other, _) = parts.values()
    tasks = IcebergTasks(copying.engine._scala, copying.session, java)
    assert [tasks.mismatch(inputs) for inputs in ((first, second), (first, other))] == ["", "partition"]


@pytest.mark.parametrize("way", ["copied", pytest.param("by column", marks=pytest.mark.long("iceberg"))])
def test_nulls_that_a_row_group_does_not_count_are_hidden_by_no_number_of_the_others(
    copying: "IcebergLab", way: str
) -> None:
    """Iceberg adds -1 for such a row group: with the one null of another there would be none."""
    table, columns = "ice.db.t", {"id": "BIGINT", "v": "BIGINT", "t": "STRING", "d": "DOUBLE"}
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    copying.sql(f"CREATE TABLE {table} ({schema}) USING iceberg TBLPROPERTIES ('format-version'='2')")
    kinds = {"id": pa.int64(), "v": pa.int64(), "t": pa.string(), "d": pa.float64()}
    ids = {name: number for number, name in enumerate(columns, start=1)}
    stored = pa.schema([field(name, kind, ids) for name, kind in kinds.items()])

    def rows(first: int, nulls: int) -> pa.Table:
        v = [None if number < nulls else number for number in range(100)]
        t, d = [one and f"t{one}" for one in v], [one and one + 0.5 for one in v]
        return pa.table({"id": range(first, first + 100), "v": v, "t": t, "d": d}, schema=stored)

    foreign, codec = ForeignWriter(copying, table), "zstd" if way == "copied" else "gzip"
    counted = foreign.add(rows(0, 1), compression=codec, store_schema=False)
    write_uncounted(rows(100, NULLS), counted.parent / "uncounted.parquet")
    foreign.add_file(counted.parent / "uncounted.parquet", 100)
    end = copying.rewrite_all(table)
    assert (end.is_copied, end.by_column) == (way == "copied", way == "by column"), end
    (entry,) = entries(copying, table)
    assert [entry["null_value_counts"].get(one) for one in ids.values()] == (
        [0, None, None, None] if way == "copied" else [0, *[NULLS + 1] * 3]
    )
    assert [one in entry["lower_bounds"] for one in ids.values()] == [True, True, True, False]
    scanned = StaticTable.from_metadata(metadata_file(copying, table))
    ducks = f"SELECT count(*) FROM iceberg_scan('{local(metadata_file(copying, table))}')"
    for name in ("v", "t", "d"):
        for word, count in (("", NULLS + 1), ("NOT ", 200 - NULLS - 1)):
            sought = f"{name} IS {word}NULL"
            assert copying.sql(f"SELECT id FROM {table} WHERE {sought}").count() == count, sought
            assert _DuckDb()._connection.sql(f"{ducks} WHERE {sought}").fetchall() == [(count,)], sought
            assert len(scanned.scan(row_filter=sought).to_arrow()) == count, sought
