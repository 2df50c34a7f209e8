"""Manifests of Iceberg tables that are rewritten: fewer of them, and every row, snapshot, tag and branch as before."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import TableJob, TableJobOutcome
from shared.errors import Conflict
from shared.layout.upkeep import REWRITE_MANIFESTS
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.contract.test_iceberg_rewrite import KINDS, MERGE_ON_READ
from tests.contract.test_iceberg_vacuum import readers
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark


def job_on(ice: "IcebergLab", table: str, control: Control | None = None) -> TableJobOutcome:
    job = TableJob(REWRITE_MANIFESTS.kind, ice.location(table), Policy(), CommitOrigin("job-1", 7))
    return ice.engine.run_table_job(job, control or Control())


def manifests(ice: "IcebergLab", table: str) -> int:
    raw = ice.java(table)
    return len(raw.currentSnapshot().allManifests(raw.io()))


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_snapshots_tags_and_branches_read_the_same_afterwards(ice: "IcebergLab", kind: str) -> None:
    version, by = KINDS[kind]
    merge_on_read = MERGE_ON_READ if version > 1 else {}
    table = ice.create("t", version=version, by=by, properties=merge_on_read)
    for number in range(4):
        ice.append(table, number)
    ice.java(table).manageSnapshots().createTag("kept", ice.java(table).currentSnapshot().snapshotId()).commit()
    ice.java(table).manageSnapshots().createBranch("side", ice.java(table).currentSnapshot().snapshotId()).commit()
    ice.sql(f"DELETE FROM {table} WHERE id = 3")
    ice.append(table, 5)
    snapshots = [row[0] for row in ice.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()]
    refs = sorted(tuple(row) for row in ice.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect())
    before = {name: [read(one) for one in snapshots] for name, read in readers(ice, table, version).items()}
    files = sorted(row[0] for row in ice.sql(f"SELECT file_path FROM {table}.files").collect())
    counted, reader = manifests(ice, table), ice.reader(table)
    at = asyncio.run(reader.snapshot())
    found = asyncio.run(reader.upkeep([REWRITE_MANIFESTS.kind]))[REWRITE_MANIFESTS.kind]
    assert (found.count, found.excess > 0) == (counted, True)

    done = job_on(ice, table)

    assert done.is_complete
    assert manifests(ice, table) == counted - done.figures["replaced"] + done.figures["written"] < counted
    for name, read in readers(ice, table, version).items():
        assert [read(one) for one in snapshots] == before[name], name
        assert read(int(ice.java(table).currentSnapshot().snapshotId())) == before[name][-1], name
    assert sorted(row[0] for row in ice.sql(f"SELECT file_path FROM {table}.files").collect()) == files
    after_refs = {row[0]: row[1] for row in ice.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect()}
    assert {name: after_refs[name] for name, _ in refs if name != "main"} == {
        name: at for name, at in refs if name != "main"
    }

    async def follow() -> None:
        (commit,) = [one async for one in reader.changes(at.position, at.metadata)]
        assert (commit.added, commit.removed, commit.added_deletes, commit.data_change) == ((), (), (), False)
        assert commit.origin == CommitOrigin("job-1", 7)
        (event,) = (await _history(ice, table)).events
        assert (event.mark.mode, event.inputs.num_files, event.outputs.num_files) == (REWRITE_MANIFESTS.kind, 0, 0)

    asyncio.run(follow())
    found = asyncio.run(reader.upkeep([REWRITE_MANIFESTS.kind]))[REWRITE_MANIFESTS.kind]
    assert (found.count, found.excess) == (manifests(ice, table), 0)
    again = job_on(ice, table)
    assert (again.commits, again.figures) == ((), {"replaced": 0, "written": 0})


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("created", [2, 3])
def test_rows_of_format_version_3_keep_their_ids(ice: "IcebergLab", created: int) -> None:
    """Those of a table that became one have none until its next snapshot, which may be that of the job."""
    table = ice.create("t", version=created, by="dt")
    for number in range(4):
        ice.append(table, number)
    for _ in range(2):
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
        before = ice.lineage(table)
        assert job_on(ice, table).commits
        after = ice.lineage(table)
        given = [new if old[1] is None else old for old, new in zip(before, after, strict=True)]
        assert (after, [row[0] for row in after]) == (given, [row[0] for row in before])
        assert len({row[1] for row in after} - {None}) == len(after)
        ice.append(table, 4)


async def _history(ice: "IcebergLab", table: str) -> Any:
    from decider.formats.iceberg.rewrites import IcebergRewrites

    return await IcebergRewrites(ice.reader(table)._source).page(limit=10)


@pytest.mark.long("iceberg")
def test_appends_meanwhile_stay_and_do_not_hinder_it(ice: "IcebergLab") -> None:
    table = ice.create("t", by="dt")
    for number in range(6):
        ice.append(table, number)
    control, stop, appended = Control(), threading.Event(), [6]
    control.before_change = lambda _count: ice.append(table, 6)

    def append() -> None:
        while not stop.is_set():
            ice.append(table, appended[0] + 1)
            appended[0] += 1

    writer = threading.Thread(target=append)
    writer.start()
    try:
        done = job_on(ice, table, control)
    finally:
        stop.set()
        writer.join()
    assert len(done.commits) == 1
    assert [row[0] for row in ice.rows(table)] == list(range((appended[0] + 1) * 20))


@pytest.mark.long("iceberg")
def test_a_delete_that_replaces_a_manifest_meanwhile_is_a_conflict_and_leaves_the_table_as_it_is(
    ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a commit that is made between the count of the manifests and the rewrite, on Iceberg's stale object."""
    from actor.formats.iceberg.java_manifests import JavaManifests

    table = ice.create("t")
    for number in range(4):
        ice.append(table, number)
    real = JavaManifests.rewrite_manifests

    def late(self: JavaManifests, spec: int, summary: Any) -> tuple[int, int]:
        ice.sql(f"DELETE FROM {table} WHERE id < 20")
        return real(self, spec, summary)

    monkeypatch.setattr(JavaManifests, "rewrite_manifests", late)
    with pytest.raises(Conflict, match="replaced meanwhile"):
        job_on(ice, table)
    assert [row[0] for row in ice.rows(table)] == list(range(20, 80))
    monkeypatch.undo()
    assert len(job_on(ice, table).commits) == 1
    assert [row[0] for row in ice.rows(table)] == list(range(20, 80))
