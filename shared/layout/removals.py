"""Files that a table's log has removed and its store still holds, by the time of removal, folded commit by commit.

From it the bytes that a vacuum can free at any moment are known without listing the store. Memory is bounded: when
there are too many buckets, all of them become twice as long.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shared.table import Commit, VacuumMark

MAX_BUCKETS = 64
"""Buckets of one table: 1.5 kB of its state; a week of removals in buckets of four hours at the most."""

BUCKET_MS = 3_600_000
"""Length of a bucket as long as there are few: an hour, which is short against any retention."""

Bucket = tuple[int, int, int]
"""Start in milliseconds since 1970, number of removed files, and their bytes."""


@dataclass(frozen=True, slots=True)
class Removals:
    """Removed files and bytes in buckets of `width_ms`, oldest first.

    vacuumed_ms: when the last vacuum ended; listed_ms: when the last one ended that also listed the store; 0: never
    since the table is known.
    """

    width_ms: int = BUCKET_MS
    buckets: tuple[Bucket, ...] = ()
    vacuumed_ms: int = 0
    listed_ms: int = 0

    @staticmethod
    def of(removed: Iterable[tuple[int, int]]) -> "Removals":
        """Return the removals of these files: time of removal and size of each."""
        return NO_REMOVALS.with_files(removed)

    def with_files(self, removed: Iterable[tuple[int, int]]) -> "Removals":
        """Add removed files: time of removal and size of each."""
        counts = {start: (files, size) for start, files, size in self.buckets}
        for at_ms, size_bytes in removed:
            start = max(0, at_ms) // self.width_ms * self.width_ms
            files, size = counts.get(start, (0, 0))
            counts[start] = (files + 1, size + size_bytes)
        return _bounded(replace(self, buckets=_sorted(counts)))

    def after(self, commit: Commit) -> "Removals":
        """Return the removals after a commit.

        A file that the same commit adds again, as a deletion vector does, is not removed. A vacuum ends what it freed.
        """
        found = self
        if commit.removed:
            added = {file.path for file in commit.added}
            found = found.with_files(
                (commit.timestamp_ms, removed.size_bytes or 0)
                for removed in commit.removed
                if removed.path not in added
            )
        if commit.superseded_files:
            found = found.with_files((commit.timestamp_ms, 0) for _ in range(commit.superseded_files))
        if commit.vacuum is not None:
            found = _vacuumed(found, commit.vacuum, commit.timestamp_ms)
        return found

    def expired(self, cutoff_ms: int) -> tuple[int, int]:
        """Return number and bytes of the files that were certainly removed before this moment."""
        over = [bucket for bucket in self.buckets if bucket[0] + self.width_ms <= cutoff_ms]
        return sum(files for _, files, _ in over), sum(size for _, _, size in over)

    @property
    def first_end_ms(self) -> int | None:
        """End of the oldest bucket, None if nothing is removed."""
        return self.buckets[0][0] + self.width_ms if self.buckets else None

    @property
    def files(self) -> int:
        """Number of all removed files."""
        return sum(files for _, files, _ in self.buckets)

    @property
    def bytes(self) -> int:
        """Size of all removed files."""
        return sum(size for _, _, size in self.buckets)


def _vacuumed(found: Removals, vacuum: VacuumMark, at_ms: int) -> Removals:
    left = tuple(bucket for bucket in found.buckets if bucket[0] + found.width_ms > vacuum.until_ms)
    return Removals(
        found.width_ms if left else BUCKET_MS,
        left,
        max(at_ms, found.vacuumed_ms),
        max(at_ms, found.listed_ms) if vacuum.with_orphans else found.listed_ms,
    )


def _bounded(found: Removals) -> Removals:
    """Double the length of the buckets until there are few enough."""
    while len(found.buckets) > MAX_BUCKETS:
        width_ms = found.width_ms * 2
        counts: dict[int, tuple[int, int]] = {}
        for start, files, size in found.buckets:
            wider = start // width_ms * width_ms
            before = counts.get(wider, (0, 0))
            counts[wider] = (before[0] + files, before[1] + size)
        found = replace(found, width_ms=width_ms, buckets=_sorted(counts))
    return found


def _sorted(counts: Mapping[int, tuple[int, int]]) -> tuple[Bucket, ...]:
    return tuple((start, *counts[start]) for start in sorted(counts))


NO_REMOVALS = Removals()
