"""Deletes what a vacuum has planned, in batches at a bounded rate: one loop for the tables of every format.

Order makes it safe beside writers. The store is asked for a batch first, which takes a while; then what was committed
since is read, so that the table is known as new as can be when the batch is deleted, and what it needs again stays.
After the last batch it is read once more: a run marks its end only in the history that it was planned for.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import structlog

from actor.ports import TableJob, TableJobControl
from actor.vacuum.steps import DeletionPace, VacuumLimits, check_stop

log = structlog.get_logger()

FIGURES = (
    "files_planned",
    "files_deleted",
    "bytes_freed",
    "orphan_files_deleted",
    "orphan_bytes_freed",
    "files_missing",
    "files_live_again",
    "files_deleted_and_live",
    "files_too_young",
    "files_not_recognized",
)
"""Figures in the report of a vacuum, whatever the format."""


@dataclass(frozen=True, slots=True)
class DueFile:
    """A file that is to be deleted, by its name in the store."""

    name: str
    is_orphan: bool = False


@dataclass(frozen=True, slots=True)
class PresentFile:
    """A file as the store has it; `is_young`: it was written again since, and is due later."""

    size_bytes: int
    is_young: bool = False


class DeletionTarget(Protocol):
    """One table whose files are deleted, as the format knows it."""

    def present(self, batch: Sequence[DueFile]) -> Mapping[str, PresentFile]:
        """Return which files of a batch exist."""

    def catch_up(self) -> None:
        """Learn what was committed since the last call.

        Raises VacuumStopped where the run has to end because of it, and RetryableError where the history was undone.
        """

    def needs(self, file: DueFile) -> bool:
        """Return whether a version needs a file, as far as it is known."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files in this order; one that is not there is deleted already."""


@dataclass(slots=True)
class BatchDeletion:
    """The deletions of one vacuum, which are counted in its figures."""

    target: DeletionTarget
    job: TableJob
    control: TableJobControl
    figures: Counter[str]
    limits: VacuumLimits = field(default_factory=VacuumLimits)
    pause: Callable[[float], object] = threading.Event().wait

    def run(self, files: Sequence[DueFile]) -> None:
        """Delete all that is not needed again; raises VacuumStopped where the run ends before, and LeaseLost."""
        self.figures["files_planned"] = len(files)
        pace, count = DeletionPace(self.limits.files_per_s, self.pause), 0
        gone: tuple[DueFile, ...] = ()
        left = iter(files)
        while batch := tuple(islice(left, self.limits.batch)):
            check_stop(self.control, "deleting", count, len(files))
            present = self.target.present(batch)
            self._catch_up(gone)
            gone = self._delete(batch, present)
            count += len(batch)
            pace.keep(count)
        self._catch_up(gone)

    def _delete(self, batch: Sequence[DueFile], present: Mapping[str, PresentFile]) -> tuple[DueFile, ...]:
        """Delete what may go of a batch, and return it."""
        unneeded = [file for file in batch if not self.target.needs(file)]
        there = [file for file in unneeded if file.name in present]
        old = tuple(file for file in there if not present[file.name].is_young)
        names = [file.name for file in old]
        self.control.may_change()
        log.info("vacuum_deletes", table=self.job.location, job=self.job.origin.job, files=names)
        self.target.delete(names)
        for file in old:
            self.figures["files_deleted"] += 1
            self.figures["bytes_freed"] += present[file.name].size_bytes
            self.figures["orphan_files_deleted"] += file.is_orphan
            self.figures["orphan_bytes_freed"] += file.is_orphan * present[file.name].size_bytes
        self.figures["files_live_again"] += len(batch) - len(unneeded)
        self.figures["files_missing"] += len(unneeded) - len(there)
        self.figures["files_too_young"] += len(there) - len(old)
        self.control.measured(dict(self.figures))
        return old

    def _catch_up(self, deleted: Sequence[DueFile]) -> None:
        """Learn what is new, and report files that a commit made live again in the moment of their deletion."""
        try:
            self.target.catch_up()
        finally:
            found = sorted(file.name for file in deleted if self.target.needs(file))
            self.figures["files_deleted_and_live"] += len(found)
            if found:
                log.error("vacuum_deleted_live_files", table=self.job.location, job=self.job.origin.job, files=found)
