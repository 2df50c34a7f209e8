"""Registers and unregisters tables for the API; properties are checked first, and a missing table is not kept."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends

from decider.api.declared_tables import require_own_pause, require_undeclared
from decider.api.dependencies import Queue, Requests, Tables
from decider.api.schemas.tables import RegisteredTable, TableReading, TableRegistration
from decider.api.services import QueueServices, RequestServices, TableServices
from decider.api.views.tables import refusal_view, table_view
from decider.declared.tables_file import property_problems
from decider.events.resolver import Registration
from decider.state.effective_policy import PolicyDefaults
from decider.store.cleanup import delete_table
from decider.web.errors import ApiError
from shared.errors import LakewrightError
from shared.locations import canonical_location, table_id
from shared.queue.model import Scope
from shared.table import TableRef

READ_POLL_S = 0.1
"""Pause between two checks whether a table was read: two small reads of Redis each."""


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

    async def unregister(self, table: TableRef) -> None:
        """Cancel a table's jobs and delete everything that is kept of it. Raises ApiError for a declared table."""
        require_undeclared(table, self._tables)
        await self._tables.registry.remove(table)
        await delete_table(self._queue.executor, table.id, kinds=self._tables.actions.kinds)

    async def _register(self, asked: TableRegistration) -> TableRef:
        """Register a table, paused before its first read where that is requested, so that no job runs in between."""
        identity = table_id(canonical_location(asked.location))
        registration = Registration(asked.name, asked.tenant, asked.properties)
        if asked.paused:
            await self._queue.admin.pause(Scope.TABLE, identity, paused=True)
        try:
            return await self._requests.resolver.register(asked.location, registration)
        except LakewrightError:
            if asked.paused:
                await self._queue.admin.pause(Scope.TABLE, identity, paused=False)
            raise

    async def _with_first_read(self, table: TableRef, asked: TableRegistration, *, is_new: bool) -> RegisteredTable:
        """Return a table with its first read, if the client waits for it; unregister a new one that does not exist."""
        view = table_view(table).model_dump()
        if not asked.wait_s:
            return RegisteredTable(**view, reading=None)
        reading = await self._first_read(table, asked.wait_s)
        if is_new and reading.refusal is not None and reading.refusal.missing:
            await self.unregister(table)
            if asked.paused:
                await self._queue.admin.pause(Scope.TABLE, table.id, paused=False)
            raise ApiError(
                422, f"{reading.refusal.reason}; nothing was registered", field="location", value=asked.location
            )
        return RegisteredTable(**view, reading=reading)

    async def _first_read(self, table: TableRef, wait_s: float) -> TableReading:
        """Return the result of the first read, or what is known when the wait ends."""
        deadline_s = time.monotonic() + wait_s
        while True:
            refusal = await self._tables.registry.refusal(table.id)
            version = (await self._tables.states.versions([table.id])).get(table.id)
            problem = self._requests.refresh_queue.problem(table.id)
            if refusal is not None or version is not None or problem or time.monotonic() >= deadline_s:
                return TableReading(
                    version=version, refusal=None if refusal is None else refusal_view(refusal), error=problem
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
