"""What vacuums of all formats share: whether one is still wanted, since when its retention counts, and its rate."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from actor.ports import TableJob
from shared.properties import policy_digest, read_properties
from shared.table import TableMetadata
from shared.vacuum_options import VacuumOptions


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
