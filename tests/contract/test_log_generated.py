"""Logs and checkpoints that `deltalake` writes read the same through our reader, however odd the partition values."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.storage.object_reads import ReadKind, ReadMeter
from shared.partitions import partition_values
from shared.table import Snapshot
from tests.support.delta_tables import open_log
from tests.support.random_logs import plain_replay

ODD = ["plain", "a b", "50%", "x:y/z", "ü", "a=b", "it's", '"quoted"', "{}", "a+b", "%20", "null", "back\\slash", "?#"]


def read(table: Path, version: int | None = None, meter: ReadMeter | None = None) -> Snapshot:
    return asyncio.run(open_log(str(table), meter=meter or ReadMeter()).snapshot(version))


def live(table: DeltaTable) -> dict[str, int]:
    actions = table.get_add_actions(flatten=True)
    return dict(zip(actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist(), strict=True))


def without_commits(table: Path, upto: int) -> None:
    for version in range(upto + 1):
        (table / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.fixture
def odd_table(tmp_path: Path) -> Path:
    """A table partitioned by texts, null and the empty text."""
    table = tmp_path / "odd"
    for number, value in enumerate([*ODD, None, ""]):
        rows = pa.table(
            {"region": pa.array([value] * 3, pa.string()), "id": pa.array([number, number, number], pa.int64())}
        )
        write_deltalake(table, rows, mode="append", partition_by=["region"])
    return table


def test_odd_partition_values_name_the_partitions_they_mean(odd_table: Path) -> None:
    snapshot = read(odd_table)
    values = [partition_values(file.partition)["region"] for file in snapshot.files]
    assert sorted(value for value in values if value is not None) == sorted(ODD)
    assert values.count(None) == 2
    assert {file.partition for file in snapshot.files if partition_values(file.partition)["region"] is None} == {
        '{"region":null}'
    }
    assert {file.rows for file in snapshot.files} == {3}


def test_an_odd_table_reads_the_same_from_its_checkpoint(odd_table: Path) -> None:
    """The paths and values go through Parquet instead of JSON, and must come out spelled alike."""
    from_commits = read(odd_table)
    table = DeltaTable(odd_table)
    table.create_checkpoint()
    without_commits(odd_table, table.version())
    from_checkpoint = read(odd_table)
    assert set(from_checkpoint.files) == set(from_commits.files)
    assert from_checkpoint.metadata == from_commits.metadata
    assert from_checkpoint.timestamp_ms == 0


def test_every_version_of_an_odd_table_agrees_with_a_plain_replay(odd_table: Path) -> None:
    for version in range(len(ODD) + 2):
        files = read(odd_table, version).files
        assert {(file.path, file.size_bytes) for file in files} == {
            (file.path, file.size) for file in plain_replay(odd_table, version)
        }
        assert len(files) == version + 1


def test_a_table_in_an_odd_directory_is_found_by_path_and_by_uri(odd_table: Path, tmp_path: Path) -> None:
    """The table is moved there, because its writer takes the percent sign of a path for an escape."""
    moved = odd_table.rename(tmp_path / "a b%20ü=1")
    by_path = read(moved)
    assert len(by_path.files) == len(ODD) + 2
    assert asyncio.run(open_log(moved.as_uri(), meter=ReadMeter()).snapshot()) == by_path


def test_a_timestamp_partition_has_one_partition_per_moment(tmp_path: Path) -> None:
    moments = [datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None]
    column = pa.array([*moments, *moments], pa.timestamp("us", "UTC"))
    rows = pa.table({"at": column, "id": pa.array(range(6), pa.int64())})
    for _ in range(2):
        write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["at"])
    snapshot = read(tmp_path / "t")
    assert {file.partition for file in snapshot.files} == {
        '{"at":"2026-01-02T03:04:05.678900"}',
        '{"at":"2026-01-02T03:04:05.000000"}',
        '{"at":null}',
    }
    DeltaTable(tmp_path / "t").create_checkpoint()
    assert set(read(tmp_path / "t").files) == set(snapshot.files)


def test_a_checkpoint_with_structured_statistics_gives_the_same_rows(tmp_path: Path) -> None:
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    for number in range(4):
        rows = pa.table({"id": pa.array(range(number + 1), pa.int64())})
        write_deltalake(tmp_path / "t", rows, mode="append", configuration=configuration)
    before = read(tmp_path / "t")
    table = DeltaTable(tmp_path / "t")
    table.create_checkpoint()
    without_commits(tmp_path / "t", table.version())
    after = read(tmp_path / "t")
    assert sorted(file.rows or 0 for file in after.files) == [1, 2, 3, 4]
    assert set(after.files) == set(before.files)


def test_commits_on_top_of_a_checkpoint_are_replayed(tmp_path: Path) -> None:
    rows = pa.table({"day": pa.array(["a", "b"] * 5), "id": pa.array(range(10), pa.int64())})
    for _ in range(3):
        write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["day"])
    DeltaTable(tmp_path / "t").create_checkpoint()
    DeltaTable(tmp_path / "t").delete("day = 'a' AND id < 3")
    write_deltalake(tmp_path / "t", rows, mode="overwrite")
    write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["day"])
    newest = DeltaTable(tmp_path / "t")
    for version in range(newest.version() + 1):
        snapshot = read(tmp_path / "t", version)
        assert {file.path: file.size_bytes for file in snapshot.files} == live(
            DeltaTable(tmp_path / "t", version=version)
        )
    without_commits(tmp_path / "t", 2)
    meter = ReadMeter()
    assert set(read(tmp_path / "t", meter=meter).files) == set(snapshot.files)
    assert meter.counts == {ReadKind.GET: 2 + newest.version() - 2, ReadKind.LIST: 1}
