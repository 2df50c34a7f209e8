"""Files of a clustered table (`CLUSTER BY`): which are clustered, and when the format's own OPTIMIZE pays for itself.

How a table in cells is counted, `shared.layout.cells.counts` says.

OPTIMIZE puts files that are not clustered into Z-cubes, and rewrites a Z-cube again and again until it has
`CUBE_BYTES`: on a table below that size, each run rewrites all of it. So a run is due once the new bytes are a share of
those that it rewrites again, which bounds the bytes rewritten: with a share of 1/4, five for each byte that is new.
Decider and actor apply this rule, one to what commits added up to, the other to the live files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.layout.eligibility import DecisionReason
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import GIB, Policy
from shared.table import Commit

CUBE_BYTES = 100 * GIB
"""Size from which a Z-cube is left as it is: Delta's default of `optimize.clustering.mergeStrategy.minCubeSize`."""


class ClusterReason(DecisionReason):
    """Why a table is, or is not, clustered now."""

    UNCLUSTERED = "unclustered_bytes", "The bytes that are not clustered reach `cluster-threshold`."
    MANY_FILES = (
        "many_unclustered_files",
        "More files than `max-small-files` are not clustered, which overrides the threshold.",
    )
    NOTHING = "nothing_unclustered", "All files are clustered.", "pruned_by_clustering"
    FEW_FILES = (
        "few_unclustered_files",
        "Fewer files than `min-input-files` are not clustered, with less bytes than one target.",
        "pruned_by_clustering",
    )
    BELOW_THRESHOLD = (
        "below_cluster_threshold",
        "The bytes that are not clustered are below `cluster-threshold`.",
        "pruned_by_clustering",
    )
    HALF_A_RUN = "half_a_run_due", "Half of what a run rewrites is due in the cells of the table."
    MANY_NEW = "many_new_files", "64 files or more are new in a table in cells, which overrides their size."
    BELOW_RUN = (
        "below_half_a_run",
        "Less than half of what a run rewrites is due in the cells of the table.",
        "pruned_by_clustering",
    )
    NOT_CLUSTERED = "not_a_clustered_table", "The table names no columns to be clustered by.", "pruned_by_clustering"

    @property
    def is_due(self) -> bool:
        """True if a run is due."""
        return not self.stage


@dataclass(frozen=True, slots=True)
class ClusteredFiles:
    """Number and bytes of the live files that are not clustered (outside of Z-cubes), and the bytes of all others."""

    unclustered_files: int = 0
    unclustered_bytes: int = 0
    clustered_bytes: int = 0

    @staticmethod
    def of(files: Iterable[tuple[int, bool]]) -> "ClusteredFiles":
        """Count live files: the size of each, and whether it is in a Z-cube."""
        counted = ClusteredFiles()
        for size_bytes, is_cube in files:
            counted = counted.plus(size_bytes, is_cube=is_cube)
        return counted

    def plus(self, size_bytes: int, *, is_cube: bool, files: int = 1) -> "ClusteredFiles":
        """Add files of this total size; `files` is negative for a removal. Nothing ever falls below 0."""
        sign = 1 if files > 0 else -1
        if is_cube:
            clustered_bytes = max(0, self.clustered_bytes + sign * size_bytes)
            return ClusteredFiles(self.unclustered_files, self.unclustered_bytes, clustered_bytes)
        unclustered = max(0, self.unclustered_files + files), max(0, self.unclustered_bytes + sign * size_bytes)
        return ClusteredFiles(*unclustered, self.clustered_bytes)

    def after(self, commit: Commit, tag: str = CUBE_TAG) -> "ClusteredFiles":
        """Return the counts after a commit; `tag` names how a file is clustered.

        A removal without tags or size is completed from the add of its path.
        """
        added = {file.path: file for file in commit.added}
        counted = self
        for file in commit.added:
            counted = counted.plus(file.size_bytes, is_cube=tag in file.tags)
        for removed in commit.removed:
            twin = added.get(removed.path)
            tags: Mapping[str, str] | None = removed.tags if removed.tags or twin is None else twin.tags
            size_bytes = removed.size_bytes
            if size_bytes is None:
                size_bytes = 0 if twin is None else twin.size_bytes
            counted = counted.plus(size_bytes, is_cube=tag in (tags or {}), files=-1)
        return counted

    @property
    def repeated_bytes(self) -> int:
        """The bytes in Z-cubes that a run rewrites again, at most: only the newest Z-cube is below `CUBE_BYTES`."""
        return min(self.clustered_bytes, CUBE_BYTES)

    @property
    def rewritten_bytes(self) -> int:
        """The bytes that a run reads and writes, at most."""
        return self.unclustered_bytes + self.repeated_bytes if self.unclustered_files else 0

    def need(self, policy: Policy) -> ClusterReason:
        """Return whether a run is due under a policy."""
        if not self.unclustered_files:
            return ClusterReason.NOTHING
        if self.unclustered_files > policy.max_small_files:
            return ClusterReason.MANY_FILES
        if self.unclustered_files < policy.min_input_files and self.unclustered_bytes < policy.target_bytes:
            return ClusterReason.FEW_FILES
        share = policy.cluster_threshold
        if self.unclustered_bytes * share.denominator < self.repeated_bytes * share.numerator:
            return ClusterReason.BELOW_THRESHOLD
        return ClusterReason.UNCLUSTERED


NOTHING_CLUSTERED = ClusteredFiles()
"""No file was counted."""
