"""A Z-ordered table beside Delta's own `OPTIMIZE ZORDER BY`, in one run: files that ranges read, bytes and time.

Everything is read from the files, from the readers' own metrics and from Delta's history.
"""

import random
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from actor.ports import GroupStatus
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.row_order import RowOrder, SortColumn
from tests.support.delta_lab import DeltaLab
from tests.support.sorted_table import KEYS, SORTED, Table, batch, ranges, read_by_deltalake, read_by_spark

deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

COMMITS, OUTPUTS = 256, 64
QUERIES = {"k": KEYS // 100, "b": KEYS // 100, "kb": KEYS // 10}
"""Columns, each named by a letter, with the width of their ranges: each query returns 1% of the rows."""

VALUES, BITS = 1_000, 10
"""Ranges that Delta divides the values of a column into, and the bits of their numbers."""

SAMPLED = 1.25
"""Files read against the exact curve: Spark splits rows by a sample, so a file reaches into its neighbors' places."""


def exact(rows: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Files to read for each query if the same curve is split without a sample, into parts of equally many rows."""
    places = [[0, 0] for _ in rows]
    for column in range(2):
        for rank, at in enumerate(sorted(range(len(rows)), key=lambda at, column=column: rows[at][column])):
            places[at][column] = rank * VALUES // len(rows)

    def on_curve(at: int) -> int:
        k, b = places[at]
        return sum(((k >> bit & 1) << 2 * bit + 1) + ((b >> bit & 1) << 2 * bit) for bit in range(BITS))

    curve = [rows[at] for at in sorted(range(len(rows)), key=on_curve)]
    size = len(rows) // OUTPUTS
    parts = [curve[at : at + size] for at in range(0, len(rows), size)]
    bounds = [
        {name: (min(values), max(values)) for name, values in zip("kb", zip(*part, strict=True), strict=True)}
        for part in parts
    ]

    def reads(part: Mapping[str, tuple[int, int]], columns: str, query: Sequence[tuple[int, int]]) -> bool:
        return all(
            part[name][0] <= high and part[name][1] >= low for name, (low, high) in zip(columns, query, strict=True)
        )

    return {
        columns: statistics.mean(
            sum(reads(part, columns, query) for part in bounds) for query in ranges(width, len(columns))
        )
        for columns, width in QUERIES.items()
    }


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


def test_ranges_of_one_and_of_two_columns_read_less_than_unsorted_and_about_as_many_as_after_deltas_own_order(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.dataset  # noqa: F401 - used by read_by_deltalake

    table = Table(lab, "ours", replace(SORTED, sort_by=None))
    dice = random.Random(9)
    rows: list[tuple[int, int]] = []
    for at in range(COMMITS):
        written_rows = batch(dice, at)
        deltalake.write_deltalake(table.path, written_rows, mode="append")
        rows += zip(written_rows["k"].to_pylist(), written_rows["b"].to_pylist(), strict=True)
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
    # OPTIMIZE makes as many files as this size goes into the bytes that it reads.
    theirs_s, theirs_read, theirs_written = optimize(lab, theirs, group.bytes // OUTPUTS)

    read = {name: files_read(lab, path) for name, path in (("ours", table.path), ("OPTIMIZE", theirs))}
    unsorted, curve = files_read(lab, merged), exact(rows)
    files = {
        name: len(deltalake.DeltaTable(path).file_uris()) for name, path in (("ours", table.path), ("theirs", theirs))
    }
    with capsys.disabled():
        print(f"\n{COMMITS} commits of random keys; files {files}; files read (Spark, deltalake):")
        for name, found in {"unsorted": unsorted, **read}.items():
            print(f"  {name}: {found}")
        print(f"  the curve without sampling: {curve}")
        print(f"  ours: {ours_s:.1f} s, {group.bytes:,} bytes read, {written:,} written")
        print(f"  OPTIMIZE: {theirs_s:.1f} s, {theirs_read:,} bytes read, {theirs_written:,} written")
    assert group.bytes == theirs_read
    assert written <= theirs_written * 1.02
    assert files == {"ours": OUTPUTS, "theirs": OUTPUTS}
    for columns, needed in curve.items():
        for ours, theirs_, plain in zip(
            read["ours"][columns], read["OPTIMIZE"][columns], unsorted[columns], strict=True
        ):
            assert ours <= needed * SAMPLED <= min(plain, OUTPUTS) / 3, columns
            assert ours <= theirs_ * SAMPLED, columns
