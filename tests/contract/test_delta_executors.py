"""One suite for both executors where they mean the same; and the verdict that chooses between them."""

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.log import TableLog
from actor.formats.delta.parquet_task import ParquetTasks
from actor.ports import GroupStatus
from shared.errors import LeaseLost, PermanentError, Unsupported
from shared.layout.commit_metadata import with_proofread
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.support import delta_tables as tables
from tests.support.delta_lab import PARTITION_1, PARTITION_2, DeltaLab, mark
from tests.support.long_suites import beyond
from tests.support.steering import Steering

pytestmark = pytest.mark.spark


def test_the_planned_files_become_fewer_and_no_row_changes(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", days=True)
    before = tables.rows(table.path)
    group = lab.group(table.location, PARTITION_1, count=6)
    control = Steering()

    outcome = lab.rewrite(table.location, [group], control, job="j", token=4)

    assert outcome.version == table.version + 1
    assert [(end.status, end.rows, len(end.outputs)) for end in outcome.groups] == [(GroupStatus.COMMITTED, 120, 1)]
    assert tables.removed(table.path, outcome.version) == {file.path for file in group.files}
    assert lab.files(table.location, PARTITION_1) == outcome.groups[0].outputs
    assert len(lab.files(table.location, PARTITION_2)) == 6
    assert tables.rows(table.path) == before
    assert tables.commit_info(table.path, outcome.version)["userMetadata"] == with_proofread(mark("j", 4), "rows")
    assert lab.engine.find_commit(table.location, job="j", token=4, since_version=0) == outcome.version
    assert "may_commit" in control.calls
    assert control.calls[-1] == "committed"


def test_partitions_of_null_and_several_partitions_are_rewritten(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", partitions={"dt": "date"})
    table.commit([{"add": table.new_file(10, {"dt": value})} for value in (None, None, tables.DAY_1, tables.DAY_1)])
    before = tables.rows(table.path)
    groups = [lab.group(table.location, lab.partition(dt=value), count=2) for value in (None, tables.DAY_1)]

    outcome = lab.rewrite(table.location, groups)

    assert [end.status for end in outcome.groups] == [GroupStatus.COMMITTED] * 2
    assert [end.group for end in outcome.groups] == groups
    assert len(tables.live(table.path)) == 2
    assert tables.rows(table.path) == before


def test_a_stale_group_is_reported_to_be_stale(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)
    group = lab.group(table.location)
    for file in group.files:
        table.remove(file.path)

    outcome = lab.rewrite(table.location, [group])

    assert (outcome.version, outcome.groups[0].status) == (None, GroupStatus.CONFLICTED)


def test_a_lost_lease_forbids_everything(lab: DeltaLab) -> None:
    table = tables.table(lab.directory / "t", files=4)

    def lost() -> None:
        raise LeaseLost("gone")

    with pytest.raises(LeaseLost):
        lab.rewrite(table.location, [lab.group(table.location)], Steering(before_commit=[lost]))

    assert tables.newest(table.path) == table.version


def test_refused_tables_are_refused(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", configuration={"qbeast.lastRevisionID": "1"})
    table.append(2)

    with pytest.raises(Unsupported, match="Qbeast"):
        lab.rewrite(table.location, [FileGroup(WHOLE_TABLE, (DataFile("a", 1, WHOLE_TABLE),), RewriteMode.MINOR)])


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
