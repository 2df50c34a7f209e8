"""The list of all tables with their figures: searched, filtered and sorted by the service, for lists of any length."""

from collections import Counter
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from decider.api.dependencies import Tables
from decider.api.openapi import failures
from decider.api.routes.partitions import EXCESS_RATIO
from decider.api.routes.tables import CONDITION, TableRefusal
from decider.store.registry.table_query import JobsByState, TableCondition, TableQuery, TableRow, TableSort
from decider.store.stored_values import moment
from decider.web.base_model import MAX_PAGE, ResponseModel


class TableRowView(ResponseModel):
    """One table with the figures of its state; null where it was not read yet."""

    id: str = Field(description="Table id.")
    name: str = Field(description="Table name.")
    tenant: str = Field(description="Tenant.")
    group: str | None = Field(description="Group of the queue whose actors run its jobs.")
    condition: TableCondition = Field(description=CONDITION)
    version: int | None = Field(description="Table version of the state.")
    files: int | None = Field(description="Number of live files.")
    bytes: int | None = Field(description="Total size in bytes.")
    small_files: int | None = Field(description="Number of files below the full size.")
    files_needed: int | None = Field(description="Number of files that would do for the same bytes.")
    excess_ratio: float | None = Field(description=EXCESS_RATIO)
    committed_at: datetime | None = Field(description="Time of the newest applied commit, by the writer's clock.")
    rewritten_at: datetime | None = Field(description="Time of the newest applied Lakewright commit.")
    jobs_waiting: int = Field(description="Number of queued, delayed and quarantined jobs.")
    jobs_running: int = Field(description="Number of running jobs.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")


class TableRows(ResponseModel):
    """A part of a sorted and filtered list of tables."""

    rows: tuple[TableRowView, ...] = Field(description="Rows from `offset` on.")
    offset: int = Field(description="Position of the first row.")
    matching: int = Field(description="Number of tables that match the search and the filters.")
    total: int = Field(description="Number of registered tables.")
    complete: bool = Field(description="Whether the figures of all tables have been read; if not, repeat the request.")
    conditions: dict[str, int] = Field(description="Number of matching tables by condition, whatever the `condition`.")
    tenants: dict[str, int] = Field(description="Number of matching tables by tenant, largest first, at most 100.")
    groups: dict[str, int] = Field(description="Number of matching tables by group, of those that were read.")


router = APIRouter(prefix="/v1/table-rows", tags=["tables"])

MAX_OFFSET = 10_000_000
"""More tables than one installation registers."""

MAX_TENANTS = 100
"""Tenants that are counted by name."""


async def _query(
    search: Annotated[str, Query(max_length=200, description="Part of a name or tenant.", examples=["orders"])] = "",
    tenant: Annotated[str, Query(max_length=100, description="Tenant; without it, all tenants.")] = "",
    group: Annotated[str, Query(max_length=40, description="Group of the queue; without it, all groups.")] = "",
    condition: Annotated[TableCondition | None, Query(description="Condition; without it, all conditions.")] = None,
    sort: Annotated[
        TableSort, Query(description="Column to sort by; equal values are sorted by name.")
    ] = TableSort.NAME,
    descending: Annotated[bool, Query(description="Whether the largest value is first.")] = False,
) -> TableQuery:
    return TableQuery(search, tenant, group, condition, sort, descending)


@router.get("", summary="List tables with their figures", responses=failures(422))
async def list_table_rows(
    tables: Tables,
    query: Annotated[TableQuery, Depends(_query)],
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Position of the first row to return.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of rows to return.")] = 100,
) -> TableRows:
    """List tables with files, how many would do, last commit, last rewrite, backlog and condition.

    The decider keeps these figures in memory and reads what changed, so a page of a long list costs little. The order
    of a long list may be some seconds old.
    """
    found = await tables.index.page(query, offset=offset, limit=limit)
    selection = found.selection
    return TableRows(
        rows=tuple(_row_view(row, jobs) for row, jobs in found.rows),
        offset=offset,
        matching=found.matching,
        total=found.total,
        complete=found.is_complete,
        conditions={str(name): count for name, count in selection.conditions.items()},
        tenants=dict(Counter(selection.tenants).most_common(MAX_TENANTS)),
        groups=dict(sorted(selection.groups.items())),
    )


def _row_view(row: TableRow, jobs: JobsByState) -> TableRowView:
    summary = row.summary
    return TableRowView(
        id=row.id,
        name=row.name,
        tenant=row.tenant,
        group=row.group or None,
        condition=row.condition(jobs),
        version=row.version,
        files=summary.files if summary else None,
        bytes=summary.bytes if summary else None,
        small_files=summary.small_files if summary else None,
        files_needed=summary.files_needed if summary else None,
        excess_ratio=round(summary.excess_ratio, 6) if summary else None,
        committed_at=moment(row.commit_ms),
        rewritten_at=moment(summary.last_rewrite_ms if summary else 0),
        jobs_waiting=jobs.waiting,
        jobs_running=jobs.running,
        refusal=TableRefusal.of(row.refusal) if row.refusal else None,
    )
