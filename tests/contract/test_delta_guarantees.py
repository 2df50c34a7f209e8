"""What the exact rewrite promises when something goes wrong: no row lost, no commit twice, no doubt left open."""

import threading
from typing import Any

import pytest

from actor.formats.delta.engine import EngineSettings
from actor.formats.delta.log import TableLog
from actor.ports import GroupStatus
from actor.rewrite.run import RewriteSettings
from shared.errors import Corrupt, InvalidInput, RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.steering import Steering
from tests.support.time_limits import scaled
from tests.support.waiting import until

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


def test_a_cancelled_job_fails_retryably_and_leaves_the_table_alone(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group, frame = lab.group(table.location), TableLog.frame
    slow = "java_method('java.lang.Thread', 'sleep', 200L) <> 'never'"
    monkeypatch.setattr(TableLog, "frame", lambda *arguments: frame(*arguments).filter(slow))
    tracker = lab.spark.sparkContext.statusTracker()

    def cancel_when_running() -> None:
        until("the job runs", lambda: list(tracker.getActiveJobsIds()), seconds=60)
        lab.engine.cancel("another job")
        assert list(tracker.getActiveJobsIds())
        lab.engine.cancel("job-x")

    thread = threading.Thread(target=cancel_when_running)
    thread.start()
    with pytest.raises(RetryableError, match="the table is unchanged"):
        lab.rewrite(table.location, [group], job="job-x", may_copy=False)
    thread.join(scaled(60))

    assert tables.newest(table.path) == table.version


def test_an_input_missing_on_disk_fails_retryably_and_names_the_file(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group = lab.group(table.location)
    missing = group.files[0].path
    (table.path / missing).unlink()

    with pytest.raises(RetryableError, match=f"{missing}.*the table is unchanged"):
        lab.rewrite(table.location, [group])

    assert tables.newest(table.path) == table.version


def test_a_group_whose_files_were_vacuumed_under_way_is_stale_and_the_others_land(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=8)
    files = lab.files(table.location)
    groups = [FileGroup(WHOLE_TABLE, files[i : i + 4], RewriteMode.MINOR) for i in (0, 4)]
    victim = groups[0].files[0].path
    asked: list[int] = []

    def stop() -> bool:
        """Asked before each group is written: others act just before the first."""
        if not asked:
            table.remove(victim)
            (table.path / victim).unlink()
        asked.append(1)
        return False

    lab = lab.with_settings(EngineSettings(rewrite=RewriteSettings(write_threads=1)))
    lab.files(table.location)

    outcome = lab.rewrite(table.location, groups[::-1], Steering(stop=stop))

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED, GroupStatus.CONFLICTED]


def test_commits_that_log_retention_has_removed_are_passed_over(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", configuration={"delta.checkpointInterval": "1"})
    table.append(2)
    landed = lab.rewrite(table.location, [lab.group(table.location, count=2)], job="j", token=5).version
    for version in (0, 1):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()

    assert lab.engine.find_commit(table.location, job="j", token=5, since_version=-1) == landed


def test_a_place_without_a_table_is_reported_to_be_none(lab: DeltaLab) -> None:
    location = f"file://{lab.directory}/nothing"

    with pytest.raises(InvalidInput, match="no Delta table"):
        lab.engine.read_partition(location, WHOLE_TABLE)

    assert not (lab.directory / "nothing").exists()
    assert mark("j", 1) == '{"lakewright": {"job": "j", "token": 1}}'
