"""The summary of a table equals the sum over its partitions, moves with them, and survives being stored."""

from dataclasses import replace

import pytest

from decider.state.table_summary import SummaryChange, TableSummary
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, stats_of_sizes
from shared.policy.policy import Policy
from shared.table import PartitionKey

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
