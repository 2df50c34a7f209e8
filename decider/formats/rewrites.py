"""A Lakewright rewrite as recorded in the table's own metadata, in any format."""

from dataclasses import dataclass
from typing import Any

from shared.index.stats import IndexSideStats
from shared.layout.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class FileStats:
    """One side of a rewrite.

    levels: number of files per level, 0 to 6 with full files last, None if the metadata lack the size levels;
    rows: those that readers see, None where the log has no statistics; files: paths as the log spells them;
    index: index data, its levels in the order of `files`, None for files without.
    """

    num_files: int
    bytes: int
    rows: int | None
    levels: tuple[int, ...] | None
    files: tuple[str, ...]
    index: IndexSideStats | None = None


def index_fields(stats: FileStats) -> dict[str, Any]:
    """Return the figures of an index under the names that lists of rewrites show them by; None for files without."""
    index, count = stats.index, stats.num_files
    return {
        "file_levels": None if index is None else list(index.file_levels),
        "num_cubes": None if index is None else index.cubes,
        "num_blocks": None if index is None else index.blocks,
        "avg_num_blocks_per_file": None if index is None else index.blocks / count if count else 0.0,
        "avg_block_element_count_per_file": None if index is None else index.mean_block_rows,
    }


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One Lakewright rewrite as recorded in the log; times in milliseconds since 1970, entropy in bytes^2.

    revision_id: revision of the index under which all outputs are, None for files without an index.
    started_ms and entropy_removed are None for commits with incomplete metadata: copies by other tools, or earlier
    releases.
    """

    version: int
    mark: CommitMetadata
    finished_ms: int
    inputs: FileStats
    outputs: FileStats
    deleted_rows: int
    entropy_removed: int | None
    revision_id: int | None = None

    @property
    def process_time_ms(self) -> int | None:
        """From the start of the rewrite to its commit, by the actor's clock."""
        return None if self.mark.started_ms is None else max(0, self.finished_ms - self.mark.started_ms)


@dataclass(frozen=True, slots=True)
class RewritePage:
    """Rewrites, newest first; the next page begins `before` that version, None if this was the last one."""

    events: tuple[Rewrite, ...]
    before: int | None
