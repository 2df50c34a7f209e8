"""A Lakewright rewrite as recorded in the table's own metadata, in any format."""

from dataclasses import dataclass

from shared.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class FileStats:
    """One side of a rewrite.

    levels: number of files per level, 0 to 6 with full files last, None if the metadata lack the size levels;
    rows: those that readers see, None where the log has no statistics; files: paths as the log spells them.
    """

    num_files: int
    bytes: int
    rows: int | None
    levels: tuple[int, ...] | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One Lakewright rewrite as recorded in the log; times in milliseconds since 1970, entropy in bytes^2.

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

    @property
    def process_time_ms(self) -> int | None:
        """From the start of the rewrite to its commit, by the actor's clock."""
        return None if self.mark.started_ms is None else max(0, self.finished_ms - self.mark.started_ms)


@dataclass(frozen=True, slots=True)
class RewritePage:
    """Rewrites, newest first; the next page begins `before` that version, None if this was the last one."""

    events: tuple[Rewrite, ...]
    before: int | None
