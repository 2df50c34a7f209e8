"""What the exact rewrite promises when something goes wrong: no row lost, no commit twice, no doubt left open."""

import json
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.log import TableLog
from actor.formats.delta.parquet_task import ParquetTasks
from shared.errors import Corrupt, PermanentError
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.long_suites import beyond

pytestmark = pytest.mark.spark


def test_a_lost_row_is_noticed_even_without_statistics(lab: DeltaLab, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.table(lab.directory / "t", files=2)
    table.append(1, stats=None)
    group = lab.group(table.location, count=3)
    frame = TableLog.frame
    reads: list[int] = []

    def lossy(log: TableLog, snapshot: Any, adds: Any) -> Any:
        """The first read of the inputs is the one that is written; it loses a row."""
        reads.append(1)
        read = frame(log, snapshot, adds)
        return read.filter("id <> 7") if len(reads) == 1 else read

    monkeypatch.setattr(TableLog, "frame", lossy)

    with pytest.raises(Corrupt, match=r"60 rows in by the footers, 59 rows out"):
        lab.rewrite(table.location, [group], may_copy=False)

    assert tables.newest(table.path) == table.version


def test_a_job_can_be_cancelled_until_it_ends(lab: DeltaLab) -> None:
    """Spark finds what to cancel by the tag of the thread; writing one group, in the same thread, does not take it."""
    sessions = lab.engine._sessions
    with sessions.lease(tag="job-1") as owned, sessions.bound(owned):
        with sessions.bound(owned):
            assert set(lab.spark.sparkContext.getJobTags()) == {"job-1"}
        assert set(lab.spark.sparkContext.getJobTags()) == {"job-1"}
    assert not lab.spark.sparkContext.getJobTags()


def test_commits_that_log_retention_has_removed_are_passed_over(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", configuration={"delta.checkpointInterval": "1"})
    table.append(2)
    landed = lab.rewrite(table.location, [lab.group(table.location, count=2)], job="j", token=5).version
    for version in (0, 1):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()

    assert lab.engine.find_commit(table.location, job="j", token=5, since_version=-1) == landed


def test_the_self_test_passes_here_and_leaves_no_table(lab: DeltaLab) -> None:
    with capture_logs(processors=[merge_contextvars]) as logs:
        start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")

    conflict = next(one for one in logs if one["event"] == "commit_failed")
    assert conflict["self_test"], "a conflict that is provoked is marked, so that the actor's log leaves it out"
    assert not list(lab.directory.iterdir())


@pytest.mark.parametrize("broken", beyond(1, ["copy", "commit", "rows"]))
def test_with_a_delta_that_behaves_otherwise_no_engine_starts(
    lab: DeltaLab, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "commit":
        monkeypatch.setattr(TableLog, "commit", lambda *_: 99)
    elif broken == "copy":
        monkeypatch.setattr(ParquetTasks, "run", lambda *_: {"rows": 0})
    else:
        frame = TableLog.frame
        monkeypatch.setattr(TableLog, "frame", lambda *arguments: frame(*arguments).filter("id <> 7"))

    with pytest.raises(PermanentError, match="no table is touched"):
        start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")


def test_a_replacement_reads_and_removes_its_inputs_and_changes_no_data(lab: DeltaLab) -> None:
    table = lab.directory / "t"
    for number in range(2):
        lab.spark.range(number, number + 1).coalesce(1).write.format("delta").mode("append").save(str(table))
    scala = DeltaScala(lab.spark)
    log = TableLog(scala, lab.spark, table.as_uri())
    snapshot = log.snapshot()
    txn, inputs = log.transaction(snapshot), json.loads(log.files(snapshot))
    output = {**inputs[0], "path": "output.parquet", "dataChange": False}

    actions = scala.replacement(txn, json.dumps(inputs), json.dumps([output]), 5_000)

    paths = {one["path"] for one in inputs}
    assert {one["path"] for one in json.loads(scala.to_json(txn.readFiles()))} == paths
    added, *removed = (json.loads(actions.apply(at).json()) for at in range(actions.size()))
    assert added["add"]["path"] == "output.parquet"
    assert {one["remove"]["path"] for one in removed} == paths
    assert {(one["remove"]["dataChange"], one["remove"]["deletionTimestamp"]) for one in removed} == {(False, 5_000)}
