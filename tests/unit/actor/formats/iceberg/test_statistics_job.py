"""The job on statistics of columns decides again on the newest metadata; rewrites keep statistics, and never fail."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.java_statistics import JavaStatistics, keep_statistics
from actor.formats.iceberg.statistics_job import NOTHING, StatisticsJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import LeaseLost
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.positions import newest_position
from shared.layout.upkeep import COMPUTE_STATISTICS
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.local_vacuum import Control
from tests.unit.shared.formats.iceberg.test_column_statistics import changes, head

JOB = TableJob(COMPUTE_STATISTICS.kind, "s3://lake/t", Policy(), CommitOrigin("job", 7))
APPENDED = "append", changes(added_records=7)


class Table:
    """A table with these metadata."""

    location = "s3://lake/t"

    def __init__(self, found: TableHead) -> None:
        self.found = found
        self.computed: list[int] = []

    def refresh(self) -> TableHead:
        return self.found

    def compute(self, snapshot: int) -> tuple[int, int]:
        self.computed.append(snapshot)
        return 3, 400


def run(table: Table, control: Control | None = None, job: TableJob = JOB) -> TableJobOutcome:
    return StatisticsJob(table, job, control or Control(), lambda _: None).run()


def test_statistics_are_computed_of_the_newest_snapshot_without_a_commit_of_data() -> None:
    table, control = Table(head(APPENDED, APPENDED, statistics=(1,))), Control()
    done = run(table, control)
    assert (table.computed, control.changes, control.points) == ([2], 1, [("computing", 0, 1)])
    assert (done.version, done.commits, done.is_complete) == (newest_position(table.found).version, (), True)
    assert done.figures == control.figures == {"columns": 3, "bytes_written": 400}


@pytest.mark.parametrize(
    "found", [head(), head(APPENDED, statistics=(1,)), head(APPENDED, ("replace", changes()), statistics=(1,))]
)
def test_where_no_row_has_changed_nothing_is_computed_again(found: TableHead) -> None:
    table = Table(found)
    assert (run(table).reason, table.computed) == (NOTHING, [])


def test_a_table_that_does_not_count_its_rows_is_computed_on_request() -> None:
    table = Table(head(("append", {})))
    run(table)
    assert table.computed == [1]


def test_a_job_that_is_not_wanted_or_has_lost_its_lease_computes_nothing() -> None:
    table, control = Table(head(APPENDED)), Control()
    changed = replace(JOB, policy_digest="of others")
    assert "properties changed" in run(table, job=changed).reason

    def lost(_: int) -> None:
        raise LeaseLost("gone")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        run(table, control)
    assert table.computed == []


class File(SimpleNamespace):
    """A file of statistics as Iceberg has it, of a snapshot."""

    def __init__(self, snapshot: int) -> None:
        super().__init__(
            snapshotId=lambda: snapshot,
            path=lambda: f"p{snapshot}",
            fileSizeInBytes=lambda: 9,
            fileFooterSizeInBytes=lambda: 4,
            blobMetadata=lambda: ["ndv"],
        )


class Java:
    """A table and Iceberg's classes; `set` are the files that were set."""

    location = "s3://lake/t"

    def __init__(self, found: TableHead, *snapshots: int) -> None:
        self.head = self.whole_head = lambda: found
        self.set: list[tuple[Any, ...]] = []
        self.refreshed = 0
        self.raw = self
        files = [File(one) for one in snapshots]
        self.statisticsFiles = lambda: SimpleNamespace(get=files.__getitem__, size=lambda: len(files))

    def refresh(self) -> None:
        self.refreshed += 1

    def items(self, listed: Any) -> list[Any]:
        return [listed.get(number) for number in range(listed.size())]

    def actions(self, _session: Any) -> Any:
        made = SimpleNamespace(statisticsFile=lambda: File(2))
        action = SimpleNamespace(execute=lambda: made)
        action.snapshot = lambda _: action
        return SimpleNamespace(computeTableStats=lambda _: action)

    def resolve(self, name: str) -> Any:
        assert name == "org.apache.iceberg.GenericStatisticsFile"
        return lambda *given: given

    def updateStatistics(self) -> Any:  # noqa: N802 - Iceberg's name
        return SimpleNamespace(setStatistics=lambda made: SimpleNamespace(commit=lambda: self.set.append(made)))


def test_a_rewrite_keeps_the_statistics_of_the_snapshot_before_it() -> None:
    replaced = head(APPENDED, ("replace", {}), ("replace", {}))
    table: Any = Java(replaced, 1)
    keep_statistics(table, table)
    assert table.set == [(3, "p1", 9, 4, ["ndv"])]
    for other in (Java(replaced), Java(replaced, 1, 3), Java(head(APPENDED, APPENDED, ("replace", {})), 1)):
        given: Any = other
        keep_statistics(given, given)
        assert given.set == []


def test_statistics_that_cannot_be_kept_fail_no_rewrite() -> None:
    table: Any = Java(head(APPENDED, ("replace", {})), 1)
    table.updateStatistics = None
    keep_statistics(table, table)
    assert table.set == []


def test_icebergs_own_action_computes() -> None:
    found = head(APPENDED)
    table: Any = Java(found)
    made = JavaStatistics(table, table, table)
    assert (made.refresh(), table.refreshed, made.compute(2)) == (found, 1, (1, 9))
