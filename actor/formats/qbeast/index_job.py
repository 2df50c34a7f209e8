"""Optimizes the index of a table: files are chosen, and rewritten by the rules of the index, iteration by iteration."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from actor.formats.delta.preflight import check_table
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from shared.errors import PermanentError, Unsupported
from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.files import FileClass, IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    IndexOptions,
    Iteration,
    IterationEnd,
    OptimizationResult,
    run_iterations,
)
from shared.formats.qbeast.leveled import DEFAULT_BUDGET_BYTES
from shared.formats.qbeast.names import LAST_REVISION
from shared.formats.qbeast.options import read_options, without_indexing
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.status import refusal
from shared.formats.qbeast.transformations import Coordinate, coordinates, in_zone
from shared.formats.qbeast.weights import CubeWeights, cube_weights
from shared.index.stats import index_stats
from shared.jobs.options import IndexJobOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class IndexRewrite:
    """Files of one revision to rewrite, and the rules by which their rows are placed.

    weights: of all cubes of the revision.
    """

    revision: Revision
    coordinates: tuple[Coordinate, ...]
    weights: CubeWeights
    files: tuple[IndexFile, ...]

    @staticmethod
    def of(snapshot: Snapshot, files: tuple[IndexFile, ...], zone: str) -> "IndexRewrite":
        """Return the rewrite of files of one revision, live at a snapshot; raises RefusedFiles for unknown rules.

        zone: in which days begin for the table's writers, empty where that is not known.
        """
        index = QbeastIndex.of_snapshot(snapshot)
        (number,) = {file.revision for file in files}
        rules = in_zone(coordinates(snapshot.metadata.configuration, number), zone)
        return IndexRewrite(index.revisions.by_id[number], rules, cube_weights(index.of_revision(number)), files)


class IndexTable(Protocol):
    """One table with an index, as an engine reads and rewrites it."""

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files."""

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        """Rewrite files that are live in the last snapshot; returns the version of the commit, and its figures.

        Raises Conflict where others took one, RefusedFiles where rows are not in the blocks that the index says.
        """

    def verify(self, wanted: IndexRewrite) -> int:
        """Count the rows of files that are live in the last snapshot; writes nothing.

        Raises RefusedFiles where rows are not in the blocks that the index says.
        """


@dataclass(slots=True)
class IndexJob:
    """One run on one table; `clock_ms` is the time that commits carry."""

    table: IndexTable
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _snapshot: Snapshot | None = None
    _rounds: int = 0
    _commits: list[int] = field(default_factory=list)
    _figures: dict[str, int] = field(default_factory=dict)
    _not_wanted: str = ""

    def run(self) -> TableJobOutcome:
        """Optimize until nothing is left, or the bytes of one job are used up.

        Raises Unsupported for a table without an index or with one that is refused, RefusedFiles for files that are,
        Conflict where others were faster again and again, PermanentError without progress.
        """
        # Before the options are read: they need a table that may be touched.
        snapshot = self._checked()
        if IndexJobOptions.decode(self.job.options).only_verifies:
            return self._verified(snapshot)
        options, left_out = self._options(snapshot)
        result = run_iterations(self, options, self._must_stop)
        return self._outcome(result, left_out)

    def read(self) -> QbeastIndex:
        """Return the index at the newest version, which has been checked."""
        return QbeastIndex.of_snapshot(self._checked())

    def optimize(self, iteration: Iteration) -> None:
        """Rewrite the files of an iteration in one commit."""
        snapshot = self._known
        self._rounds += 1
        by_path = sorted(iteration.files, key=lambda file: file.path)
        mark = CommitMetadata(
            self.job.origin,
            round=self._rounds,
            mode=self.job.kind,
            started_ms=self.clock_ms(),
            traceparent=self.job.trace or None,
            index_selection=iteration.strategy.value,
            index_input=index_stats([[(block.cube, block.rows) for block in file.blocks] for file in by_path]),
        )
        wanted = IndexRewrite.of(snapshot, iteration.files, self.job.policy.index_zone)
        self.control.reached("optimizing")
        self.control.may_change()
        version, figures = self.table.rewrite(wanted, mark)
        self._count(version, figures)
        self.control.reached("committed")

    def _checked(self) -> Snapshot:
        """Read the newest version; raises what forbids to touch it."""
        snapshot = self._snapshot = self.table.snapshot()
        location, metadata = self.job.location, snapshot.metadata
        check_identity(location, metadata, self.job.table_uuid)
        check_table(location, metadata, snapshot.protocol, self.job.kind)
        if LAST_REVISION not in metadata.configuration:
            raise Unsupported(f"{location} has no Qbeast index", field=LAST_REVISION)
        found = refusal(snapshot, QbeastIndex.of_snapshot(snapshot))
        if found is not None:
            raise Unsupported(f"{location}: {found.message}", field=found.subject)
        self.boundary.check_files(location, snapshot.files)
        self.boundary.check_links(location, (file.path for file in snapshot.files))
        self._not_wanted = reason_not_wanted(self.job, metadata)
        return snapshot

    def _verified(self, snapshot: Snapshot) -> TableJobOutcome:
        """Prove the rules of every revision, or of the one that is asked for, on all of its files."""
        asked, index = IndexJobOptions.decode(self.job.options), QbeastIndex.of_snapshot(snapshot)
        revisions = sorted({file.revision for file in index.files if file.kind is FileClass.INDEXED})
        for number in revisions if asked.revision is None else [asked.revision]:
            for files in batches(index.of_revision(number), asked.budget_bytes or DEFAULT_BUDGET_BYTES):
                if self.control.should_stop():
                    return self._outcome(OptimizationResult((), IterationEnd.STOPPED), "")
                rows = self.table.verify(IndexRewrite.of(snapshot, files, self.job.policy.index_zone))
                blocks = sum(len(file.blocks) for file in files)
                self._add({"files_verified": len(files), "blocks_verified": blocks, "rows_verified": rows})
        return self._outcome(OptimizationResult((), IterationEnd.DONE), "no file of the table is indexed")

    @property
    def _known(self) -> Snapshot:
        """The version that the present iteration was chosen from."""
        return self._checked() if self._snapshot is None else self._snapshot

    def _options(self, snapshot: Snapshot) -> tuple[IndexOptions, str]:
        """Return how the table is optimized, and a sentence about the files that stay as they are."""
        options, _ = read_options(snapshot.metadata.configuration)
        asked = IndexJobOptions.decode(self.job.options)
        options = replace(options, sample=self.job.policy.index_sample, whole_revision=asked.whole_revision)
        if asked.revision is not None:
            options = replace(options, revision=asked.revision)
        if asked.budget_bytes is not None:
            options = replace(options, budget_bytes=asked.budget_bytes)
        return without_indexing(options, QbeastIndex.of_snapshot(snapshot))

    def _must_stop(self) -> bool:
        """Return whether no further iteration begins: stop requested, run not wanted any more, or job's bytes used."""
        return bool(self._not_wanted) or self._is_spent or self.control.should_stop()

    @property
    def _is_spent(self) -> bool:
        return self._figures.get("bytes_replaced", 0) >= self.job.policy.max_bytes_per_job

    def _count(self, version: int, figures: Mapping[str, int]) -> None:
        self._commits.append(version)
        self._add({**figures, "iterations": 1})

    def _add(self, figures: Mapping[str, int]) -> None:
        for name, count in figures.items():
            self._figures[name] = self._figures.get(name, 0) + count
        self.control.measured(self._figures)

    def _outcome(self, result: OptimizationResult, left_out: str) -> TableJobOutcome:
        snapshot, figures = self._known, dict[str, int](self._figures)
        if result.end is IterationEnd.NO_PROGRESS:
            raise PermanentError(
                f"the index of {self.job.location} did not get better by iteration {self._rounds}: its files are "
                f"as they were. Versions {self._versions} are exact rewrites"
            )
        is_complete = result.end is IterationEnd.DONE or bool(self._not_wanted)
        reason = self._not_wanted or ("" if figures else left_out or "nothing in the index is eligible for a rewrite")
        return TableJobOutcome(snapshot.version, snapshot.metadata, tuple(self._commits), figures, is_complete, reason)

    @property
    def _versions(self) -> Mapping[str, int] | str:
        return ", ".join(map(str, self._commits)) or "none"
