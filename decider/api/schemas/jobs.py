"""Jobs over the wire: what they are about, where they stand, how they came there, predicted and measured effect."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.api.schemas.calibration import JobCalibration
from decider.web.base_model import ResponseModel


class JobEvent(ResponseModel):
    """One moment in a job's life."""

    at: datetime = Field(description="When, by the queue server's clock.")
    event: str = Field(description="`enqueued`, `started`, `lease_expires`, `retry_due`, or the verdict of a run.")
    detail: str = Field(description="More about it, in words.")


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
    """A job that waits or runs, or one finished run."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [JOB_EXAMPLE]})

    id: str = Field(description="Id of the job: table, hash of the cell, kind. The same cell is the same job.")
    state: str = Field(description="`queued`, `delayed`, `leased`, `quarantined`, or `finished`.")
    table: str = Field(description="Id of the table.")
    table_name: str = Field(description="Name of the table.")
    partition_key: str = Field(
        description="Key of the cell: its partition values by column, as the table's log spells them."
    )
    partition_label: str = Field(description="The partition as people write it; column names as the log spells them.")
    kind: str = Field(description="What is done; `compact` merges small files.")
    tenant: str = Field(description="Whose table it is.")
    band: str = Field(description="`urgent`, `high`, `normal` or `low`.")
    priority: int | None = Field(description="Priority within the band, 0 first to 9 last; null for finished runs.")
    version: int = Field(description="Version of the table whose commit asked for it.")
    attempts: int = Field(description="Failures and crashes so far.")
    engine_crashes: int | None = Field(
        description="Of those, the runs under which an engine died or an actor fell silent: after two the job runs "
        "alone, and if an engine dies then it is quarantined. Null for finished runs."
    )
    actor: str = Field(description="The actor that runs or ran it; empty while it waits.")
    reason: str = Field(description="Why it exists, as a stable word.")
    enqueued_at: datetime | None = Field(description="When it was first asked for.")
    started_at: datetime | None = Field(description="When the run started.")
    finished_at: datetime | None = Field(description="When the run ended.")
    result: str = Field(
        description="How the run ended: `done`, `fail`, `crashed`, `yield`, `cancelled` or `expired`; "
        "empty before its end."
    )
    error: str = Field(description="What went wrong last; empty if nothing did.")
    predicted: dict[str, float] = Field(description="Files replaced and removed and bytes read, as decided.")
    measured: dict[str, float] = Field(description="The same as it was in the end, with times; empty before.")
    progress: dict[str, Any] = Field(description="What the actor last said of the run.")
    stop_reason: str = Field(description="Why the run was told to stop; empty if it was not.")


class JobList(ResponseModel):
    """A page of jobs: running, waiting, in trouble, then finished runs, newest first."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"jobs": [JOB_EXAMPLE], "next_page_token": None}]}
    )

    jobs: tuple[JobSummary, ...] = Field(description="The jobs.")
    next_page_token: str | None = Field(
        description="Pass as `page_token` to get the next page; null on the last one. A page may be short, even empty, "
        "where a filter finds little."
    )


class JobDetail(ResponseModel):
    """One job with its story."""

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

    job: JobSummary = Field(description="The job as it is; the newest run if it is over.")
    timeline: tuple[JobEvent, ...] = Field(description="Its moments, oldest first.")
    runs: tuple[JobSummary, ...] = Field(description="Its finished runs that are still kept, newest first.")
    calibration: JobCalibration = Field(description="Predicted against measured over those of them that rewrote files.")


class CancelResult(ResponseModel):
    """What became of a cancelled job."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"outcome": "stopping", "message": "The actor stops after its file group."}]},
    )

    outcome: str = Field(description="`deleted`: it waited and was deleted. `stopping`: its actor was told to stop.")
    message: str = Field(description="The same in words.")
