"""Checkpoints where writers write none: what readers need then, and small logs whose checkpoint the driver writes."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake
from py4j.protocol import Py4JError

from actor.formats.delta.delta_scala import DeltaScala
from actor.jvm.scala import jvm_session
from actor.ports import TableJob, TableJobOutcome
from shared.errors import OtherTable
from shared.jobs.payload import CHECKPOINT
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.contract.test_log_replay import RandomCommits, by_job, by_replay, deltas_log, our_log, restored
from tests.support.aged_table import DAY_MS, age, forget_logs, now_ms, versions
from tests.support.checkpoints import checkpoint_rows
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


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return restored(tmp_path / "t")


@pytest.mark.parametrize("name", ["v2", "classic"])
def test_a_checkpoint_that_names_further_files_is_left_to_deltas_job(lab: DeltaLab, tmp_path: Path, name: str) -> None:
    """Its adds are in those. The protocol allows it under either name."""
    table, form = tmp_path / "t", "spark.databricks.delta.checkpointV2.topLevelFileFormat"
    lab.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')")
    for number in range(3):
        lab.sql(f"INSERT INTO delta.`{table}` VALUES ({number})")
    theirs, none = deltas_log(lab, table), lab.engine._scala.none
    lab.spark.conf.set(form, "parquet")
    lab.engine._scala.resolve("org.apache.spark.sql.SparkSession").setActiveSession(lab.spark._jsparkSession)
    theirs.checkpoint(theirs.update(False, none, none), none)
    lab.spark.conf.unset(form)
    log = table / "_delta_log"
    (made,) = log.glob("*.checkpoint.*.parquet")
    if name == "classic":
        made.rename(log / f"{made.name.partition('.')[0]}.checkpoint.parquet")
        (log / "_last_checkpoint").unlink()
    for file in [*log.glob("*.crc"), *log.glob(".*.crc")]:
        file.unlink(missing_ok=True)
    forget_logs(lab.spark)
    assert by_job(lab, table)[2] == 3
    assert by_replay(lab, table) is None
    ours = our_log(lab, table)
    assert len(json.loads(ours.few_files(ours.snapshot(), 10) or "[]")) == 3


def test_a_checkpoint_holds_its_own_version_although_others_have_committed_since(lab: DeltaLab, table: Path) -> None:
    log = our_log(lab, table)
    snapshot, expected = log.snapshot(), {json.loads(line)["path"] for line in by_job(lab, table)[4]}
    version = int(snapshot.version())
    write_deltalake(table, pa.table({"p": ["a"], "id": [99], "text": ["z"]}), mode="append")
    log.checkpoint(snapshot)
    assert (table / "_delta_log" / f"{version:020d}.checkpoint.parquet").exists()
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert {row["add"]["path"] for row in rows if "add" in row} == expected


def test_a_checkpoint_that_is_there_stays_if_it_is_written_again(lab: DeltaLab, table: Path) -> None:
    """Two actors may do so at once, and readers rely on the first one from then on."""
    log = our_log(lab, table)
    snapshot = log.snapshot()
    for _ in range(2):
        assert lab.engine._scala.checkpoint_file.write(log.delta_log, snapshot, snapshot.logSegment())
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert sum("add" in row for row in rows) == 11


def test_a_checkpoint_for_which_the_disk_has_no_room_leaves_nothing_and_is_written_later(
    lab: DeltaLab, small_disk: Path
) -> None:
    table = small_disk / "t"
    log = RandomCommits(1, table / "_delta_log")
    log.commits(40)
    before = sorted(path.name for path in (table / "_delta_log").iterdir())
    ours = our_log(lab, table)
    snapshot = ours.snapshot()
    balloon = small_disk / "balloon"
    balloon.write_bytes(bytes(shutil.disk_usage(small_disk).free - 4096))  # One page is left: a file can be begun.
    with pytest.raises(Exception, match="No space left on device"):
        lab.engine._scala.checkpoint_file.write(ours.delta_log, snapshot, snapshot.logSegment())
    assert sorted(path.name for path in (table / "_delta_log").iterdir()) == before
    with suppress(Py4JError):  # Delta's job, which is asked next, finds no room either.
        ours.checkpoint(snapshot)
    assert not (table / "_delta_log" / "_last_checkpoint").exists()
    balloon.unlink()
    ours.checkpoint(snapshot)
    rows = [json.loads(line) for line in checkpoint_rows(table)]
    assert by_replay(lab, table) == by_job(lab, table)
    assert sum("add" in row for row in rows) == by_job(lab, table)[2]


COMMITS = 10
"""Those of the writer: the rewrite is the version of Delta's default interval."""


def write_until_interval(table: Path) -> None:
    for number in range(COMMITS):
        rows = pa.table({"p": ["a", "b"], "id": [2 * number, 2 * number + 1], "text": [f"t{number}", None]})
        write_deltalake(table, rows, mode="append", partition_by=["p"], post_commithook_properties=QUIET)


def rewrite(lab: DeltaLab, table: Path) -> None:
    location = table.as_uri()
    outcome = lab.rewrite(location, [lab.group(location, lab.partition(p="a"), count=6)])
    assert outcome.version == COMMITS


def newest_checkpoint(table: Path) -> Path:
    return table / "_delta_log" / f"{COMMITS:020d}.checkpoint.parquet"


@pytest.mark.long("contracts")
def test_the_checkpoint_is_the_one_that_delta_writes(lab: DeltaLab, tmp_path: Path) -> None:
    ours, deltas = tmp_path / "ours", tmp_path / "deltas"
    write_until_interval(ours)
    rewrite(lab, ours)
    shutil.copytree(ours, deltas)
    newest_checkpoint(deltas).unlink()
    (deltas / "_delta_log" / "_last_checkpoint").unlink()
    forget_logs(lab.spark)
    scala = DeltaScala(lab.spark)
    log = scala.delta_log.forTable(jvm_session(lab.spark), str(deltas))
    log.checkpoint(log.update(False, scala.none, scala.none), scala.none)
    assert checkpoint_rows(ours) == checkpoint_rows(deltas)
    named = [json.loads((table / "_delta_log" / "_last_checkpoint").read_text()) for table in (ours, deltas)]
    for last in named:
        assert (last["version"], last["size"], last["numOfAddFiles"]) == (COMMITS, 2 + 15 + 6, 15)


@pytest.mark.long("contracts")
@pytest.mark.parametrize(("theirs", "is_written"), [(0, True), (1, False), (COMMITS - 1, False)])
def test_a_checkpoint_of_another_engine_within_the_interval_is_enough(
    lab: DeltaLab, tmp_path: Path, theirs: int, is_written: bool
) -> None:
    """delta-rs writes its own after the versions before: 9, 19, 29."""
    table = tmp_path / "t"
    write_until_interval(table)
    at = DeltaTable(table, version=theirs)
    at.create_checkpoint()
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == theirs
    rewrite(lab, table)
    assert newest_checkpoint(table).exists() is is_written


@pytest.mark.long("contracts")
def test_a_checkpoint_is_written_where_the_record_of_the_last_one_cannot_be_read(lab: DeltaLab, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_until_interval(table)
    (table / "_delta_log" / "_last_checkpoint").write_text('{"version":')
    rewrite(lab, table)
    assert newest_checkpoint(table).exists()
