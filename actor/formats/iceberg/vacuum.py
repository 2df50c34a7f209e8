"""Runs a vacuum of an Iceberg table: expires snapshots, then deletes what no snapshot needs that stays.

The expiry is one commit that removes exactly the planned snapshots, branches and tags. Iceberg's own `ExpireSnapshots`
does the same, but by its own clock and rule, and would delete the files in one call that can neither be stopped nor
slowed down. What is deleted is found in the metadata as they are after that commit.

Order makes it safe beside writers. The store is listed before the metadata are read, so every file that was committed
before the listing is known as such, and a metadata file that is not known then may be another catalog's. What new
snapshots need stays (`actor.vacuum.deletion`), and properties that differ from the first ones, a table that moved or
was undone, or another one end the run before it deletes more. Files are deleted in an order in which the rest can be
found by a later run, so nothing has to be remembered; only a whole run leaves its mark.

Last, delete files that apply to no data file are removed from the newest snapshot, in one commit. They are deleted as
the files of any other snapshot are, once those that have them expire.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import structlog

from actor.attempts import Attempts
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.vacuum.deletion import FIGURES, BatchDeletion, DueFile, PresentFile
from actor.vacuum.steps import VacuumLimits, VacuumStopped, as_of_ms, check_stop, end_mark, switched_off
from shared.errors import Conflict, RetryableError
from shared.formats.iceberg.dangling import DanglingSearch
from shared.formats.iceberg.manifests import Entry
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, VACUUM_KEY
from shared.formats.iceberg.orphans import young_since_ms
from shared.formats.iceberg.other_entries import metadata_folder, read_other_entries
from shared.formats.iceberg.positions import newest_position
from shared.formats.iceberg.retention import Expiry, check_may_expire, own_retention_s, plan_expiry
from shared.formats.iceberg.vacuum_plan import (
    Stage,
    StoreListing,
    Unneeded,
    find_unneeded,
    need_newer,
    read_past,
)
from shared.formats.iceberg.walk import Bodies, Read
from shared.formats.retention import retention_of_run_ms
from shared.jobs.options import VacuumOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.stored_file import StoredFile

OF_ICEBERG = ("snapshots_expired", "refs_expired", "delete_files_removed")
"""Figures that only a vacuum of an Iceberg table has."""

T = TypeVar("T")

log = structlog.get_logger()


class IcebergVacuumTable(Protocol):
    """Table as a vacuum needs it: its metadata, its expiry, and its store."""

    def refresh(self) -> TableHead:
        """Return the newest metadata; raises Unsupported or OtherTable for a table that must not be touched."""

    def expire(self, expiry: Expiry) -> None:
        """Commit the removal of snapshots, branches and tags from the metadata that `refresh` returned.

        Raises Conflict if others have committed since, and nothing was committed.
        """

    def remove_deletes(self, snapshot: int, deletes: Sequence[Entry], summary: Mapping[str, str]) -> None:
        """Commit the removal of delete files from a snapshot, as one that changes no data.

        Raises Conflict if main has another newest snapshot by then, and nothing was committed.
        """

    def read(self, path: str, length: int) -> bytes | None:
        """Return a file, or its first bytes (0: all of it); None if it is not there."""

    def list_files(self) -> Iterator[StoredFile]:
        """Yield every file below the table's folder."""

    def list_metadata(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files in the folder of the table's metadata, by their names in it."""

    def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        """Return the existing ones of these files."""

    def clock_ms(self) -> int:
        """Return the store's time in milliseconds since 1970."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; one that is not there is deleted already."""

    def end(self, mark: str) -> None:
        """Set the property that shows the end of a vacuum."""


@dataclass(slots=True)
class IcebergVacuum:
    """One run of a vacuum job on one table."""

    table: IcebergVacuumTable
    job: TableJob
    control: TableJobControl
    limits: VacuumLimits = field(default_factory=VacuumLimits)
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    pause: Callable[[float], object] = threading.Event().wait
    _figures: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys((*FIGURES, *OF_ICEBERG), 0)))
    _commits: list[int] = field(default_factory=list)
    _settings: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> TableJobOutcome:
        """Delete all that is due, or as much of it as the job may; raises what reading and deleting raise."""
        options = VacuumOptions.decode(self.job.options)
        started_ms = self.now_ms()
        head = self.table.refresh()
        self._settings = _settings(head)
        self.control.reached("listing")
        folder = metadata_folder(head)
        metadata = tuple(self.table.list_metadata(folder))
        listed = tuple(self.table.list_files()) if options.with_orphans else None
        head = self.table.refresh()
        reason = switched_off(self.job, head.metadata, options)
        if reason:
            return TableJobOutcome(newest_position(head).version, head.metadata, reason=reason)
        check_may_expire(head.metadata.configuration, self.job.location)
        retain_ms = retention_of_run_ms(self.job.policy, options, head.metadata.configuration, own_retention_s)
        self.control.may_change()
        now_ms = as_of_ms(started_ms, options, self.table.clock_ms())
        cutoff_ms = now_ms - retain_ms
        listing = None if listed is None else StoreListing(listed, young_since_ms(cutoff_ms, now_ms))
        left_out, is_complete = "", False
        try:
            self.check_settings(head)
            others = self.drive(read_other_entries(head, folder, metadata))
            versions, expiry = self._expire(head, cutoff_ms, now_ms)
            found = self.drive(find_unneeded(versions, expiry, listing, others))
            left_out, self._figures["files_not_recognized"] = found.left_out, found.unrecognized
            self._delete_all(found, versions[-1])
            self._remove_dangling()
            is_complete = True
        except VacuumStopped as stopped:
            left_out = str(stopped) or left_out
        # The decider waits for the end of its own runs alone: metadata that say nothing new would wake readers.
        has_done = bool(self._commits or self._figures["files_planned"]) or options.requested_ms is None
        if is_complete and has_done:
            self._end(started_ms, cutoff_ms, with_orphans=options.with_orphans)
        return TableJobOutcome(
            newest_position(head).version,
            head.metadata,
            tuple(self._commits),
            dict(self._figures),
            is_complete=is_complete,
            reason=left_out,
        )

    def _expire(self, head: TableHead, cutoff_ms: int, now_ms: int) -> tuple[tuple[TableHead, ...], Expiry]:
        """Expire what is due, and return all known metadata, with what is gone by the newest ones."""
        attempts = self._attempts()
        while attempts.again():
            versions = self.drive(read_past(head))
            expiry = plan_expiry(versions, cutoff_ms, now_ms)
            if not expiry.snapshots and not expiry.refs:
                return versions, expiry
            self.control.reached("expiring")
            self.control.may_change()
            try:
                self.table.expire(expiry)
            except Conflict:
                head = self.table.refresh()
                self.check_settings(head)
                continue
            after = self.table.refresh()
            self._check_expired(head, after, expiry)
            self._figures.update(snapshots_expired=len(expiry.snapshots), refs_expired=len(expiry.refs))
            self._commits.append(newest_position(after).version)
            self.control.reached("expired")
            self.check_settings(after)  # REST catalogs do not refuse an expiry because of new properties.
            # With commits of writers in between: what a branch or tag named there stays, though it is lost.
            known = {*head.records.previous, head.records.path}
            versions = (*versions, *self.drive(read_past(after, known)))
            # What could expire since then has to wait: its files are never deleted while the metadata have it.
            return versions, replace(plan_expiry(versions, cutoff_ms, now_ms), snapshots=frozenset(), refs=())
        raise Conflict(f"the expiry of {self.job.location} was refused {attempts.text}", kind="busy")

    def _attempts(self) -> Attempts:
        """Return attempts, each further one of which means that others committed since the metadata were read."""
        return Attempts(lambda: self.now_ms() / 1000, self.pause)

    def _check_expired(self, before: TableHead, after: TableHead, expiry: Expiry) -> None:
        """Raise RetryableError if more is gone than was planned: REST catalogs drop refs to a removed snapshot."""
        lost = sorted(before.refs.keys() - after.refs.keys() - set(expiry.refs))
        if lost:
            raise RetryableError(
                f"{self.job.location}: {', '.join(lost)} is gone since the expiry; another writer removed it, or moved "
                "it to a snapshot in the moment in which that expired; nothing was deleted"
            )

    def drive(self, walk: Generator[Read, Bodies, T]) -> T:
        """Read what a walk through the metadata asks for, until it ends."""
        try:
            wanted = next(walk)
            while True:
                check_stop(self.control, "reading")
                wanted = walk.send([self.table.read(path, wanted.length) for path in wanted.paths])
        except StopIteration as end:
            result: T = end.value
            return result

    def check_settings(self, head: TableHead) -> None:
        """End the run if the table's properties or its folder are not those that it began with."""
        if _settings(head) != self._settings:
            raise VacuumStopped(
                "the table's properties or its folder changed while the vacuum ran; the next run plans again"
            )

    def _delete_all(self, found: Unneeded, head: TableHead) -> None:
        target = _MetadataTarget(self, found, head)
        due = [DueFile(one.path, is_orphan=one.stage is Stage.ORPHAN) for one in target.planned.values()]
        BatchDeletion(target, self.job, self.control, self._figures, self.limits, self.pause).run(due)

    def _remove_dangling(self) -> None:
        """Remove the delete files that apply to no data file; where others commit too often, the next run does."""
        search = DanglingSearch()
        attempts = self._attempts()
        while attempts.again():
            head = self.table.refresh()
            self.check_settings(head)
            found = self.drive(search.find(head))
            if head.current is None or not found:
                return
            self.control.reached("removing")
            self.control.may_change()
            mark = CommitMetadata(self.job.origin, mode=self.job.kind, traceparent=self.job.trace or None)
            try:
                self.table.remove_deletes(head.current, found, {COMMIT_KEY: mark.encode()})
            except Conflict:
                continue
            self._figures["delete_files_removed"] = len(found)
            self._commits.append(newest_position(self.table.refresh()).version)
            self.control.reached("removed")
            return

    def _end(self, started_ms: int, cutoff_ms: int, *, with_orphans: bool) -> None:
        self.control.may_change()
        self.table.end(end_mark(self.job, started_ms, cutoff_ms, with_orphans=with_orphans).encode())
        self._commits.append(newest_position(self.table.refresh()).version)
        self.control.reached("committed")


class _MetadataTarget:
    """`DeletionTarget` of one table: its newest metadata say what is needed."""

    def __init__(self, vacuum: IcebergVacuum, found: Unneeded, head: TableHead) -> None:
        self._vacuum = vacuum
        self._found = found
        self._head = head
        self.planned = {one.path: one for one in found.ordered()}

    def present(self, batch: Sequence[DueFile]) -> Mapping[str, PresentFile]:
        """Return which files of a batch exist, with the sizes that are known of them."""
        existing = self._vacuum.table.existing([file.name for file in batch])
        return {file.name: PresentFile(self.planned[file.name].size_bytes) for file in batch if file.name in existing}

    def catch_up(self) -> None:
        """Need what the newest metadata need; raises RetryableError if the newest commit was undone."""
        head = self._vacuum.table.refresh()
        if self._head.current is not None and self._head.current not in head.snapshots:
            raise RetryableError(
                f"{self._vacuum.job.location}: snapshot {self._head.current}, which was the newest one, is gone; "
                "nothing more was deleted"
            )
        self._head = head
        self._vacuum.check_settings(head)
        self._vacuum.drive(need_newer(self._found, head))

    def needs(self, file: DueFile) -> bool:
        """Return whether a snapshot needs a file."""
        return not self._found.has(self.planned[file.name])

    def delete(self, names: Sequence[str]) -> None:
        """Delete files."""
        self._vacuum.table.delete(names)


def _settings(head: TableHead) -> Mapping[str, str]:
    """Return the properties of a table without the mark of a vacuum, and its folder (by an empty name)."""
    return {"": head.location} | {
        name: value for name, value in head.metadata.configuration.items() if name != VACUUM_KEY
    }
