"""The exact rewrite of Iceberg tables, against Spark as the writer: what the contract of an engine promises."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from actor.ports import GroupStatus
from shared.errors import Conflict, Corrupt
from shared.partitions import WHOLE_TABLE
from shared.table import PartitionKey
from tests.support.steering import Steering

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark

KINDS = {
    "v1": (1, ""),
    "v1 by value": (1, "dt"),
    "v2": (2, ""),
    "v2 by value": (2, "dt"),
    "v2 by bucket": (2, "bucket(2, id)"),
    "v3 by day": (3, "days(ts)"),
}
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "v2 by value" else pytest.mark.long("iceberg")) for kind in KINDS]
)
def test_exactly_the_planned_files_are_replaced_and_no_row_changes(ice: "IcebergLab", kind: str) -> None:
    version, by = KINDS[kind]
    table = ice.create("t", version=version, by=by)
    for number in range(4):
        ice.append(table, number)
    rows, reader = ice.rows(table), ice.reader(table)
    before = asyncio.run(reader.snapshot())
    from tests.support.iceberg_lab import by_partition

    partitions = by_partition(before)
    chosen = []
    for partition, paths in partitions.items():
        live = ice.live(table, partition)
        assert {file.path for file in live} == paths
        chosen.append(live[:3])
    outcome = ice.rewrite(table, *chosen)
    assert [group.status for group in outcome.groups] == [GroupStatus.COMMITTED] * len(chosen)
    after = asyncio.run(reader.snapshot())
    gone = {file.path for file in before.files} - {file.path for file in after.files}
    assert gone == {file.path for files in chosen for file in files}
    assert len(after.files) == len(before.files) - len(gone) + len(chosen)
    assert by_partition(after).keys() == partitions.keys()
    assert ice.rows(table) == rows

    async def follow() -> None:
        (commit,) = [one async for one in reader.changes(before.position, before.metadata)]
        assert commit.origin is not None
        assert (commit.origin.job, commit.origin.token, commit.data_change) == ("job-1", 7, False)
        assert {file.path for file in commit.removed} == gone
        assert commit.version == outcome.version
        # Java writes the metadata a moment after the snapshot.
        assert (after.digest, after.version >= commit.version) == (commit.digest, True)

    asyncio.run(follow())
    found = ice.engine.find_commit(ice.location(table), job="job-1", token=7, since_version=before.version)
    assert found == outcome.version
    assert ice.engine.find_commit(ice.location(table), job="job-1", token=8, since_version=0) is None


@pytest.mark.long("iceberg")
def test_files_of_an_old_spec_are_a_partition_of_their_own_and_keep_it(ice: "IcebergLab") -> None:
    table = ice.create("t", by="dt")
    ice.append(table, 0)
    ice.append(table, 1)
    # By the Java API, for Spark's DDL needs Iceberg's extensions.
    java = ice.java(table)
    java.updateSpec().addField("x").commit()
    ice.append(table, 2)
    from tests.support.iceberg_lab import by_partition

    snapshot = asyncio.run(ice.reader(table).snapshot())
    old = PartitionKey('{"dt":"2026-01-01"}')
    assert len(by_partition(snapshot)[old]) == 2
    assert all('"#spec":"1"' in key for key in by_partition(snapshot) if key not in (old, '{"dt":"2026-01-02"}'))
    rows = ice.rows(table)
    outcome = ice.rewrite(table, ice.live(table, old))
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert len(by_partition(asyncio.run(ice.reader(table).snapshot()))[old]) == 1
    assert ice.rows(table) == rows


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long("iceberg"))])
def test_a_removed_input_takes_only_its_group_and_leaves_no_files(ice: "IcebergLab", version: int) -> None:
    table = ice.create("t", version=version, by="dt", properties=MERGE_ON_READ)
    for number in range(3):
        ice.append(table, number)
    one, other = (ice.live(table, PartitionKey(f'{{"dt":"2026-01-0{day}"}}')) for day in (1, 2))
    whole_file = f"DELETE FROM {table} WHERE dt = date'2026-01-01' AND id < 20"
    outcome = ice.rewrite(table, one, other, control=Steering(at={"files_written": lambda: ice.sql(whole_file)}))
    assert [group.status for group in outcome.groups] == [GroupStatus.CONFLICTED, GroupStatus.COMMITTED]
    assert outcome.conflicts == 1
    assert [row[0] for row in ice.rows(table)] == [*range(1, 20, 2), *range(20, 60)]
    assert ice.files_on_disk(table) == ice.known_files(table)


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.long("iceberg")), 3])
def test_deleted_rows_are_left_out_and_stay_deleted(ice: "IcebergLab", version: int) -> None:
    table = ice.create("t", version=version, properties=MERGE_ON_READ)
    for number in range(3):
        ice.append(table, number)
    ice.sql(f"DELETE FROM {table} WHERE id % 5 = 0")
    snapshot = asyncio.run(ice.reader(table).snapshot())
    assert sum(delete.deleted_rows for delete in snapshot.deletes) == 12
    lineage = ice.lineage(table) if version == 3 else []
    rows, live = ice.rows(table), ice.live(table, WHOLE_TABLE)
    assert all(file.dv_id for file in live)
    assert sum(file.deleted_rows for file in live) == 12
    outcome = ice.rewrite(table, live)
    assert (outcome.groups[0].status, outcome.groups[0].rows) == (GroupStatus.COMMITTED, 48)
    assert ice.rows(table) == rows
    assert asyncio.run(ice.reader(table).snapshot()).deletes == ()
    if version == 3:
        assert ice.lineage(table) == lineage


@pytest.mark.long("iceberg")
def test_a_delete_file_stays_until_all_files_that_it_applies_to_are_rewritten(ice: "IcebergLab") -> None:
    by_partition = {"write.delete.granularity": "partition"}
    table = ice.create("t", properties=MERGE_ON_READ | by_partition)
    for number in range(3):
        ice.append(table, number)
    ice.sql(f"DELETE FROM {table} WHERE id % 5 = 0")
    rows = ice.rows(table)
    (delete,) = asyncio.run(ice.reader(table).snapshot()).deletes
    first, *others = ice.live(table, WHOLE_TABLE)
    ice.rewrite(table, (first,))
    assert ice.rows(table) == rows
    assert [one.path for one in asyncio.run(ice.reader(table).snapshot()).deletes] == [delete.path]
    ice.rewrite(
        table, tuple(file for file in ice.live(table, WHOLE_TABLE) if file.path in {one.path for one in others})
    )
    assert ice.rows(table) == rows


@pytest.mark.parametrize("names_input", [False, True])
def test_deletes_of_a_streams_own_files_do_not_make_a_rewrite_stale(ice: "IcebergLab", names_input: bool) -> None:
    """One delete file names rows of two new files; the inputs' paths are within its bounds, so it applies to both."""
    table = ice.create("t", properties={**MERGE_ON_READ, "write.delete.granularity": "partition"})
    ice.append(table, 0)
    ice.append(table, 1)
    live, folder = ice.live(table, WHOLE_TABLE), f"{ice.location(table)}/data"

    def stream() -> None:
        for number, below in ((2, "-"), (3, "z")):  # Paths before and behind those of the inputs.
            ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.data.path'='{folder}/{below}')")
            ice.append(table, number)
        ice.sql(f"DELETE FROM {table} WHERE id IN (40, 60{', 5' if names_input else ''})")

    outcome = ice.rewrite(table, live, control=Steering(at={"files_written": stream}))
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    deletes = asyncio.run(ice.reader(table).snapshot()).deletes
    assert sorted(delete.rows for delete in deletes) == ([1, 2] if names_input else [2])
    assert {row[0] for row in ice.rows(table)} == set(range(80)) - {40, 60} - ({5} if names_input else set())
    assert len(ice.live(table, WHOLE_TABLE)) == 3


@pytest.mark.long("iceberg")
def test_a_file_that_is_live_twice_is_not_rewritten(ice: "IcebergLab") -> None:
    """A removal by path removes both, and the rows would be written once."""
    table = ice.create("t")
    ice.append(table, 0)
    java = ice.java(table)
    tasks = java.newScan().planFiles().iterator()
    java.newAppend().appendFile(tasks.next().file()).commit()
    assert len(ice.rows(table)) == 40
    with pytest.raises(Corrupt, match="live twice"):
        ice.live(table, WHOLE_TABLE)


@pytest.mark.long("iceberg")
def test_rows_that_got_ids_between_write_and_commit_keep_them(ice: "IcebergLab") -> None:
    """An upgrade to format version 3 gives ids to all rows with the next commit; outputs written before have none."""
    table = ice.create("t")
    ice.append(table, 0)
    ice.append(table, 1)
    lineage: list[object] = []

    def upgrade() -> None:
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
        ice.append(table, 9)
        lineage.extend(ice.lineage(table))

    live = ice.live(table, WHOLE_TABLE)
    with pytest.raises(Conflict, match="format version 2 when it was read"):
        ice.rewrite(table, live, control=Steering(at={"files_written": upgrade}))
    assert ice.lineage(table) == lineage
    assert ice.files_on_disk(table) == ice.known_files(table)
    ice.rewrite(table, live)
    assert ice.lineage(table) == lineage


@pytest.mark.long("iceberg")
def test_files_are_found_after_a_partition_column_was_renamed(ice: "IcebergLab") -> None:
    table = ice.create("t", by="v", properties=MERGE_ON_READ)
    for number in range(2):
        ice.sql(f"INSERT INTO {table} SELECT id, 'same', x, dt, ts FROM (SELECT {number} id, {number} x, "
                "date'2026-01-01' dt, timestamp'2026-01-01 05:00:00' ts)")  # fmt: skip
    rows, partition = ice.rows(table), PartitionKey('{"v":"same"}')
    assert len(ice.live(table, partition)) == 2
    ice.sql(f"ALTER TABLE {table} RENAME COLUMN v TO w")
    assert len(ice.live(table, partition)) == 2
    live = ice.live(table, partition)
    assert len(live) == 2
    outcome = ice.rewrite(table, live)
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    ice.sql(f"ALTER TABLE {table} RENAME COLUMN w TO v")
    assert ice.rows(table) == rows
