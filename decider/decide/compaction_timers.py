"""Timers of compaction: when a partition is evaluated again although no commit touched it.

A timer is set only where it would find work, so that an idle table has none. A commit that changes data sets the time
of the idle compaction again: a partition is compacted once it has been idle for so long, once in each idle period. If
the table's filter excludes it then, and lets it in later, it is compacted when it enters. No commit puts off the timer
of `compact-interval`, which counts from the first one after a merge.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from decider.decide.action import TimerTarget
from decider.decide.entry_timers import EntryTimers
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.eligibility import evaluate_full, evaluate_idle, has_idle_compaction_inputs
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import PartitionStats
from shared.policy.partition_filter import permitted_from_ms
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import PartitionColumn, PartitionKey


def timer_name(kind: RewriteKind, partition: PartitionKey, start_ms: int | None = None) -> str:
    """Return the queue's name of the timer of a partition or of one of its time windows, by the window's start."""
    return f"{kind} {partition}" if start_ms is None else f"{kind}@{start_ms} {partition}"


INTERVAL = "interval"
"""Name of the timer of idle compaction that no commit puts off, in the place of the extent."""


def _interval_timer(partition: PartitionKey) -> str:
    return f"{INTERVAL} {partition}"


@dataclass(frozen=True, slots=True)
class CompactionTimers:
    """Timers of idle compaction, of full rewrites and of entry into the filter; see `ActionTimers`."""

    def parse(self, name: str) -> TimerTarget | None:
        """Read the name of one of these timers; None for what another action or another release wrote."""
        head, _, partition = name.partition(" ")
        kind = RewriteKind.IDLE if head == INTERVAL else head.partition("@")[0]
        if kind in set(RewriteKind):
            return TimerTarget(PartitionKey(partition), RewriteKind(kind))
        return _ENTRY.parse(name)

    def after_commit(
        self,
        partition: PartitionKey,
        state: PartitionStats,
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield the changes of a partition's timers after a commit that changed data brought it into this state."""
        yield from _ENTRY.after_commit(partition, state, policy, at_ms, columns)
        for timer in _timers(partition, state, policy, at_ms):
            yield from _let_in(timer, partition, policy, at_ms, columns)

    def after_rewrite(
        self, partition: PartitionKey, state: PartitionStats, policy: Policy, rewritten: Iterable[int] = ()
    ) -> Iterator[Timer]:
        """Stop the timers that would find nothing after a rewrite left the partition in this state.

        rewritten: starts of the time windows that the rewrite made files of.
        """
        known = dict(state.windows)
        for start_ms in rewritten:
            if start_ms not in known or not has_idle_compaction_inputs(known[start_ms], policy.automatic_levels):
                yield Timer(timer_name(RewriteKind.IDLE, partition, start_ms), 0, TimerChange.STOP)
        if policy.time_window_s is None and not evaluate_idle(state, policy).needs_rewrite:
            yield Timer(timer_name(RewriteKind.IDLE, partition), 0, TimerChange.STOP)
            yield Timer(_interval_timer(partition), 0, TimerChange.STOP)
        if not evaluate_full(state).needs_rewrite:
            yield Timer(timer_name(RewriteKind.FULL, partition), 0, TimerChange.STOP)

    def after_rebuild(
        self,
        partitions: Mapping[PartitionKey, PartitionCount],
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield the timers of a rebuilt table; a partition is idle since its newest file, or since a window's end."""
        for partition, count in partitions.items():
            yield from _ENTRY.after_rebuild({partition: count}, policy, at_ms, columns)
            for timer in _timers_of_rebuild(partition, count, policy, at_ms):
                made = _let_in(timer, partition, policy, at_ms, columns)
                yield from (one for one in made if one.change is not TimerChange.STOP)


_ENTRY = EntryTimers(COMPACT, lambda _: True)


def _timers(partition: PartitionKey, state: PartitionStats, policy: Policy, at_ms: int) -> Iterator[Timer]:
    """Yield the changes after a commit, whatever the filter lets in."""
    has_work = evaluate_idle(state, policy).needs_rewrite
    is_due = policy.idle_compaction_after_s is not None and has_work
    if policy.time_window_s is None:
        if policy.compact_interval_s is not None and has_work:
            due_ms = at_ms + policy.compact_interval_s * 1000
            yield Timer(_interval_timer(partition), due_ms, TimerChange.EARLIER)
        due_ms = at_ms + (policy.idle_compaction_after_s or 0) * 1000
        yield Timer(timer_name(RewriteKind.IDLE, partition), due_ms, TimerChange.SET if is_due else TimerChange.STOP)
    elif is_due:
        yield from _window_timers(partition, state.windows, policy, at_ms)
    if policy.full_rewrite_interval_s is not None and evaluate_full(state).needs_rewrite:
        due_ms = at_ms + policy.full_rewrite_interval_s * 1000
        yield Timer(timer_name(RewriteKind.FULL, partition), due_ms, TimerChange.EARLIER)


def _timers_of_rebuild(partition: PartitionKey, count: PartitionCount, policy: Policy, at_ms: int) -> Iterator[Timer]:
    """Yield the timers of a partition of a rebuilt table, whatever the filter lets in."""
    # A writer's clock that runs ahead must not postpone the idle compaction forever.
    idle_since_ms = min(at_ms, count.newest_ms)
    # Here all windows are known, not only the newest. Those that are overdue need one job, and one timer.
    is_overdue = False
    for timer in _timers(partition, count.all_windows, policy, 0):
        if timer.name.startswith((RewriteKind.FULL, INTERVAL)):
            yield replace(timer, fires_at_ms=timer.fires_at_ms + at_ms)
        elif timer.change is TimerChange.SET:
            yield replace(timer, fires_at_ms=timer.fires_at_ms + idle_since_ms)
        elif timer.change is TimerChange.EARLIER and not (is_overdue and timer.fires_at_ms <= at_ms):
            is_overdue = is_overdue or timer.fires_at_ms <= at_ms
            yield replace(timer, change=TimerChange.SET)


def _let_in(
    timer: Timer, partition: PartitionKey, policy: Policy, at_ms: int, columns: Sequence[PartitionColumn]
) -> Iterator[Timer]:
    """Yield a timer if the filter lets its partition in when it fires, or later: then at that moment."""
    from_ms = max(timer.fires_at_ms, at_ms)
    is_set = policy.enabled and timer.change is not TimerChange.STOP
    found = permitted_from_ms(policy.filter, partition, columns, from_ms) if is_set else None
    if found is not None:
        yield timer if found == from_ms else replace(timer, fires_at_ms=found)
    elif timer.change is not TimerChange.EARLIER:
        yield replace(timer, change=TimerChange.STOP)


def _window_timers(
    partition: PartitionKey, windows: Iterable[tuple[int, PartitionStats]], policy: Policy, at_ms: int
) -> Iterator[Timer]:
    """Yield a timer for each window with files to compact; it is due when the window has been over for long enough."""
    after_ms, length_ms = (policy.idle_compaction_after_s or 0) * 1000, (policy.time_window_s or 0) * 1000
    for start_ms, state in windows:
        if has_idle_compaction_inputs(state, policy.automatic_levels):
            due_ms = max(start_ms + length_ms, at_ms) + after_ms
            yield Timer(timer_name(RewriteKind.IDLE, partition, start_ms), due_ms, TimerChange.EARLIER)


COMPACTION_TIMERS = CompactionTimers()
