"""A Z-ordered table beside Delta's own `OPTIMIZE ZORDER BY`, in one run: files that ranges read, bytes and time.

Everything is read from the files, from the readers' own metrics and from Delta's history.
"""

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from actor.ports import GroupStatus
from shared.layout.planner import FileGroup, RewriteMode
from shared.layout.row_order import RowOrder, SortColumn
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab
from tests.support.sorted_table import KEYS, SORTED, Table, batch, read_by_deltalake, read_by_spark

deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

COMMITS, OUTPUTS = 256, 64
QUERIES = {"k": KEYS // 100, "b": KEYS // 100, "kb": KEYS // 10}
"""Columns, each named by a letter, with the width of their ranges: each query returns 1% of the rows."""


def files_read(lab: DeltaLab, path: Path) -> dict[str, tuple[float, float]]:
    """Files that Spark and deltalake read for each query."""
    return {
        columns: (read_by_spark(lab, path.as_uri(), columns, width), read_by_deltalake(path, columns, width))
        for columns, width in QUERIES.items()
    }


def optimize(lab: DeltaLab, path: Path, file_bytes: int) -> tuple[float, int, int]:
    """Let Delta order the table; returns seconds, bytes read and bytes written."""
    lab.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", file_bytes)
    started_s = time.monotonic()
    try:
        lab.sql(f"OPTIMIZE delta.`{path.as_uri()}` ZORDER BY (k, b)")
    finally:
        lab.spark.conf.unset("spark.databricks.delta.optimize.maxFileSize")
    took_s = time.monotonic() - started_s
    metrics = deltalake.DeltaTable(path).history(1)[0]["operationMetrics"]
    return took_s, int(metrics["numRemovedBytes"]), int(metrics["numAddedBytes"])


def test_ranges_of_one_and_of_two_columns_read_less_than_unsorted_and_no_more_than_after_deltas_own_order(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.dataset  # noqa: F401 - used by read_by_deltalake

    table = Table(lab, "ours", replace(SORTED, sort_by=None))
    dice = random.Random(9)
    for at in range(COMMITS):
        deltalake.write_deltalake(table.path, batch(dice, at), mode="append")
    theirs, merged = (lab.directory / name for name in ("theirs", "merged"))
    for copy in (theirs, merged):
        shutil.copytree(table.path, copy)
    before = lab.digest(table.location)

    started_s = time.monotonic()
    order = RowOrder((SortColumn("k"), SortColumn("b")), is_interleaved=True, outputs=OUTPUTS)
    group = FileGroup(WHOLE_TABLE, table.live(), RewriteMode.SORT, order=order)
    (end,) = lab.rewrite(table.location, [group]).groups
    ours_s = time.monotonic() - started_s
    assert end.status is GroupStatus.COMMITTED
    assert lab.digest(table.location) == before
    written = sum(file.size_bytes for file in end.outputs)
    theirs_s, theirs_read, theirs_written = optimize(lab, theirs, written // OUTPUTS)

    read = {name: files_read(lab, path) for name, path in (("ours", table.path), ("OPTIMIZE", theirs))}
    unsorted = files_read(lab, merged)
    files = {
        name: len(deltalake.DeltaTable(path).file_uris()) for name, path in (("ours", table.path), ("theirs", theirs))
    }
    with capsys.disabled():
        print(f"\n{COMMITS} commits of random keys; files {files}; files read (Spark, deltalake):")
        for name, found in {"unsorted": unsorted, **read}.items():
            print(f"  {name}: {found}")
        print(f"  ours: {ours_s:.1f} s, {group.bytes:,} bytes read, {written:,} written")
        print(f"  OPTIMIZE: {theirs_s:.1f} s, {theirs_read:,} bytes read, {theirs_written:,} written")
    assert group.bytes == theirs_read
    for columns in QUERIES:
        for ours, theirs_, plain in zip(
            read["ours"][columns], read["OPTIMIZE"][columns], unsorted[columns], strict=True
        ):
            # Beside as many files in no order, of which each has rows of every range, too.
            assert ours <= min(plain, OUTPUTS) / 3, columns
            # Both sample the rows to split them, so neither is always the better one.
            assert ours <= theirs_ * 1.5, columns
