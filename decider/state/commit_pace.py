"""How often the writers of a table commit: what its jobs wait by, for others to share a commit with."""

from dataclasses import dataclass

from shared.table import Commit

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
