"""When others commit at the same time nothing is lost, what can land lands, and what cannot is planned again."""

from collections.abc import Callable

import pytest

from actor.ports import GroupStatus, RewriteOutcome
from shared.errors import Conflict
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab
from tests.support.long_suites import beyond
from tests.support.steering import Steering

pytestmark = pytest.mark.spark

LANDED, STALE = GroupStatus.COMMITTED, GroupStatus.CONFLICTED


def statuses(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [end.status for end in outcome.groups]


def at_commit(action: Callable[[], object]) -> Steering:
    """Run it when our transaction is open: Delta itself has to find the conflict."""
    return Steering(before_commit=[action])


def when_written(action: Callable[[], object]) -> Steering:
    """Run it when our files are written and no transaction is open: our own read the log has to find it."""
    return Steering(at={"files_written": action})


@pytest.mark.parametrize("moment", [at_commit, when_written])
def test_a_removed_input_makes_its_group_stale_and_our_output_is_deleted(
    lab: DeltaLab, moment: Callable[[Callable[[], object]], Steering]
) -> None:
    table = tables.table(lab.directory / "t")
    group = lab.group(table.location)
    theirs = moment(lambda: table.remove(group.files[0].path))
    on_disk = tables.parquet_files(table.path)

    outcome = lab.rewrite(table.location, [group], theirs)

    assert (outcome.version, statuses(outcome), outcome.conflicts) == (None, [STALE], 1)
    assert outcome.groups[0].outputs == ()
    assert "committed" not in theirs.calls
    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


@pytest.mark.parametrize(
    ("statement", "vectors"),
    beyond(
        1,
        [
            ("DELETE FROM {table} WHERE id = 3", True),
            ("UPDATE {table} SET v = 'z' WHERE id < 100", False),
            ("OPTIMIZE {table}", False),
        ],
    ),
    ids=["delete-with-vector", "update", "optimize"],
)
def test_statements_on_the_same_files_win_and_keep_their_effect(lab: DeltaLab, statement: str, vectors: bool) -> None:
    table = tables.table(lab.directory / "t", files=5, deletion_vectors=vectors)
    group = lab.group(table.location, count=5)
    after: list[object] = []

    def theirs() -> None:
        lab.sql(statement.format(table=f"delta.`{table.location}`"))
        after.append(lab.digest(table.location))

    outcome = lab.rewrite(table.location, [group], at_commit(theirs))

    assert (outcome.version, statuses(outcome), outcome.conflicts) == (None, [STALE], 1)
    assert [lab.digest(table.location)] == after
    assert tables.commit_info(table.path, tables.newest(table.path))["operation"] == statement.split(maxsplit=1)[0]


def test_a_delete_on_other_files_of_the_same_partition_is_no_conflict(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", days=True)
    group = lab.group(table.location, PARTITION_1)
    other = lab.files(table.location, PARTITION_1)[5]

    outcome = lab.rewrite(table.location, [group], at_commit(lambda: table.remove(other.path)))

    assert (statuses(outcome), outcome.conflicts) == ([LANDED], 0)
    assert len(tables.rows(table.path)) == 11 * 20


@pytest.mark.parametrize("moment", [at_commit, when_written])
def test_of_three_groups_the_two_that_are_still_live_land_with_the_files_already_written(
    lab: DeltaLab, moment: Callable[[Callable[[], object]], Steering]
) -> None:
    table = tables.table(lab.directory / "t", days=True, files=24)
    groups = [
        lab.group(table.location, PARTITION_1, count=4),
        lab.group(table.location, PARTITION_1, first=4, count=4),
        lab.group(table.location, PARTITION_2, count=4),
    ]
    victim = groups[0].files[2]
    on_disk = tables.parquet_files(table.path)
    expected: list[object] = []
    written: list[set[str]] = []

    def theirs() -> None:
        written.append(tables.parquet_files(table.path) - on_disk)
        table.remove(victim.path)
        expected.append(tables.rows(table.path))

    outcome = lab.rewrite(table.location, groups, moment(theirs))

    assert (statuses(outcome), outcome.conflicts) == ([STALE, LANDED, LANDED], 1)
    assert outcome.version == table.version + 1
    assert tables.removed(table.path, outcome.version) == {file.path for group in groups[1:] for file in group.files}
    assert [tables.rows(table.path)] == expected
    assert len(written[0]) == 3
    assert {add["path"] for add in tables.added(table.path, outcome.version)} < written[0]
    assert len(tables.parquet_files(table.path) - on_disk) == 2


def test_a_second_rewrite_of_the_same_files_does_nothing(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t")
    before, group = tables.rows(table.path), lab.group(table.location)
    first: list[RewriteOutcome] = []

    late = lab.rewrite(table.location, [group], at_commit(lambda: first.append(lab.rewrite(table.location, [group]))))

    assert (statuses(first[0]), statuses(late)) == ([LANDED], [STALE])
    assert tables.newest(table.path) == first[0].version
    assert tables.rows(table.path) == before


def test_a_stale_plan_is_refused_before_any_work(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t")
    group = lab.group(table.location)
    table.remove(group.files[3].path)
    on_disk, control = tables.parquet_files(table.path), Steering()

    outcome = lab.rewrite(table.location, [group], control)

    assert (outcome.version, statuses(outcome), outcome.conflicts) == (None, [STALE], 0)
    assert control.calls == []
    assert tables.parquet_files(table.path) == on_disk


def test_a_plan_that_another_actor_made_is_found_in_the_snapshot(lab: DeltaLab) -> None:
    """The engine that rewrites need not be the one that read the partition; what it cannot remember it asks Delta."""
    table = tables.table(lab.directory / "t")
    good, stale = lab.group(table.location), lab.group(table.location, first=4)
    table.remove(stale.files[0].path)
    stranger = type(lab)(lab.spark, type(lab.engine)(lab.spark), lab.directory)

    outcome = stranger.rewrite(table.location, [good, stale])

    assert statuses(outcome) == [LANDED, STALE]
    assert tables.removed(table.path, outcome.version or 0) == {file.path for file in good.files}


def test_a_file_added_again_since_the_plan_is_stale(lab: DeltaLab) -> None:
    """Row tracking's backfill and recomputed statistics add the same path again: our words about it are outdated."""
    table = tables.table(lab.directory / "t")
    group = lab.group(table.location)
    again = tables.live(table.path)[group.files[0].path, None] | {"dataChange": False, "tags": {"a": "b"}}

    outcome = lab.rewrite(table.location, [group], when_written(lambda: table.commit([{"add": again}])))

    assert statuses(outcome) == [STALE]


@pytest.mark.parametrize(
    ("change", "moment"),
    [
        ({"configuration": {"delta.appendOnly": "false"}}, at_commit),
        ({"configuration": {"delta.appendOnly": "false"}}, when_written),
        ({"partitionColumns": ["x"]}, when_written),
    ],
)
def test_a_change_of_what_files_are_written_by_means_planning_again(
    lab: DeltaLab, change: dict[str, object], moment: Callable[[Callable[[], object]], Steering]
) -> None:
    table = tables.table(lab.directory / "t")
    group, on_disk = lab.group(table.location), tables.parquet_files(table.path)
    theirs = moment(lambda: table.commit([{"metaData": table.metadata(**change)}]))

    with pytest.raises(Conflict) as caught:
        lab.rewrite(table.location, [group], theirs)

    assert caught.value.kind == "MetadataChangedException"
    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


@pytest.mark.parametrize("moment", [at_commit, when_written])
def test_a_property_that_delta_does_not_know_does_not_cost_the_rewrite(
    lab: DeltaLab, moment: Callable[[Callable[[], object]], Steering]
) -> None:
    table = tables.table(lab.directory / "t")
    group = lab.group(table.location)
    changed = {"metaData": table.metadata(configuration={"lakewright.priority": "high"})}

    outcome = lab.rewrite(table.location, [group], moment(lambda: table.commit([changed])))

    assert statuses(outcome) == [LANDED]
    assert outcome.version == table.version + 1


def test_attempts_are_bounded_and_the_last_refusal_is_reported(lab: DeltaLab) -> None:
    """Others take one more group before each attempt; what is left after the last attempt is given back."""
    table = tables.table(lab.directory / "t", files=14)
    files = lab.files(table.location)
    groups = [FileGroup(WHOLE_TABLE, files[i * 2 : i * 2 + 2], RewriteMode.MINOR) for i in range(7)]
    on_disk = tables.parquet_files(table.path)
    takes = [lambda i=i: table.remove(groups[i].files[0].path) for i in range(7)]

    with pytest.raises(Conflict) as caught:
        lab.rewrite(table.location, groups, Steering(before_commit=takes))

    assert caught.value.kind.startswith("ConcurrentDelete")
    assert tables.newest(table.path) == table.version
    assert tables.parquet_files(table.path) == on_disk


@pytest.mark.parametrize(
    ("reads", "victim_partition", "aborted"),
    beyond(
        2,
        [
            ("dt = '2026-01-01'", PARTITION_1, True),
            ("dt = '2026-01-02'", PARTITION_2, False),
            (None, PARTITION_1, True),
        ],
    ),
    ids=["same-partition", "other-partition", "whole-table"],
)
def test_our_commit_aborts_statements_that_read_the_same_partition_and_no_others(
    lab: DeltaLab, reads: str | None, victim_partition: str, aborted: bool
) -> None:
    """This is Delta's rule, not ours; the heat of a partition (deciding.md, 7) exists because of it."""
    table = tables.table(lab.directory / "t", days=True)
    victim = lab.files(table.location, victim_partition)[5]
    theirs = their_delete(lab, table.location, reads, victim.path)
    lab.rewrite(table.location, [lab.group(table.location, PARTITION_1)])

    if aborted:
        with pytest.raises(Exception, match="DELTA_CONCURRENT_APPEND"):
            theirs()
    else:
        theirs()
        assert len(tables.rows(table.path)) == 11 * 20


def their_delete(lab: DeltaLab, location: str, reads: str | None, victim: str) -> Callable[[], object]:
    """A foreign DELETE held open: it has read a partition or all, and will remove one file when called."""
    scala = lab.engine._scala
    log = scala.delta_log.forTable(lab.spark._jsparkSession, location)
    txn = log.startTransaction(scala.none, scala.none)
    if reads is None:
        txn.readWholeTable()
    else:
        parsed = lab.spark._jsparkSession.sessionState().sqlParser().parseExpression(reads)
        txn.filterFiles(scala.seq([parsed]), False)
    (add,) = txn.snapshot().allFiles().filter(f"path = '{victim}'").collectAsList()
    operation = scala.module("org.apache.spark.sql.delta.DeltaOperations$ManualUpdate")
    return lambda: txn.commit(scala.seq([add.removeWithTimestamp(1, True)]), operation, scala.map())
