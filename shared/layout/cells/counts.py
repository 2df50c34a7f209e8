"""Files of a table in cells as decisions count them, commit by commit; where rows lie, only an actor finds out.

A file without the tag of a cell is new, until a run of ours has planned with it: its commit reports what is due after
it, and how many of the new files need nothing.
"""

from dataclasses import dataclass, replace

from shared.layout.cells.operations import CellSizes
from shared.layout.cells.runs import MANY_FILES, is_run_due, sizes_of_run
from shared.layout.cells.tags import CELL_TAG
from shared.layout.clustered_files import NOTHING_CLUSTERED, ClusteredFiles, ClusterReason
from shared.policy.policy import Policy
from shared.table import Commit

_WEIGHT = 8
"""Commits, about, by which the mean of what a commit brings follows them."""


@dataclass(frozen=True, slots=True)
class CellFiles:
    """Counts of the live files, of which those with the tag of a cell are clustered, and our last run's report.

    left_bytes: due after it. settled_files, settled_bytes: without the tag, and left where they are. commit_bytes: mean
    of what others' commits bring, 0 where that is not known.
    """

    files: ClusteredFiles = NOTHING_CLUSTERED
    left_bytes: int = 0
    settled_files: int = 0
    settled_bytes: int = 0
    commit_bytes: int = 0

    @property
    def new_files(self) -> int:
        """Files that no run of ours has planned with."""
        return max(0, self.files.unclustered_files - self.settled_files)

    @property
    def new_bytes(self) -> int:
        """Their size in bytes."""
        return max(0, self.files.unclustered_bytes - self.settled_bytes)

    def after(self, commit: Commit) -> "CellFiles":
        """Return the counts after a commit."""
        files, report = self.files.after(commit, CELL_TAG), commit.cells
        if report is not None:
            return CellFiles(files, *report, self.commit_bytes)
        added, removed = {file.path for file in commit.added}, {file.path for file in commit.removed}
        # Those that come back have other deleted rows; any other may have been one that was settled.
        gone = [file for file in commit.removed if file.path not in added and CELL_TAG not in (file.tags or {})]
        is_brought = commit.data_change and commit.origin is None  # Our removals of rows write files, too.
        brought = sum(file.size_bytes for file in commit.added if file.path not in removed) if is_brought else 0
        mean = (self.commit_bytes * (_WEIGHT - 1) + brought) // _WEIGHT if self.commit_bytes else brought
        return CellFiles(
            files,
            min(self.left_bytes, files.unclustered_bytes + files.clustered_bytes),
            max(0, self.settled_files - len(gone)),
            max(0, self.settled_bytes - sum(file.size_bytes or 0 for file in gone)),
            mean if brought else self.commit_bytes,
        )

    def counted_again(self, files: ClusteredFiles) -> "CellFiles":
        """Return the counts after all live files were counted again; each without the tag is new."""
        return replace(self, files=files, settled_files=0, settled_bytes=0)

    def rewritten_bytes(self, policy: Policy) -> int:
        """Return the bytes that a run rewrites, at most."""
        return min(self.left_bytes + self.new_bytes, self._sizes(policy).run_bytes)

    def need(self, policy: Policy) -> ClusterReason:
        """Return whether a run is due under a policy."""
        if not self.new_files and not self.left_bytes:
            return ClusterReason.NOTHING
        if not is_run_due(self.new_files, self.new_bytes, self.left_bytes, self._sizes(policy)):
            return ClusterReason.BELOW_RUN
        return ClusterReason.MANY_NEW if self.new_files >= MANY_FILES else ClusterReason.HALF_A_RUN

    def _sizes(self, policy: Policy) -> CellSizes:
        return sizes_of_run(policy.target_bytes, self.commit_bytes, policy.max_bytes_per_job)
