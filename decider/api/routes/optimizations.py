"""Rewrites, read from the table's own log: the same after a loss of Redis."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from decider.api.dependencies import Http, KnownTable, Tables
from decider.api.openapi import failures
from decider.api.schemas.optimizations import FileStatsView, RewriteList, RewriteView
from decider.formats import rewrites
from decider.formats.rewrites import index_fields
from decider.optimize.partition_selector import label
from decider.web.base_model import MAX_PAGE, moment
from shared.errors import LakewrightError
from shared.partitions import partition_values
from shared.table import PartitionColumn, PartitionKey, TableId

MAX_WITH_FILES = 20
"""Maximum rewrites of a page that lists files: each may have thousands."""

router = APIRouter(prefix="/v1/tables", tags=["tables"])


@router.get("/{name}/optimizations", summary="List rewrites", responses=failures(404, 422, 502))
async def list_optimizations(
    table: KnownTable,
    tables: Tables,
    http: Http,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")] = 50,
    before: Annotated[int | None, Query(ge=0, lt=2**63, description="`before` of the previous page.")] = None,
    files: Annotated[  # noqa: FBT002 - a query parameter
        bool, Query(description=f"List all files; limits a page to {MAX_WITH_FILES} rewrites.")
    ] = False,
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
