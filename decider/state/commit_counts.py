"""Commits per partition: how many changed data in it, for tables whose properties count commits.

Only commits that change data count, so rewrites do not. The counts are stored with the table's state, and nothing is
stored for tables without such a property.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shared.policy.policy import Policy
from shared.table import Commit, PartitionKey

MAX_PARTITIONS = 256
"""Maximum number of partitions of one table that are counted: those changed last, in some tens of kilobytes. The count
of any other partition starts over."""


@dataclass(frozen=True, slots=True)
class CommitCounts:
    """Number of commits that changed data, by partition; the partition that was changed last comes last."""

    counts: Mapping[PartitionKey, int] = field(default_factory=dict)

    def of(self, partition: PartitionKey) -> int:
        """Return the number of commits that changed data in a partition; 0 if none was counted."""
        return self.counts.get(partition, 0)

    def after_commit(self, commit: Commit, partitions: Iterable[PartitionKey], policy: Policy) -> "CommitCounts":
        """Return the counts after a commit that touched these partitions."""
        if not policy.counts_commits:
            return NO_COMMITS
        if not commit.data_change:
            return self
        counts = dict(self.counts)
        for partition in partitions:
            counts[partition] = counts.pop(partition, 0) + 1
        return CommitCounts(dict(list(counts.items())[-MAX_PARTITIONS:]))


NO_COMMITS = CommitCounts()
"""No commit was counted."""
