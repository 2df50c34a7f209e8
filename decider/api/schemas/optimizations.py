"""Schemas of rewrites, read from the table's own log, and of automatically optimized tables."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import ResponseModel


class FileStatsView(ResponseModel):
    """Input or output files of a rewrite."""

    num_files: int = Field(description="Number of files.")
    bytes: int = Field(description="Total size in bytes.")
    element_count: int | None = Field(
        description="Number of rows visible to readers; null if the log has no statistics."
    )
    levels: tuple[int, ...] | None = Field(
        description="Number of files per level, 0 to 6 (full); null if the commit does not record its target."
    )
    file_levels: tuple[int, ...] | None = Field(
        description="Power of ten of the largest block of each file, in the order of `files`, -1 for a file without "
        "rows; this and the following fields are null for files without an index."
    )
    num_cubes: int | None = Field(description="Number of distinct cubes.")
    num_blocks: int | None = Field(description="Number of blocks.")
    avg_num_blocks_per_file: float | None = Field(description="Blocks per file.")
    avg_block_element_count_per_file: float | None = Field(description="Mean over the files of their rows per block.")
    files: tuple[str, ...] | None = Field(description="File paths as in the log, if requested; null otherwise.")


class RewriteView(ResponseModel):
    """One rewrite: a Lakewright commit that replaces files without changing data."""

    version: int = Field(description="Table version of the commit.")
    optimization_name: str | None = Field(description="Kind of rewrite: minor, major, full, idle, purge or sort.")
    index_selection: str | None = Field(
        description="Of a rewrite of a Qbeast index, how its files were chosen: `leveled` or `sampling`; else null."
    )
    write_id: str = Field(description="Id of the rewrite: job, claim token and round.")
    table_id: str = Field(description="Table id.")
    job: str = Field(description="Job id.")
    other_jobs: list[str] = Field(description="Ids of further jobs that wrote their files in the same commit.")
    partition_key: str | None = Field(
        description="Partition key: physical column names and values as in the table's log; null if several jobs share "
        "the commit."
    )
    partition_label: str | None = Field(description="Partition label; null if several jobs share the commit.")
    started_at: datetime | None = Field(description="Start of the rewrite, by the actor's clock.")
    finished_at: datetime | None = Field(description="Commit time, by the actor's clock.")
    process_time_ms: int | None = Field(description="Duration in milliseconds.")
    target_bytes: int | None = Field(description="Target file size in bytes.")
    input: FileStatsView = Field(description="Replaced files.")
    output: FileStatsView = Field(description="Written files.")
    deleted_rows: int = Field(description="Rows hidden by deletion vectors and physically removed.")
    entropy_removed_bytes2: float | None = Field(
        description="Decrease of the total squared shortfall, in bytes squared."
    )


EVENT_EXAMPLE: dict[str, Any] = {
    "version": 42,
    "optimization_name": "major",
    "index_selection": None,
    "write_id": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact/812/1",
    "table_id": "sales-orders-1f0c7a52",
    "job": "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact",
    "other_jobs": [],
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
        "file_levels": None,
        "num_cubes": None,
        "num_blocks": None,
        "avg_num_blocks_per_file": None,
        "avg_block_element_count_per_file": None,
        "files": None,
    },
    "output": {
        "num_files": 1,
        "bytes": 131072000,
        "element_count": 1200000,
        "levels": [0, 0, 0, 0, 0, 0, 1],
        "file_levels": None,
        "num_cubes": None,
        "num_blocks": None,
        "avg_num_blocks_per_file": None,
        "avg_block_element_count_per_file": None,
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
        description="Rewrites; a page may be short or empty without being the last."
    )
    before: int | None = Field(description="Pass as `before` to get the next page; null at the start of the log.")


class ScheduledTable(ResponseModel):
    """An automatically optimized table."""

    table_id: str = Field(description="Table id.")
    name: str = Field(description="Table name.")
    tenant: str = Field(description="Tenant.")
    state: str = Field(
        description="`running`, `waiting` for an actor, `backing_off` after a failure or conflict, `failed` "
        "(quarantined), or `idle`."
    )
    jobs: int = Field(description="Number of running and waiting jobs.")
    next_due_at: datetime | None = Field(description="Earliest time at which a job may run; null if none waits.")
    last_run_at: datetime | None = Field(description="End of the latest run; null if the history has none.")
    last_result: str | None = Field(
        description="Result of the latest run: `done`, `yield`, `fail`, `crashed`, `cancelled` or `expired`."
    )
    enabled_by: str = Field(description="Property that enables optimization, or `service` or `default`.")


class ScheduledTables(ResponseModel):
    """A page of automatically optimized tables, ordered by name."""

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
        description="Tables; a page may be short or empty without being the last."
    )
    next_page_token: str | None = Field(description="Pass as `page_token` to get the next page; null on the last page.")
