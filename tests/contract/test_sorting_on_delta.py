"""A sorted table under five hundred small commits, with Spark, Delta and deltalake: depth, files read, and bytes.

Everything is read from the files and from the readers' own metrics. The same data, compacted alone and by Delta's own
`OPTIMIZE ZORDER BY`, stands beside it.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from actor.ports import GroupStatus
from decider.formats.delta.log import open_log
from decider.state.fold import count_live_files, fold
from decider.storage.object_reads import ReadMeter
from shared.layout.key_depth import covers
from shared.layout.partition_stats import EMPTY_STATS, sort_level, stats_of_files
from shared.layout.planner import FileGroup, Plan, RewriteMode, plan
from shared.layout.row_order import RowOrder, SortColumn
from shared.layout.sort_planner import SortReason, evaluate_sort, plan_sort
from shared.partitions import WHOLE_TABLE
from shared.policy import KIB, Policy
from shared.table import DataFile
from tests.support.delta_lab import DeltaLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark

COMMITS, ROWS, KEYS = 500, 250, 1_000_000
ROUND = 50
"""Commits between two rewrites: they are fewer than in production, and each finds more to do."""

SORTED = Policy(target_bytes=64 * KIB, tolerance=Fraction(0), sort_by="k", max_depth=4)
EXAMPLES = 20


def batch(dice: random.Random, at: int) -> Any:
    """The rows of one commit: random keys, a second key, and a text that does not compress away."""
    return pa.table(
        {
            "k": pa.array([dice.randrange(KEYS) for _ in range(ROWS)], pa.int64()),
            "b": pa.array([dice.randrange(KEYS) for _ in range(ROWS)], pa.int64()),
            "n": pa.array(range(at * ROWS, (at + 1) * ROWS), pa.int64()),
            "t": pa.array([f"{dice.getrandbits(64):016x}" for _ in range(ROWS)]),
        }
    )


class Table:
    """A table that others write and we rewrite; counts bytes."""

    def __init__(self, lab: DeltaLab, name: str, policy: Policy) -> None:
        self.lab, self.policy = lab, policy
        self.path = lab.directory / name
        self.location = self.path.as_uri()
        self.rewritten = {"compact": 0, "sort": 0}
        order = f"TBLPROPERTIES ('lakewright.sort-by' = '{policy.sort_by}')" if policy.sort_by else ""
        lab.sql(f"CREATE TABLE delta.`{self.location}` (k BIGINT, b BIGINT, n BIGINT, t STRING) USING delta {order}")

    def live(self) -> tuple[DataFile, ...]:
        return self.lab.engine.read_partition(self.location, WHOLE_TABLE).files

    def care(self) -> None:
        """Run what the planners find, until they find nothing."""
        for _ in range(50):
            made = plan(WHOLE_TABLE, self.live(), self.policy)
            if not made.groups and self.policy.sort_by:
                made = plan_sort(WHOLE_TABLE, self.live(), self.policy)
            if not made.groups:
                return
            self._run(made)
        raise AssertionError("the planners always find something to do")

    def _run(self, made: Plan) -> None:
        for end in self.lab.rewrite(self.location, made.groups).groups:
            assert end.status is GroupStatus.COMMITTED
            if end.group.order is not None and end.group.order.columns:
                self.check_sorted(end.outputs)
            self.rewritten[made.action] += end.group.bytes

    def check_sorted(self, outputs: Sequence[DataFile]) -> None:
        """Rows ascend in each file, and ranges of one group are disjoint: by the files themselves."""
        ranges = []
        for file in outputs:
            keys = pq.ParquetFile(self.path / file.path).read(["k"])["k"].to_pylist()
            assert keys == sorted(keys)
            ranges.append((keys[0], keys[-1]))
            assert file.key_range == ranges[-1]
        assert all(one[1] <= following[0] for one, following in pairwise(sorted(ranges)))


def ranges(width: int) -> list[tuple[int, int]]:
    dice = random.Random(5)
    return [(low, low + width) for low in (dice.randrange(KEYS - width) for _ in range(EXAMPLES))]


def read_by_spark(lab: DeltaLab, location: str, column: str, width: int) -> float:
    """Mean number of files that Spark's scan reads for a range, by its own metric."""
    total = 0
    for low, high in ranges(width):
        frame = lab.spark.read.format("delta").load(location).where(f"{column} BETWEEN {low} AND {high}")
        frame.collect()
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        total += leaves.apply(0).metrics().apply("numFiles").value()
    return total / EXAMPLES


def read_by_deltalake(path: Path, column: str, width: int) -> float:
    """Mean number of files that deltalake's dataset reads for a range."""
    data = deltalake.DeltaTable(path).to_pyarrow_dataset()
    field = pa.dataset.field(column)
    found = [len(list(data.get_fragments((field >= low) & (field <= high)))) for low, high in ranges(width)]
    return sum(found) / EXAMPLES


def true_depth(files: Sequence[DataFile]) -> int:
    known = [file.key_range for file in files if file.key_range is not None]
    return max(sum(covers(one, low + 1) for one in known) for low, _ in known)


def test_five_hundred_commits_of_random_keys_settle_within_the_bound_and_ranges_read_a_fifth(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.dataset  # noqa: F401 - used by read_by_deltalake

    one = Table(lab, "sorted", SORTED)
    alone = Table(lab, "alone", replace(SORTED, sort_by=None))
    dice = random.Random(3)
    ingested = 0
    for at in range(COMMITS):
        rows = batch(dice, at)
        for table in (one, alone):
            deltalake.write_deltalake(table.path, rows, mode="append")
        if (at + 1) % ROUND == 0:
            one.care()
            alone.care()
    ingested = sum((one.path / uri).stat().st_size for uri in _written_by_others(one.path))
    files = one.live()
    full = [file for file in files if file.size_bytes >= SORTED.size_levels.full_bytes]
    state = stats_of_files(files, SORTED.size_levels)
    levels = sorted({sort_level(file.tags) for file in files})

    assert lab.digest(one.location) == lab.digest(alone.location)
    assert evaluate_sort(state, SORTED) is SortReason.WITHIN_DEPTH
    depth, bound = true_depth(full), SORTED.max_depth * (max(levels) + 1)
    before = {
        "spark": read_by_spark(lab, alone.location, "k", 1_000),
        "deltalake": read_by_deltalake(alone.path, "k", 1_000),
    }
    after = {
        "spark": read_by_spark(lab, one.location, "k", 1_000),
        "deltalake": read_by_deltalake(one.path, "k", 1_000),
    }
    extra = {
        name: {kind: size / ingested for kind, size in table.rewritten.items()}
        for name, table in (("sorted", one), ("alone", alone))
    }
    sizes = {name: sum(file.size_bytes for file in table.live()) for name, table in (("sorted", one), ("alone", alone))}
    with capsys.disabled():
        print(
            f"\n{len(full)} full files, {len(files) - len(full)} small; levels {levels}; depth {depth}, bound {bound}"
        )
        print(f"files read by a range of 0.1%: {before} -> {after}; bytes rewritten per byte: {extra}; sizes {sizes}")
    assert depth <= bound
    assert extra["sorted"]["sort"] <= max(levels), "a byte is sorted again at most once per level"
    for reader, read in after.items():
        assert read <= before[reader] / 5, reader


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


def _written_by_others(path: Path) -> list[str]:
    return [file.name for file in path.glob("part-*.parquet")]


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
