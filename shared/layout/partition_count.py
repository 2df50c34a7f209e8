"""Count of each partition in a rebuild: its state, and what only the live files show."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from shared.layout.eligibility import is_purgeable
from shared.layout.partition_stats import PartitionStats
from shared.layout.stats_sum import PartitionSums, StatsSum
from shared.policy.policy import Policy
from shared.table import DataFile, DeleteFile, PartitionKey


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """A partition, counted from its live files.

    all_windows: its state with every time window, not only the newest. newest_ms: newest modification time of a file, 0
    if all are older than 1970. purgeable: files to rewrite even alone.
    """

    all_windows: PartitionStats
    newest_ms: int = 0
    purgeable: int = 0

    @property
    def state(self) -> PartitionStats:
        """The state that is stored."""
        return self.all_windows.clamped()


class PartitionCounter:
    """Counts live files, one by one or in groups; the order in which they come changes nothing."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._sums = PartitionSums(policy)
        self._newest_ms: dict[PartitionKey, int] = {}
        self._purgeable: Counter[PartitionKey] = Counter()

    def add(self, files: Iterable[DataFile], *, has_delete_files: bool = False) -> None:
        """Count files; `has_delete_files`: their deletes are in files of their own, which count by themselves."""
        for file in files:
            self._sums.add(replace(file, dv_id=None, deleted_rows=0) if has_delete_files and file.dv_id else file)
            self.note(file.partition, file.modified_ms, purgeable=int(is_purgeable(file, self.policy)))

    def add_deletes(self, deletes: Iterable[DeleteFile]) -> None:
        """Count delete files."""
        for delete in deletes:
            self._sums.of(delete.partition).add_delete(delete)
            self.note(delete.partition, 0)

    def sums_of(self, partition: PartitionKey, window_ms: int | None) -> tuple[StatsSum, ...]:
        """Return the sums that a file of a partition and of a time window (None: of none) is added to."""
        whole = self._sums.of(partition)
        return (whole,) if window_ms is None else (whole, whole.window(window_ms))

    def note(self, partition: PartitionKey, modified_ms: int, *, purgeable: int = 0) -> None:
        """Note the modification time of files, and how many of them are to be rewritten even alone."""
        self._newest_ms[partition] = max(self._newest_ms.get(partition, 0), modified_ms)
        self._purgeable[partition] += purgeable

    def counts(self) -> dict[PartitionKey, PartitionCount]:
        """Return the count of each partition, in the order of their keys."""
        return {
            partition: PartitionCount(stats, self._newest_ms[partition], self._purgeable[partition])
            for partition, stats in sorted(self._sums.stats().items())
        }


def count_partitions(files: Iterable[DataFile], policy: Policy) -> dict[PartitionKey, PartitionCount]:
    """Count the partitions of a table from its live files."""
    counter = PartitionCounter(policy)
    counter.add(files)
    return counter.counts()
