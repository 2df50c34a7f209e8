"""Steps of a vacuum: whether it is still wanted, since when its retention counts, its rate, its stop and its mark."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from actor.ports import TableJob, TableJobControl
from shared.jobs.options import VacuumOptions
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.properties import policy_digest, read_properties
from shared.table import TableMetadata


class VacuumStopped(Exception):  # noqa: N818 - no error: the job was asked to stop, or its table is another one now
    """The run ends between two steps; carries the reason as a sentence, empty if it was asked to."""


@dataclass(frozen=True, slots=True)
class VacuumLimits:
    """batch: files between two reads of the metadata. files_per_s: mean rate of deletions, which spares the store."""

    batch: int = 100
    files_per_s: float = 200.0


@dataclass(slots=True)
class DeletionPace:
    """Keeps deletions to their mean rate, counted from the first."""

    files_per_s: float
    pause: Callable[[float], object] = threading.Event().wait
    begun_s: float = field(default_factory=time.monotonic)

    def keep(self, count: int) -> None:
        """Wait until so many files may have been deleted."""
        early_s = count / self.files_per_s - (time.monotonic() - self.begun_s)
        if early_s > 0:
            self.pause(early_s)


def switched_off(job: TableJob, metadata: TableMetadata, options: VacuumOptions) -> str:
    """Return why an automatic vacuum is not wanted any more: the properties may be newer than the job."""
    own = read_properties(metadata.configuration).values
    if not job.even_if_disabled and (own.get("enabled") is False or own.get("vacuum") is False):
        return "the table's properties switch the vacuum off"
    is_requested, decided = options.requested_ms is not None, job.policy_digest
    if not is_requested and decided and policy_digest(metadata.configuration) != decided:
        return "the table's properties changed since the decision, which is made again"
    return ""


def as_of_ms(started_ms: int, options: VacuumOptions, clock_ms: int) -> int:
    """Return the moment from which the retention counts back: the earliest of all clocks, and of the request."""
    requested_ms = started_ms if options.requested_ms is None else options.requested_ms
    return min(started_ms, requested_ms, clock_ms)


def check_stop(control: TableJobControl, point: str, done: int = 0, total: int = 0) -> None:
    """Report progress at a point; raises VacuumStopped if the job is to end."""
    control.reached(point, done, total)
    if control.should_stop():
        raise VacuumStopped


def end_mark(job: TableJob, started_ms: int, cutoff_ms: int, *, version: int = 0, with_orphans: bool) -> CommitMetadata:
    """Return the mark of a whole run: what was removed before `cutoff_ms`, or up to a version, is gone."""
    return CommitMetadata(
        job.origin,
        started_ms=started_ms,
        vacuumed_version=version,
        vacuumed_until_ms=cutoff_ms,
        vacuumed_orphans=int(with_orphans),
        traceparent=job.trace or None,
    )
