"""What the exact rewrite promises when something goes wrong: no row lost, no commit twice, no doubt left open."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from actor.formats.delta.log import TableLog
from actor.ports import GroupStatus, RewriteRequest
from shared.errors import Corrupt, InvalidInput, LeaseLost, RetryableError
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.steering import Steering
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.spark


def raise_(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def test_rows_that_differ_from_the_statistics_stop_the_rewrite_loudly(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=3)
    table.append(1, stats=json.dumps({"numRecords": 21}))
    group, on_disk = lab.group(table.location), tables.parquet_files(table.path)
    control = Steering()

    with pytest.raises(Corrupt, match=r"81 rows in by the log statistics, 80 rows out; reading the inputs finds 80"):
        lab.rewrite(table.location, [group], control)

    assert control.calls == []
    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


def test_rows_are_counted_where_the_log_has_no_statistics(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=2)
    table.append(1, stats=None)
    before = tables.rows(table.path)
    group = lab.group(table.location, count=3)
    assert [file.rows for file in group.files] == [None, 20, 20]

    outcome = lab.rewrite(table.location, [group])

    assert outcome.groups[0].rows == 60
    assert tables.rows(table.path) == before


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

    with pytest.raises(Corrupt, match=r"60 rows in by count, 59 rows out"):
        lab.rewrite(table.location, [group], may_copy=False)

    assert tables.newest(table.path) == table.version


def test_one_corrupt_group_stops_all_and_leaves_no_file(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=2)
    table.append(2, rows=19, stats=json.dumps({"numRecords": 18}))
    files, on_disk = lab.files(table.location), tables.parquet_files(table.path)
    groups = [FileGroup(WHOLE_TABLE, files[i : i + 2], RewriteMode.MINOR) for i in (0, 2)]

    with pytest.raises(Corrupt):
        lab.rewrite(table.location, groups)

    assert tables.parquet_files(table.path) == on_disk
    assert tables.newest(table.path) == table.version


def test_a_commit_that_landed_although_it_raised_is_found_and_not_repeated(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.table(lab.directory / "t", files=4)
    before, commit = tables.rows(table.path), TableLog.commit

    def lost_answer(log: TableLog, txn: Any, actions: Any, metrics: Any) -> int:
        commit(log, txn, actions, metrics)
        raise OSError("the answer was lost")

    monkeypatch.setattr(TableLog, "commit", lost_answer)
    control = Steering()

    outcome = lab.rewrite(table.location, [lab.group(table.location)], control)

    assert outcome.version == tables.newest(table.path) == table.version + 1
    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert control.calls == ["files_written", "may_commit", "committed"]
    assert tables.rows(table.path) == before


@pytest.mark.parametrize("step", ["transaction", "shape"])
def test_a_failure_before_the_first_attempt_to_commit_leaves_no_file(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group, on_disk = lab.group(table.location), tables.parquet_files(table.path)

    def fail(*_: object) -> None:
        raise OSError("the store is away")

    control = Steering(at={"files_written": lambda: monkeypatch.setattr(TableLog, step, fail)})
    with pytest.raises(RetryableError, match="the store is away"):
        lab.rewrite(table.location, [group], control)

    assert control.calls == ["files_written"]
    assert tables.parquet_files(table.path) == on_disk


def test_a_job_can_be_cancelled_until_it_ends(lab: DeltaLab) -> None:
    """Spark finds what to cancel by the tag of the thread; writing one group, in the same thread, does not take it."""
    sessions = lab.engine._sessions
    with sessions.lease(tag="job-1") as owned, sessions.bound(owned):
        with sessions.bound(owned):
            assert set(lab.spark.sparkContext.getJobTags()) == {"job-1"}
        assert set(lab.spark.sparkContext.getJobTags()) == {"job-1"}
    assert not lab.spark.sparkContext.getJobTags()


def test_an_unknown_outcome_that_the_log_does_not_show_keeps_the_files_and_is_no_success(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group, on_disk = lab.group(table.location), tables.parquet_files(table.path)

    def lost_request(*_: Any) -> int:
        raise OSError("no route to host")

    monkeypatch.setattr(TableLog, "commit", lost_request)

    with pytest.raises(RetryableError, match=r"outcome of a commit to .* is unknown .*no route to host"):
        lab.rewrite(table.location, [group])

    assert len(tables.parquet_files(table.path) - on_disk) == 1
    assert tables.newest(table.path) == table.version


def test_a_lost_lease_commits_nothing_and_leaves_no_file(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group, on_disk = lab.group(table.location), tables.parquet_files(table.path)

    with pytest.raises(LeaseLost):
        lab.rewrite(table.location, [group], Steering(before_commit=[raise_(LeaseLost("gone"))]))

    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


def test_asked_to_stop_it_commits_what_is_written_and_starts_nothing_more(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=6)
    files = lab.files(table.location)
    groups = [FileGroup(WHOLE_TABLE, files[i : i + 2], RewriteMode.MINOR) for i in (0, 2, 4)]
    asked = iter([False, True, True])

    outcome = lab.rewrite(table.location, groups, Steering(stop=lambda: next(asked)))

    statuses = [end.status for end in outcome.groups]
    assert sorted(statuses) == [GroupStatus.COMMITTED, GroupStatus.SKIPPED, GroupStatus.SKIPPED]
    landed = groups[statuses.index(GroupStatus.COMMITTED)]
    assert tables.removed(table.path, outcome.version or 0) == {file.path for file in landed.files}


def test_asked_to_stop_before_it_began_it_does_nothing(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    control = Steering(stop=lambda: True)

    outcome = lab.rewrite(table.location, [lab.group(table.location)], control)

    assert (outcome.version, outcome.groups[0].status) == (None, GroupStatus.SKIPPED)
    assert control.calls == []


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

    engine = type(lab.engine)(lab.spark)
    engine.executor._settings = type(engine.executor._settings)(write_threads=1)
    lab = DeltaLab(lab.spark, engine, lab.directory)
    lab.files(table.location)

    outcome = lab.rewrite(table.location, groups[::-1], Steering(stop=stop))

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED, GroupStatus.CONFLICTED]


def test_commits_are_found_by_job_and_token_above_a_version(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    first = lab.rewrite(table.location, [lab.group(table.location, count=2)], job="j", token=1).version
    table.append(1)
    second = lab.rewrite(table.location, [lab.group(table.location, count=2)], job="j", token=2).version
    table.append(1)

    def find(job: str, token: int, since: int) -> int | None:
        return lab.engine.find_commit(table.location, job=job, token=token, since_version=since)

    assert (first, second) == (2, 4)
    assert find("j", 1, 0) == find("j", 1, 1) == 2
    assert find("j", 1, 2) is None
    assert find("j", 2, 0) == 4
    assert find("j", 3, 0) is find("k", 1, 0) is None
    assert find("j", 2, 100) is None


def test_foreign_and_broken_user_metadata_is_no_ones(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=1)
    for user_metadata in (
        "",
        "text",
        "[]",
        '{"lakewright": 1}',
        '{"lakewright": {"job": "j"}}',
        '{"lakewright": null}',
    ):
        table.version += 1
        line = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": user_metadata}}
        (table.path / "_delta_log" / f"{table.version:020d}.json").write_text(json.dumps(line))

    assert lab.engine.find_commit(table.location, job="j", token=1, since_version=-1) is None


def test_commits_that_log_retention_has_removed_are_passed_over(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", configuration={"delta.checkpointInterval": "1"})
    table.append(2)
    landed = lab.rewrite(table.location, [lab.group(table.location, count=2)], job="j", token=5).version
    for version in (0, 1):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()

    assert lab.engine.find_commit(table.location, job="j", token=5, since_version=-1) == landed


@pytest.mark.parametrize("user_metadata", ["", "{}", '{"lakewright": {"job": "j"}}'])
def test_a_request_without_job_and_token_is_refused(lab: DeltaLab, user_metadata: str) -> None:
    table = tables.table(lab.directory / "t", files=2)
    request = RewriteRequest(table.location, (lab.group(table.location, count=2),), user_metadata)

    with pytest.raises(InvalidInput, match="job and token"):
        lab.engine.rewrite(request, Steering())


def test_a_place_without_a_table_is_reported_to_be_none(lab: DeltaLab) -> None:
    location = f"file://{lab.directory}/nothing"

    with pytest.raises(InvalidInput, match="no Delta table"):
        lab.engine.read_partition(location, WHOLE_TABLE)

    assert not (lab.directory / "nothing").exists()
    assert mark("j", 1) == '{"lakewright": {"job": "j", "token": 1}}'
