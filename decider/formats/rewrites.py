"""A rewrite of ours as a table's own metadata tells it, in whatever format."""

from dataclasses import dataclass

from shared.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class FileStats:
    """One side of a rewrite.

    levels: number of files per level, 0 to 6 with full files last, None if the mark does not tell the ladder; rows:
    those that readers see, None where the log has no statistics; files: paths as the log spells them.
    """

    num_files: int
    bytes: int
    rows: int | None
    levels: tuple[int, ...] | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite of ours as the log tells it; times in milliseconds since 1970, entropy in bytes^2.

    started_ms and entropy_removed are None for commits whose mark does not tell enough: other tools' copies of ours,
    or of releases before this one.
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
    """Events, newest first; the next page looks `before` that version, None if this was the last one."""

    events: tuple[Rewrite, ...]
    before: int | None
