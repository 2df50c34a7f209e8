"""A checkpoint where the table's writer writes none: readers need few files then, and the log is cleaned up."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake

from actor.ports import TableJob, TableJobOutcome
from shared.errors import OtherTable
from shared.jobs.payload import CHECKPOINT
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, age, forget_logs, now_ms, versions
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

QUIET = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def write(table: Path, commits: int) -> None:
    for number in range(commits):
        rows = pa.table({"id": [number]})
        write_deltalake(
            table, rows, mode="append", commit_properties=CommitProperties(), post_commithook_properties=QUIET
        )


def checkpoint(lab: DeltaLab, table: Path, table_uuid: str = "") -> TableJobOutcome:
    job = TableJob(CHECKPOINT, table.as_uri(), Policy(), CommitOrigin("job", 7), table_uuid=table_uuid)
    forget_logs(lab.spark)
    return lab.engine.run_table_job(job, Control())


def test_a_checkpoint_of_the_newest_version_is_written_once_and_readers_use_it(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table, 12)
    assert not list((table / "_delta_log").glob("*.checkpoint*.parquet"))
    done = checkpoint(lab, table)
    assert (done.version, done.figures["written"], done.commits) == (11, 1, ())
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 11
    assert DeltaTable(table).to_pyarrow_table().num_rows == 12
    forget_logs(lab.spark)
    assert lab.digest(str(table))[0] == 12
    assert checkpoint(lab, table).figures["written"] == 0
    with pytest.raises(OtherTable):
        checkpoint(lab, table, "another")


def test_commits_older_than_the_logs_retention_are_cleaned_up_and_the_table_reads(
    lab: DeltaLab, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    write(table, 6)
    age(table, {version: now_ms() - (60 - version) * DAY_MS for version in range(3)})
    DeltaTable(table, version=3).create_checkpoint()
    done = checkpoint(lab, table)
    assert done.figures["written"] == 1
    assert versions(table)[-1] == 5
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(6))
    kept = versions(table)
    assert kept == list(range(kept[0], 6)), "no gap"
