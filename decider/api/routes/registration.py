"""Registration of tables: registered with checked properties, changed and unregistered; a missing one is not kept."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import Field

from decider.api.declared_tables import require_own_pause, require_undeclared
from decider.api.dependencies import KnownTable, Queue, Requests, Tables
from decider.api.openapi import failures
from decider.api.policy_in_force import PolicyIssue
from decider.api.routes.tables import (
    PropertyName,
    PropertyText,
    TableRefusal,
    TableView,
    Tenant,
)
from decider.api.services import QueueServices, RequestServices, TableServices
from decider.declared.tables_file import property_problems
from decider.events.resolver import Registration
from decider.state.effective_policy import PolicyDefaults
from decider.store.registry.table_registry import StoredRefusal
from decider.store.tables.cleanup import delete_table
from decider.web.base_model import RequestModel, ResponseModel, TableName, examples
from decider.web.errors import ApiError, not_found
from shared.errors import LakewrightError
from shared.paths.locations import canonical_location, table_id
from shared.queue.model import Scope
from shared.table import TableId, TableRef

router = APIRouter(prefix="/v1/tables", tags=["tables"])

READ_POLL_S = 0.1
"""Pause between two checks whether a table was read: two small reads of Redis each."""

MAX_WAIT_S = 20.0
"""Longest wait for the first read of a table: below the time after which clients give an answer up."""


class TableRegistration(
    RequestModel, json_schema_extra=examples({"location": "s3://lake/sales/orders", "name": "sales.orders"})
):
    """A table to register."""

    location: str = Field(
        min_length=1,
        max_length=2048,
        description="Table location: an absolute path or a URI (file, s3, gs, az, abfss).",
    )
    name: TableName | None = Field(None, description="Display name; default: the id.")
    tenant: Tenant | None = Field(
        None, description="Tenant; tenants share the actors fairly. Default: derived from the location."
    )

    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Properties that override the table's own properties.",
    )

    paused: bool = Field(default=False, description="Whether its jobs wait until the table is resumed.")
    wait_s: float = Field(
        0.0,
        ge=0,
        le=MAX_WAIT_S,
        description="Seconds to wait for the first read of the table. A new location without a table is then "
        "rejected and not registered.",
    )


class TableUpdate(
    RequestModel,
    json_schema_extra=examples({"name": "sales.orders_v2", "properties": {"lakewright.priority": "high"}}),
):
    """Changes to a registered table; omitted fields stay unchanged."""

    name: TableName | None = Field(None, description="New display name.")
    tenant: Tenant | None = Field(None, description="New tenant; waiting jobs keep their tenant.")
    properties: dict[PropertyName, PropertyText] | None = Field(
        None, max_length=100, description="All property overrides; overrides that are not listed are removed."
    )


class TableReading(ResponseModel):
    """Result of the first read of a table."""

    version: int | None = Field(description="Table version that was read; null if the read did not finish in time.")
    refusal: TableRefusal | None = Field(description="Reason why the table is not optimized; null if it is.")
    error: str = Field(description="Error of a temporary failure; empty otherwise.")
    enabled: bool = Field(description="Whether the policy in effect permits automatic rewrites; false if not read yet.")
    issues: tuple[PolicyIssue, ...] = Field(description="Properties that cannot be applied.")


class RegisteredTable(TableView):
    """A registered table and the result of its first read."""

    reading: TableReading | None = Field(description="Result of the first read; null if `wait_s` is 0.")


class TableRegistrar:
    """Registers tables, waits for their first read, and unregisters them."""

    def __init__(self, tables: TableServices, queue: QueueServices, requests: RequestServices) -> None:
        self._tables = tables
        self._queue = queue
        self._requests = requests

    async def register(self, asked: TableRegistration) -> tuple[RegisteredTable, bool]:
        """Register a table, unless it is registered in the same way; return it, and whether it is new.

        Raises ApiError for a table that is registered in another way, or that does not exist.
        """
        check_properties(asked.properties, self._tables.defaults.current)
        known = await self._tables.registry.get(table_id(canonical_location(asked.location)))
        if known is None or known.is_discovered:
            table = await self._register(asked)
            return await self._with_first_read(table, asked, is_new=known is None), known is None
        _require_same(asked, known)
        await self._tables.registry.save(known)
        if asked.paused:
            require_own_pause(known, self._tables)
            await self._queue.admin.pause(Scope.TABLE, known.id, paused=True)
        return await self._with_first_read(known, asked, is_new=False), False

    async def unregister(self, table: TableRef, *, may_return: bool = False) -> None:
        """Cancel a table's jobs and delete everything that is kept of it. Raises ApiError for a declared table.

        may_return: it was never there, so discovery may find it later.
        """
        require_undeclared(table, self._tables)
        await self._tables.registry.remove(table, may_return=may_return)
        await delete_table(self._queue.executor, table.id, kinds=self._tables.actions.kinds)
        await self._lift_pause(table.id)  # not before: none of its jobs is to start

    async def _register(self, asked: TableRegistration) -> TableRef:
        """Register a table, paused before its first read where that is requested, so that no job runs in between."""
        identity = table_id(canonical_location(asked.location))
        registration = Registration(asked.name, asked.tenant, asked.properties)
        if asked.paused:
            await self._queue.admin.pause(Scope.TABLE, identity, paused=True)
        try:
            table = await self._requests.resolver.register(asked.location, registration)
        except LakewrightError:
            if asked.paused:
                await self._lift_pause(identity)
            raise
        if not asked.paused:
            await self._lift_pause(identity)
        return table

    async def _lift_pause(self, table: TableId) -> None:
        """Resume a table that is paused: discovery paused it, and a person adds it; or nothing of it is left."""
        if await self._queue.admin.is_paused(Scope.TABLE, table):
            await self._queue.admin.pause(Scope.TABLE, table, paused=False)

    async def _with_first_read(self, table: TableRef, asked: TableRegistration, *, is_new: bool) -> RegisteredTable:
        """Return a table with its first read, if the client waits for it; unregister a new one that does not exist."""
        view = TableView.of(table).model_dump()
        if not asked.wait_s:
            return RegisteredTable(**view, reading=None)
        reading = await self._first_read(table, asked.wait_s)
        if is_new and reading.refusal is not None and reading.refusal.missing:
            await self.unregister(table, may_return=True)
            raise ApiError(
                422,
                f"there is no table at {table.location}; nothing was registered",
                field="location",
                value=asked.location,
            )
        return RegisteredTable(**view, reading=reading)

    async def _first_read(self, table: TableRef, wait_s: float) -> TableReading:
        """Return the result of the first read, or what is known when the wait ends.

        A refusal is stored a moment after the state, so a table that was read is judged by its state.
        """
        deadline_s = time.monotonic() + wait_s
        while True:
            refusal = await self._tables.registry.refusal(table.id)
            state = await self._tables.states.state(table.id)
            problem = self._requests.refresh_queue.problem(table.id)
            if refusal is not None or state is not None or problem or time.monotonic() >= deadline_s:
                in_force = None if state is None else self._requests.tracker.effective(table, state)
                if refusal is None and state is not None and in_force is not None and in_force.refusal is not None:
                    found = in_force.refusal
                    refusal = StoredRefusal(state.folded_ms, found.message, code=found.code)
                return TableReading(
                    version=None if state is None else state.version,
                    refusal=None if refusal is None else TableRefusal.of(refusal),
                    error=problem,
                    enabled=in_force is not None and in_force.policy.enabled,
                    issues=() if in_force is None else tuple(map(PolicyIssue.of, in_force.issues)),
                )
            await asyncio.sleep(READ_POLL_S)


async def _registrar(tables: Tables, queue: Queue, requests: Requests) -> TableRegistrar:
    return TableRegistrar(tables, queue, requests)


Registrar = Annotated[TableRegistrar, Depends(_registrar)]
"""Injects what registers and unregisters tables."""


def check_properties(properties: Mapping[str, str], defaults: PolicyDefaults) -> None:
    """Reject properties that cannot be applied: the caller gets the error, so none is stored."""
    for name, reason in property_problems(properties, defaults):
        raise ApiError(422, f"{name}: {reason}", field=f"properties.{name}", value=properties.get(name))


def _require_same(asked: TableRegistration, known: TableRef) -> None:
    """Reject a registration that contradicts the one that exists."""
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


@router.patch("/{name}", summary="Update a table", responses=failures(400, 404, 409, 413, 422))
async def change_table(
    table: KnownTable, asked: TableUpdate, tables: Tables, queue: Queue, requests: Requests
) -> TableView:
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
    await queue.history.tables.mark_properties(table.id, table.properties, changed.properties)
    await requests.refresh_queue.put(changed, None)
    return TableView.of(changed)


@router.delete("/{name}", status_code=204, summary="Unregister a table", responses=failures(404, 409, 422))
async def forget_table(table: KnownTable, registrar: Registrar) -> None:
    """Cancel the table's jobs and delete its state; table data is not touched.

    Neither an event nor discovery registers it again; a person may.
    """
    await registrar.unregister(table)
