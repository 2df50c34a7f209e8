"""Timers of partitions that time lets into a filter: for each action that is on, and for no other filter."""

from dataclasses import replace

from decider.decide.action import TimerTarget
from decider.decide.compaction_timers import COMPACTION_TIMERS
from decider.decide.entry_timers import EntryTimers
from decider.decide.sorting import SORTING
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import EMPTY_STATS, stats_of_sizes
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import PartitionColumn, PartitionKey

COLUMNS = (PartitionColumn("dt", "dt", "string"),)
DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS + 1
TODAY, YESTERDAY = PartitionKey('{"dt":"2024-10-04"}'), PartitionKey('{"dt":"2024-10-03"}')
POLICY = Policy(filter="dt < current_date", full_rewrite_interval_s=3600)
STATE = stats_of_sizes(POLICY.size_levels, [1000] * 3)


def test_a_partition_that_enters_has_timers_at_that_moment_and_one_that_is_in_has_its_usual_ones() -> None:
    midnight_ms = 20_001 * DAY_MS
    late = list(COMPACTION_TIMERS.after_commit(TODAY, STATE, POLICY, NOW_MS, COLUMNS))
    assert {one.name.partition(" ")[0]: (one.fires_at_ms, one.change) for one in late} == {
        "compact": (midnight_ms, TimerChange.SET),
        "idle": (midnight_ms, TimerChange.SET),
        "full": (midnight_ms, TimerChange.EARLIER),
    }
    usual = list(COMPACTION_TIMERS.after_commit(YESTERDAY, STATE, POLICY, NOW_MS, COLUMNS))
    assert [(one.name.partition(" ")[0], one.change) for one in usual] == [
        ("compact", TimerChange.STOP),
        ("idle", TimerChange.SET),
        ("full", TimerChange.EARLIER),
    ]
    assert [one.fires_at_ms - NOW_MS for one in usual[1:]] == [6 * 3_600_000, 3_600_000]
    off = list(COMPACTION_TIMERS.after_commit(TODAY, STATE, replace(POLICY, enabled=False), NOW_MS, COLUMNS))
    assert {one.change for one in off} == {TimerChange.STOP}
    found = [COMPACTION_TIMERS.parse(one.name) for one in late]
    assert found[0] == TimerTarget(TODAY)
    assert COMPACTION_TIMERS.parse(f"sort {TODAY}") is None


def test_a_rebuild_sets_only_timers_that_fire() -> None:
    counts = {TODAY: PartitionCount(STATE, NOW_MS), YESTERDAY: PartitionCount(STATE, NOW_MS)}
    made = list(COMPACTION_TIMERS.after_rebuild(counts, POLICY, NOW_MS, COLUMNS))
    assert [(one.name.split(" ", 1)[0], one.name.endswith(TODAY)) for one in made] == [
        ("compact", True),
        ("idle", True),
        ("full", True),
        ("idle", False),
        ("full", False),
    ]
    never = replace(POLICY, filter="dt < current_date and dt < '2000-01-01'")
    assert list(COMPACTION_TIMERS.after_rebuild(counts, never, NOW_MS, COLUMNS)) == []


def test_full_files_are_sorted_when_their_partition_enters_if_the_table_has_an_order() -> None:
    timers = SORTING.timers
    assert isinstance(timers, EntryTimers)
    assert list(timers.after_commit(TODAY, STATE, POLICY, NOW_MS, COLUMNS)) == []
    for ordered in (replace(POLICY, sort_by="a"), replace(POLICY, zorder_by="a, b")):
        (timer,) = timers.after_commit(TODAY, STATE, ordered, NOW_MS, COLUMNS)
        assert timer == Timer(f"sort {TODAY}", 20_001 * DAY_MS, TimerChange.SET)
        assert timers.parse(timer.name) == TimerTarget(TODAY)
        assert list(timers.after_rewrite(TODAY, STATE, ordered)) == []
        (gone,) = timers.after_commit(TODAY, EMPTY_STATS, ordered, NOW_MS, COLUMNS)
        assert gone.change is TimerChange.STOP
        assert list(timers.after_rebuild({YESTERDAY: PartitionCount(STATE, 0)}, ordered, NOW_MS, COLUMNS)) == []
    assert list(timers.after_commit(TODAY, STATE, replace(ordered, filter="dt < 'x'"), NOW_MS, COLUMNS)) == []
