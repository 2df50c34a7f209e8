"""Runs of a job on a table in cells: how many, what their commits tell, and what others do meanwhile."""

import random
from collections.abc import Iterator

import pytest

from actor.cells.job import CONFLICTS, NOTHING_DUE, CellJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import Conflict, RefusedFiles
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.cells.tags import CELL_TAG
from shared.policy.policy import KIB, MIB, ClusterMode, Policy
from shared.refusals import RefusalReason
from shared.table import CommitOrigin
from tests.support.local_vacuum import Control
from tests.support.memory_cells import ROW_BYTES, MemoryCells

TARGET_ROWS = 64
POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=TARGET_ROWS * KIB)
ORIGIN = CommitOrigin("job", 7)


def table_of(files: int, rows: int = TARGET_ROWS) -> MemoryCells:
    table, dice = MemoryCells(), random.Random(7)
    for _ in range(files):
        table.add((dice.randrange(10**6), dice.randrange(10**6)) for _ in range(rows))
    return table


def run(
    table: MemoryCells, *, force: bool = False, control: Control | None = None, policy: Policy = POLICY
) -> TableJobOutcome:
    job = TableJob(CLUSTER, "file:///t", policy, ORIGIN, options=ClusterOptions(force=force).encode())
    return CellJob(table, job, control or Control(), clock_ms=lambda: 1_700).run()


def test_a_run_is_one_commit_of_so_many_bytes_that_tells_what_is_left() -> None:
    table = table_of(10)
    rows = table.rows
    done = run(table)
    assert (done.commits, done.reason, table.rows) == ((1,), "", rows)
    assert done.figures["bytes_replaced"] <= 2 * POLICY.target_bytes
    assert done.figures["operations"] == 1
    (mark,) = table.marks
    new = [one.file for one in table.files.values() if CELL_TAG not in one.file.tags]
    assert (mark.origin, mark.round, mark.mode, mark.started_ms) == (ORIGIN, 1, "cluster", 1_700)
    assert (mark.settled_files, mark.settled_bytes) == (len(new), len(new) * TARGET_ROWS * ROW_BYTES)
    assert mark.left_bytes


def test_a_request_goes_on_until_nothing_is_due_and_then_nothing_is_done() -> None:
    table = table_of(10)
    rows = table.rows
    done = run(table, force=True)
    assert len(done.commits) > 1
    assert [mark.round for mark in table.marks] == list(range(1, len(done.commits) + 1))
    assert (table.marks[-1].left_bytes, table.marks[-1].settled_files, table.rows) == (0, 0, rows)
    assert run(table).reason == NOTHING_DUE
    assert run(table).commits == ()


def test_a_request_ends_with_the_bytes_of_a_job() -> None:
    policy = Policy(cluster=ClusterMode.CELLS, target_bytes=TARGET_ROWS * KIB, max_bytes_per_job=MIB)
    done = run(table_of(40), force=True, policy=policy)
    assert MIB - 2 * POLICY.target_bytes < done.figures["bytes_replaced"] <= MIB
    assert done.is_complete


def test_a_run_that_is_to_stop_ends_after_its_commit() -> None:
    control = Control()
    control.stop_after = 1
    done = run(table_of(10), force=True, control=control)
    assert (len(done.commits), done.is_complete) == (1, False)


def test_a_table_that_wants_no_run_is_left_as_it_is() -> None:
    table = table_of(10)
    table.reason = "switched off"
    files = dict(table.files)
    assert (run(table).reason, table.files) == ("switched off", files)


def conflicts(times: int) -> Iterator[bool]:
    yield from [True] * times
    while True:
        yield False


@pytest.mark.parametrize("times", [CONFLICTS - 1, CONFLICTS])
def test_what_others_take_has_the_run_planned_again_so_many_times(times: int) -> None:
    table, failing = table_of(10), conflicts(times)
    rows = table.rows

    def others() -> None:
        if next(failing):
            raise Conflict("taken", kind="Stale")

    table.before = others
    if times < CONFLICTS:
        assert len(run(table).commits) == 1
    else:
        with pytest.raises(Conflict):
            run(table)
        assert table.marks == []
    assert table.rows == rows


def test_what_is_refused_is_left_out_and_named_only_where_nothing_else_is_due() -> None:
    table = table_of(10)
    rows, first = table.rows, next(iter(table.files))
    table.refused = (first,)
    done = run(table, force=True)
    assert len(done.commits) > 1
    assert (first in table.files, table.marks[-1].left_bytes, table.rows) == (True, 0, rows)
    alone = table_of(10)
    alone.refused = tuple(alone.files)
    with pytest.raises(RefusedFiles, match="damaged"):
        run(alone, force=True)
    assert alone.marks == []


def test_a_refusal_that_names_no_file_of_a_run_ends_the_job() -> None:
    table = table_of(10)

    def refuse() -> None:
        raise RefusedFiles("no bounds", reason=RefusalReason.BOUNDS)

    table.before = refuse
    with pytest.raises(RefusedFiles, match="no bounds"):
        run(table)
