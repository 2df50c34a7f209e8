"""The timer that no commit puts off: small files of a partition that is never idle are merged at each interval."""

from dataclasses import replace

import pytest

from decider.decide.action import TimerTarget
from decider.decide.compaction_timers import COMPACTION_TIMERS
from shared.jobs.payload import RewriteKind
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange

HOUR_MS, NOW_MS = 3_600_000, 1_000_000_000_000
NAME = f"interval {WHOLE_TABLE}"
POLICY = Policy(compact_interval_s=3600)
SMALL = stats_of_sizes(POLICY.size_levels, [1000] * 3)


def interval_timers(state: PartitionStats, policy: Policy) -> list[Timer]:
    made = COMPACTION_TIMERS.after_commit(WHOLE_TABLE, state, policy, NOW_MS, ())
    return [one for one in made if one.name == NAME]


@pytest.mark.parametrize("idle_after_s", [None, 6 * 3600])
def test_the_first_commit_after_a_merge_sets_it(idle_after_s: int | None) -> None:
    policy = replace(POLICY, idle_compaction_after_s=idle_after_s)
    assert interval_timers(SMALL, policy) == [Timer(NAME, NOW_MS + HOUR_MS, TimerChange.EARLIER)]
    assert COMPACTION_TIMERS.parse(NAME) == TimerTarget(WHOLE_TABLE, RewriteKind.IDLE)


@pytest.mark.parametrize(
    ("state", "policy"),
    [
        pytest.param(SMALL, Policy(), id="off"),
        pytest.param(SMALL, replace(POLICY, time_window_s=3600), id="time windows"),
        pytest.param(stats_of_sizes(POLICY.size_levels, [1000]), POLICY, id="nothing to merge"),
    ],
)
def test_there_is_none_without_work(state: PartitionStats, policy: Policy) -> None:
    assert interval_timers(state, policy) == []


def test_a_rewrite_that_leaves_nothing_stops_it() -> None:
    stop = Timer(NAME, 0, TimerChange.STOP)
    assert stop in COMPACTION_TIMERS.after_rewrite(WHOLE_TABLE, EMPTY_STATS, POLICY)
    assert stop not in COMPACTION_TIMERS.after_rewrite(WHOLE_TABLE, SMALL, POLICY)


def test_a_rebuild_counts_from_now() -> None:
    counts = {WHOLE_TABLE: PartitionCount(SMALL, NOW_MS - 10 * HOUR_MS)}
    made = COMPACTION_TIMERS.after_rebuild(counts, POLICY, NOW_MS, ())
    assert [one for one in made if one.name == NAME] == [Timer(NAME, NOW_MS + HOUR_MS, TimerChange.EARLIER)]
