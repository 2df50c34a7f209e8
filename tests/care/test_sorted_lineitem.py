"""What an order saves: TPC-H's lineitem, written in random order, merged with and without a sort order by one Spark."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from actor.ports import GroupStatus
from shared.layout.planner import FileGroup, RewriteMode
from shared.layout.row_order import RowOrder, SortColumn
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab
from tests.support.duckdb_extensions import load_extension

pytestmark = pytest.mark.spark

SCALES = [0.02, 0.1]
"""120,000 and 600,000 rows: some 4 and 20 MB of Parquet."""

FILES = 8


@pytest.mark.parametrize("scale", SCALES)
def test_a_sorted_lineitem_is_smaller_than_one_that_was_only_merged(
    lab: DeltaLab, tmp_path: Path, scale: float
) -> None:
    rows = tmp_path / "lineitem.parquet"
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "tpch")
    connection.execute(f"CALL dbgen(sf = {scale})")
    connection.execute(f"COPY (SELECT * FROM lineitem ORDER BY hash(l_orderkey, l_linenumber)) TO '{rows}'")
    table = tmp_path / "t"
    lab.spark.read.parquet(str(rows)).repartition(FILES).write.format("delta").save(str(table))
    before = lab.digest(str(table))
    sizes = {"written": sum(file.size_bytes for file in lab.files(str(table)))}
    for name, order in (("sorted", RowOrder((SortColumn("l_shipdate"), SortColumn("l_partkey")))), ("merged", None)):
        copy = tmp_path / name
        lab.spark.read.format("delta").load(str(table)).repartition(FILES).write.format("delta").save(str(copy))
        group = FileGroup(WHOLE_TABLE, lab.files(str(copy)), RewriteMode.SORT)
        (end,) = lab.rewrite(str(copy), [replace(group, order=order)], may_copy=False).groups
        assert end.status is GroupStatus.COMMITTED
        assert lab.digest(str(copy)) == before
        sizes[name] = sum(file.size_bytes for file in end.outputs)
    saved = 1 - sizes["sorted"] / sizes["merged"]
    print(
        f"\nlineitem at {scale:g}, bytes {sizes}: sorted by l_shipdate, l_partkey it is {saved:.0%} smaller than merged"
    )
    assert sizes["sorted"] < sizes["merged"] < sizes["written"]
