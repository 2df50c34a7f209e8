"""A vacuum on real Delta tables: every version inside the retention reads as before, and nothing else is left."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.ports import TableJob, TableJobOutcome
from decider.decide.decision import TableSignals
from decider.decide.vacuum import VACUUM_ACTION, VacuumReason
from decider.state.effective_policy import LogStatus, PolicyDefaults
from shared.errors import LeaseLost, OtherTable
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.layout.removals import Removals
from shared.policy.policy import Policy
from shared.table import CommitOrigin, TableId, TableRef
from tests.support.aged_table import (
    DAY_MS,
    age,
    commit_file,
    contents,
    data_files,
    files_needed,
    forget_logs,
    history,
    now_ms,
    set_time,
    versions,
)
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

WITH_ORPHANS = VacuumOptions(with_orphans=True)
ON = Policy(vacuum=True)
TABLE = TableRef(TableId("t"), "t", "file:///t")


def vacuum(
    lab: DeltaLab, table: Path, options: VacuumOptions = WITH_ORPHANS, policy: Policy = ON, control: Any = None
) -> TableJobOutcome:
    job = TableJob(VACUUM, table.as_uri(), policy, CommitOrigin("job", 7), options=options.encode())
    forget_logs(lab.spark)
    return lab.engine.run_table_job(job, control or Control())


@pytest.mark.long("contracts")
def test_every_version_inside_the_retention_reads_and_nothing_else_is_left(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table)
    orphan, young = table / "part-orphan.parquet", table / "part-young.parquet"
    for place in (orphan, young):
        place.write_bytes(b"never committed")
    set_time(orphan, now_ms() - 8 * DAY_MS)
    (table / "notes.txt").write_text("mine")
    set_time(table / "notes.txt", 0)
    newest = versions(table)[-1]
    before = contents(table, 7)
    needed = files_needed(table, before)
    done = vacuum(lab, table)
    assert contents(table, 7, after=newest) == before
    assert data_files(table) == needed | {"part-young.parquet", "notes.txt"}
    assert done.is_complete
    assert done.figures["orphan_files_deleted"] == 1
    assert done.figures["files_deleted"] > 10
    assert done.commits == (newest + 1,)
    # Delta's own time travel ends with the versions that were committed inside the retention.
    for version in (min(before) + 1, newest):
        read = lab.spark.read.format("delta").option("versionAsOf", version).load(str(table))
        assert sorted(row.id for row in read.select("id").collect()) == before[version]
    assert DeltaTable(table).history(1)[0]["operation"] == "VACUUM END"
    again = vacuum(lab, table)
    assert again.figures["files_deleted"] == again.figures["files_planned"] == 0


HOUR_MS = 3_600_000


def test_hours_to_retain_alone_reclaim_files_and_log_to_the_hour_beside_a_writer(lab: DeltaLab, tmp_path: Path) -> None:
    """MaxCompute's property. A commit each hour for two and a half days; the writer makes a checkpoint every ten."""
    table = tmp_path / "t"
    history(table, days=60)
    newest = versions(table)[-1]
    age(table, {version: now_ms() - (newest - version) * HOUR_MS - HOUR_MS // 2 for version in versions(table)})
    for version in (20, 30):
        DeltaTable(table, version=version).create_checkpoint()
        (made,) = (table / "_delta_log").glob(f"*{version}.checkpoint.parquet")
        set_time(made, commit_file(table, version).stat().st_mtime * 1000)
    before = contents(table, 1)
    needed, rows = files_needed(table, before), lab.digest(str(table))
    forget_logs(lab.spark)
    lab.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('acid.data.retain.hours' = '24')")
    configuration = DeltaTable(table).metadata().configuration
    policy = PolicyDefaults().resolve(TABLE, configuration, {}, LogStatus(format="delta")).policy
    removals = Removals.of([(now_ms() - 26 * HOUR_MS, 1)])
    assert VACUUM_ACTION.is_on(policy)
    proposal = VACUUM_ACTION.evaluate(TableSignals(newest, removals), policy, now_ms())
    assert proposal.reason is VacuumReason.FILES_EXPIRED
    writer = Control()
    writer.before_change = lambda _: write_deltalake(table, pa.table({"id": [-1], "day": [0]}), mode="append")
    done = vacuum(lab, table, VacuumOptions.decode(proposal.options), policy, writer)
    assert done.figures["files_deleted"] > 10
    assert done.figures["log_files_deleted"] > 20
    assert versions(table)[0] == 30, "the newest checkpoint before the last day, on which its versions are read"
    written_since = {
        name for version in versions(table) if version > newest for name in files_needed(table, {version: []})
    }
    assert data_files(table) == needed | written_since
    assert contents(table, 1, after=newest) == before
    for version in (min(before), newest):
        read = lab.spark.read.format("delta").option("versionAsOf", version).load(str(table))
        assert sorted(row.id for row in read.select("id").collect()) == before[version]
    forget_logs(lab.spark)
    assert lab.sql(f"SELECT count(*) AS rows FROM delta.`{table}` WHERE id >= 0")[0].rows == rows[0]


def test_a_retention_longer_than_deltas_own_is_kept_although_delta_has_forgotten_the_tombstones(
    lab: DeltaLab, tmp_path: Path
) -> None:
    """Spark's VACUUM RETAIN 480 HOURS deletes files that these versions need: it goes by Delta's tombstones."""
    table = tmp_path / "t"
    history(table)
    DeltaTable(table).create_checkpoint()
    newest = versions(table)[-1]
    before = contents(table, 20)
    vacuum(lab, table, policy=replace(ON, retain_s=20 * 86_400))
    assert contents(table, 20, after=newest) == before


def test_no_options_of_a_job_go_below_the_tables_retention_without_force(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table, days=10)
    newest = versions(table)[-1]
    before = contents(table, 7)
    vacuum(lab, table, VacuumOptions(retain_s=0), policy=replace(ON, min_retain_s=0))
    assert contents(table, 7, after=newest) == before
    forced = vacuum(lab, table, VacuumOptions(retain_s=86_400, force=True))
    assert forced.figures["files_deleted"] > 0
    assert contents(table, 1, after=newest) == {version: before[version] for version in contents(table, 1, newest)}
    with pytest.raises(Exception, match=r"(?i)not found|no such file"):
        DeltaTable(table, version=min(before)).to_pyarrow_table()


@pytest.mark.long("contracts")
def test_a_vacuum_that_stops_or_loses_its_lease_goes_on_where_it_was(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table)
    newest = versions(table)[-1]
    before = contents(table, 7)
    needed = files_needed(table, before)
    limits = lab.engine._table_jobs._limits
    lab.engine._table_jobs._limits = replace(limits, vacuum=replace(limits.vacuum, batch=3))
    stopping = Control()
    stopping.stop_after = 2  # The clock of the store is read first, then a batch is deleted.
    first = vacuum(lab, table, control=stopping)
    assert (first.is_complete, first.figures["files_deleted"]) == (False, 3)
    losing = Control()

    def lose(count: int) -> None:
        if count == 3:
            raise LeaseLost("gone")

    losing.before_change = lose
    with pytest.raises(LeaseLost):
        vacuum(lab, table, control=losing)
    assert versions(table)[-1] == newest
    assert vacuum(lab, table).is_complete
    assert data_files(table) == needed
    assert contents(table, 7, after=newest) == before


def test_a_file_that_becomes_live_again_while_a_vacuum_runs_stays(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for first in (0, 10):
        write_deltalake(table, pa.table({"id": list(range(first, first + 10))}), mode="append")
    DeltaTable(table).delete("id < 10")
    age(table, {version: now_ms() - (30 - version) * DAY_MS for version in versions(table)})
    control = Control()

    def restore(point: str, done: int = 0, _total: int = 0) -> None:
        if (point, done) == ("deleting", 0):
            DeltaTable(table).restore(1)

    # The log is read before each batch, so a restore before the batch is seen.
    control.reached = restore  # type: ignore[method-assign]
    done = vacuum(lab, table, control=control)
    # The restore of deltalake writes the protocol again, so the next run plans again.
    assert (done.is_complete, done.figures["files_deleted"]) == (False, 0)
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(20))


@pytest.mark.long("contracts")
def test_vectors_in_use_stay_and_those_of_old_versions_go(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    lab.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '1000')"
    )
    lab.sql(f"INSERT INTO delta.`{table}` SELECT /*+ COALESCE(1) */ id FROM range(1000)")
    for part in (1, 2, 3):
        lab.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = {part}")
    ages = {0: 40, 1: 39, 2: 30, 3: 20, 4: 3}
    age(table, {version: now_ms() - days * DAY_MS for version, days in ages.items()})
    vectors = {one for one in data_files(table) if one.endswith(".bin")}
    assert len(vectors) == 3
    forget_logs(lab.spark)
    before = lab.digest(str(table), 4)
    vacuum(lab, table)
    forget_logs(lab.spark)
    assert lab.digest(str(table), 4) == before
    # The vector of version 3 stays as well: that version was the newest until three days ago.
    assert len({one for one in data_files(table) if one.endswith(".bin")}) == 2


@pytest.mark.long("contracts")
def test_a_shallow_clone_is_vacuumed_within_its_own_folder(lab: DeltaLab, tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    write_deltalake(source, pa.table({"id": list(range(10))}))
    lab.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    lab.sql(f"INSERT INTO delta.`{clone}` VALUES (10)")
    lab.sql(f"DELETE FROM delta.`{clone}` WHERE id IN (3, 10)")
    age(clone, {version: now_ms() - (30 - version) * DAY_MS for version in versions(clone)})
    of_source = data_files(source)
    before = lab.digest(str(clone))
    done = vacuum(lab, clone)
    assert done.figures["files_deleted"] == 1, "the file that the clone wrote and removed"
    assert data_files(source) == of_source
    forget_logs(lab.spark)
    assert lab.digest(str(clone)) == before


def test_links_out_of_the_table_and_tables_inside_it_are_left_alone(lab: DeltaLab, tmp_path: Path) -> None:
    table, inner = tmp_path / "t", tmp_path / "t" / "inner"
    for place in (table, inner):
        write_deltalake(place, pa.table({"id": [1]}))
        age(place, {0: now_ms() - 30 * DAY_MS})
    inner_files = data_files(inner)
    DeltaTable(inner).delete()
    vacuum(lab, table)
    assert data_files(inner) == inner_files


def test_a_vacuum_of_another_table_or_one_that_is_switched_off_deletes_nothing(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table, days=10)
    files = data_files(table)
    job = TableJob(VACUUM, table.as_uri(), ON, CommitOrigin("job", 7), table_uuid="another")
    with pytest.raises(OtherTable):
        lab.engine.run_table_job(job, Control())
    DeltaTable(table).alter.set_table_properties({"lakewright.vacuum": "off"}, raise_if_not_exists=False)
    done = vacuum(lab, table)
    assert (done.commits, "switch" in done.reason) == ((), True)
    assert data_files(table) == files
