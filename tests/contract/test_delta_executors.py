"""One suite for both executors where they mean the same; and the verdict that chooses between them."""

import json
from collections.abc import Iterator

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from actor.formats.delta.engine import DeltaEngine, EngineSettings, start_engine
from actor.formats.delta.log import TableLog
from actor.formats.delta.self_test import self_test
from actor.ports import GroupStatus
from shared.errors import Corrupt, LeaseLost, Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab, mark
from tests.support.long_suites import beyond
from tests.support.steering import Steering

pytestmark = pytest.mark.spark


@pytest.fixture(params=["transaction", "optimize"])
def either(request: pytest.FixtureRequest, lab: DeltaLab) -> Iterator[DeltaLab]:
    """The lab with each executor in turn."""
    exact = lab.engine.executor
    if request.param == "optimize":
        lab.engine.use_optimize()
    yield lab
    lab.engine.executor = exact


def test_the_planned_files_become_fewer_and_no_row_changes(either: DeltaLab) -> None:
    table = tables.table(either.directory / "t", days=True)
    before = tables.rows(table.path)
    group = either.group(table.location, PARTITION_1, count=6)
    control = Steering()

    outcome = either.rewrite(table.location, [group], control, job="j", token=4)

    assert outcome.version == table.version + 1
    assert [(end.status, end.rows, len(end.outputs)) for end in outcome.groups] == [(GroupStatus.COMMITTED, 120, 1)]
    assert tables.removed(table.path, outcome.version) == {file.path for file in group.files}
    assert either.files(table.location, PARTITION_1) == outcome.groups[0].outputs
    assert len(either.files(table.location, PARTITION_2)) == 6
    assert tables.rows(table.path) == before
    assert tables.commit_info(table.path, outcome.version)["userMetadata"] == mark("j", 4)
    assert either.engine.find_commit(table.location, job="j", token=4, since_version=0) == outcome.version
    assert "may_commit" in control.calls
    assert control.calls[-1] == "committed"


def test_partitions_of_null_and_several_partitions_are_rewritten(either: DeltaLab) -> None:
    table = tables.HandTable(either.directory / "t", partitions={"dt": "date"})
    table.commit([{"add": table.new_file(10, {"dt": value})} for value in (None, None, tables.DAY_1, tables.DAY_1)])
    before = tables.rows(table.path)
    groups = [either.group(table.location, either.partition(dt=value), count=2) for value in (None, tables.DAY_1)]

    outcome = either.rewrite(table.location, groups)

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * 2
    assert [end.group for end in outcome.groups] == groups
    assert len(tables.live(table.path)) == 2
    assert tables.rows(table.path) == before


def test_a_stale_group_is_reported_to_be_stale(either: DeltaLab) -> None:
    table = tables.table(either.directory / "t", files=4)
    group = either.group(table.location)
    for file in group.files:
        table.remove(file.path)

    outcome = either.rewrite(table.location, [group])

    assert (outcome.version, outcome.groups[0].status) == (None, GroupStatus.CONFLICTED)


def test_a_lost_lease_forbids_everything(either: DeltaLab) -> None:
    table = tables.table(either.directory / "t", files=4)

    def lost() -> None:
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        either.rewrite(table.location, [either.group(table.location)], Steering(before_commit=[lost]))

    assert tables.newest(table.path) == table.version


def test_refused_tables_are_refused(either: DeltaLab) -> None:
    table = tables.HandTable(either.directory / "t", configuration={"qbeast.lastRevisionID": "1"})
    table.append(2)

    with pytest.raises(Unsupported, match="Qbeast"):
        either.rewrite(table.location, [FileGroup(WHOLE_TABLE, (DataFile("a", 1, WHOLE_TABLE),), RewriteMode.MINOR)])


def test_only_the_transaction_is_exact_and_the_fallback_says_so(lab: DeltaLab) -> None:
    """OPTIMIZE begins with the smallest file, planned or not; what it left of the plan has to be planned again."""
    table = tables.HandTable(lab.directory / "t")
    table.append(1, rows=2)
    table.append(4, rows=100)
    before = tables.rows(table.path)
    group = FileGroup(
        WHOLE_TABLE, tuple(file for file in lab.files(table.location) if file.rows == 100), RewriteMode.MINOR
    )
    engine = DeltaEngine(lab.spark)
    assert engine.executor.is_exact
    engine.use_optimize()
    assert not engine.executor.is_exact

    outcome = DeltaLab(lab.spark, engine, lab.directory).rewrite(table.location, [group])

    assert outcome.groups[0].status is GroupStatus.CONFLICTED
    assert tables.removed(table.path, outcome.version or 0) != {file.path for file in group.files}
    assert tables.rows(table.path) == before


def test_the_fallback_compares_rows_after_its_commit_and_says_what_to_restore(lab: DeltaLab) -> None:
    """OPTIMIZE commits by itself, so that nothing can stop it before: a difference must at least never stay silent."""
    table = tables.table(lab.directory / "t", files=3)
    table.append(1, stats=json.dumps({"numRecords": 21}))
    engine = DeltaEngine(lab.spark)
    engine.use_optimize()

    with pytest.raises(Corrupt, match=r"4 files of 81 rows and wrote 80 rows.*TO VERSION AS OF 2"):
        DeltaLab(lab.spark, engine, lab.directory).rewrite(table.location, [lab.group(table.location)])

    assert tables.newest(table.path) == 3


def test_the_fallback_counts_rows_where_the_log_has_no_statistics(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=3)
    table.append(1, stats=None)
    before = tables.rows(table.path)
    engine = DeltaEngine(lab.spark)
    engine.use_optimize()

    outcome = DeltaLab(lab.spark, engine, lab.directory).rewrite(table.location, [lab.group(table.location)])

    assert outcome.groups[0].status is GroupStatus.COMMITTED
    assert tables.rows(table.path) == before


def test_a_single_file_is_left_alone_by_the_fallback_which_says_so(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=1)
    engine = DeltaEngine(lab.spark)
    engine.use_optimize()

    outcome = DeltaLab(lab.spark, engine, lab.directory).rewrite(table.location, [lab.group(table.location, count=1)])

    assert (outcome.version, outcome.groups[0].status) == (None, GroupStatus.SKIPPED)


def test_the_self_test_passes_here_and_leaves_no_table(lab: DeltaLab) -> None:
    with capture_logs(processors=[merge_contextvars]) as logs:
        engine, verdict = start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")

    assert (verdict.passed, verdict.reason) == (True, "")
    conflict = next(one for one in logs if one["event"] == "commit_failed")
    assert conflict["self_test"], "a conflict that is provoked is marked, so that the actor's log leaves it out"
    assert "self_test" not in logs[-1]
    assert engine.executor.is_exact
    assert not list(lab.directory.iterdir())


@pytest.mark.parametrize("broken", beyond(1, ["commit", "rows"]))
def test_a_delta_that_behaves_otherwise_is_noticed_and_replaced_by_the_fallback(
    lab: DeltaLab, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "commit":
        monkeypatch.setattr(TableLog, "commit", lambda *_: 99)
    else:
        frame = TableLog.frame
        monkeypatch.setattr(TableLog, "frame", lambda *arguments: frame(*arguments).filter("id <> 7"))

    engine, verdict = start_engine(lab.spark, EngineSettings(), scratch=f"file://{lab.directory}")

    assert verdict.reason
    assert not engine.executor.is_exact


@pytest.mark.long("contracts")
def test_the_self_test_is_not_fooled_by_the_fallback(lab: DeltaLab) -> None:
    """It demands that a late rewrite notices its conflict, which OPTIMIZE by its nature cannot promise."""
    engine = DeltaEngine(lab.spark)
    engine.use_optimize()

    assert not self_test(lab.spark, engine, f"file://{lab.directory}").passed
