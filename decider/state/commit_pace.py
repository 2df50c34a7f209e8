"""The commits of a table's writers: how often they come, how many each partition has, and the bytes of a day.

Only commits that change data count, so rewrites do not. The counts are stored with the table's state, and nothing is
stored for tables without such a property.

The day of bytes is their commit's, and never later than the decider's: a writer whose clock is ahead must not add to
days that stay for longer. Lakewright's own commits add nothing, whatever they change. Nor do commits that were not read
one by one, because the table was counted again: they are not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shared.policy.budgets import AMPLIFICATION_DAYS
from shared.policy.policy import Policy
from shared.table import Commit, PartitionKey

GAPS_NEEDED = 5
"""Gaps between commits from which their mean counts: fewer say little, and a new table is not kept waiting."""

_SHARE = 8
"""The newest gap counts an eighth: the mean follows a change within a dozen commits, and one pause moves it little."""


@dataclass(frozen=True, slots=True)
class CommitPace:
    """Time of the newest commit that changed data, the mean gap before it in milliseconds, and of how many gaps."""

    last_ms: int = 0
    mean_ms: int = 0
    gaps: int = 0

    @property
    def every_ms(self) -> int:
        """Mean time between commits, 0 as long as it is not known."""
        return self.mean_ms if self.gaps >= GAPS_NEEDED else 0

    def after(self, commit: Commit) -> "CommitPace":
        """Return the pace after a commit; rewrites do not count, and clocks of writers may go back."""
        if not commit.data_change:
            return self
        at_ms = max(self.last_ms, commit.timestamp_ms)
        if not self.last_ms:
            return CommitPace(at_ms)
        gap_ms = at_ms - self.last_ms
        mean_ms = self.mean_ms + (gap_ms - self.mean_ms) // _SHARE if self.gaps else gap_ms
        return CommitPace(at_ms, mean_ms, min(GAPS_NEEDED, self.gaps + 1))


UNKNOWN_PACE = CommitPace()
"""No commit was seen."""


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


DAY_MS = 86_400_000

IngestedDays = tuple[tuple[int, int], ...]
"""Numbers of days since 1970, in ascending order, each with the bytes that were added on it."""


def ingested_after(days: IngestedDays, commit: Commit, now_ms: int) -> IngestedDays:
    """Return the bytes added by day after a commit, of the newest days alone."""
    if not commit.data_change or commit.origin is not None:
        return days
    added = sum(file.size_bytes for file in commit.added)
    day = min(commit.timestamp_ms or now_ms, now_ms) // DAY_MS
    known = dict(days)
    oldest = max((now_ms // DAY_MS, *known)) - AMPLIFICATION_DAYS
    if not added or day <= oldest:
        return days
    known[day] = known.get(day, 0) + added
    return tuple(sorted(one for one in known.items() if one[0] > oldest))


def ingested_per_day(days: IngestedDays, now_ms: int) -> int:
    """Return the mean of bytes added per day, of the days since the first one that is known; 0 on the first day."""
    today = now_ms // DAY_MS
    known = [one for one in days if today - AMPLIFICATION_DAYS < one[0] < today]
    return sum(size for _, size in known) // (today - known[0][0]) if known else 0
