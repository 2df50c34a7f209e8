"""Iceberg files are joined only where readers, which choose files by their metadata, find each row in the output."""

from typing import TYPE_CHECKING, Any

import pytest

from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_copy import entries, forced

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
