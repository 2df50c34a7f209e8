"""Sums over partitions move with them and survive being stored: summary, layout over time, write contention."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.state.contention import MAX_PARTITIONS, NO_CONTENTION, WINDOW_MS, ActivityWindow, WriteContention
from decider.state.table_summary import SummaryChange, TableSummary, layout_history
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, stats_of_sizes
from shared.policy.policy import Policy
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey, RemovedFile

POLICY = Policy(target_bytes=1_000_000)
LEVELS = POLICY.size_levels
DAY_1, DAY_2 = PartitionKey("1"), PartitionKey("2")


def table(**days: list[int]) -> dict[PartitionKey, PartitionStats]:
    return {PartitionKey(day): stats_of_sizes(LEVELS, sizes) for day, sizes in days.items()}


def changed(before: dict[PartitionKey, PartitionStats], after: dict[PartitionKey, PartitionStats]) -> SummaryChange:
    return SummaryChange.of(before, after, LEVELS.target_bytes)


def test_a_summary_is_the_sum_of_all_partitions() -> None:
    partitions = table(a=[10, 20], b=[1_000_000]).values()
    found = TableSummary.of(list(partitions), POLICY, 7)
    assert (found.files, found.bytes, found.small_files, found.files_needed) == (3, 1_000_030, 2, 2)
    assert 0 < found.excess_ratio < 1
    assert (found.target_bytes, found.is_enabled, found.last_rewrite_ms) == (1_000_000, True, 7)
    assert not TableSummary.of(list(partitions), replace(POLICY, enabled=False)).is_enabled


def test_a_change_moves_it_to_the_summary_of_the_new_files() -> None:
    before, after = table(a=[10] * 8, b=[5, 5]), table(a=[80, 500_000], c=[7])
    moved = TableSummary.of(list(before.values()), POLICY, 5).after(changed(before, after), 3)
    assert moved == TableSummary.of(list((before | after).values()), POLICY, 5)
    assert moved.after(SummaryChange(), 9).last_rewrite_ms == 9


@pytest.mark.parametrize(("sizes", "share"), [([], 0.0), ([1_000_000], 0.0), ([0], 1.0), ([0, 1_000_000], 0.5**0.5)])
def test_the_shortfall_is_a_share_of_the_target(sizes: list[int], share: float) -> None:
    assert TableSummary.of([stats_of_sizes(LEVELS, sizes)], POLICY).rms_shortfall == pytest.approx(share)


def test_rewrites_take_from_the_backlog_until_nothing_can_be_gained() -> None:
    before, after = table(a=[10] * 8), table(a=[40] * 2)
    known = replace(TableSummary.of(list(before.values()), POLICY), backlog_bytes=60)
    moved = known.after(replace(changed(before, after), bytes_rewritten=50))
    assert moved.backlog_bytes == 10
    assert moved.after(replace(changed(after, table(a=[80])), bytes_rewritten=1)).backlog_bytes == 0
    assert known.after(SummaryChange(EMPTY_STATS)).backlog_bytes == 60, "commits of writers leave it"


def test_the_first_rewrite_of_a_file_that_was_there_before_is_not_steady() -> None:
    before, after = table(a=[10] * 8), table(a=[40] * 2)
    known = replace(TableSummary.of(list(before.values()), POLICY), undue_bytes=60)
    moved = known.after(replace(changed(before, after), bytes_rewritten=50))
    assert (known.steady_bytes(50), moved.undue_bytes) == (0, 10)
    assert moved.steady_bytes(50) == 40
    beyond = replace(known, backlog_bytes=30).after(replace(changed(before, after), bytes_rewritten=50))
    assert (beyond.backlog_bytes, beyond.undue_bytes) == (0, 40)
    assert moved.after(replace(changed(after, table(a=[80])), bytes_rewritten=1)).undue_bytes == 0


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


A, B = PartitionKey("a"), PartitionKey("b")
NOON = 1000 * WINDOW_MS
MINUTE = 60_000


def dml(at_ms: int, ran_ms: int, operation: str = "MERGE") -> Commit:
    return Commit(1, at_ms, operation, execution_ms=ran_ms)


def ours(at_ms: int) -> Commit:
    return Commit(1, at_ms, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))


def after(*commits: tuple[Commit, tuple[PartitionKey, ...]]) -> tuple[WriteContention, int]:
    heat, hints = NO_CONTENTION, 0
    for commit, partitions in commits:
        heat, more = heat.after_commit(commit, partitions, commit.timestamp_ms)
        hints += more
    return heat, hints


def test_a_partition_is_as_hot_as_the_share_of_the_hour_that_commands_ran() -> None:
    heat, _ = after(*((dml(NOON + n * 10 * MINUTE, 3 * MINUTE), (A,)) for n in range(6)))
    assert heat.busy_ratio(A, NOON + 50 * MINUTE) == Fraction(18, 60)
    assert heat.busy_ratio(B, NOON + 50 * MINUTE) == 0
    # Half of the hour before has faded by half past.
    assert heat.busy_ratio(A, NOON + 90 * MINUTE) == Fraction(9, 60)
    assert heat.busy_ratio(A, NOON + 3 * WINDOW_MS) == 0


def test_of_commands_that_began_to_run_the_share_since_the_first_counts() -> None:
    """One after the other, half of the time: this is a habit after five minutes, and not only after an hour."""
    ten = [(dml(NOON + n * MINUTE, MINUTE // 2), (A,)) for n in range(11)]
    for count, at, ratio in ((1, 0, Fraction(1, 120)), (3, 2, Fraction(1, 5)), (6, 5, Fraction(1, 2))):
        assert after(*ten[:count])[0].busy_ratio(A, NOON + at * MINUTE) == ratio
    heat, _ = after(*ten)
    assert heat.busy_ratio(A, NOON + 10 * MINUTE) == Fraction(1, 2)
    assert heat.busy_ratio(A, NOON + 20 * MINUTE) == Fraction(1, 4)
    assert heat.busy_ratio(A, NOON + 60 * MINUTE) == Fraction(11, 120)
    later, _ = heat.after_commit(dml(NOON + 300 * MINUTE, 10 * MINUTE), [A], NOON + 300 * MINUTE)
    assert later.busy_ratio(A, NOON + 301 * MINUTE) == Fraction(10, 60), "one command after hours without any"


def test_only_commands_that_read_what_they_change_count() -> None:
    for operation in ("WRITE", "STREAMING UPDATE", "OPTIMIZE", ""):
        assert after((dml(NOON, MINUTE, operation), (A,)))[0] is NO_CONTENTION
    for operation in ("MERGE", "UPDATE", "DELETE"):
        assert after((dml(NOON, MINUTE, operation), (A,)))[0].busy_ratio(A, NOON) > 0


def test_a_command_that_touches_very_many_partitions_makes_all_of_them_hot() -> None:
    many = tuple(PartitionKey(str(number)) for number in range(MAX_PARTITIONS + 1))
    heat, _ = after((dml(NOON, 30 * MINUTE), many))
    assert len(heat.windows) == 1
    assert heat.busy_ratio(PartitionKey("any"), NOON) == Fraction(1, 2)


@pytest.mark.parametrize("ahead", [2, 1000])
def test_what_lies_ahead_of_the_clock_is_cold_and_starts_again(ahead: int) -> None:
    heat = WriteContention({A: ActivityWindow(NOON // WINDOW_MS + ahead, WINDOW_MS // 2)})
    assert heat.busy_ratio(A, NOON) == 0
    again, _ = heat.after_commit(dml(NOON, 6 * MINUTE), [A], NOON)
    assert again.busy_ratio(A, NOON) == Fraction(6, 60)
    assert again.busy_ratio(A, NOON + 2 * WINDOW_MS) == 0


def test_a_command_whose_clock_runs_ahead_counts_from_when_it_is_seen() -> None:
    """The heat of other partitions is not forgotten for it, and its own fades."""
    month = 720 * WINDOW_MS
    heat, _ = after((dml(NOON, 6 * MINUTE), (A,)))
    heat, _ = heat.after_commit(dml(NOON + month, 30 * MINUTE), [B], NOON)
    assert (heat.busy_ratio(A, NOON), heat.busy_ratio(B, NOON)) == (Fraction(6, 60), Fraction(1, 2))
    for later in (2 * WINDOW_MS, month, 2 * month):
        assert (heat.busy_ratio(A, NOON + later), heat.busy_ratio(B, NOON + later)) == (0, 0)


def test_a_late_command_after_a_commit_of_ours_hints_at_an_abort() -> None:
    """It ran for five minutes and began three after our commit: an attempt right before it would have met that."""
    first = (dml(NOON, 5 * MINUTE), (A,))
    late = (dml(NOON + 28 * MINUTE, 5 * MINUTE), (A,))
    assert after(first, (ours(NOON + 20 * MINUTE), (A,)), late)[1] == 1
    assert after(first, (ours(NOON + 20 * MINUTE), (A,)), late, late)[1] == 1, "counted once"


def test_what_cannot_have_been_our_doing_is_not_counted() -> None:
    first = (dml(NOON, 5 * MINUTE), (A,))
    late = dml(NOON + 28 * MINUTE, 5 * MINUTE)
    assert after(first, (ours(NOON + 20 * MINUTE), (B,)), (late, (A,)))[1] == 0, "another partition"
    assert after(first, (ours(NOON + 17 * MINUTE), (A,)), (late, (A,)))[1] == 0, "too long before it"
    assert after(first, (ours(NOON + 25 * MINUTE), (A,)), (late, (A,)))[1] == 0, "it was running and got through"
    between = (dml(NOON + 24 * MINUTE, MINUTE), (A,))
    assert after(first, (ours(NOON + 20 * MINUTE), (A,)), between, (late, (A,)))[1] == 0, "another one got through"
    assert after((ours(NOON + 20 * MINUTE), (A,)), (late, (A,)))[1] == 0, "no such command was ever met before"


def test_of_too_many_hot_partitions_the_hottest_are_kept() -> None:
    partitions = [PartitionKey(f"{number:03d}") for number in range(MAX_PARTITIONS + 6)]
    first, second = partitions[: MAX_PARTITIONS // 2], partitions[MAX_PARTITIONS // 2 :]
    heat, _ = after((dml(NOON, 1_000), tuple(first)), (dml(NOON + 1, 2_000), tuple(second)))
    assert set(heat.windows) == {*second, *first[-(MAX_PARTITIONS - len(second)) :]}


def test_a_writer_that_appends_changes_nothing_in_a_hot_partition() -> None:
    hot, _ = after((dml(NOON, 6 * MINUTE), (A,)))
    appended = Commit(2, NOON + MINUTE, "WRITE", execution_ms=MINUTE)
    assert hot.after_commit(appended, [A], NOON + MINUTE) == (hot, 0)
