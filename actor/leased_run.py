"""A claimed job of any kind until its end: its lease, and how a failure or a lost lease ends it.

What it does in between is its kind's business: `job_run` for a partition, `table_job_run` for a table as a whole.
"""

from typing import Protocol

import structlog

from actor.slot_queue import HeldJob
from shared import tracing
from shared.errors import InvalidInput, LeaseLost, OtherTable, PermanentError, Unsupported
from shared.prices import NOTHING_USED, Usage
from shared.queue.model import Claim, FinishOutcome, RunResult, StopReason

log = structlog.get_logger()


class Report(Protocol):
    """Report of a run so far, in the form that `finish` sends."""

    @property
    def satisfied_version(self) -> int:
        """The newest version whose requests the run has satisfied, -1 for none."""
        ...

    @property
    def cost_bytes(self) -> int:
        """Bytes that the run is charged with."""
        ...

    @property
    def usage(self) -> Usage:
        """Usage of the store; the run's time on cores is not the report's to know."""
        ...

    def encode(self, usage: Usage) -> str:
        """Write the report, with all that the run used, as JSON text."""
        ...

    def counters(self) -> dict[str, int]:
        """Counters that the run adds to the funnel."""
        ...

    def measures(self) -> dict[str, int]:
        """Measures from which the decider learns."""
        ...


class LeasedRun:
    """One run of a claimed job; not safe to share between threads."""

    def __init__(self, held: HeldJob) -> None:
        self.claim: Claim = held.claim
        self.lease = held.lease
        self.verdict = RunResult.FAIL
        self.error = ""
        self.is_over = False
        self.is_lost = False
        self.core_ms = 0
        self.log = log.bind(job=held.claim.id, token=held.claim.token)
        self.span = held.span

    @property
    def result(self) -> Report | None:
        """The report as far as it goes; None if the job was not opened."""
        raise NotImplementedError

    @property
    def refusals(self) -> str | None:
        """Refusals to be remembered; None: nothing new."""
        raise NotImplementedError

    @property
    def usage(self) -> Usage:
        """Usage of cores and of the store so far."""
        return Usage(core_ms=self.core_ms) + (self.result.usage if self.result else NOTHING_USED)

    def lose(self, lost: LeaseLost) -> None:
        """End the job without a report: it belongs to another actor by now."""
        self.log.warning("lease_lost", error=str(lost))
        self.is_over = self.is_lost = True
        tracing.fail(self.span, type(lost).__name__)

    def fail(self, failure: Exception) -> None:
        """End the job with what ended it."""
        self.is_over = True
        self.error = f"{type(failure).__name__}: {failure}"
        tracing.fail(self.span, type(failure).__name__)
        if self.lease.stop_reason is not None:
            # Cancelled inside a group, because it did not end when it was asked to: that is no failure of the job.
            self.verdict = stopped_result(self.lease.stop_reason)
        elif _is_fault_of_table(failure):
            self.verdict, self.error = RunResult.CANCELLED, str(failure)
        elif _cannot_be_retried(failure):
            self.verdict = RunResult.QUARANTINE
        self.log.warning(
            "job_failed", run_result=self.verdict, error=self.error, exc_info=self.verdict is RunResult.FAIL
        )

    def log_end(self, outcome: FinishOutcome) -> None:
        """Log how the job was reported."""
        self.log.info("job_finished", run_result=self.verdict, outcome=outcome)


def stopped_result(stop_reason: str | None) -> RunResult:
    """Return the result of a run that stopped before its work was done: only a cancelled job does not come back."""
    return RunResult.CANCELLED if stop_reason == StopReason.CANCEL else RunResult.YIELD


def _cannot_be_retried(failure: Exception) -> bool:
    """Return whether the same job fails in the same way again: it is kept, and tried once every six hours."""
    is_of_place = isinstance(failure, InvalidInput) and failure.field == "location"
    return isinstance(failure, PermanentError | InvalidInput) and not is_of_place


def _is_fault_of_table(failure: Exception) -> bool:
    """Return whether no actor can ever run the job; a location that this one cannot access is another matter."""
    return isinstance(failure, OtherTable) or (isinstance(failure, Unsupported) and failure.field != "location")
