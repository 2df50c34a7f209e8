"""Runs a vacuum: reads store and log, plans by the shared rule, and deletes in batches at a bounded rate.

Order makes it safe beside writers. The store is listed before the log is read, so every file that was committed before
the listing is known as such. Before a batch is deleted, the times of its files are read from the store: a file that was
written again inside the retention stays. Then the commits since the plan are read, and what they name stays; a commit
that changes properties or protocol, or one that was replaced, stops the run before it deletes or commits anything else.

Nothing has to be remembered between runs: deleted files are not found again, so a run after a crash does the rest. Only
a run that did all of it commits the end of the vacuum, from which later runs and the decider know what is gone.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

import structlog

from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.vacuum_steps import DeletionPace, VacuumLimits, as_of_ms, switched_off
from shared.commit_metadata import CommitMetadata
from shared.errors import Corrupt, RetryableError
from shared.formats.delta_orphans import orphan_cutoff_ms
from shared.formats.delta_references import FileReference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone, added_since, in_order, settings_text
from shared.formats.delta_vacuum_plan import VacuumInputs, VacuumPlan, plan_vacuum, retention_ms
from shared.stored_file import StoredFile
from shared.table import TableMetadata
from shared.vacuum_options import VacuumOptions

COMMITS_PER_STEP = 100
"""Commits that are read between two checks whether the job has to stop."""

FILES_PER_STEP = 10_000
"""Files that are listed between two such checks."""

log = structlog.get_logger()


class VacuumTable(Protocol):
    """What a vacuum needs of one table: its newest snapshot, its commits, and its store."""

    def head(self) -> tuple[int, TableMetadata]:
        """Return the newest version and its metadata."""

    def live(self) -> Sequence[FileReference]:
        """Return the files of the snapshot that `head` read."""

    def tombstones(self) -> Sequence[Tombstone]:
        """Return the tombstones of the snapshot that `head` read."""

    def commit_times(self) -> Mapping[int, int]:
        """Return the time of each commit file that the log has, by version, in milliseconds since 1970."""

    def commit(self, version: int, time_ms: int | None = None) -> LoggedCommit | None:
        """Return one commit, None if it is not there; without a time, that of its file is read."""

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder."""

    def stored(self, names: Sequence[str]) -> Mapping[str, StoredFile]:
        """Return those of these files that exist."""

    def digest(self, version: int) -> str | None:
        """Return the digest of a commit's file, None if it is not there."""

    def clock_ms(self) -> int:
        """Return the store's time in milliseconds since 1970."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; one that is not there is deleted already."""

    def end(self, mark: CommitMetadata, figures: Mapping[str, int]) -> int:
        """Commit the end of a vacuum with this mark and return the version."""


@dataclass(slots=True)
class _Progress:
    """What was deleted so far."""

    named_files: int = 0
    named_bytes: int = 0
    orphan_files: int = 0
    orphan_bytes: int = 0
    missing: int = 0
    rescued: int = 0
    young: int = 0
    live: int = 0

    def count(
        self,
        batch: Sequence[str],
        stored: Mapping[str, StoredFile],
        deleted: Mapping[str, StoredFile],
        *,
        needed: AbstractSet[str],
        orphans: AbstractSet[str],
    ) -> None:
        """Count one batch: the files that exist, those that were deleted, and those that are needed again."""
        self.rescued += len(needed)
        self.missing += sum(name not in stored and name not in needed for name in batch)
        self.young += sum(name not in deleted and name not in needed for name in stored)
        self.named_files += sum(name not in orphans for name in deleted)
        self.named_bytes += sum(file.size_bytes for name, file in deleted.items() if name not in orphans)
        self.orphan_files += sum(name in orphans for name in deleted)
        self.orphan_bytes += sum(file.size_bytes for name, file in deleted.items() if name in orphans)

    def figures(self, plan: VacuumPlan) -> dict[str, int]:
        """Return the figures of the report."""
        return {
            "files_deleted": self.named_files + self.orphan_files,
            "bytes_freed": self.named_bytes + self.orphan_bytes,
            "orphan_files_deleted": self.orphan_files,
            "orphan_bytes_freed": self.orphan_bytes,
            "files_missing": self.missing,
            "files_live_again": self.rescued,
            "files_deleted_and_live": self.live,
            "files_too_young": self.young,
            "files_planned": plan.files,
        }


@dataclass(slots=True)
class Vacuum:
    """One run of a vacuum job on one table."""

    table: VacuumTable
    job: TableJob
    control: TableJobControl
    limits: VacuumLimits = field(default_factory=VacuumLimits)
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    pause: Callable[[float], object] = threading.Event().wait

    def run(self) -> TableJobOutcome:
        """Delete all that is due, or as much of it as the job may; raises what reading and deleting raise."""
        options = VacuumOptions.decode(self.job.options)
        started_ms = self.now_ms()
        listing = self._listing() if options.with_orphans else None
        version, metadata = self.table.head()
        if options.with_orphans and listing is None:
            return TableJobOutcome(version, metadata, is_complete=False)
        reason = switched_off(self.job, metadata, options)
        if reason:
            return TableJobOutcome(version, metadata, reason=reason)
        retain_ms = retention_ms(self.job.policy, metadata, options)
        self.control.may_change()
        now_ms = as_of_ms(started_ms, options, self.table.clock_ms())
        settings = settings_text(metadata.table_uuid, metadata.configuration)
        seen = _Seen(version, self.table.digest(version), settings)
        commits = self._commits(version, now_ms - retain_ms)
        if commits is None:
            return TableJobOutcome(version, metadata, is_complete=False)
        inputs = VacuumInputs(
            version,
            tuple(column.physical for column in metadata.partition_columns),
            self.table.live(),
            self.table.tombstones(),
            commits,
            listing,
        )
        plan = plan_vacuum(inputs, retain_ms, now_ms)
        done = _Progress()
        if not plan.files and options.requested_ms is not None:
            # The decider waits for the end of its own runs alone: a version that says nothing new would wake readers.
            return TableJobOutcome(version, metadata, figures=done.figures(plan), reason="nothing is to be deleted")
        log.info(
            "vacuum_begins",
            table=self.job.location,
            job=self.job.origin.job,
            version=version,
            removed_before_ms=plan.cutoff_ms,
            files=plan.files,
            orphans=len(plan.orphans),
        )
        if not self._delete_all(plan, done, seen, orphan_cutoff_ms(plan.cutoff_ms, now_ms)):
            return TableJobOutcome(version, metadata, figures=done.figures(plan), is_complete=False)
        self.control.may_change()
        mark = CommitMetadata(
            self.job.origin,
            started_ms=started_ms,
            # What was copied here lately is younger than its removal; a later vacuum has to check it again.
            vacuumed_version=plan.covered_before if done.young else plan.covers_version,
            vacuumed_until_ms=plan.cutoff_ms,
            vacuumed_orphans=int(options.with_orphans),
            traceparent=self.job.trace or None,
        )
        ended = self.table.end(mark, done.figures(plan))
        self.control.reached("committed")
        return TableJobOutcome(version, metadata, (ended,), done.figures(plan))

    def _listing(self) -> tuple[StoredFile, ...] | None:
        """List the store; None if the job is to stop."""
        found: list[StoredFile] = []
        for file in self.table.list_files():
            if len(found) % FILES_PER_STEP == 0:
                self.control.reached("listing", len(found))
                if self.control.should_stop():
                    return None
            found.append(file)
        return tuple(found)

    def _commits(self, version: int, cutoff_ms: int) -> tuple[LoggedCommit, ...] | None:
        """Read the commits from the newest back to what an earlier vacuum covered; None if the job is to stop.

        A commit that log cleanup deletes meanwhile ends the history that can be read, as those before it do.
        """
        times = self.table.commit_times()
        found: list[LoggedCommit] = []
        covered = -1
        wanted = [number for number in sorted(times, reverse=True) if number <= version]
        for count, number in enumerate(wanted):
            if count % COMMITS_PER_STEP == 0:
                self.control.reached("reading", count, len(wanted))
                if self.control.should_stop():
                    return None
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

    def _delete_all(self, plan: VacuumPlan, done: _Progress, seen: "_Seen", young_ms: int) -> bool:
        """Delete in batches; False if the job was asked to stop before the end, or the table's properties changed."""
        orphans = {file.name for file in plan.orphans}
        names = iter((*plan.removed, *(file.name for file in plan.orphans)))
        pace, count = DeletionPace(self.limits.files_per_s, self.pause), 0
        gone: tuple[str, ...] = ()
        while batch := tuple(islice(names, self.limits.batch)):
            self.control.reached("deleting", count, plan.files)
            if self.control.should_stop():
                return False
            stored = self.table.stored(batch)
            # After the store's answer, which takes a while: the log is as new as can be when the batch is deleted.
            newer = self._need_newer(plan, seen)
            if newer is None:
                return False
            seen = newer
            done.live += self._report_live(plan, gone)
            needed = {name for name in batch if _is_needed(plan, name, is_orphan=name in orphans)}
            old = {
                name: file
                for name, file in stored.items()
                if name not in needed and file.modified_ms < (young_ms if name in orphans else plan.cutoff_ms)
            }
            self.control.may_change()
            log.info("vacuum_deletes", table=self.job.location, job=self.job.origin.job, files=sorted(old))
            self.table.delete(gone := tuple(old))
            done.count(batch, stored, old, needed=needed, orphans=orphans)
            self.control.measured(done.figures(plan))
            count += len(batch)
            pace.keep(count)
        # The end is committed into the history that was planned for, or into none.
        is_same = self._need_newer(plan, seen) is not None
        done.live += self._report_live(plan, gone)
        return is_same

    def _report_live(self, plan: VacuumPlan, deleted: Sequence[str]) -> int:
        """Log the files of a batch that a commit made live again in the moment of their deletion; return how many."""
        found = sorted(name for name in deleted if name in plan.needed)
        if found:
            log.error("vacuum_deleted_live_files", table=self.job.location, job=self.job.origin.job, files=found)
        return len(found)

    def _need_newer(self, plan: VacuumPlan, seen: "_Seen") -> "_Seen | None":
        """Need what commits after `seen` name, and return the newest of them: a restored file is live again.

        None where one of them has other properties or a protocol: the next run decides by these. Raises RetryableError
        where the log was undone.
        """
        if seen.digest is None or self.table.digest(seen.version) != seen.digest:
            raise RetryableError(f"{self.job.location}: commit {seen.version} was undone; nothing more was deleted")
        version = seen.version
        while (commit := self.table.commit(version + 1)) is not None:
            if commit.settings not in ("", seen.settings):
                return None
            plan.needed.add(*added_since([commit]))
            version = commit.version
        return seen if version == seen.version else replace(seen, version=version, digest=self.table.digest(version))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The newest commit that a run has read, with the digest of its file, and the settings that it was planned by."""

    version: int
    digest: str | None
    settings: str


def _is_needed(plan: VacuumPlan, name: str, *, is_orphan: bool) -> bool:
    """Return whether a version needs a file: an orphan is named as the store spells it."""
    return plan.needed.may_be(name) if is_orphan else name in plan.needed
