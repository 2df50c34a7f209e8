"""Optimizes the index of a table: files are chosen, and rewritten by the rules of the index, iteration by iteration."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from actor.formats.delta.preflight import check_table
from actor.formats.qbeast.index_table import IndexRewrite, IndexTable
from actor.formats.qbeast.new_files import NewFiles
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from shared.errors import PermanentError, Unsupported
from shared.formats.qbeast.batches import batches
from shared.formats.qbeast.files import FileClass
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    IndexOptions,
    Iteration,
    IterationEnd,
    OptimizationResult,
    Strategy,
    run_iterations,
)
from shared.formats.qbeast.leveled import DEFAULT_BUDGET_BYTES
from shared.formats.qbeast.names import LAST_REVISION
from shared.formats.qbeast.options import read_options
from shared.formats.qbeast.status import refusal
from shared.index.stats import index_stats
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import SET_PROPERTIES
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.table import Snapshot

NOTHING_ELIGIBLE = "nothing in the index is eligible for a rewrite"
NOT_INDEXED_AT_ALL = "no file of the table is indexed"


@dataclass(slots=True)
class IndexJob:
    """One run on one table; `clock_ms` is the time that commits carry."""

    table: IndexTable
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    clock_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _snapshot: Snapshot | None = None
    _index: QbeastIndex = field(init=False)
    _rounds: int = 0
    _commits: list[int] = field(default_factory=list)
    _figures: dict[str, int] = field(default_factory=dict)
    _not_wanted: str = ""
    _new: NewFiles = field(init=False)

    def __post_init__(self) -> None:
        self._new = NewFiles(self.table, self.job.policy.index_zone)

    def run(self) -> TableJobOutcome:
        """Optimize until nothing is left, or the bytes of one job are used up.

        Raises Unsupported for a table without an index or with one that is refused, RefusedFiles for files that are,
        Conflict where others were faster again and again, PermanentError without progress.
        """
        # Before the options are read: they need a table that may be touched.
        snapshot = self._checked()
        if IndexJobOptions.decode(self.job.options).only_verifies:
            return self._verified()
        result = run_iterations(self, self._options(snapshot), self._must_stop)
        return self._outcome(result, NOTHING_ELIGIBLE)

    def read(self) -> QbeastIndex:
        """Return the index at the newest version, which has been checked, without files that cannot be indexed."""
        self._checked()
        return self._new.without_refused(self._index)

    def optimize(self, iteration: Iteration) -> None:
        """Rewrite the files of an iteration in one commit; before, in another, set the revision that they need."""
        files, zone = iteration.files, self.job.policy.index_zone
        self._rounds += 1
        if iteration.strategy is Strategy.UNINDEXED:
            files, properties = self._new.prepared(self._index, files, self.clock_ms())
            if not files:
                return
            if properties:
                self._set(properties)
        by_path = sorted(files, key=lambda file: file.path)
        mark = CommitMetadata(
            self.job.origin,
            round=self._rounds,
            mode=self.job.kind,
            started_ms=self.clock_ms(),
            traceparent=self.job.trace or None,
            index_selection=iteration.strategy.value,
            index_input=index_stats([[(block.cube, block.rows) for block in file.blocks] for file in by_path]),
        )
        wanted = IndexRewrite.of(self._index, files, zone)
        self._begin("optimizing")
        version, figures = self.table.rewrite(wanted, mark)
        self._count(version, figures)
        self.control.reached("committed")

    def _set(self, properties: Mapping[str, str]) -> None:
        """Set the properties of a revision, and read the version that has them; no file is changed by it."""
        mark = CommitMetadata(self.job.origin, mode=SET_PROPERTIES, started_ms=self.clock_ms())
        self._begin("describing")
        self._commits.append(self.table.set_properties(properties, mark))
        self._checked()

    def _begin(self, phase: str) -> None:
        self.control.reached(phase)
        self.control.may_change()

    def _checked(self) -> Snapshot:
        """Read the newest version; raises what forbids to touch it."""
        snapshot = self._snapshot = self.table.snapshot()
        location, metadata = self.job.location, snapshot.metadata
        check_identity(location, metadata, self.job.table_uuid)
        check_table(location, metadata, snapshot.protocol, self.job.kind)
        if LAST_REVISION not in metadata.configuration:
            raise Unsupported(f"{location} has no Qbeast index", field=LAST_REVISION)
        self._index = QbeastIndex.of_snapshot(snapshot)
        found = refusal(snapshot, self._index)
        if found is not None:
            raise Unsupported(f"{location}: {found.message}", field=found.subject)
        self.boundary.check_files(location, snapshot.files)
        self.boundary.check_links(location, (file.path for file in snapshot.files))
        self._not_wanted = reason_not_wanted(self.job, metadata)
        return snapshot

    def _verified(self) -> TableJobOutcome:
        """Prove the rules of every revision, or of the one that is asked for, on all of its files."""
        asked, index = IndexJobOptions.decode(self.job.options), self._index
        revisions = sorted({file.revision for file in index.files if file.kind is FileClass.INDEXED})
        for number in revisions if asked.revision is None else [asked.revision]:
            for files in batches(index.of_revision(number), asked.budget_bytes or DEFAULT_BUDGET_BYTES):
                if self.control.should_stop():
                    return self._outcome(OptimizationResult((), IterationEnd.STOPPED), NOT_INDEXED_AT_ALL)
                rows = self.table.verify(IndexRewrite.of(index, files, self.job.policy.index_zone))
                blocks = sum(len(file.blocks) for file in files)
                self._add({"files_verified": len(files), "blocks_verified": blocks, "rows_verified": rows})
        return self._outcome(OptimizationResult((), IterationEnd.DONE), NOT_INDEXED_AT_ALL)

    @property
    def _known(self) -> Snapshot:
        """The version that the present iteration was chosen from."""
        return self._checked() if self._snapshot is None else self._snapshot

    def _options(self, snapshot: Snapshot) -> IndexOptions:
        """Return how the table is optimized."""
        options, _ = read_options(snapshot.metadata.configuration)
        asked = IndexJobOptions.decode(self.job.options)
        options = replace(options, sample=self.job.policy.index_sample, whole_revision=asked.whole_revision)
        if asked.strategy is not None:
            options = replace(options, only=Strategy(asked.strategy))
        if asked.revision is not None:
            options = replace(options, revision=asked.revision)
        if asked.budget_bytes is not None:
            options = replace(options, budget_bytes=asked.budget_bytes)
        return options

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

    def _outcome(self, result: OptimizationResult, idle: str) -> TableJobOutcome:
        """Return what was done; `idle`: why, where nothing was."""
        snapshot, figures = self._known, dict[str, int](self._figures)
        if result.end is IterationEnd.NO_PROGRESS:
            raise PermanentError(
                f"the index of {self.job.location} did not get better by iteration {self._rounds}: its files are "
                f"as they were. Versions {self._versions} are exact rewrites"
            )
        is_complete = result.end is IterationEnd.DONE or bool(self._not_wanted)
        if is_complete and not self._commits:
            self._new.require_none_refused()
        reason = self._not_wanted or ("" if figures else idle)
        return TableJobOutcome(snapshot.version, snapshot.metadata, tuple(self._commits), figures, is_complete, reason)

    @property
    def _versions(self) -> Mapping[str, int] | str:
        return ", ".join(map(str, self._commits)) or "none"
