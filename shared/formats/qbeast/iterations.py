"""The iterations of one optimization: which strategy takes the next files, and when it ends.

A rewrite moves rows to where they belong and merges blocks. So with no other writer, a compaction lowers the number of
overhanging blocks, or keeps it and lowers the number of blocks. Iterations that do neither might go on forever.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from shared.errors import Conflict, InvalidInput
from shared.formats.qbeast.files import Block, IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.leveled import DEFAULT_BUDGET_BYTES, select_leveled
from shared.formats.qbeast.names import NOT_INDEXED
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.sampling import Worklist, rows_read, select_sampling
from shared.formats.qbeast.unindexed import DEFAULT_BATCH_BYTES, select_unindexed
from shared.formats.qbeast.weights import cube_weights, is_overhanging

MAX_ITERATIONS = 1_000
"""Iterations of one job; the most that a simulated table needed was 75."""

MAX_CONFLICTS = 5
"""Times in a row that another writer may take an iteration's files first, before the job waits like any other."""


MAX_IDLE = 20
"""Iterations in a row that may lower nothing; on simulated tables it was one at a time."""


class Strategy(StrEnum):
    """How the files of an iteration are chosen."""

    UNINDEXED = "unindexed"
    LEVELED = "leveled"
    REVISION = "revision"
    SAMPLING = "sampling"


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
    before are never indexed. indexes_files: files are indexed at all; first: before the compaction. sample: fraction of
    the rows that queries sample, for which files are rewritten where no compaction is due; None: for no sample.
    whole_revision: instead of a compaction, all files of the revision are rewritten at once. only: the one strategy to
    use; None: all that apply.
    """

    revision: int | None = None
    indexes_files: bool = True
    indexes_first: bool = True
    batch_bytes: int = DEFAULT_BATCH_BYTES
    from_ms: int = 0
    budget_bytes: int = DEFAULT_BUDGET_BYTES
    sample: Fraction | None = None
    whole_revision: bool = False
    only: Strategy | None = None

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
        if self.only is not None:
            return (self.only,)
        found: tuple[Strategy, ...] = (Strategy.REVISION if self.whole_revision else Strategy.LEVELED,)
        if self.indexes_files:
            found = (Strategy.UNINDEXED, *found) if self.indexes_first else (*found, Strategy.UNINDEXED)
        # Compaction first: it lowers most of what a sample reads in vain, and it feeds on small files.
        return found if self.sample is None else (*found, Strategy.SAMPLING)

    @property
    def sampling_bytes(self) -> int:
        """Bytes of one rewrite for a sample; with the budget of a single group, each file is one."""
        return max(1, self.budget_bytes)


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
    """Measures that every compaction lowers, compared in this order: overhanging blocks, then blocks, of one revision.

    rows_read: what every rewrite for a sample lowers at least, rows in files that the sample reads; 0 without one.
    """

    overhang_blocks: int
    blocks: int
    rows_read: int = 0


class IndexedTable(Protocol):
    """A table that an optimization runs on."""

    def read(self) -> QbeastIndex:
        """Return the index at the newest version."""

    def optimize(self, iteration: Iteration) -> None:
        """Rewrite the files of an iteration in one commit; raises Conflict where others removed any of them."""


def next_iteration(index: QbeastIndex, options: IndexOptions, worklist: Worklist | None = None) -> Iteration | None:
    """Return the iteration of the first strategy that finds any files, None where there is nothing to do.

    `worklist` is the run's, None for a run that would begin now. Raises InvalidInput where the options name a
    revision that the table does not have, or leave no strategy.
    """
    for strategy in options.strategies:
        found: tuple[IndexFile, ...] = ()
        if strategy is Strategy.UNINDEXED:
            found = select_unindexed(index.files, options.batch_bytes, options.from_ms)
        elif (revision := compacted_revision(index, options)) is not None:
            files = index.of_revision(revision.id)
            if strategy is Strategy.REVISION:
                found = _select_revision(files)
            elif strategy is Strategy.LEVELED:
                found = select_leveled(files, revision.space, options.budget_bytes).files
            elif options.sample is not None:
                known = Worklist() if worklist is None else worklist
                found = select_sampling(files, revision, float(options.sample), options.sampling_bytes, known)
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
    worklist, watch = Worklist(), _Watch(options)
    index = table.read()
    while True:
        iteration = next_iteration(index, options, worklist)
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
        if watch.has_stalled(iteration, before, index):
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


def progress_of(files: Sequence[IndexFile], sample: Fraction | None = None) -> Progress:
    """Return the progress of a revision, whose live files these all are; `sample`: of rewrites for it."""
    weights = cube_weights(files)
    blocks = [block for file in files for block in file.blocks]
    overhanging = sum(is_overhanging(block, weights) for block in blocks)
    return Progress(overhanging, len(blocks), 0 if sample is None else rows_read(files, float(sample)))


@dataclass(slots=True)
class _Watch:
    """Check that the iterations of a run still get anywhere; `best`: the progress since the last commit of others."""

    options: IndexOptions
    best: Progress | None = None
    idle: int = 0

    def has_stalled(self, iteration: Iteration, before: QbeastIndex, after: QbeastIndex) -> bool:
        """Return whether an iteration did nothing, or too many in a row lowered nothing.

        The library ignores paths that it does not know, without an error. What a rewrite lowers can only be judged if
        its commit is the only new one. It may lower nothing for once: where an append lowered the weight of a cube and
        wrote no block of it, the next rewrite moves rows up to that cube again.
        """
        if {file.path for file in after.files}.issuperset(iteration.paths):
            return True
        revision = compacted_revision(before, self.options)
        if iteration.strategy is Strategy.UNINDEXED or revision is None or after.version > before.version + 1:
            self.best, self.idle = None, 0
            return False
        was, now = before.of_revision(revision.id), after.of_revision(revision.id)
        best = progress_of(was, self.options.sample) if self.best is None else self.best
        found = progress_of(now, self.options.sample)
        self.best, self.idle = min(best, found), 0 if found < best else self.idle + 1
        return self.idle == MAX_IDLE or (self.idle > 0 and _blocks(was) == _blocks(now))


def _select_revision(files: Sequence[IndexFile]) -> tuple[IndexFile, ...]:
    """Return all files of a revision; none where each cube has one block, and all rows are where they belong."""
    now, cubes = progress_of(files), {block.cube for file in files for block in file.blocks}
    return tuple(files) if now.overhang_blocks or now.blocks > len(cubes) else ()


def _blocks(files: Sequence[IndexFile]) -> Counter[Block]:
    return Counter(block for file in files for block in file.blocks)
