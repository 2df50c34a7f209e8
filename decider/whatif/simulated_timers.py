"""A replay between two commits: timers, set and stopped by the code of production, and jobs that wait to run."""

import heapq
from collections.abc import Iterable, Iterator

from decider.decide.compaction_timers import COMPACTION_TIMERS
from decider.whatif.trace import SimulatedPartition
from shared.jobs.payload import RewriteKind
from shared.policy.policy import Policy
from shared.queue.model import Timer, TimerChange
from shared.table import PartitionColumn, PartitionKey


class SimulatedTimers:
    """The timers of all partitions of one table."""

    def __init__(self, policy: Policy, columns: tuple[PartitionColumn, ...]) -> None:
        self._policy = policy
        self._columns = columns
        self._partitions: dict[PartitionKey, SimulatedPartition] = {}
        self._due_ms: dict[str, int] = {}
        # A timer that was set again or stopped stays here until it is due, and is skipped then.
        self._heap: list[tuple[int, str]] = []

    def after_commit(self, partition: SimulatedPartition, at_ms: int) -> None:
        """Change a partition's timers after a commit of others has changed its data."""
        self._partitions[partition.key] = partition
        # A writer's clock may be before 1970, where no timer is.
        self._change(
            COMPACTION_TIMERS.after_commit(partition.key, partition.state, self._policy, max(0, at_ms), self._columns)
        )

    def after_rewrite(self, partition: SimulatedPartition, rewritten: Iterable[int] = ()) -> None:
        """Stop the timers of a partition and of its rewritten windows that would no longer find work."""
        self._change(COMPACTION_TIMERS.after_rewrite(partition.key, partition.state, self._policy, rewritten))

    def ring(self, until_ms: int) -> Iterator[tuple[int, RewriteKind, SimulatedPartition]]:
        """Yield time, extent and partition of the timers that fire until then, in the order of time."""
        while self._heap and self._heap[0][0] <= until_ms:
            at_ms, name = heapq.heappop(self._heap)
            target = COMPACTION_TIMERS.parse(name)
            if target is not None and self._due_ms.get(name) == at_ms:
                del self._due_ms[name]
                yield at_ms, target.rewrite_kind, self._partitions[target.partition]

    def _change(self, timers: Iterable[Timer]) -> None:
        for timer in timers:
            if timer.change is TimerChange.STOP:
                self._due_ms.pop(timer.name, None)
            elif timer.change is TimerChange.SET or timer.fires_at_ms < self._due_ms.get(
                timer.name, timer.fires_at_ms + 1
            ):
                self._due_ms[timer.name] = timer.fires_at_ms
                heapq.heappush(self._heap, (timer.fires_at_ms, timer.name))


class PendingJobs:
    """Jobs that were requested, one for each partition: they wait until they are ready, and run some commits later."""

    def __init__(self, lag_commits: int) -> None:
        self._lag_commits = lag_commits
        self._waiting: dict[PartitionKey, tuple[int, SimulatedPartition]] = {}
        self._ready: dict[PartitionKey, tuple[int, SimulatedPartition]] = {}

    def ask(self, number: int, partition: SimulatedPartition, *, ready_ms: int = 0) -> None:
        """Request a job at commit `number`; of requests for one partition the one that is ready first counts."""
        key = partition.key
        if key in self._ready:
            return
        if ready_ms:
            self._waiting[key] = min((ready_ms, partition), self._waiting.get(key, (ready_ms, partition)), key=_at)
        else:
            self._waiting.pop(key, None)
            self._ready[key] = number + self._lag_commits, partition

    def due(self, number: int, at_ms: int = 0) -> Iterator[SimulatedPartition]:
        """Return the partitions whose jobs run at commit `number`, in the order in which they were ready."""
        for key in [key for key, (ready_ms, _) in self._waiting.items() if ready_ms <= at_ms]:
            _, partition = self._waiting.pop(key)
            self._ready[key] = number + self._lag_commits, partition
        for key in [key for key, (due, _) in self._ready.items() if due <= number]:
            yield self._ready.pop(key)[1]


def _at(one: tuple[int, SimulatedPartition]) -> int:
    return one[0]
