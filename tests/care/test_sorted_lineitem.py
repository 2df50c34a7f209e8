"""What an order saves: rows written in random order, merged with and without a sort order by one Spark.

TPC-H's lineitem, and the rows of the demonstration, half of whose bytes are random texts that no order makes smaller.
"""

import random
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actor.ports import GroupStatus
from services.demo.row_checksum import commit_rows
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.row_order import RowOrder, SortColumn
from tests.support.delta_lab import DeltaLab
from tests.support.duckdb_extensions import load_extension

pytestmark = pytest.mark.spark

SCALES = [0.02, 0.1]
"""120,000 and 600,000 rows: some 4 and 20 MB of Parquet."""

FILES = 8
DEMO_COMMITS = 200


def merged_sizes(lab: DeltaLab, rows: Path, columns: list[str]) -> dict[str, int]:
    """Merge the same files with and without an order; returns bytes as written, merged, and merged and sorted."""
    directory = rows.parent
    table = directory / "t"
    lab.spark.read.parquet(str(rows)).repartition(FILES).write.format("delta").save(str(table))
    before = lab.digest(str(table))
    sizes = {"written": sum(file.size_bytes for file in lab.files(str(table)))}
    for name, order in (("sorted", RowOrder(tuple(map(SortColumn, columns)))), ("merged", None)):
        copy = directory / name
        lab.spark.read.format("delta").load(str(table)).repartition(FILES).write.format("delta").save(str(copy))
        group = FileGroup(WHOLE_TABLE, lab.files(str(copy)), RewriteMode.SORT)
        (end,) = lab.rewrite(str(copy), [replace(group, order=order)], may_copy=False).groups
        assert end.status is GroupStatus.COMMITTED
        assert lab.digest(str(copy)) == before
        sizes[name] = sum(file.size_bytes for file in end.outputs)
    saved = 1 - sizes["sorted"] / sizes["merged"]
    print(f"\nbytes {sizes}: sorted by {', '.join(columns)} it is {saved:.1%} smaller than merged")
    return sizes


@pytest.mark.parametrize("scale", SCALES)
def test_a_sorted_lineitem_is_smaller_than_one_that_was_only_merged(
    lab: DeltaLab, tmp_path: Path, scale: float
) -> None:
    rows = tmp_path / "lineitem.parquet"
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1})
    load_extension(connection, "tpch")
    connection.execute(f"CALL dbgen(sf = {scale})")
    connection.execute(f"COPY (SELECT * FROM lineitem ORDER BY hash(l_orderkey, l_linenumber)) TO '{rows}'")
    sizes = merged_sizes(lab, rows, ["l_shipdate", "l_partkey"])
    assert sizes["sorted"] < sizes["merged"] < sizes["written"]


def test_the_demonstrations_rows_are_smaller_sorted_than_merged_alone(lab: DeltaLab, tmp_path: Path) -> None:
    dice, commits = random.Random(7), list[pa.Table]()
    for _ in range(DEMO_COMMITS):
        commits.append(commit_rows(dice, sum(one.num_rows for one in commits)))
    rows = tmp_path / "events.parquet"
    pq.write_table(pa.concat_tables(commits), rows)
    sizes = merged_sizes(lab, rows, ["device", "id"])
    assert sizes["sorted"] < sizes["merged"]
