"""Snapshots that follow from a cached one equal Delta's, run no Spark job, and leave no checksum in the table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from actor.formats.delta.log import TableLog
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.ports import GroupStatus, RewriteRequest
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab, mark
from tests.support.steering import Steering

pytestmark = pytest.mark.spark


def jobs(lab: DeltaLab) -> int:
    return int(lab.spark._jsc.sc().dagScheduler().nextJobId())


def append(path: Path, first: int, commits: int = 1) -> None:
    for number in range(first, first + commits):
        write_deltalake(path, pa.table({"id": [number], "name": [f"n{number}"]}), mode="append")


def checksums(path: Path) -> list[str]:
    return sorted(found.name for found in (path / "_delta_log").glob("[0-9]*.crc"))


@pytest.fixture
def path(lab: DeltaLab) -> Iterator[Path]:
    """A table that deltalake wrote: no commit has a checksum file."""
    path = lab.directory / "snapshots"
    append(path, 0, 3)
    yield path
    assert checksums(path) == []


def same_as_deltas(lab: DeltaLab, log: TableLog) -> Any:
    """Return the newest snapshot, after comparing it with what Delta reads from the log, state included."""
    found = log.snapshot()
    lab.engine._scala.delta_log.clearCache()
    fresh = TableLog(lab.engine._scala, lab.spark, log.location).snapshot()
    checksum = found.checksumOpt().get()
    assert (found.version(), log.shape(found)) == (fresh.version(), log.shape(fresh))
    assert (checksum.numFiles(), checksum.tableSizeBytes()) == (fresh.numOfFiles(), fresh.sizeInBytes())
    return found


def test_a_snapshot_follows_from_the_commits_of_another_engine(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    append(path, 3, 4)
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).optimize.compact()
    before = jobs(lab)
    found = log.snapshot()
    assert (found.version(), jobs(lab)) == (8, before)
    same_as_deltas(lab, log)


def test_columns_that_another_engine_adds_are_in_the_next_snapshot(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    write_deltalake(path, pa.table({"id": [9], "more": [1.5]}), mode="append", schema_mode="merge")
    assert "more" in log.shape(same_as_deltas(lab, log)).metadata_json
    write_deltalake(path, pa.table({"id": [10], "more": [2.5]}), mode="append", schema_mode="merge")
    assert "more" in log.shape(same_as_deltas(lab, log)).metadata_json


def test_a_commit_is_read_as_its_writer_wrote_it(lab: DeltaLab, path: Path) -> None:
    rows, who = pa.table({"id": [9], "name": ["n9"]}), CommitProperties({"who": "Zoë"})
    write_deltalake(path, rows, mode="append", commit_properties=who)
    actions = TableLog(lab.engine._scala, lab.spark, path.as_uri()).actions(3)
    assert [action["commitInfo"]["who"] for action in actions if "commitInfo" in action] == ["Zoë"]


def test_commits_that_were_undone_and_replaced_are_not_built_on(lab: DeltaLab, path: Path) -> None:
    log = TableLog(lab.engine._scala, lab.spark, path.as_uri(), SnapshotCache())
    read_partition(log, WHOLE_TABLE, ReadCache())
    newest = path / "_delta_log" / f"{2:020d}.json"
    newest.unlink()
    append(path, 10**9)  # Its file has another size than the one that is gone.
    append(path, 8)
    assert same_as_deltas(lab, log).version() == 3
    before = jobs(lab)
    append(path, 9)
    assert (log.snapshot().version(), jobs(lab)) == (4, before)
    for number in range(10, 62):
        append(path, number)
    assert same_as_deltas(lab, log).version() == 56, "more commits than are read one by one"


@pytest.mark.long("contracts")
def test_rewrites_among_the_commits_of_another_engine_need_no_job(lab: DeltaLab, path: Path) -> None:
    """Twelve rewrites pass a checkpoint of Delta's, which compares the carried checksum with the state."""
    location, expected, counts = path.as_uri(), set(range(3)), []
    for number in range(3, 39, 3):
        files = lab.engine.read_partition(location, WHOLE_TABLE).files
        group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
        append(path, number, 3)
        expected |= set(range(number, number + 3))
        before = jobs(lab)
        (end,) = lab.engine.rewrite(RewriteRequest(location, (group,), mark("j", number)), Steering()).groups
        counts.append(jobs(lab) - before)
        assert end.status is GroupStatus.COMMITTED
    assert sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist()) == sorted(expected)
    assert sorted(row.id for row in lab.spark.read.format("delta").load(location).collect()) == sorted(expected)
    assert list((path / "_delta_log").glob("*.checkpoint*.parquet"))
    typical = sorted(counts)[len(counts) // 2]
    assert typical == 0, "rows are copied or merged by column; the jobs of a checkpoint come on top of it"
    log = TableLog(lab.engine._scala, lab.spark, location, lab.engine._snapshots)
    same_as_deltas(lab, log)
