"""Runs: what one may cost, when it starts, and what it takes."""

import pytest

from shared.layout.cells.boxes import EVERYTHING
from shared.layout.cells.operations import BoxedFile, CellSizes, CellWork
from shared.layout.cells.runs import MANY_FILES, is_run_due, plan_run, sizes_of_run
from shared.layout.cells.tree import Cut, Node
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB
from shared.table import DataFile

SIZES = CellSizes(target_bytes=160, run_bytes=320)


@pytest.mark.parametrize(
    ("commit_mib", "most_mib", "run_mib"), [(1, 1000, 256), (32, 1000, 256), (40, 1000, 320), (40, 300, 300)]
)
def test_a_run_may_rewrite_two_targets_or_eight_commits_within_the_bytes_of_a_job(
    commit_mib: int, most_mib: int, run_mib: int
) -> None:
    assert sizes_of_run(128 * MIB, commit_mib * MIB, most_mib * MIB) == CellSizes(128 * MIB, run_mib * MIB)


@pytest.mark.parametrize(
    ("new_files", "new_bytes", "left_bytes", "is_due"),
    [
        (1, 160, 0, True),
        (1, 159, 0, False),
        (0, 0, 160, True),
        (1, 19, 145, False),
        (1, 20, 140, True),
        (9, 19, 145, True),
        (MANY_FILES, 64, 0, True),
        (MANY_FILES - 1, 64, 0, False),
    ],
)
def test_a_run_starts_when_half_of_it_is_due_or_many_files_are_new(
    new_files: int, new_bytes: int, left_bytes: int, is_due: bool
) -> None:
    assert is_run_due(new_files, new_bytes, left_bytes, SIZES) == is_due


def test_a_run_takes_the_most_urgent_operations_that_fit_and_reports_all_that_is_due() -> None:
    root = Node((EVERYTHING,))
    root.divide(Cut(0, 100))

    def files(name: str, count: int, size: int, low: int, high: int) -> list[BoxedFile]:
        return [BoxedFile(DataFile(f"{name}{at}", size, WHOLE_TABLE), ((low, high),)) for at in range(count)]

    waiting, crowded = files("w", 3, 100, 90, 110), files("c", 4, 5, 0, 50)
    run = plan_run([(root, [*crowded, *waiting, *files("d", 4, 10, 200, 300)])], SIZES)
    assert [one.work for one in run.operations] == [CellWork.DOWN, CellWork.MERGE]
    assert sum(one.size_bytes for one in run.operations) == 320 == SIZES.run_bytes
    assert run.due_bytes == 360
