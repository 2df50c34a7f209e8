"""Rewrites, read from the table's own log: the same after a loss of Redis."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from decider.api.dependencies import Http, KnownTable, Limit, Tables
from decider.api.openapi import failures
from decider.formats import rewrites
from decider.formats.rewrites import index_fields
from decider.optimize.partition_selector import label
from decider.store.stored_values import moment
from decider.web.base_model import ResponseModel
from shared.errors import LakewrightError
from shared.partitions import partition_values
from shared.table import PartitionColumn, PartitionKey, TableId


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
    revision_id: int | None = Field(description="Of such a rewrite, the revision of its outputs; else null.")
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


class RewriteList(ResponseModel):
    """A page of a table's rewrites, newest first."""

    optimizations: tuple[RewriteView, ...] = Field(
        description="Rewrites; a page may be short or empty without being the last."
    )
    before: int | None = Field(description="Pass as `before` to get the next page; null at the start of the log.")


MAX_WITH_FILES = 20
"""Maximum rewrites of a page that lists files: each may have thousands."""

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/optimizations", summary="List rewrites", responses=failures(404, 422, 502))
async def list_optimizations(
    table: KnownTable,
    tables: Tables,
    http: Http,
    limit: Limit = 50,
    before: Annotated[int | None, Query(ge=0, lt=2**63, description="`before` of the previous page.")] = None,
    files: Annotated[bool, Query(description=f"List all files; limits a page to {MAX_WITH_FILES} rewrites.")] = False,
) -> RewriteList:
    """List the rewrites of a table, newest first, from the table's own log.

    A page reads at most a thousand commits, so it may be empty without being the last.
    """
    state = await tables.states.state(table.id)
    columns = state.metadata.partition_columns if state else ()
    history = tables.formats.rewrites(table.location)
    async with http.expensive_calls.table_reads.turn():
        page = await history.page(limit=min(limit, MAX_WITH_FILES) if files else limit, before=before)
    return RewriteList(
        optimizations=tuple(event_view(event, table.id, columns, files=files) for event in page.events),
        before=page.before,
    )


def event_view(
    event: rewrites.Rewrite, table: TableId, columns: Sequence[PartitionColumn], *, files: bool
) -> RewriteView:
    """Show one rewrite."""
    mark = event.mark
    return RewriteView(
        version=event.version,
        optimization_name=mark.mode,
        index_selection=mark.index_selection,
        revision_id=event.revision_id,
        write_id=mark.write_id,
        table_id=table,
        job=mark.origin.job,
        other_jobs=[other.job for other in mark.others],
        partition_key=mark.partition,
        partition_label=_label(mark.partition, columns),
        started_at=moment(mark.started_ms),
        finished_at=moment(event.finished_ms),
        process_time_ms=event.process_time_ms,
        target_bytes=mark.size_levels.target_bytes if mark.size_levels else None,
        input=_stats(event.inputs, files=files),
        output=_stats(event.outputs, files=files),
        deleted_rows=event.deleted_rows,
        entropy_removed_bytes2=None if event.entropy_removed is None else float(event.entropy_removed),
    )


def _stats(stats: rewrites.FileStats, *, files: bool) -> FileStatsView:
    return FileStatsView(
        num_files=stats.num_files,
        bytes=stats.bytes,
        element_count=stats.rows,
        levels=stats.levels,
        **index_fields(stats),
        files=stats.files if files else None,
    )


def _label(partition: str | None, columns: Sequence[PartitionColumn]) -> str | None:
    """Return a partition label; the key comes from commit metadata and may be arbitrary text."""
    if partition is None:
        return None
    try:
        partition_values(PartitionKey(partition))
    except (LakewrightError, ValueError, AttributeError):
        return partition
    return label(PartitionKey(partition), columns)
