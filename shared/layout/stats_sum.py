"""A sum of files that is built in place: what adding up their states would give, without a state for each file."""

from bisect import bisect_right
from dataclasses import replace

from shared.layout.file_selection import window_start_ms
from shared.layout.key_depth import KeyDepth, combined_levels
from shared.layout.partition_stats import CUBE_TAG, IDLE_COMPACTED_TAG, PartitionStats, file_depths
from shared.policy.levels import FULL, SMALL_LEVELS, SizeLevels
from shared.policy.policy import Policy
from shared.table import DataFile, DeleteFile, PartitionKey


class StatsSum:
    """State of a partition, or a change of one, while files are added to it and states are subtracted."""

    __slots__ = (
        *("_bytes", "_counts", "_cube_files", "_deleted_rows", "_dv_files", "_files", "_idle_compacted"),
        *("_shortfall", "_size_levels", "_sizes", "_small_shortfall", "_windows", "_depths"),
    )

    def __init__(self, size_levels: SizeLevels) -> None:
        self._size_levels = size_levels
        self._files = self._bytes = self._shortfall = self._small_shortfall = 0
        self._dv_files = self._deleted_rows = self._cube_files = 0
        self._counts = [0] * SMALL_LEVELS
        self._sizes = [0] * SMALL_LEVELS
        self._idle_compacted = [0] * SMALL_LEVELS
        self._windows: dict[int, StatsSum] = {}
        self._depths: tuple[tuple[int, KeyDepth], ...] = ()

    def add(self, file: DataFile, window_ms: int | None = None) -> None:
        """Add a file, which lies in the time window that starts at `window_ms` (None: in none)."""
        size, levels = file.size_bytes, self._size_levels
        missing = max(0, levels.target_bytes - size)
        level = bisect_right(levels.floors, size) - 1
        self.add_group(level, 1, size, missing * missing)
        if file.dv_id is not None:
            self._dv_files += 1
        self._deleted_rows += file.deleted_rows
        if file.tags:
            self.tag_group(level, int(IDLE_COMPACTED_TAG in file.tags), int(CUBE_TAG in file.tags))
        if window_ms is not None:
            self.window(window_ms).add(file if file.key_range is None else replace(file, key_range=None))
        if file.key_range is not None:
            found = file_depths(levels, size, file.key_range, file.tags)
            self._depths = combined_levels(self._depths, found, adds=True)

    def add_group(self, level: int, files: int, size_bytes: int, shortfall: int) -> None:
        """Add several files of one level without deletion vectors: number, total size, sum of squared shortfalls."""
        self._files += files
        self._bytes += size_bytes
        self._shortfall += shortfall
        if level < FULL:
            self._small_shortfall += shortfall
            self._counts[level] += files
            self._sizes[level] += size_bytes

    def tag_group(self, level: int, idle_compacted: int, cube_files: int) -> None:
        """Note how many files of one level, which were added before, carry the tags that are counted."""
        self._cube_files += cube_files
        if level < FULL:
            self._idle_compacted[level] += idle_compacted

    def window(self, start_ms: int) -> "StatsSum":
        """Return the sum of a time window; it counts what was added to it alone."""
        found = self._windows.get(start_ms)
        if found is None:
            found = self._windows[start_ms] = StatsSum(self._size_levels)
        return found

    def subtract(self, stats: PartitionStats) -> None:
        """Take a state away, with its windows."""
        self._files -= stats.files
        self._bytes -= stats.bytes
        self._shortfall -= stats.shortfall
        self._small_shortfall -= stats.small_shortfall
        self._dv_files -= stats.dv_files
        self._deleted_rows -= stats.deleted_rows
        self._cube_files -= stats.cube_files
        for level in range(SMALL_LEVELS):
            self._counts[level] -= stats.counts[level]
            self._sizes[level] -= stats.sizes[level]
            self._idle_compacted[level] -= stats.idle_compacted[level]
        self._depths = combined_levels(self._depths, stats.depths, adds=False)
        for start_ms, inside in stats.windows:
            self.window(start_ms).subtract(inside)

    def add_delete(self, delete: DeleteFile) -> None:
        """Add a delete file, which counts for the partition and for none of its windows."""
        self._dv_files += 1
        self._deleted_rows += delete.deleted_rows

    def stats(self) -> PartitionStats:
        """Return the sum as a state."""
        return PartitionStats(
            self._files,
            self._bytes,
            self._shortfall,
            self._small_shortfall,
            self._dv_files,
            self._deleted_rows,
            tuple(self._counts),
            tuple(self._sizes),
            tuple(self._idle_compacted),
            tuple((start_ms, inside.stats()) for start_ms, inside in sorted(self._windows.items())),
            self._cube_files,
            self._depths,
        )


class PartitionSums:
    """The sums of files by partition, under one policy."""

    def __init__(self, policy: Policy) -> None:
        self._window_s = policy.time_window_s
        self._size_levels = policy.size_levels
        self._sums: dict[PartitionKey, StatsSum] = {}

    def of(self, partition: PartitionKey) -> StatsSum:
        """Return the sum of a partition."""
        found = self._sums.get(partition)
        if found is None:
            found = self._sums[partition] = StatsSum(self._size_levels)
        return found

    def add(self, file: DataFile) -> None:
        """Add a file to its partition, and to its time window where the table has windows."""
        self.of(file.partition).add(file, window_start_ms(file, self._window_s))

    def stats(self) -> dict[PartitionKey, PartitionStats]:
        """Return each partition's sum as a state, in the order in which the partitions appeared."""
        return {partition: found.stats() for partition, found in self._sums.items()}
