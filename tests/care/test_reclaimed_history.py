"""`acid.data.retain.hours = 24` and a purge: history before the last day is gone, the last day and the data are not."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from actor.ports import TableJob
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import CHECKPOINT, VACUUM
from shared.policy.policy import Policy, apply
from shared.policy.properties import read_properties
from shared.table import CommitOrigin
from tests.support.aged_table import contents, data_files, files_needed, history, now_ms, versions
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

DAY = {
    "acid.data.retain.hours": "24",
    # Without these, Delta's own retentions of 7 and 30 days keep more.
    "delta.deletedFileRetentionDuration": "interval 24 hours",
    "delta.logRetentionDuration": "interval 24 hours",
}


def test_a_purge_leaves_the_data_and_a_day_of_history(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history(table)
    DeltaTable(table).alter.set_table_properties(DAY, raise_if_not_exists=False)
    newest, rows = versions(table)[-1], sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())
    before = contents(table, 1)
    needed, first = files_needed(table, before), min(before)
    lost = [version for version in range(first) if not files_needed(table, {version: []}) <= needed]
    assert len(lost) > first / 2
    policy = apply(Policy(), read_properties(DAY))
    options = VacuumOptions(with_orphans=True, requested_ms=now_ms())
    vacuum = TableJob(VACUUM, table.as_uri(), policy, CommitOrigin("job", 7), options=options.encode())
    assert lab.engine.run_table_job(vacuum, Control()).figures["files_deleted"] > 0
    checkpoint = TableJob(CHECKPOINT, table.as_uri(), policy, CommitOrigin("job", 8))
    figures = lab.engine.run_table_job(checkpoint, Control()).figures
    # Delta keeps the commits from which the versions of the last day are read: no older checkpoint holds them.
    assert figures == {"written": 1, "log_files_deleted": 0}
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == rows
    assert {name for name in data_files(table) if name.endswith(".parquet")} == needed
    print(f"\nversions {first} to {newest} are kept of {newest + 1}")
    for version in lost:
        with pytest.raises(Exception, match=r"not found|No such file|NotFound"):
            DeltaTable(table, version=version).to_pyarrow_table()
    assert contents(table, 1, after=newest) == before
