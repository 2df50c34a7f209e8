"""Jobs of a replay between the commit that requests them and the one at which they run."""

from collections.abc import Iterator

from decider.whatif.trace import SimulatedPartition
from shared.table import PartitionKey


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
