"""The summary of a table equals the sum over its partitions, moves with them, and survives being stored."""

from dataclasses import replace

import pytest

from decider.state.table_summary import TableSummary
from shared.layout.partition_stats import EMPTY_STATS, stats_of_sizes
from shared.policy import Policy

POLICY = Policy(target_bytes=1_000_000)
LEVELS = POLICY.size_levels


def test_a_summary_is_the_sum_of_all_partitions() -> None:
    total = stats_of_sizes(LEVELS, [10, 20]) + stats_of_sizes(LEVELS, [1_000_000])
    found = TableSummary.of(total, POLICY, 7)
    assert (found.files, found.bytes, found.small_files) == (3, 1_000_030, 2)
    assert (found.target_bytes, found.is_enabled, found.last_rewrite_ms) == (1_000_000, True, 7)
    assert not TableSummary.of(total, replace(POLICY, enabled=False)).is_enabled


def test_a_change_moves_it_to_the_summary_of_the_new_files() -> None:
    before, added, removed = (stats_of_sizes(LEVELS, sizes) for sizes in ([10] * 8, [80, 500_000], [10] * 8))
    moved = TableSummary.of(before, POLICY, 5).after(added - removed, 3)
    assert moved == TableSummary.of(before + added - removed, POLICY, 5)
    assert moved.after(EMPTY_STATS, 9).last_rewrite_ms == 9


@pytest.mark.parametrize(("sizes", "share"), [([], 0.0), ([1_000_000], 0.0), ([0], 1.0), ([0, 1_000_000], 0.5**0.5)])
def test_the_shortfall_is_a_share_of_the_target(sizes: list[int], share: float) -> None:
    assert TableSummary.of(stats_of_sizes(LEVELS, sizes), POLICY).rms_shortfall == pytest.approx(share)


def test_it_is_read_as_it_was_written_and_a_state_of_an_earlier_release_has_none() -> None:
    summary = TableSummary.of(stats_of_sizes(LEVELS, [3, 2**60]), replace(POLICY, enabled=False), 12)
    assert TableSummary.decode(summary.encode()) == summary
    assert TableSummary.decode("") is None
