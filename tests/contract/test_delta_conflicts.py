"""When others commit at the same time nothing is lost, what can land lands, and what cannot is planned again."""

from collections.abc import Callable

import pytest

from actor.formats.delta.engine import EngineSettings
from actor.ports import GroupStatus, RewriteOutcome
from shared.errors import Conflict
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab
from tests.support.long_suites import beyond
from tests.support.steering import Steering, at_commit, when_written

pytestmark = pytest.mark.spark

LANDED, STALE = GroupStatus.COMMITTED, GroupStatus.CONFLICTED


def statuses(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [end.status for end in outcome.groups]


@pytest.mark.parametrize(
    "statement",
    beyond(1, ["UPDATE {table} SET v = 'z' WHERE id < 100", "OPTIMIZE {table}"]),
    ids=["update", "optimize"],
)
def test_statements_on_the_same_files_win_and_keep_their_effect(lab: DeltaLab, statement: str) -> None:
    table = tables.table(lab.directory / "t", files=5)
    group = lab.group(table.location, count=5)
    after: list[object] = []

    def theirs() -> None:
        lab.sql(statement.format(table=f"delta.`{table.location}`"))
        after.append(lab.digest(table.location))

    outcome = lab.rewrite(table.location, [group], at_commit(theirs))

    assert (outcome.version, statuses(outcome), outcome.conflicts) == (None, [STALE], 1)
    assert [lab.digest(table.location)] == after
    assert tables.commit_info(table.path, tables.newest(table.path))["operation"] == statement.split(maxsplit=1)[0]


def test_a_plan_that_another_actor_made_is_found_in_the_snapshot(lab: DeltaLab) -> None:
    """The engine that rewrites need not be the one that read the partition; what it cannot remember it asks Delta."""
    table = tables.table(lab.directory / "t")
    good, stale = lab.group(table.location), lab.group(table.location, first=4)
    table.remove(stale.files[0].path)
    stranger = lab.with_settings(EngineSettings())

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
