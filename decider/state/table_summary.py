"""The summary of a table: sums over its partitions that move with its state, so that lists of tables read no partition.

Partition statistics form a group, so the sums of a table change by what a commit changed in the partitions it touched.
"""

import json
import math
from dataclasses import dataclass, replace

from shared.layout.partition_stats import PartitionStats
from shared.policy import Policy


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table's live files and whether it is optimized, at the version of its state.

    files, bytes: all live files; small_files: those below the full size; shortfall: sum of (T - min(size, T))^2 over
    all files (bytes^2); target_bytes: T; is_enabled: the policy permits rewrites; last_rewrite_ms: commit time of the
    newest Lakewright commit, 0 if none was applied.
    """

    files: int
    bytes: int
    small_files: int
    shortfall: int
    target_bytes: int
    is_enabled: bool
    last_rewrite_ms: int = 0

    @staticmethod
    def of(total: PartitionStats, policy: Policy, last_rewrite_ms: int = 0) -> "TableSummary":
        """Return the summary of a table whose partitions add up to `total`."""
        return TableSummary(
            files=total.files,
            bytes=total.bytes,
            small_files=total.small_files,
            shortfall=total.shortfall,
            target_bytes=policy.size_levels.target_bytes,
            is_enabled=policy.enabled,
            last_rewrite_ms=last_rewrite_ms,
        )

    def after(self, change: PartitionStats, last_rewrite_ms: int = 0) -> "TableSummary":
        """Return the summary after commits that changed the sum of all partitions by `change`."""
        return replace(
            self,
            files=self.files + change.files,
            bytes=self.bytes + change.bytes,
            small_files=self.small_files + change.small_files,
            shortfall=self.shortfall + change.shortfall,
            last_rewrite_ms=max(self.last_rewrite_ms, last_rewrite_ms),
        )

    @property
    def rms_shortfall(self) -> float:
        """Root of the mean squared shortfall as a share of the target: 0 is optimal, 1 is worst."""
        # Division of integers is rounded once, whatever their size.
        return math.sqrt(self.shortfall / self.files) / self.target_bytes if self.files else 0.0

    def encode(self) -> str:
        """Write the summary as one field of a hash."""
        sizes = (self.files, self.bytes, self.small_files, self.shortfall, self.target_bytes)
        return json.dumps([*sizes, int(self.is_enabled), self.last_rewrite_ms], separators=(",", ":"))

    @staticmethod
    def decode(encoded: str) -> "TableSummary | None":
        """Read what `encode` wrote; None if an earlier release wrote the state."""
        if not encoded:
            return None
        files, size, small_files, shortfall, target_bytes, enabled, last_rewrite_ms = json.loads(encoded)
        return TableSummary(files, size, small_files, shortfall, target_bytes, enabled == 1, last_rewrite_ms)
