"""The layout over time is computed backwards from the present sums, and ends where a commit does not say enough."""

from decider.state.layout_history import layout_history
from decider.state.table_summary import TableSummary
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import Policy
from shared.table import Commit, DataFile, PartitionKey, RemovedFile

POLICY = Policy(target_bytes=1_000_000)
LEVELS = POLICY.size_levels


def add(*sizes: int) -> tuple[DataFile, ...]:
    return tuple(DataFile(f"f{size}", size, PartitionKey("{}")) for size in sizes)


def remove(*sizes: int | None) -> tuple[RemovedFile, ...]:
    return tuple(RemovedFile(f"f{size}", size_bytes=size) for size in sizes)


def summary(*sizes: int) -> TableSummary:
    return TableSummary.of([stats_of_sizes(LEVELS, sizes)], POLICY)


def sums(one: TableSummary) -> tuple[int, int, int, int]:
    return one.files, one.bytes, one.small_files, one.shortfall


APPEND = Commit(1, 1_000, "WRITE", add(10, 20))
REWRITE = Commit(2, 2_000, "OPTIMIZE", add(30), remove(10, 20), data_change=False)
LATER = Commit(3, 3_000, "WRITE", add(40))


def test_each_point_is_the_layout_after_its_commit() -> None:
    points = layout_history(summary(5, 30, 40), [LATER, REWRITE, APPEND], LEVELS)
    assert [(one.version, sums(one.summary)) for one in points] == [
        (3, sums(summary(5, 30, 40))),
        (2, sums(summary(5, 30))),
        (1, sums(summary(5, 10, 20))),
    ]
    assert [(one.at_ms, one.is_rewrite, one.files_added, one.files_removed) for one in points] == [
        (3_000, False, 1, 0),
        (2_000, True, 1, 2),
        (1_000, False, 2, 0),
    ]


def test_nothing_is_said_of_the_time_before_a_removal_without_a_size() -> None:
    vague = Commit(2, 2_000, "DELETE", (), remove(None))
    assert [one.version for one in layout_history(summary(30, 40), [LATER, vague, APPEND], LEVELS)] == [3, 2]


def test_a_log_that_contradicts_the_state_ends_the_history() -> None:
    assert [one.version for one in layout_history(summary(40), [LATER, APPEND, APPEND], LEVELS)] == [3, 1]
