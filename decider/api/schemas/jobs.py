"""Schemas of jobs: state, timeline, predicted and measured cost."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.api.schemas.calibration import JobCalibration
from decider.web.base_model import ResponseModel


class JobEvent(ResponseModel):
    """One event in a job's timeline."""

    at: datetime = Field(description="Time, by the Redis server's clock.")
    event: str = Field(description="`enqueued`, `started`, `lease_expires`, `retry_due`, or the result of a run.")
    detail: str = Field(description="Details.")


JOB_EXAMPLE: dict[str, Any] = {
    "id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
    "state": "finished",
    "table": "sales-orders-1f0c7a52",
    "table_name": "sales.orders",
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "kind": "compact",
    "tenant": "default",
    "band": "normal",
    "priority": 6,
    "version": 41,
    "attempts": 0,
    "engine_crashes": None,
    "actor": "actor-1",
    "reason": "eligible",
    "enqueued_at": "2026-01-01T14:03:07Z",
    "started_at": "2026-01-01T14:03:08Z",
    "finished_at": "2026-01-01T14:03:11Z",
    "result": "done",
    "error": "",
    "predicted": {"files_replaced": 12, "files_removed": 11, "bytes": 12582912},
    "measured": {"files_replaced": 12, "files_removed": 11, "bytes": 12582912, "commit_ms": 210},
    "progress": {},
    "stop_reason": "",
}


class JobSummary(ResponseModel):
    """A waiting or running job, or one finished run."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [JOB_EXAMPLE]})

    id: str = Field(
        description="Job id: table, hash of the partition, kind. One partition has at most one job per kind."
    )
    state: str = Field(description="`queued`, `delayed`, `leased`, `quarantined`, or `finished`.")
    table: str = Field(description="Table id.")
    table_name: str = Field(description="Table name.")
    partition_key: str = Field(description="Partition key: physical column names and values as in the table's log.")
    partition_label: str = Field(description="Partition label; columns as in the table's log.")
    kind: str = Field(description="Kind of work; `compact` merges small files.")
    tenant: str = Field(description="Tenant.")
    band: str = Field(description="`urgent`, `high`, `normal`, `low` or `background`.")
    priority: int | None = Field(
        description="Priority within the band, 0 (first) to 31 (last); null for finished runs."
    )
    version: int = Field(description="Table version of the commit that led to the job.")
    attempts: int = Field(description="Number of failed attempts.")
    engine_crashes: int | None = Field(
        description="Failed attempts in which the engine crashed or the actor stopped responding. After two, the job "
        "runs isolated; another crash quarantines it. Null for finished runs."
    )
    actor: str = Field(description="Actor that runs or ran the job; empty while it waits.")
    reason: str = Field(description="Machine-readable reason for the job.")
    enqueued_at: datetime | None = Field(description="Time of the first enqueue.")
    started_at: datetime | None = Field(description="Start of the run.")
    finished_at: datetime | None = Field(description="End of the run.")
    result: str = Field(
        description="Result of the run: `done`, `fail`, `crashed`, `yield`, `cancelled` or `expired`; empty before its "
        "end."
    )
    error: str = Field(description="Last error; empty if none.")
    predicted: dict[str, float] = Field(description="Predicted files replaced, files removed and bytes read.")
    measured: dict[str, float] = Field(
        description="The same figures as measured, with durations; empty before the end."
    )
    progress: dict[str, Any] = Field(description="Last progress report of the actor.")
    stop_reason: str = Field(description="Reason for a requested stop; empty if none is requested.")


class JobList(ResponseModel):
    """A page of jobs: running, waiting, quarantined, then finished runs, newest first."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"jobs": [JOB_EXAMPLE], "next_page_token": None}]}
    )

    jobs: tuple[JobSummary, ...] = Field(description="Jobs.")
    next_page_token: str | None = Field(
        description="Pass as `page_token` to get the next page; null on the last page. A filtered page may be short or "
        "empty."
    )


class JobDetail(ResponseModel):
    """One job with its timeline."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "job": JOB_EXAMPLE,
                    "timeline": [
                        {"at": "2026-01-01T14:03:07Z", "event": "enqueued", "detail": "version 41"},
                        {"at": "2026-01-01T14:03:08Z", "event": "started", "detail": "actor-1"},
                        {"at": "2026-01-01T14:03:11Z", "event": "done", "detail": "12 files became 1"},
                    ],
                    "runs": [JOB_EXAMPLE],
                    "calibration": {
                        "runs": 1,
                        "predicted_bytes": 12582912,
                        "measured_bytes": 12582912,
                        "predicted_files_removed": 11,
                        "measured_files_removed": 11,
                    },
                }
            ]
        },
    )

    job: JobSummary = Field(description="The job, or its latest run if it has finished.")
    timeline: tuple[JobEvent, ...] = Field(description="Events, oldest first.")
    runs: tuple[JobSummary, ...] = Field(description="Finished runs that are still stored, newest first.")
    calibration: JobCalibration = Field(description="Predicted and measured cost over these runs.")


class CancelResult(ResponseModel):
    """Result of a cancellation."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {"outcome": "stopping", "message": "The job is running; its actor stops after the current file groups."}
            ]
        },
    )

    outcome: str = Field(
        description="`deleted`: the job was waiting. `stopping`: the job is running and its actor is asked to stop."
    )
    message: str = Field(description="Human-readable outcome.")
