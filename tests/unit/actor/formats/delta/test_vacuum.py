"""A vacuum's run on local tables without a JVM: order, batches, rate, stops, and what happens beside it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from actor.formats.delta.vacuum import Vacuum
from actor.ports import TableJob
from actor.vacuum.steps import VacuumLimits
from shared.errors import InvalidInput, RetryableError
from shared.formats.delta_vacuum_plan import RETENTION
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, commit_file, data_files, now_ms, set_time, versions
from tests.support.local_vacuum import ON, Control, LocalTable, rewritten_long_ago, run_locally

BATCHES = VacuumLimits(batch=2, files_per_s=10**6)
BY_NAME = VacuumOptions()


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    return rewritten_long_ago(tmp_path / "t")


def test_a_requested_run_that_finds_nothing_commits_nothing(table: LocalTable) -> None:
    run_locally(table)
    asked = VacuumOptions(with_orphans=True, requested_ms=now_ms())
    done = run_locally(table, asked)
    assert (done.is_complete, done.commits, done.reason) == (True, (), "nothing is to be deleted")
    assert versions(table.path)[-1] == 13
    # One that deletes something commits its end, requested or not.
    (table.path / "orphan.parquet").write_bytes(b"x")
    set_time(table.path / "orphan.parquet", now_ms() - 30 * DAY_MS)
    assert run_locally(table, asked).commits == (14,)


def test_a_listing_stops_when_it_is_asked_to_and_deletes_nothing(
    table: LocalTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actor.formats.delta.vacuum.FILES_PER_STEP", 5)
    control = Control()
    control.should_stop = lambda: ("listing", 5, 0) in control.points  # type: ignore[method-assign]
    done = run_locally(table, control=control)
    assert (done.is_complete, done.commits, table.deleted) == (False, (), [])
    assert ("listing", 5, 0) in control.points


def test_a_run_that_stops_or_dies_leaves_the_rest_to_the_next(table: LocalTable) -> None:
    stopping = Control()
    stopping.stop_after = 3
    first = run_locally(table, control=stopping, limits=BATCHES)
    assert (first.is_complete, first.figures["files_deleted"], first.commits) == (False, 4, ())

    def die(_count: int) -> None:
        raise RuntimeError("killed")

    table.before_delete = die
    with pytest.raises(RuntimeError, match="killed"):
        run_locally(table, limits=BATCHES)
    table.before_delete = lambda _count: None
    rest = run_locally(table, limits=BATCHES)
    assert (rest.figures["files_deleted"], rest.figures["files_missing"]) == (6, 4)
    assert len(data_files(table.path)) == 2


def test_a_file_that_became_live_again_before_its_batch_stays(table: LocalTable) -> None:
    control = Control()
    reached = control.reached

    def restoring(point: str, done: int = 0, total: int = 0) -> None:
        reached(point, done, total)
        if (point, done) == ("deleting", 0):
            gone = [{"add": {**_body(one), "dataChange": True}} for one in removed_by(table, 10)]
            commit_file(table.path, 13).write_text("".join(json.dumps(action) + "\n" for action in gone))

    control.reached = restoring  # type: ignore[method-assign]
    done = run_locally(table, control=control, limits=BATCHES)
    assert (done.figures["files_live_again"], done.figures["files_deleted"]) == (10, 0)
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == 20


def removed_by(table: LocalTable, version: int) -> list[dict[str, Any]]:
    actions = (json.loads(line) for line in commit_file(table.path, version).read_text().splitlines())
    return [action["remove"] for action in actions if "remove" in action]


def _body(removed: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": removed["path"],
        "size": removed["size"],
        "partitionValues": {},
        "modificationTime": 1,
    }


def test_a_file_of_a_removed_name_that_was_written_again_stays_and_is_checked_again_later(table: LocalTable) -> None:
    gone = next(iter(table.commit(10).removed)).own[0][0]  # type: ignore[union-attr]
    set_time(table.path / gone, now_ms() - DAY_MS)
    done = run_locally(table, BY_NAME)
    assert (done.figures["files_too_young"], done.figures["files_deleted"]) == (1, 9)
    set_time(table.path / gone, now_ms() - 30 * DAY_MS)
    assert run_locally(table, BY_NAME).figures["files_deleted"] == 1


def test_a_later_run_reads_no_commit_that_an_earlier_one_covered(table: LocalTable) -> None:
    run_locally(table)
    read: list[int] = []
    commit = table.commit
    table.commit = lambda version, time_ms=None: read.append(version) or commit(version, time_ms)  # type: ignore[method-assign, func-returns-value]
    run_locally(table)
    # The commit that the end covers is read, because its time shows that the retention begins later.
    assert min(read) == 10


def test_orphans_go_only_where_the_store_is_listed_and_only_when_they_are_old(table: LocalTable) -> None:
    for name, days in (("old.parquet", 8), ("young.parquet", 6)):
        (table.path / name).write_bytes(b"x")
        set_time(table.path / name, now_ms() - days * DAY_MS)
    run_locally(table, BY_NAME)
    assert {"old.parquet", "young.parquet"} <= data_files(table.path)
    done = run_locally(table)
    assert (done.figures["orphan_files_deleted"], done.figures["orphan_bytes_freed"]) == (1, 1)
    forced = run_locally(table, VacuumOptions(with_orphans=True, force=True, retain_s=0))
    assert forced.figures["orphan_files_deleted"] == 1
    (table.path / "new.parquet").write_bytes(b"x")
    run_locally(table, VacuumOptions(with_orphans=True, force=True, retain_s=0))
    assert "new.parquet" in data_files(table.path), "a writer may be about to commit it, whatever is forced"


def test_a_file_that_is_committed_between_listing_and_log_is_needed(table: LocalTable) -> None:
    """The listing comes first: a file that it has, and that a commit made live since, is seen in the log."""
    late = table.path / "late.parquet"
    late.write_bytes(b"x")
    set_time(late, now_ms() - 30 * DAY_MS)
    list_files = table.list_files

    def commit_while_it_lists() -> list[StoredFile]:
        found = list(list_files())
        version = versions(table.path)[-1] + 1
        add = {"path": "late.parquet", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}
        commit_file(table.path, version).write_text(json.dumps({"add": add}) + "\n")
        return found

    table.list_files = commit_while_it_lists  # type: ignore[method-assign, assignment]
    run_locally(table)
    assert late.exists()


@pytest.mark.parametrize(
    ("configuration", "policy", "options"),
    [
        ({}, replace(ON, retain_s=0, min_retain_s=0), VacuumOptions()),
        ({}, ON, VacuumOptions(retain_s=0)),
        ({RETENTION: "interval 60 days"}, ON, VacuumOptions()),
        ({"lakewright.retain": "60 days"}, ON, VacuumOptions()),
        ({}, replace(ON, retain_s=60 * 86_400), VacuumOptions()),
    ],
)
def test_the_longest_retention_counts_and_the_tables_least_one_unless_it_is_forced(
    table: LocalTable, configuration: dict[str, str], policy: Policy, options: VacuumOptions
) -> None:
    version, metadata = table.head()
    table.head = lambda: (version, replace(metadata, configuration=configuration))  # type: ignore[method-assign]
    deleted = run_locally(table, options, policy=policy).figures["files_deleted"]
    keeps_all = "60" in str(configuration) or policy.retain_s == 60 * 86_400
    assert deleted == (0 if keeps_all else 10)
    assert DeltaTable(table.path, version=11).to_pyarrow_table().num_rows == 11


def test_a_retention_that_cannot_be_read_deletes_nothing(table: LocalTable) -> None:
    version, metadata = table.head()
    odd = replace(metadata, configuration={RETENTION: "interval 1 month"})
    table.head = lambda: (version, odd)  # type: ignore[method-assign]
    with pytest.raises(InvalidInput, match="cannot be read"):
        run_locally(table)
    assert table.deleted == []


@pytest.mark.parametrize("configuration", [{"lakewright.vacuum": "off"}, {"lakewright.enabled": "false"}])
def test_a_table_that_was_switched_off_meanwhile_is_left_alone(
    table: LocalTable, configuration: dict[str, str]
) -> None:
    version, metadata = table.head()
    table.head = lambda: (version, replace(metadata, configuration=configuration))  # type: ignore[method-assign]
    done = run_locally(table)
    assert (done.commits, table.deleted) == ((), [])
    assert "switch" in done.reason
    job = TableJob(VACUUM, table.path.as_uri(), ON, CommitOrigin("job", 7), even_if_disabled=True)
    assert Vacuum(table, job, Control()).run().figures["files_deleted"] == 10


def test_a_hole_in_the_log_deletes_nothing_and_is_tried_again(table: LocalTable) -> None:
    live, tombstones, head = table.live(), table.tombstones(), table.head()
    table.head, table.live, table.tombstones = lambda: head, lambda: live, lambda: tombstones  # type: ignore[method-assign]
    commit_file(table.path, 5).unlink()
    with pytest.raises(RetryableError, match="commits 5 to 5 are missing"):
        run_locally(table)
    assert table.deleted == []


def test_a_log_that_is_cleaned_up_from_its_beginning_is_read_as_far_as_it_goes(table: LocalTable) -> None:
    times = dict(table.commit_times())
    live, tombstones = table.live(), table.tombstones()
    head = table.head()
    table.head, table.live, table.tombstones = lambda: head, lambda: live, lambda: tombstones  # type: ignore[method-assign]
    answers = [times]
    for version in range(5):
        commit_file(table.path, version).unlink()
    known = table.commit_times
    table.commit_times = lambda: answers.pop() if answers else known()  # type: ignore[method-assign]
    assert run_locally(table).figures["files_deleted"] == 10


def test_a_commit_that_vanished_from_the_middle_stops_the_run(table: LocalTable) -> None:
    times = dict(table.commit_times())
    live, tombstones, head = table.live(), table.tombstones(), table.head()
    table.head, table.live, table.tombstones = lambda: head, lambda: live, lambda: tombstones  # type: ignore[method-assign]
    commit_file(table.path, 5).unlink()
    known, answers = table.commit_times, [times]
    table.commit_times = lambda: answers.pop() if answers else known()  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="5 commits before it are not"):
        run_locally(table)
    assert table.deleted == []


def test_a_run_that_is_stopped_while_it_reads_deletes_nothing(table: LocalTable) -> None:
    control = Control()
    control.stop_after = 0
    done = run_locally(table, BY_NAME, control=control)
    assert (done.is_complete, table.deleted) == (False, [])
