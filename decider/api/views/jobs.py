"""Views of jobs and finished runs; payload, result and progress are JSON of other components and read leniently.

A job whose payload cannot be read is still shown: a list must not fail because of one row.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from decider.api.schemas.jobs import CancelResult, JobEvent, JobSummary
from decider.api.schemas.queue import MoveResult
from decider.web.base_model import moment
from shared.partitions import partition_label
from shared.queue.model import CancelOutcome, MoveOutcome
from shared.queue.records import JobView, RunRecord
from shared.table import PartitionKey

FINISHED = "finished"
"""State of a finished run; the queue itself has no state for it."""


def job_view(entry: JobView | RunRecord) -> JobSummary:
    """Return the view of a waiting or running job, or of a finished run."""
    return _live(entry) if isinstance(entry, JobView) else _finished(entry)


def timeline(live: JobView | None, runs: Iterable[RunRecord]) -> tuple[JobEvent, ...]:
    """Return the timeline of a job, oldest first."""
    moments: dict[tuple[int, str], str] = {}
    for run in runs:
        moments[run.enqueued_at_ms, "enqueued"] = f"version {run.version}"
        moments[run.started_ms, "started"] = run.worker
        moments[run.finished_ms, run.run_result] = run.error or f"the job is {run.outcome}"
    if live is not None:
        moments[live.enqueued_at_ms, "enqueued"] = f"version {live.version}"
        if live.started_ms:
            moments[live.started_ms, "started"] = live.worker or ""
        if live.lease_until_ms:
            moments[live.lease_until_ms, "lease_expires"] = "without a heartbeat by then, another actor takes over"
        if live.ready_at_ms:
            moments[live.ready_at_ms, "retry_due"] = live.error or f"after {live.attempts} failed attempts"
    events = ((moment(at), event, detail) for (at, event), detail in sorted(moments.items()))
    return tuple(JobEvent(at=at, event=event, detail=detail) for at, event, detail in events if at is not None)


def cancelled_view(outcome: CancelOutcome) -> CancelResult:
    """Return the result of a cancellation."""
    message = {
        CancelOutcome.DELETED: "The waiting job was deleted.",
        CancelOutcome.STOPPING: "The job is running; its actor stops after the current file groups.",
        CancelOutcome.UNKNOWN: "The job does not exist.",
    }[outcome]
    return CancelResult(outcome=outcome, message=message)


def moved_view(outcome: MoveOutcome) -> MoveResult:
    """Return the result of expediting or requeueing a job."""
    runs = outcome is MoveOutcome.LEASED
    return MoveResult(state=outcome.value, message="The job is already running." if runs else "The job is ready.")


def _live(job: JobView) -> JobSummary:
    payload = _object(job.payload)
    return JobSummary(
        id=job.id,
        state=job.state,
        table=job.key.table,
        table_name=str(payload.get("name", job.key.table)),
        partition_key=job.key.partition,
        partition_label=_label(job.key.partition),
        kind=job.key.kind,
        tenant=job.tenant,
        band=job.band.name.lower(),
        priority=job.priority,
        version=job.version,
        attempts=job.attempts,
        engine_crashes=job.engine_crashes,
        actor=job.worker or "",
        reason=str(payload.get("reason", "")),
        enqueued_at=moment(job.enqueued_at_ms),
        started_at=moment(job.started_ms),
        finished_at=None,
        result="",
        error=job.error or "",
        predicted=_numbers(payload.get("predicted")),
        measured={},
        progress=_object(job.progress or ""),
        stop_reason=job.stop or "",
    )


def _finished(run: RunRecord) -> JobSummary:
    result = _object(run.result)
    return JobSummary(
        id=run.id,
        state=FINISHED,
        table=run.key.table,
        table_name=str(result.get("table", run.key.table)),
        partition_key=run.key.partition,
        partition_label=_label(run.key.partition),
        kind=run.key.kind,
        tenant=run.tenant,
        band=run.band.name.lower(),
        priority=None,
        version=run.version,
        attempts=run.attempts,
        engine_crashes=None,
        actor=run.worker,
        reason=str(result.get("reason", "")),
        enqueued_at=moment(run.enqueued_at_ms),
        started_at=moment(run.started_ms),
        finished_at=moment(run.finished_ms),
        result=run.run_result,
        error=run.error,
        predicted=_numbers(result.get("predicted")),
        measured=_numbers(result.get("measured")),
        progress={},
        stop_reason="",
    )


def _label(partition: str) -> str:
    return partition_label(PartitionKey(partition)) if _object(partition) or partition == "{}" else partition


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): float(number) for name, number in value.items() if isinstance(number, int | float)}
