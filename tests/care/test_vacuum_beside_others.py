"""A vacuum without any retention beside rewrites and writers that have not committed, and one of a clone's source."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from actor.ports import GroupStatus, TableJob, TableJobOutcome
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, age, data_files, forget_logs, now_ms, set_time, versions
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control
from tests.support.steering import Steering

pytestmark = pytest.mark.spark

AT_ONCE = VacuumOptions(with_orphans=True, force=True, retain_s=0)
HOUR_MS = 3_600_000
ROWS = 10


def vacuum(lab: DeltaLab, table: Path, options: VacuumOptions = AT_ONCE) -> TableJobOutcome:
    forget_logs(lab.spark)
    job = TableJob(VACUUM, table.as_uri(), Policy(vacuum=True), CommitOrigin("job", 7), options=options.encode())
    return lab.engine.run_table_job(job, Control())


def write(table: Path, files: int) -> None:
    for first in range(files):
        write_deltalake(table, pa.table({"id": list(range(first * ROWS, (first + 1) * ROWS))}), mode="append")


def ids(table: Path) -> list[int]:
    return sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())


def test_outputs_of_a_rewrite_that_has_not_committed_stay_and_its_commit_goes_on(lab: DeltaLab) -> None:
    table = lab.directory / "t"
    write(table, 6)
    DeltaTable(table).delete(f"id < {ROWS}")
    age(table, {version: now_ms() - DAY_MS * 10 for version in versions(table)})
    before, committed = lab.digest(str(table)), data_files(table)
    seen: list[TableJobOutcome] = []

    def meanwhile() -> None:
        written = data_files(table) - committed
        assert written, "the outputs are there"
        seen.append(vacuum(lab, table))
        assert written <= data_files(table)

    control = Steering(before_commit=[meanwhile])
    (end,) = lab.rewrite(table.as_uri(), [lab.group(table.as_uri(), count=5)], control).groups
    assert end.status is GroupStatus.COMMITTED
    assert [(one.is_complete, one.figures["files_deleted"]) for one in seen] == [(True, 1)]
    forget_logs(lab.spark)
    assert lab.digest(str(table)) == before
    # The inputs of the rewrite are gone with the next run, and nothing else is.
    assert vacuum(lab, table).figures["files_deleted"] == 5
    forget_logs(lab.spark)
    assert lab.digest(str(table)) == before
    assert len(data_files(table)) == 1


def test_a_file_that_a_writer_commits_twenty_hours_later_stays(lab: DeltaLab) -> None:
    table = lab.directory / "t"
    write(table, 2)
    late, forgotten = table / "part-late.parquet", table / "part-forgotten.parquet"
    for place, hours in ((late, 20), (forgotten, 25)):
        pq.write_table(pa.table({"id": [100]}), place)
        set_time(place, now_ms() - hours * HOUR_MS)
    done = vacuum(lab, table)
    assert done.figures["orphan_files_deleted"] == 1
    assert (late.exists(), forgotten.exists()) == (True, False)
    opened = DeltaTable(table)
    add = AddAction(
        late.name, late.stat().st_size, {}, now_ms() - 20 * HOUR_MS, data_change=True, stats='{"numRecords":1}'
    )
    opened.create_write_transaction([add], mode="append", schema=opened.schema())
    assert ids(table) == [*range(2 * ROWS), 100]


def test_a_vacuum_of_a_source_deletes_what_only_a_clone_needs_after_the_retention_as_deltas_own_does(
    lab: DeltaLab,
) -> None:
    source, clone = lab.directory / "source", lab.directory / "clone"
    write(source, 3)
    lab.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    of_clone = lab.digest(str(clone))
    DeltaTable(source).delete(f"id < {ROWS}")
    rows = ids(source)
    week = VacuumOptions(with_orphans=True)

    age(
        source,
        {version: now_ms() - DAY_MS * (6 if version == versions(source)[-1] else 30) for version in versions(source)},
    )
    assert vacuum(lab, source, week).figures["files_deleted"] == 0
    forget_logs(lab.spark)
    assert lab.digest(str(clone)) == of_clone, "inside the retention the clone reads"

    age(source, {version: now_ms() - DAY_MS * 30 for version in versions(source)})
    forget_logs(lab.spark)
    theirs = {Path(row.path).name for row in lab.sql(f"VACUUM delta.`{source}` DRY RUN")}
    before = data_files(source)
    assert vacuum(lab, source, week).figures["files_deleted"] == 1
    assert before - data_files(source) == theirs
    assert ids(source) == rows
    forget_logs(lab.spark)
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist|FileNotFound"):
        lab.digest(str(clone))
