"""Optimizes the index of a table: the library rewrites files that are chosen here, iteration by iteration.

The library loads its files before its transaction begins and registers none of them as read, so by itself it would
write the rows of a file again that another writer removed meanwhile. A check inside its transaction aborts such a
commit; what is committed all the same is compared with the log here, and never passes in silence.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from actor.formats.delta.preflight import check_table
from actor.formats.qbeast.index_commit import IndexCommit, check_commit
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.checks import check_identity
from shared.errors import Conflict, LakewrightError, PermanentError, RetryableError, Unsupported
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    IndexOptions,
    Iteration,
    IterationEnd,
    OptimizationResult,
    run_iterations,
)
from shared.formats.qbeast.names import LAST_REVISION
from shared.formats.qbeast.options import read_options, without_indexing
from shared.formats.qbeast.status import refusal
from shared.index.stats import index_stats
from shared.jobs.index_options import IndexJobOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One call of the library: rewrite these files, chosen at a version, whose rows are known.

    `user_metadata` goes into the commit; `key` identifies the call to the check inside of its transaction.
    """

    key: str
    version: int
    paths: tuple[str, ...]
    rows: int
    user_metadata: str


class IndexLibrary(Protocol):
    """One table, as the library and its log see it."""

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files."""

    def optimize(self, call: LibraryCall) -> None:
        """Let the library rewrite files; raises Conflict where others took some of them, and nothing was committed."""

    def commits(self, after: int) -> Sequence[IndexCommit]:
        """Return the commits after a version, in order."""


@dataclass(slots=True)
class IndexJob:
    """One run on one table; `clock_ms` is the time that commits carry."""

    library: IndexLibrary
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

        Raises Unsupported for a table without an index or with one that the library would damage, Conflict where others
        were faster again and again, Corrupt where a commit differs from its plan, PermanentError without progress.
        """
        # Before the options are read: they need a table that may be touched.
        snapshot = self._checked()
        options, left_out = self._options(snapshot)
        result = run_iterations(self, options, self._must_stop)
        return self._outcome(result, left_out)

    def read(self) -> QbeastIndex:
        """Return the index at the newest version, which has been checked."""
        return QbeastIndex.of_snapshot(self._checked())

    def optimize(self, iteration: Iteration) -> None:
        """Let the library rewrite the files of an iteration, and compare its commit with the plan."""
        snapshot = self._known
        self._rounds += 1
        origin = self.job.origin
        by_path = sorted(iteration.files, key=lambda file: file.path)
        mark = CommitMetadata(
            origin,
            round=self._rounds,
            mode=self.job.kind,
            started_ms=self.clock_ms(),
            traceparent=self.job.trace or None,
            index_selection=iteration.strategy.value,
            index_input=index_stats([[(block.cube, block.rows) for block in file.blocks] for file in by_path]),
        )
        rows = sum(file.rows for file in iteration.files)
        call = LibraryCall(f"{origin.job}/{origin.token}", snapshot.version, iteration.paths, rows, mark.encode())
        self.control.reached("optimizing")
        self.control.may_change()
        failure = self._call(call)
        commits = self.library.commits(snapshot.version)
        ours = [commit for commit in commits if commit.write_id == mark.write_id]
        if ours:
            # Also after a failure: the commit may have been made before the answer was lost.
            check_commit(self.job.location, iteration, commits, ours)
            self._count(ours[0])
            self.control.reached("compared")
        elif failure is not None:
            raise failure

    def _call(self, call: LibraryCall) -> LakewrightError | None:
        """Call the library; returns a failure after which only the log shows whether it committed."""
        try:
            self.library.optimize(call)
        except Conflict:
            raise
        except RetryableError as problem:
            return problem
        return None

    def _checked(self) -> Snapshot:
        """Read the newest version; raises what forbids to touch it."""
        snapshot = self._snapshot = self.library.snapshot()
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

    @property
    def _known(self) -> Snapshot:
        """The version that the present iteration was chosen from."""
        return self._checked() if self._snapshot is None else self._snapshot

    def _options(self, snapshot: Snapshot) -> tuple[IndexOptions, str]:
        """Return how the table is optimized, and a sentence about what this release of the library cannot do."""
        options, _ = read_options(snapshot.metadata.configuration)
        options = replace(options, sample=self.job.policy.index_sample)
        asked = IndexJobOptions.decode(self.job.options)
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

    def _count(self, commit: IndexCommit) -> None:
        self._commits.append(commit.version)
        for name, count in commit.figures().items():
            self._figures[name] = self._figures.get(name, 0) + count
        self._figures["iterations"] = len(self._commits)
        self.control.measured(self._figures)

    def _outcome(self, result: OptimizationResult, left_out: str) -> TableJobOutcome:
        snapshot, figures = self._known, dict[str, int](self._figures)
        if result.end is IterationEnd.NO_PROGRESS:
            raise PermanentError(
                f"the index of {self.job.location} did not get better by iteration {self._rounds}: the library ignored "
                f"the files that it was given, or wrote them as they were. Versions {self._versions} are exact rewrites"
            )
        is_complete = result.end is IterationEnd.DONE or bool(self._not_wanted)
        reason = self._not_wanted or ("" if figures else left_out or "nothing in the index is eligible for a rewrite")
        return TableJobOutcome(snapshot.version, snapshot.metadata, tuple(self._commits), figures, is_complete, reason)

    @property
    def _versions(self) -> Mapping[str, int] | str:
        return ", ".join(map(str, self._commits)) or "none"
