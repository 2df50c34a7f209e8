"""The iterations of one optimization: which strategy takes the next files, and when it ends.

A rewrite moves rows to where they belong and merges blocks. So with no other writer, each compaction lowers the number
of overhanging blocks, or keeps it and lowers the number of blocks. One that does neither has done nothing, and would be
repeated forever.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from shared.errors import Conflict, InvalidInput
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.leveled import DEFAULT_BUDGET_BYTES, IndexBudget, select_leveled
from shared.formats.qbeast.names import NOT_INDEXED
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.unindexed import DEFAULT_BATCH_BYTES, select_unindexed
from shared.formats.qbeast.weights import cube_weights, is_overhanging

MAX_ITERATIONS = 1_000
"""Iterations of one job; the most that a simulated table needed was 75."""

MAX_CONFLICTS = 5
"""Times in a row that another writer may take an iteration's files first, before the job waits like any other."""


class Strategy(StrEnum):
    """How the files of an iteration are chosen."""

    UNINDEXED = "unindexed"
    LEVELED = "leveled"


class IterationEnd(StrEnum):
    """Why no further iteration runs."""

    DONE = "done"
    STOPPED = "stopped"
    MAX_ITERATIONS = "max_iterations"
    NO_PROGRESS = "no_progress"


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How a table's owner wants its index optimized.

    revision: the one to optimize, None for the newest; 0 means that files are only indexed. from_ms: files modified
    before are never indexed. indexes_files: files are indexed at all; first: before the compaction.
    """

    revision: int | None = None
    indexes_files: bool = True
    indexes_first: bool = True
    batch_bytes: int = DEFAULT_BATCH_BYTES
    from_ms: int = 0
    budget_bytes: int = DEFAULT_BUDGET_BYTES

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The strategies in order; raises InvalidInput where none is left."""
        if self.revision == NOT_INDEXED:
            if not self.indexes_files:
                raise InvalidInput(
                    "revision 0 holds the files that are not indexed, and these are not to be indexed",
                    field="revision",
                    allowed="another revision, or optimizeUnindexedFiles.enabled=true",
                )
            return (Strategy.UNINDEXED,)
        if not self.indexes_files:
            return (Strategy.LEVELED,)
        both = (Strategy.UNINDEXED, Strategy.LEVELED)
        return both if self.indexes_first else both[::-1]


@dataclass(frozen=True, slots=True)
class Iteration:
    """The files of one iteration, and how they were chosen."""

    strategy: Strategy
    files: tuple[IndexFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, spelled as in the log."""
        return tuple(file.path for file in self.files)


@dataclass(frozen=True, slots=True)
class OptimizationResult:
    """The iterations that were committed, and why no further one was."""

    iterations: tuple[Iteration, ...]
    end: IterationEnd


@dataclass(frozen=True, slots=True, order=True)
class Progress:
    """What every compaction lowers, compared in this order: overhanging blocks, then blocks, of one revision."""

    overhang_blocks: int
    blocks: int


class IndexedTable(Protocol):
    """A table that an optimization runs on."""

    def read(self) -> QbeastIndex:
        """Return the index at the newest version."""

    def optimize(self, iteration: Iteration) -> None:
        """Rewrite the files of an iteration in one commit; raises Conflict where others removed any of them."""


def next_iteration(index: QbeastIndex, options: IndexOptions) -> Iteration | None:
    """Return the iteration of the first strategy that finds any files, None where there is nothing to do.

    Raises InvalidInput where the options name a revision that the table does not have, or leave no strategy.
    """
    for strategy in options.strategies:
        found: tuple[IndexFile, ...] = ()
        if strategy is Strategy.UNINDEXED:
            found = select_unindexed(index.files, options.batch_bytes, options.from_ms)
        elif (revision := compacted_revision(index, options)) is not None:
            files = index.of_revision(revision.id)
            found = select_leveled(files, revision.space, IndexBudget(options.budget_bytes)).files
        if found:
            return Iteration(strategy, found)
    return None


def run_iterations(
    table: IndexedTable,
    options: IndexOptions,
    should_stop: Callable[[], bool],
    *,
    max_iterations: int = MAX_ITERATIONS,
) -> OptimizationResult:
    """Optimize until nothing is left to do, on the newest index each time; never repeats an old list of files.

    Raises Conflict after too many in a row, and what the table raises, such as LeaseLost.
    """
    done: list[Iteration] = []
    conflicts = 0
    index = table.read()
    while True:
        iteration = next_iteration(index, options)
        if iteration is None:
            return OptimizationResult(tuple(done), IterationEnd.DONE)
        if should_stop():
            return OptimizationResult(tuple(done), IterationEnd.STOPPED)
        if len(done) == max_iterations:
            return OptimizationResult(tuple(done), IterationEnd.MAX_ITERATIONS)
        try:
            table.optimize(iteration)
        except Conflict:
            conflicts += 1
            if conflicts == MAX_CONFLICTS:
                raise
            index = table.read()  # The old list may name files whose rows are written elsewhere by now.
            continue
        conflicts = 0
        before, index = index, table.read()
        if _has_stalled(iteration, before, index, options):
            return OptimizationResult(tuple(done), IterationEnd.NO_PROGRESS)
        done.append(iteration)


def compacted_revision(index: QbeastIndex, options: IndexOptions) -> Revision | None:
    """Return the revision that is compacted, None where none is indexed yet.

    Raises InvalidInput for one that the table does not have.
    """
    wanted = index.revisions.last if options.revision is None else options.revision
    found = index.revisions.get(wanted)
    if found is None and wanted != NOT_INDEXED:
        known = ", ".join(map(str, sorted(index.revisions.by_id)))
        raise InvalidInput(f"the table has no revision {wanted}", field="revision", allowed=known)
    return found


def progress_of(files: Sequence[IndexFile]) -> Progress:
    """Return the progress of a revision, whose live files these all are."""
    weights = cube_weights(files)
    blocks = [block for file in files for block in file.blocks]
    return Progress(sum(is_overhanging(block, weights) for block in blocks), len(blocks))


def _has_stalled(iteration: Iteration, before: QbeastIndex, after: QbeastIndex, options: IndexOptions) -> bool:
    """Return whether an iteration did nothing: all its files are live, or a compaction lowered nothing.

    The library ignores paths that it does not know, without an error. What a compaction lowers can only be judged if
    its commit is the only new one.
    """
    live = {file.path for file in after.files}
    if live.issuperset(iteration.paths):
        return True
    revision = compacted_revision(before, options)
    if iteration.strategy is Strategy.UNINDEXED or revision is None or after.version > before.version + 1:
        return False
    return progress_of(after.of_revision(revision.id)) >= progress_of(before.of_revision(revision.id))
