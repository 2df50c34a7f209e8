"""Runs a vacuum of a Delta table: reads store and log, plans by the shared rule, and deletes (`actor.vacuum.deletion`).

Order makes it safe beside writers. The store is listed before the log is read, so every file that was committed before
the listing is known as such. Before a batch is deleted, the times of its files are read from the store: a file that was
written again inside the retention stays. What the commits since the plan name stays; a commit that changes properties
or protocol, or one that was replaced, stops the run before it deletes or commits anything else.

Nothing has to be remembered between runs: deleted files are not found again, so a run after a crash does the rest. Only
a run that did all of it commits the end of the vacuum, from which later runs and the decider know what is gone.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.vacuum.deletion import FIGURES, BatchDeletion, DueFile, PresentFile
from actor.vacuum.steps import VacuumLimits, VacuumStopped, as_of_ms, check_stop, end_mark, switched_off
from shared.errors import Corrupt, RetryableError
from shared.formats.delta_orphans import Kept, orphan_cutoff_ms
from shared.formats.delta_references import FileReference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, added_since, in_order, settings_text
from shared.formats.delta_vacuum_plan import VacuumInputs, VacuumPlan, plan_vacuum, retention_ms
from shared.jobs.options import VacuumOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.stored_file import StoredFile
from shared.table import TableMetadata

COMMITS_PER_STEP = 100
"""Commits that are read between two checks whether the job has to stop."""

FILES_PER_STEP = 10_000
"""Files that are listed between two such checks."""

log = structlog.get_logger()

Listing = tuple[StoredFile, ...] | None
Head = tuple[int, TableMetadata]


class VacuumTable(Protocol):
    """Table as a vacuum needs it: its newest snapshot, its commits, and its store."""

    def head(self) -> tuple[int, TableMetadata]:
        """Return the newest version and its metadata."""

    def live(self) -> Sequence[FileReference]:
        """Return the files of the snapshot that `head` read."""

    def tombstones(self) -> Sequence[Tombstone]:
        """Return the tombstones of the snapshot that `head` read."""

    def commit_times(self) -> Mapping[int, int]:
        """Return the time of each commit file that the log has, by version, in milliseconds since 1970."""

    def commit(self, version: int, time_ms: int | None = None) -> LoggedCommit | None:
        """Return one commit, None if it is not there; without a time, its file's is read."""

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder."""

    def stored(self, names: Sequence[str]) -> Mapping[str, StoredFile]:
        """Return the existing ones of these files."""

    def digest(self, version: int) -> str | None:
        """Return the digest of a commit's file, None if it is not there."""

    def clock_ms(self) -> int:
        """Return the store's time in milliseconds since 1970."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; one that is not there is deleted already."""

    def end(self, mark: CommitMetadata, figures: Mapping[str, int]) -> int:
        """Commit the end of a vacuum with this mark and return the version."""


@dataclass(slots=True)
class Vacuum:
    """One run of a vacuum job on one table."""

    table: VacuumTable
    job: TableJob
    control: TableJobControl
    limits: VacuumLimits = field(default_factory=VacuumLimits)
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    pause: Callable[[float], object] = threading.Event().wait
    _figures: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FIGURES, 0)))

    def run(self) -> TableJobOutcome:
        """Delete all that is due, or as much of it as the job may; raises what reading and deleting raise."""
        options = VacuumOptions.decode(self.job.options)
        started_ms = self.now_ms()
        head: Head | None = None
        try:
            listing = self._listing() if options.with_orphans else None
            head = self.table.head()
            return self._run(options, started_ms, listing, head)
        except VacuumStopped as stopped:
            version, metadata = head or self.table.head()
            figures, reason = dict(self._figures), str(stopped)
            return TableJobOutcome(version, metadata, figures=figures, is_complete=False, reason=reason)

    def _run(self, options: VacuumOptions, started_ms: int, listing: Listing, head: Head) -> TableJobOutcome:
        version, metadata = head
        reason = switched_off(self.job, metadata, options)
        if reason:
            return TableJobOutcome(version, metadata, reason=reason)
        retain_ms = retention_ms(self.job.policy, metadata, options)
        self.control.may_change()
        now_ms = as_of_ms(started_ms, options, self.table.clock_ms())
        settings = settings_text(metadata.table_uuid, metadata.configuration)
        seen = _Seen(version, self.table.digest(version), settings)
        inputs = VacuumInputs(
            version,
            tuple(column.physical for column in metadata.partition_columns),
            self.table.live(),
            self.table.tombstones(),
            self._commits(version, now_ms - retain_ms),
            listing,
        )
        plan = plan_vacuum(inputs, retain_ms, now_ms)
        self._figures["files_not_recognized"] = plan.kept.get(Kept.FOREIGN, 0)
        if not plan.files and options.requested_ms is not None:
            # The decider waits for the end of its own runs alone: a version that says nothing new would wake readers.
            reason = "nothing is to be deleted"
            return TableJobOutcome(version, metadata, figures=dict(self._figures), reason=reason)
        log.info(
            "vacuum_begins",
            table=self.job.location,
            job=self.job.origin.job,
            version=version,
            removed_before_ms=plan.cutoff_ms,
            files=plan.files,
            orphans=len(plan.orphans),
        )
        target = _LogTarget(self.table, self.job.location, plan, seen, orphan_cutoff_ms(plan.cutoff_ms, now_ms))
        BatchDeletion(target, self.job, self.control, self._figures, self.limits, self.pause).run(target.due())
        self.control.may_change()
        # What was copied here lately is younger than its removal; a later vacuum has to check it again.
        covered = plan.covered_before if self._figures["files_too_young"] else plan.covers_version
        mark = end_mark(self.job, started_ms, plan.cutoff_ms, version=covered, with_orphans=options.with_orphans)
        ended = self.table.end(mark, dict(self._figures))
        self.control.reached("committed")
        return TableJobOutcome(version, metadata, (ended,), dict(self._figures), reason=plan.left_out)

    def _listing(self) -> tuple[StoredFile, ...]:
        """List the store."""
        found: list[StoredFile] = []
        for file in self.table.list_files():
            if len(found) % FILES_PER_STEP == 0:
                check_stop(self.control, "listing", len(found))
            found.append(file)
        return tuple(found)

    def _commits(self, version: int, cutoff_ms: int) -> tuple[LoggedCommit, ...]:
        """Read the commits from the newest back to what an earlier vacuum covered.

        A commit that log cleanup deletes meanwhile ends the history that can be read, as those before it do.
        """
        times = self.table.commit_times()
        found: list[LoggedCommit] = []
        covered = -1
        wanted = [number for number in sorted(times, reverse=True) if number <= version]
        for count, number in enumerate(wanted):
            if count % COMMITS_PER_STEP == 0:
                check_stop(self.control, "reading", count, len(wanted))
            commit = self.table.commit(number, times[number])
            if commit is None:
                self._check_cleaned_up(number)
                break
            found.append(commit)
            covered = max(covered, commit.covers_version)
            if number <= covered and commit.time_ms < cutoff_ms:
                break
        if not found or found[0].version != version:
            raise RetryableError(f"{self.job.location}: the newest commit {version} is gone; nothing was deleted")
        try:
            return in_order(found)
        except Corrupt as gap:
            # A listing that log cleanup changed meanwhile looks like that; a real gap fails again, and is shown then.
            raise RetryableError(str(gap)) from gap

    def _check_cleaned_up(self, version: int) -> None:
        """Raise RetryableError unless all commits up to one that is gone are: log cleanup begins with the oldest."""
        left = [number for number in self.table.commit_times() if number <= version]
        if left:
            raise RetryableError(
                f"{self.job.location}: commit {version} is gone, and {len(left)} commits before it are not: "
                "the log is being cleaned up; nothing was deleted"
            )


@dataclass(frozen=True, slots=True)
class _Seen:
    """The newest commit that a run has read, with the digest of its file, and the settings that it was planned by."""

    version: int
    digest: str | None
    settings: str


@dataclass(slots=True)
class _LogTarget:
    """`DeletionTarget` of one table: its log says what is needed. `young_ms`: from when on an orphan is too young."""

    table: VacuumTable
    location: str
    plan: VacuumPlan
    seen: _Seen
    young_ms: int

    def due(self) -> list[DueFile]:
        """Return all that is to be deleted, orphans last."""
        return [*map(DueFile, self.plan.removed), *(DueFile(file.name, is_orphan=True) for file in self.plan.orphans)]

    def present(self, batch: Sequence[DueFile]) -> Mapping[str, PresentFile]:
        """Return which files of a batch exist; one that was written again inside the retention is young."""
        stored = self.table.stored([file.name for file in batch])
        young_from = {file.name: self.young_ms if file.is_orphan else self.plan.cutoff_ms for file in batch}
        return {
            name: PresentFile(file.size_bytes, is_young=file.modified_ms >= young_from[name])
            for name, file in stored.items()
        }

    def catch_up(self) -> None:
        """Need what commits after the newest one seen name: a restored file is live again.

        Other properties, or a protocol, stop the run: the next run decides by these.
        """
        seen = self.seen
        if seen.digest is None or self.table.digest(seen.version) != seen.digest:
            raise RetryableError(f"{self.location}: commit {seen.version} was undone; nothing more was deleted")
        version = seen.version
        while (commit := self.table.commit(version + 1)) is not None:
            if commit.settings not in ("", seen.settings):
                raise VacuumStopped("the table's properties changed while the vacuum ran; the next run plans again")
            self.plan.needed.add(*added_since([commit]))
            version = commit.version
        if version != seen.version:
            self.seen = replace(seen, version=version, digest=self.table.digest(version))

    def needs(self, file: DueFile) -> bool:
        """Return whether a version needs a file: an orphan is named as the store spells it."""
        return self.plan.needed.may_be(file.name) if file.is_orphan else file.name in self.plan.needed

    def delete(self, names: Sequence[str]) -> None:
        """Delete files."""
        self.table.delete(names)
