"""Tables: register, list, show, update and unregister them."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from decider.api.dependencies import KnownTable, Parts, Services
from decider.api.openapi import failures
from decider.api.schemas.tables import (
    DecisionList,
    ListedTable,
    PartitionList,
    RegisteredTable,
    TableList,
    TableReading,
    TableRegistration,
    TableStatus,
    TableUpdate,
    TableView,
)
from decider.api.views.table_status import table_status
from decider.api.views.tables import decision_view, partition_view, refusal_view, table_view
from decider.events.resolver import Registration
from decider.optimize.partition_selector import find_partition
from decider.state.effective_policy import LogStatus
from decider.store.cleanup import delete_table
from decider.web.base_model import MAX_PAGE
from decider.web.errors import ApiError
from shared.errors import LakewrightError
from shared.locations import canonical_location, table_id
from shared.properties import NAMES, unknown_property
from shared.queue.model import Scope
from shared.table import TableId, TableRef

router = APIRouter(prefix="/v1/tables", tags=["tables"])

READ_POLL_S = 0.1
"""Pause between two checks whether a table was read: two small reads of Redis each."""

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of items to return.")]
PageToken = Annotated[str | None, Query(max_length=20_000, description="`next_page_token` of the previous page.")]


@router.post(
    "",
    status_code=201,
    summary="Register a table",
    responses=failures(400, 409, 413, 422)
    | {200: {"model": RegisteredTable, "description": "The table was already registered."}},
)
async def register_table(asked: TableRegistration, parts: Parts, response: Response) -> RegisteredTable:
    """Register a table and read its log.

    The policy is read from the table's own properties, and eligible partitions are queued at once; with `paused`, their
    jobs wait. A discovered table gets the name and tenant given here. A table whose log cannot be read stays registered
    and shows the reason.
    """
    _check_properties(asked.properties, parts)
    known = await parts.registry.get(table_id(canonical_location(asked.location)))
    if known is None or known.is_discovered:
        table = await _register(asked, parts)
        response.status_code = 200 if known else 201
        return await _registered(table, asked, parts, is_new=known is None)
    for field, wanted, found in (("name", asked.name, known.name), ("tenant", asked.tenant, known.tenant)):
        if wanted is not None and wanted != found:
            raise ApiError(
                409,
                f"the table is registered with {field} {found!r}; change it with PATCH /v1/tables/{known.name}",
                field=field,
                value=wanted,
                allowed=found,
            )
    if asked.properties and dict(asked.properties) != dict(known.properties):
        raise ApiError(
            409,
            f"the table is registered with other properties; change them with PATCH /v1/tables/{known.name}",
            field="properties",
        )
    if asked.paused:
        await parts.steering.pause(Scope.TABLE, known.id, paused=True)
    response.status_code = 200
    return await _registered(known, asked, parts, is_new=False)


async def _register(asked: TableRegistration, parts: Services) -> TableRef:
    """Register a table, paused before its first read where that is requested, so that no job runs in between."""
    identity = table_id(canonical_location(asked.location))
    if asked.paused:
        await parts.steering.pause(Scope.TABLE, identity, paused=True)
    try:
        return await parts.intake.register(asked.location, Registration(asked.name, asked.tenant, asked.properties))
    except LakewrightError:
        if asked.paused:
            await parts.steering.pause(Scope.TABLE, identity, paused=False)
        raise


async def _registered(table: TableRef, asked: TableRegistration, parts: Services, *, is_new: bool) -> RegisteredTable:
    """Show a table with its first read, if that is waited for; a new one that is not there is forgotten again."""
    view = table_view(table).model_dump()
    if not asked.wait_s:
        return RegisteredTable(**view, reading=None)
    reading = await _first_reading(table, parts, asked.wait_s)
    if is_new and reading.refusal is not None and reading.refusal.missing:
        await forget_table(table, parts)
        if asked.paused:
            await parts.steering.pause(Scope.TABLE, table.id, paused=False)
        raise ApiError(422, f"{reading.refusal.reason}; nothing was registered", field="location", value=asked.location)
    return RegisteredTable(**view, reading=reading)


async def _first_reading(table: TableRef, parts: Services, wait_s: float) -> TableReading:
    """Return what the first read found, or what is known when the time is over."""
    deadline_s = time.monotonic() + wait_s
    while True:
        refusal = await parts.registry.refusal(table.id)
        version = (await parts.states.versions([table.id])).get(table.id)
        problem = parts.inbox.problem(table.id)
        if refusal is not None or version is not None or problem or time.monotonic() >= deadline_s:
            return TableReading(
                version=version, refusal=None if refusal is None else refusal_view(refusal), error=problem
            )
        await asyncio.sleep(READ_POLL_S)


@router.get("", summary="List tables", responses=failures(422))
async def list_tables(
    parts: Parts,
    prefix: Annotated[str, Query(max_length=200, description="Name prefix.", examples=["sales."])] = "",
    limit: Limit = 100,
    page_token: PageToken = None,
) -> TableList:
    """List registered tables by name, with their refusals."""
    page = await parts.registry.page(prefix=prefix, after=page_token or "", limit=limit)
    ids = [table.id for table in page.tables]
    refused, versions = await parts.registry.refusals(ids), await parts.states.versions(ids)
    rows = (
        ListedTable(
            **table_view(table).model_dump(),
            version=versions.get(table.id),
            error=parts.inbox.problem(table.id),
            refusal=refusal_view(refused[table.id]) if table.id in refused else None,
        )
        for table in page.tables
    )
    return TableList(tables=tuple(rows), next_page_token=page.next_after)


@router.get("/{name}", summary="Show a table", responses=failures(404, 422))
async def show_table(table: KnownTable, parts: Parts) -> TableStatus:
    """Show a table with its policy, the source of each value, its layout, latest decision and latest job."""
    async with parts.dear.looks.turn():
        return await table_status(table, parts)


@router.patch("/{name}", summary="Update a table", responses=failures(400, 404, 413, 422))
async def change_table(table: KnownTable, asked: TableUpdate, parts: Parts) -> TableView:
    """Change name, tenant or property overrides; a changed policy takes effect with the refresh that follows."""
    if asked.properties is not None:
        _check_properties(asked.properties, parts)
    overrides = {name: value for name, value in asked.model_dump().items() if value is not None}
    changed = replace(table, **overrides, is_discovered=False)
    await parts.registry.update(table, changed)
    await parts.inbox.put(changed, None)
    return table_view(changed)


def _check_properties(overrides: Mapping[str, str], parts: Services) -> None:
    """Reject properties that cannot be applied: the caller gets the error, so none is stored."""
    issues = parts.standing.current.resolve(replace(_ANY_TABLE, properties=overrides), {}, {}, LogStatus()).issues
    unknown = overrides.keys() - NAMES
    for issue in issues:
        raise ApiError(
            422, f"{issue.property}: {issue.reason}", field=f"properties.{issue.property}", value=issue.value
        )
    for name in sorted(unknown):
        raise ApiError(422, f"{name}: {unknown_property(name)}", field=f"properties.{name}")


_ANY_TABLE = TableRef(TableId(""), "", "")


@router.delete("/{name}", status_code=204, summary="Unregister a table", responses=failures(404, 422))
async def forget_table(table: KnownTable, parts: Parts) -> None:
    """Cancel the table's jobs and delete its state; table data is not touched.

    A table below an allowed root is registered again by its next event or by discovery; set `lakewright.enabled=false`
    to disable optimization.
    """
    await parts.registry.remove(table)
    await delete_table(parts.queue, table.id, kinds=parts.actions.kinds)


@router.get("/{name}/partitions", summary="List partitions", responses=failures(404, 422))
async def list_partitions(
    table: KnownTable, parts: Parts, limit: Limit = 100, page_token: PageToken = None
) -> PartitionList:
    """List the partitions of a table with their layout and current decision."""
    state = await parts.states.state(table.id)
    if state is None:
        return PartitionList(version=-1, partitions=(), next_page_token=None)
    in_force = parts.standing.current.resolve(table, state.metadata.configuration, state.last_good, state.log_status)
    policy = (await parts.states.calibration(table.id)).with_learned_shrink(in_force.policy)
    partitions, after = await parts.states.page(table.id, after=page_token or "", limit=limit)
    columns = state.metadata.partition_columns
    return PartitionList(
        version=state.version,
        partitions=tuple(partition_view(partition, one, policy, columns) for partition, one in partitions.items()),
        next_page_token=after,
    )


@router.get("/{name}/decisions", summary="List decisions", responses=failures(404, 422))
async def list_decisions(
    table: KnownTable,
    parts: Parts,
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
            description="Return the decision effective at this time for each partition.",
            examples=["2026-01-01T14:03:00Z"],
        ),
    ] = None,
) -> DecisionList:
    """List decisions, skips included, newest first; with `at`, the decision effective then for each partition."""
    state = await parts.states.state(table.id)
    columns = state.metadata.partition_columns if state else ()
    async with parts.dear.looks.turn():
        key = (
            None
            if partition is None
            else await find_partition(
                partition, (one async for one, _ in parts.states.iterate_partitions(table.id)), columns
            )
        )
        if at is None:
            found = await parts.ledgers.newest(table.id, limit=limit, partition=key)
        else:
            found = await parts.ledgers.in_force(table.id, int(at.timestamp() * 1000), limit=limit, partition=key)
    return DecisionList(decisions=tuple(decision_view(record, columns) for record in found))
