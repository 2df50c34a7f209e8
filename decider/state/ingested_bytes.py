"""Bytes that a table's writers added, by day: what the limit of write amplification grows with.

Its day is the commit's, and never later than the decider's: a writer whose clock is ahead must not add to days that
stay for longer. Lakewright's own commits add nothing, whatever they change. Nor do commits that were not read one by
one, because the table was counted again: they are not known.
"""

from shared.policy.budgets import AMPLIFICATION_DAYS
from shared.table import Commit

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
