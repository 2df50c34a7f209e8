"""A sorted and a Z-ordered table with Spark, Delta and deltalake: depths by the log, and files read by a range.

Everything is read from the files and from the readers' own metrics. The same data, compacted alone and by Delta's own
`OPTIMIZE ZORDER BY`, stands beside it.
"""

import asyncio
import random
import shutil
import time
from dataclasses import replace
from typing import Any

import pytest

from actor.ports import GroupStatus
from decider.formats.delta.log import open_log
from decider.state.fold import count_live_files, fold
from decider.storage.object_reads import ReadMeter
from shared.layout.partition_stats import EMPTY_STATS, stats_of_files
from shared.layout.planner import FileGroup, RewriteMode
from shared.layout.row_order import RowOrder, SortColumn
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab
from tests.support.sorted_table import (
    SORTED,
    Table,
    batch,
    read_by_deltalake,
    read_by_spark,
)

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark


def test_the_depths_of_a_followed_table_are_those_of_its_live_files(lab: DeltaLab) -> None:
    """Our rewrites repeat bounds where they remove files; after Spark's DELETE and OPTIMIZE a rebuild follows."""
    table = Table(lab, "followed", SORTED)
    dice = random.Random(1)
    for at in range(80):
        deltalake.write_deltalake(table.path, batch(dice, at), mode="append")
        if at % 20 == 19:
            table.care()
    lab.sql(f"DELETE FROM delta.`{table.location}` WHERE k < 1000")
    lab.sql(f"OPTIMIZE delta.`{table.location}`")

    async def folded() -> tuple[Any, list[str], Any]:
        reader = open_log(table.location, meter=ReadMeter())
        first = await reader.snapshot(0)
        metadata, state, reasons = first.metadata, EMPTY_STATS, []
        newest = (await reader.snapshot()).version
        async for commit in reader.commits(range(1, newest + 1), metadata):
            found = fold(commit, metadata, SORTED)
            if found.rebuild_reason is not None:
                reasons.append(commit.operation)
                state = count_live_files((await reader.snapshot(commit.version)).files, SORTED)[WHOLE_TABLE]
                continue
            state = (state + found.changes.get(WHOLE_TABLE, EMPTY_STATS)).clamped()
        counted = count_live_files((await reader.snapshot()).files, SORTED)[WHOLE_TABLE]
        return state, reasons, counted

    state, reasons, counted = asyncio.run(folded())
    assert reasons == ["DELETE", "OPTIMIZE"]
    assert counted.depths
    assert replace(state, depths=()) == replace(counted, depths=())
    assert [level for level, _ in state.depths] == [level for level, _ in counted.depths]
    for (_, known), (_, live) in zip(state.depths, counted.depths, strict=True):
        assert known.at_shift(live.shift) == live.at_shift(known.shift)
    assert counted == stats_of_files(table.live(), SORTED.size_levels), "decider and actor count alike"


@pytest.mark.long("contracts")
def test_z_ordered_outputs_are_read_less_by_either_column_and_compare_with_delta(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.dataset  # noqa: F401 - used by read_by_deltalake

    table = Table(lab, "ours", replace(SORTED, sort_by=None))
    dice = random.Random(9)
    for at in range(64):
        deltalake.write_deltalake(table.path, batch(dice, at), mode="append")
    theirs = lab.directory / "theirs"
    shutil.copytree(table.path, theirs)
    before = lab.digest(table.location)
    unsorted = read_by_deltalake(table.path, "k", 10_000)

    started = time.monotonic()
    order = RowOrder((SortColumn("k"), SortColumn("b")), is_interleaved=True, outputs=16)
    group = FileGroup(WHOLE_TABLE, table.live(), RewriteMode.SORT, order=order)
    (end,) = lab.rewrite(table.location, [group]).groups
    ours_s = time.monotonic() - started
    assert end.status is GroupStatus.COMMITTED
    assert lab.digest(table.location) == before
    started = time.monotonic()
    lab.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", sum(f.size_bytes for f in end.outputs) // 16)
    try:
        lab.sql(f"OPTIMIZE delta.`{theirs.as_uri()}` ZORDER BY (k, b)")
    finally:
        lab.spark.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    theirs_s = time.monotonic() - started
    read = {
        name: {
            column: (read_by_spark(lab, path.as_uri(), column, 10_000), read_by_deltalake(path, column, 10_000))
            for column in ("k", "b")
        }
        for name, path in (("ours", table.path), ("theirs", theirs))
    }
    with capsys.disabled():
        files = len(deltalake.DeltaTable(theirs).file_uris())
        print(
            f"\nz-order: ours {len(end.outputs)} files in {ours_s:.1f} s, OPTIMIZE {files} in {theirs_s:.1f} s; "
            f"files read by 1% of either column (Spark, deltalake): {read}, unsorted {unsorted}"
        )
    for column in ("k", "b"):
        assert max(read["ours"][column]) <= len(end.outputs) / 2
        assert max(read["ours"][column]) <= unsorted / 5
