"""The list of all tables with their figures: searched, filtered and sorted by the service, for lists of any length."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from decider.api.dependencies import Tables
from decider.api.openapi import failures
from decider.api.schemas.table_rows import TableRows, TableRowView
from decider.api.views.tables import refusal_view
from decider.store.table_index import counts
from decider.store.table_query import JobsByState, TableCondition, TableQuery, TableRow, TableSort
from decider.web.base_model import MAX_PAGE, moment

router = APIRouter(prefix="/v1/table-rows", tags=["tables"])

MAX_OFFSET = 10_000_000
"""More tables than one installation registers."""

MAX_TENANTS = 100
"""Tenants that are counted by name."""


async def _query(
    search: Annotated[str, Query(max_length=200, description="Part of a name or tenant.", examples=["orders"])] = "",
    tenant: Annotated[str, Query(max_length=100, description="Tenant; without it, all tenants.")] = "",
    condition: Annotated[TableCondition | None, Query(description="Condition; without it, all conditions.")] = None,
    sort: Annotated[
        TableSort, Query(description="Column to sort by; equal values are sorted by name.")
    ] = TableSort.NAME,
    descending: Annotated[bool, Query(description="Whether the largest value is first.")] = False,  # noqa: FBT002
) -> TableQuery:
    return TableQuery(search, tenant, condition, sort, descending)


@router.get("", summary="List tables with their figures", responses=failures(422))
async def list_table_rows(
    tables: Tables,
    query: Annotated[TableQuery, Depends(_query)],
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Position of the first row to return.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of rows to return.")] = 100,
) -> TableRows:
    """List tables with files, entropy, last commit, last rewrite, backlog and condition.

    The decider keeps these figures in memory and reads what changed, so a page of a long list costs little. The order
    of a long list may be some seconds old.
    """
    found = await tables.index.page(query, offset=offset, limit=limit)
    conditions, tenants = counts(found.selection, most=MAX_TENANTS)
    return TableRows(
        rows=tuple(_row_view(row, jobs) for row, jobs in found.rows),
        offset=offset,
        matching=found.matching,
        total=found.total,
        complete=found.is_complete,
        conditions=dict(conditions),
        tenants=dict(tenants),
    )


def _row_view(row: TableRow, jobs: JobsByState) -> TableRowView:
    summary = row.summary
    return TableRowView(
        id=row.id,
        name=row.name,
        tenant=row.tenant,
        condition=row.condition(jobs),
        version=row.version,
        files=summary.files if summary else None,
        bytes=summary.bytes if summary else None,
        small_files=summary.small_files if summary else None,
        rms_shortfall=round(summary.rms_shortfall, 6) if summary else None,
        committed_at=moment(row.commit_ms),
        rewritten_at=moment(summary.last_rewrite_ms if summary else 0),
        jobs_waiting=jobs.waiting,
        jobs_running=jobs.running,
        refusal=refusal_view(row.refusal) if row.refusal else None,
    )
