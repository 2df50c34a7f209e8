"""Input of a decision about a table's index: a few figures of its live files, instead of the files."""

from dataclasses import dataclass

from shared.index.status import IndexStatus


@dataclass(frozen=True, slots=True)
class IndexSignal:
    """An index at a version: files and bytes of the next iteration, and figures of the newest revision.

    unindexed_files: of other writers, without index data. refusal: why the index must not be optimized, as a sentence.
    newest_by_others: the last rewrite by another optimizer among the newest commits, -1 if there is none. doubled:
    which rewrite wrote rows again, as a sentence. next_strategy: how the files of the next iteration were chosen.
    """

    version: int
    next_files: int = 0
    next_bytes: int = 0
    blocks: int = 0
    cubes: int = 0
    overhang_blocks: int = 0
    unindexed_files: int = 0
    refusal: str = ""
    newest_by_others: int = -1
    doubled: str = ""
    next_strategy: str = ""
    hidden_blocks: int = 0

    @staticmethod
    def of(status: IndexStatus) -> "IndexSignal":
        """Return the signal of an index."""
        following, newest = status.rewrites.next, max(status.revisions, key=lambda one: one.id, default=None)
        metrics = None if newest is None else newest.metrics
        return IndexSignal(
            status.version,
            0 if following is None else len(following.paths),
            0 if following is None else following.bytes,
            0 if metrics is None else metrics.blocks,
            0 if metrics is None else metrics.cubes,
            0 if metrics is None else metrics.overhang_blocks,
            status.unindexed.files,
            status.rewrites.problem if status.refusal is None else status.refusal.message,
            next_strategy="" if following is None else following.strategy,
            hidden_blocks=sum(one.metrics.hidden_blocks for one in status.revisions),
        )
