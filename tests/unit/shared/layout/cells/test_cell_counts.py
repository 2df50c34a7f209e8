"""What a table in cells has to do follows from commits alone: what is new, and what the newest run told."""

from dataclasses import replace

import pytest

from shared.layout.cells.counts import CellFiles
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.policy.policy import MIB, ClusterMode, Policy
from shared.table import CellReport, CommitOrigin
from tests.support.memory_log import commit, file, removed

POLICY = Policy(cluster=ClusterMode.CELLS, target_bytes=16 * MIB).with_traits(is_clustered=True)
OURS = {CELL_TAG: "[]"}


def test_what_a_run_tells_is_known_until_the_next_and_what_came_meanwhile_is_new() -> None:
    old, late = file("old"), file("late")
    cells = CellFiles().after(commit(added=(old, file("kept"))))
    assert (cells.new_files, cells.new_bytes) == (2, 2 * MIB)
    cells = cells.after(commit(added=(late,)))
    run = commit(added=(file("ours", tags=OURS),), removed=(removed(old),), cells=CellReport(5, 1, MIB))
    told = cells.after(run)
    assert (told.new_files, told.new_bytes, told.left_bytes) == (1, MIB, 5), "the one that came late"
    assert told.files == ClusteredFiles(2, 2 * MIB, MIB)


def test_a_settled_file_that_others_remove_settles_no_new_one() -> None:
    cells = CellFiles(ClusteredFiles(2, 2 * MIB, 0), 0, 2, 2 * MIB)
    assert cells.new_files == 0
    one = file("one")
    cells = cells.after(commit(removed=(removed(one),))).after(commit(added=(file("new"),)))
    assert (cells.new_files, cells.new_bytes) == (1, MIB)
    again = cells.after(commit(removed=(removed(one),), added=(replace(one, dv_id="v"),)))
    assert again.settled_files == cells.settled_files, "deleted rows make no file new"


def test_the_mean_of_what_commits_bring_follows_them_and_rewrites_bring_nothing() -> None:
    cells = CellFiles().after(commit(added=(file("a", 8 * MIB),)))
    assert cells.commit_bytes == 8 * MIB
    assert cells.after(commit(added=(file("b", 16 * MIB),))).commit_bytes == 9 * MIB
    assert cells.after(commit(added=(file("b", MIB),), data_change=False)).commit_bytes == 8 * MIB
    ours = replace(commit(added=(file("b", MIB),)), origin=CommitOrigin("j", 1))
    assert cells.after(ours).commit_bytes == 8 * MIB, "a removal of rows by us"
    assert cells.after(commit()).commit_bytes == 8 * MIB


def test_no_more_is_left_than_there_is() -> None:
    one = file("one", tags=OURS)
    cells = CellFiles(ClusteredFiles(0, 0, MIB), left_bytes=MIB).after(commit(removed=(removed(one),)))
    assert cells.left_bytes == 0


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (CellFiles(), ClusterReason.NOTHING),
        (CellFiles(ClusteredFiles(1, 16 * MIB, 0)), ClusterReason.HALF_A_RUN),
        (CellFiles(ClusteredFiles(1, 16 * MIB - 1, 0)), ClusterReason.BELOW_RUN),
        (CellFiles(ClusteredFiles(0, 0, MIB), left_bytes=16 * MIB), ClusterReason.HALF_A_RUN),
        (CellFiles(ClusteredFiles(64, 64, 0)), ClusterReason.MANY_NEW),
        (CellFiles(ClusteredFiles(64, 64, 0), settled_files=1), ClusterReason.BELOW_RUN),
        # Commits of 8 MiB have runs of 64.
        (CellFiles(ClusteredFiles(4, 32 * MIB - 1, 0), commit_bytes=8 * MIB), ClusterReason.BELOW_RUN),
        (CellFiles(ClusteredFiles(4, 32 * MIB, 0), commit_bytes=8 * MIB), ClusterReason.HALF_A_RUN),
    ],
)
def test_a_run_is_due_once_half_of_it_is_due_or_many_files_are_new(cells: CellFiles, reason: ClusterReason) -> None:
    assert cells.need(POLICY) is reason
    assert reason.is_due == (reason in (ClusterReason.HALF_A_RUN, ClusterReason.MANY_NEW))


def test_a_run_rewrites_what_is_due_and_no_more_than_a_run() -> None:
    assert CellFiles(ClusteredFiles(1, MIB, 0), left_bytes=MIB).rewritten_bytes(POLICY) == 2 * MIB
    assert CellFiles(ClusteredFiles(1, 900 * MIB, 0)).rewritten_bytes(POLICY) == 32 * MIB


def test_after_a_count_of_all_files_each_without_a_tag_is_new() -> None:
    cells = CellFiles(ClusteredFiles(1, MIB, 0), 7, 1, MIB, 9).counted_again(ClusteredFiles(1, MIB, 0))
    assert cells == CellFiles(ClusteredFiles(1, MIB, 0), 7, 0, 0, 9)
