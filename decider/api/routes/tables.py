"""Tables: register, list, show, update and unregister them."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from decider.api.declared_tables import require_undeclared
from decider.api.dependencies import Http, KnownTable, Operations, Queue, Requests, Tables
from decider.api.openapi import failures
from decider.api.schemas.decision_records import DecisionList
from decider.api.schemas.partition_layout import PartitionList
from decider.api.schemas.table_status import TableStatus
from decider.api.schemas.tables import (
    ListedTable,
    RegisteredTable,
    TableList,
    TableRegistration,
    TableUpdate,
    TableView,
)
from decider.api.table_registrar import Registrar, check_properties
from decider.api.views.table_status import table_status
from decider.api.views.tables import decision_view, partition_view, refusal_view, table_view
from decider.decide.context import DecisionContext
from decider.optimize.partition_selector import find_partition
from decider.web.base_model import MAX_PAGE
from decider.web.errors import not_found

router = APIRouter(prefix="/v1/tables", tags=["tables"])

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")]
PageToken = Annotated[str | None, Query(max_length=20_000, description="`next_page_token` of the previous page.")]


@router.post(
    "",
    status_code=201,
    summary="Register a table",
    responses=failures(400, 409, 413, 422)
    | {200: {"model": RegisteredTable, "description": "The table was already registered."}},
)
async def register_table(asked: TableRegistration, registrar: Registrar, response: Response) -> RegisteredTable:
    """Register a table and read its log.

    The policy is read from the table's own properties, and eligible partitions are queued at once; with `paused`, their
    jobs wait. A discovered table gets the name and tenant given here. A table whose log cannot be read stays registered
    and shows the reason.
    """
    table, is_new = await registrar.register(asked)
    response.status_code = 201 if is_new else 200
    return table


@router.get("", summary="List tables", responses=failures(422))
async def list_tables(
    tables: Tables,
    requests: Requests,
    prefix: Annotated[str, Query(max_length=200, description="Name prefix.", examples=["sales."])] = "",
    limit: Limit = 100,
    page_token: PageToken = None,
) -> TableList:
    """List registered tables by name, with their refusals."""
    page = await tables.registry.page(prefix=prefix, after=page_token or "", limit=limit)
    ids = [table.id for table in page.tables]
    refused, versions = await tables.registry.refusals(ids), await tables.states.versions(ids)
    rows = (
        ListedTable(
            **table_view(table).model_dump(),
            version=versions.get(table.id),
            error=requests.refresh_queue.problem(table.id),
            refusal=refusal_view(refused[table.id]) if table.id in refused else None,
        )
        for table in page.tables
    )
    return TableList(tables=tuple(rows), next_page_token=page.next_after)


@router.get("/{name}", summary="Show a table", responses=failures(404, 422))
async def show_table(
    table: KnownTable, tables: Tables, queue: Queue, operations: Operations, http: Http
) -> TableStatus:
    """Show a table with its policy, the source of each value, its layout, latest decision and latest job."""
    async with http.expensive_calls.table_reads.turn():
        return await table_status(table, tables, queue, now_ms=operations.now_ms())


@router.patch("/{name}", summary="Update a table", responses=failures(400, 404, 409, 413, 422))
async def change_table(table: KnownTable, asked: TableUpdate, tables: Tables, requests: Requests) -> TableView:
    """Change name, tenant or property overrides; a changed policy takes effect with the refresh that follows.

    A table that the tables file declares is changed there: 409.
    """
    require_undeclared(table, tables)
    if asked.properties is not None:
        check_properties(asked.properties, tables.defaults.current)
    overrides = {name: value for name, value in asked.model_dump().items() if value is not None}
    changed = await tables.registry.update(table.id, lambda known: replace(known, **overrides, is_discovered=False))
    if changed is None:
        raise not_found("table", table.name)
    await requests.refresh_queue.put(changed, None)
    return table_view(changed)


@router.delete("/{name}", status_code=204, summary="Unregister a table", responses=failures(404, 409, 422))
async def forget_table(table: KnownTable, registrar: Registrar) -> None:
    """Cancel the table's jobs and delete its state; table data is not touched.

    A table below an allowed root is registered again by its next event or by discovery; set `lakewright.enabled=false`
    to disable optimization.
    """
    await registrar.unregister(table)


@router.get("/{name}/partitions", summary="List partitions", responses=failures(404, 422))
async def list_partitions(
    table: KnownTable, tables: Tables, limit: Limit = 100, page_token: PageToken = None
) -> PartitionList:
    """List the partitions of a table with their layout and current decision."""
    state = await tables.states.state(table.id)
    if state is None:
        return PartitionList(version=-1, partitions=(), next_page_token=None)
    in_force = tables.defaults.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    policy = (await tables.states.calibration(table.id)).applied_to(in_force.policy)
    partitions, after = await tables.states.page(table.id, after=page_token or "", limit=limit)
    context = DecisionContext.of_policy(policy, state.metadata.partition_columns)
    return PartitionList(
        version=state.version,
        partitions=tuple(
            partition_view(context, partition, one, tables.actions) for partition, one in partitions.items()
        ),
        next_page_token=after,
    )


@router.get("/{name}/decisions", summary="List decisions", responses=failures(404, 422))
async def list_decisions(
    table: KnownTable,
    tables: Tables,
    http: Http,
    limit: Limit = 50,
    partition: Annotated[
        str | None,
        Query(
            max_length=20_000, description="Partition label; without it, every partition.", examples=["dt=2026-01-01"]
        ),
    ] = None,
    at: Annotated[
        AwareDatetime | None,
        Query(
            description="Return the decisions effective at this time, one for each partition and action.",
            examples=["2026-01-01T14:03:00Z"],
        ),
    ] = None,
) -> DecisionList:
    """List decisions, skips included, newest first; with `at`, those effective then for each partition and action."""
    state = await tables.states.state(table.id)
    columns = state.metadata.partition_columns if state else ()
    async with http.expensive_calls.table_reads.turn():
        key = (
            None
            if partition is None
            else await find_partition(
                partition, (one async for one, _ in tables.states.iterate_partitions(table.id)), columns
            )
        )
        if at is None:
            found = await tables.ledgers.newest(table.id, limit=limit, partition=key)
        else:
            found = await tables.ledgers.in_force(table.id, int(at.timestamp() * 1000), limit=limit, partition=key)
    return DecisionList(decisions=tuple(decision_view(record, columns) for record in found))
