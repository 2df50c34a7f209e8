"""Timers of entry: when time lets a partition into its table's filter, it is evaluated although no commit touched it.

Only a filter with moving moments has any, such as `dt < current_date`; see `shared.policy.moments`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from decider.decide.action import TimerTarget
from shared.layout.partition_count import PartitionCount
from shared.layout.partition_stats import PartitionStats
from shared.policy.partition_filter import is_relative, next_entry_ms
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import PartitionColumn, PartitionKey


@dataclass(frozen=True, slots=True)
class EntryTimers:
    """The timers of one kind of action that has no others; see `ActionTimers`. is_on: whether a policy wants it."""

    kind: str
    is_on: Callable[[Policy], bool]

    def parse(self, name: str) -> TimerTarget | None:
        """Read the name of a timer of this kind; None for another one."""
        head, _, partition = name.partition(" ")
        return TimerTarget(PartitionKey(partition)) if head == self.kind else None

    def after_commit(
        self,
        partition: PartitionKey,
        state: PartitionStats,
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield the timer of a partition with files, where the filter moves: one that does not enter has none."""
        if not (is_relative(policy.filter) and self.is_on(policy)):
            return
        is_rewritten = policy.enabled and state.files > 0
        entry_ms = next_entry_ms(policy.filter, partition, columns, at_ms) if is_rewritten else None
        change = TimerChange.STOP if entry_ms is None else TimerChange.SET
        yield Timer(f"{self.kind} {partition}", entry_ms or 0, change)

    def after_rewrite(
        self,
        partition: PartitionKey,  # noqa: ARG002 - all four are the protocol's
        state: PartitionStats,  # noqa: ARG002
        policy: Policy,  # noqa: ARG002
        rewritten: Iterable[int] = (),  # noqa: ARG002
    ) -> Iterator[Timer]:
        """Yield nothing: a partition enters whatever was rewritten."""
        return iter(())

    def after_rebuild(
        self,
        partitions: Mapping[PartitionKey, PartitionCount],
        policy: Policy,
        at_ms: int,
        columns: Sequence[PartitionColumn],
    ) -> Iterator[Timer]:
        """Yield the timers of a rebuilt table."""
        for partition, count in partitions.items():
            for timer in self.after_commit(partition, count.state, policy, at_ms, columns):
                if timer.change is TimerChange.SET:
                    yield timer
