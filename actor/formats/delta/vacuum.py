"""Runs a vacuum: reads store and log, plans by the shared rule, and deletes in batches at a bounded rate.

Order makes it safe beside writers. The store is listed before the log is read, so every file that was committed before
the listing is known as such. Before each batch the commits since then are read, and what they name stays. Each file is
asked for before it is deleted: one that was written again inside the retention stays.

Nothing has to be remembered between runs: deleted files are not found again, so a run after a crash does the rest. Only
a run that did all of it commits the end of the vacuum, from which later runs and the decider know what is gone.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import structlog

from actor.ports import TableJob, TableJobControl, TableJobOutcome
from shared.commit_metadata import CommitMetadata
from shared.errors import Corrupt, RetryableError
from shared.formats.delta_references import FileReference
from shared.formats.delta_vacuum import LoggedCommit, StoredFile, Tombstone, added_since, in_order, orphan_cutoff_ms
from shared.formats.delta_vacuum_plan import VacuumInputs, VacuumPlan, plan_vacuum, retention_ms
from shared.properties import read_properties
from shared.table import TableMetadata
from shared.vacuum_options import VacuumOptions

COMMITS_PER_STEP = 100
"""Commits read between two looks at whether the job is to stop."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class VacuumLimits:
    """batch: files between two looks at the log. files_per_s: mean rate of deletions, which spares the store."""

    batch: int = 100
    files_per_s: float = 200.0


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
        """Return one commit, None if it is not there; without a time, its file is asked for it."""

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder."""

    def stored(self, names: Sequence[str]) -> Mapping[str, StoredFile]:
        """Return those of these files that exist."""

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

    def figures(self, plan: VacuumPlan) -> dict[str, int]:
        """Return the figures of the report."""
        return {
            "files_deleted": self.named_files + self.orphan_files,
            "bytes_freed": self.named_bytes + self.orphan_bytes,
            "orphan_files_deleted": self.orphan_files,
            "orphan_bytes_freed": self.orphan_bytes,
            "files_missing": self.missing,
            "files_live_again": self.rescued,
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
        self.control.reached("listing")
        listing = tuple(self.table.list_files()) if options.with_orphans else None
        version, metadata = self.table.head()
        reason = self._switched_off(metadata)
        if reason:
            return TableJobOutcome(version, metadata, reason=reason)
        retain_ms = retention_ms(self.job.policy, metadata, options)
        commits = self._commits(version, started_ms - retain_ms)
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
        plan = plan_vacuum(inputs, retain_ms, started_ms)
        done = _Progress()
        if not self._delete_all(plan, done, orphan_cutoff_ms(plan.cutoff_ms, started_ms)):
            return TableJobOutcome(version, metadata, figures=done.figures(plan), is_complete=False)
        self.control.may_change()
        mark = CommitMetadata(
            self.job.origin,
            started_ms=started_ms,
            # What was copied here lately is younger than its removal; a later vacuum has to look at it again.
            vacuumed_version=plan.covered_before if done.young else plan.covers_version,
            vacuumed_until_ms=plan.cutoff_ms,
            vacuumed_orphans=int(options.with_orphans),
        )
        ended = self.table.end(mark, done.figures(plan))
        self.control.reached("committed")
        return TableJobOutcome(version, metadata, (ended,), done.figures(plan))

    def _switched_off(self, metadata: TableMetadata) -> str:
        """Return why an automatic vacuum is not wanted any more: the properties may be newer than the job."""
        if self.job.even_if_disabled:
            return ""
        own = read_properties(metadata.configuration).values
        if own.get("enabled") is False or own.get("vacuum") is False:
            return "the table's properties switch the vacuum off"
        return ""

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

    def _delete_all(self, plan: VacuumPlan, done: _Progress, young_ms: int) -> bool:
        """Delete in batches; False if the job was asked to stop before the end."""
        orphans = {file.name: file for file in plan.orphans}
        names = iter((*plan.removed, *orphans))
        seen, begun_s, count = plan.version, time.monotonic(), 0
        while batch := tuple(islice(names, self.limits.batch)):
            self.control.reached("deleting", count, plan.files)
            if self.control.should_stop():
                return False
            seen = self._need_newer(plan, seen)
            due = [name for name in batch if name not in plan.needed]
            stored = self.table.stored(due)
            bound = {name: young_ms if name in orphans else plan.cutoff_ms for name in stored}
            old = {name: file for name, file in stored.items() if file.modified_ms < bound[name]}
            self.control.may_change()
            self.table.delete(tuple(old))
            done.rescued += len(batch) - len(due)
            done.young += len(stored) - len(old)
            done.missing += len(due) - len(stored)
            done.named_files += sum(name not in orphans for name in old)
            done.named_bytes += sum(file.size_bytes for name, file in old.items() if name not in orphans)
            done.orphan_files += sum(name in orphans for name in old)
            done.orphan_bytes += sum(file.size_bytes for name, file in old.items() if name in orphans)
            count += len(batch)
            self._pace(count, begun_s)
        return True

    def _need_newer(self, plan: VacuumPlan, seen: int) -> int:
        """Need what commits after `seen` name, and return the newest of them: a restored file is live again."""
        while (commit := self.table.commit(seen + 1)) is not None:
            plan.needed.add(*added_since([commit]))
            seen = commit.version
        return seen

    def _pace(self, count: int, begun_s: float) -> None:
        early_s = count / self.limits.files_per_s - (time.monotonic() - begun_s)
        if early_s > 0:
            self.pause(early_s)
