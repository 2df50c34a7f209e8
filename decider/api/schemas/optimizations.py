"""Rewrites over the wire, as the table's own log tells them; and the tables whose rewrites come by themselves."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class FileStatsView(ResponseModel):
    """The files on one side of a rewrite."""

    num_files: int = Field(description="Number of files.")
    bytes: int = Field(description="Their total size in bytes.")
    element_count: int | None = Field(
        description="Rows in them that readers see; null where the log has no statistics."
    )
    levels: tuple[int, ...] | None = Field(
        description="Number of files per level, 0 to 6, where 6 is full; null if the commit does not tell its target."
    )
    files: tuple[str, ...] | None = Field(
        description="Paths as the log spells them, where they were asked for; else null."
    )


class RewriteView(ResponseModel):
    """One rewrite: one commit of ours that replaced files without changing data."""

    version: int = Field(description="Version of the table that it made.")
    optimization_name: str | None = Field(description="Kind of rewrite: minor, major, full, settle or purge.")
    write_id: str = Field(description="Name of this rewrite: job, token of the claim, and round of the job.")
    table_id: str = Field(description="Id of the table.")
    job: str = Field(description="Job that led to it.")
    partition_key: str | None = Field(
        description="Key of the cell: its partition values as the table's log spells them."
    )
    partition_label: str | None = Field(description="The partition as people write it.")
    started_at: datetime | None = Field(description="When the rewrite began, by the actor's clock.")
    finished_at: datetime | None = Field(description="When it was committed, by the actor's clock.")
    process_time_ms: int | None = Field(description="Milliseconds from the one to the other.")
    target_bytes: int | None = Field(description="File size that it was working towards.")
    input: FileStatsView = Field(description="The files that it replaced.")
    output: FileStatsView = Field(description="The files that it wrote.")
    deleted_rows: int = Field(description="Rows hidden by deletion vectors that it left out for good.")
    entropy_removed_bytes2: float | None = Field(description="Decrease of the total squared shortfall, bytes squared.")


EVENT_EXAMPLE: dict[str, Any] = {
    "version": 42,
    "optimization_name": "major",
    "write_id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact/812/1",
    "table_id": "sales-orders-1f0c7a52",
    "job": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
    "partition_key": '{"dt":"2026-01-01"}',
    "partition_label": "dt=2026-01-01",
    "started_at": "2026-01-01T14:03:08Z",
    "finished_at": "2026-01-01T14:03:10Z",
    "process_time_ms": 1940,
    "target_bytes": 134217728,
    "input": {
        "num_files": 8,
        "bytes": 134217728,
        "element_count": 1200000,
        "levels": [0, 0, 0, 0, 0, 8, 0],
        "files": None,
    },
    "output": {
        "num_files": 1,
        "bytes": 131072000,
        "element_count": 1200000,
        "levels": [0, 0, 0, 0, 0, 0, 1],
        "files": None,
    },
    "deleted_rows": 0,
    "entropy_removed_bytes2": 1.1e17,
}


class RewriteList(ResponseModel):
    """A page of a table's rewrites, newest first."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"optimizations": [EVENT_EXAMPLE], "before": 40}]}
    )

    optimizations: tuple[RewriteView, ...] = Field(
        description="The rewrites; a page may hold fewer than asked for, or none, and still not be the last."
    )
    before: int | None = Field(description="Pass as `before` to get the next page; null where the log ends.")


class ScheduledTable(ResponseModel):
    """A table that is optimized without being asked."""

    table_id: str = Field(description="Id of the table.")
    name: str = Field(description="Name of the table.")
    tenant: str = Field(description="Whose table it is.")
    state: str = Field(
        description="`running`, `waiting` for an actor, `backing_off` after a failure or conflict, `failed` and "
        "quarantined, or `idle` until a commit makes a rewrite worth it."
    )
    jobs: int = Field(description="Jobs of the table that run or wait.")
    next_due_at: datetime | None = Field(
        description="When its first job may run: now or before if it waits; null if none waits. What comes with "
        "commits has no date."
    )
    last_run_at: datetime | None = Field(description="When a job of it last ended; null if the history holds none.")
    last_result: str | None = Field(
        description="How that ended: `done`, `yield`, `fail`, `crashed`, `cancelled`, `expired`."
    )
    enabled_by: str = Field(description="The property that switched it on, or who did: `service` or `default`.")


class ScheduledTables(ResponseModel):
    """A page of the tables that are optimized without being asked, in the order of their names."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "tables": [
                        {
                            "table_id": "sales-orders-1f0c7a52",
                            "name": "sales.orders",
                            "tenant": "default",
                            "state": "waiting",
                            "jobs": 1,
                            "next_due_at": "2026-01-01T14:03:07Z",
                            "last_run_at": "2026-01-01T13:40:12Z",
                            "last_result": "done",
                            "enabled_by": "default",
                        }
                    ],
                    "next_page_token": None,
                }
            ]
        },
    )

    tables: tuple[ScheduledTable, ...] = Field(
        description="The tables; a page may hold fewer than asked for, or none, and still not be the last."
    )
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last one.")
