"""Carries what a tables file declares into the registry: new tables are registered, changed and removed ones follow.

A table that a call had registered before its entry stays when the entry is removed; every other one is unregistered.
All steps are repeatable, and several deciders may take them at once.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from decider.declared.tables_file import DeclaredTable, DeclaredTables
from decider.events.refresh_queue import RefreshQueue
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.cleanup import delete_table
from decider.store.tables.table_history import TableHistory
from shared.queue.model import Scope
from shared.table import TableId, TableRef

AT_ONCE = 100
"""Tables registered side by side, whose changes are saved together where the registry is saved."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AppliedDeclarations:
    """Numbers of tables that were registered or changed, and unregistered; entries that could not be applied."""

    changed: int = 0
    removed: int = 0
    problems: tuple[str, ...] = ()


class TableDeclarations:
    """Compares declared and registered tables, and changes what differs."""

    def __init__(
        self,
        registry: TableRegistry,
        queue: AsyncQueueExecutor,
        admin: QueueAdmin,
        refresh_queue: RefreshQueue,
        kinds: Sequence[str],
    ) -> None:
        self._registry = registry
        self._queue = queue
        self._history = TableHistory(queue)
        self._admin = admin
        self._refresh_queue = refresh_queue
        self._kinds = kinds

    async def apply(self, declared: DeclaredTables) -> AppliedDeclarations:
        """Make the registry equal to what is declared. Raises LakewrightError if Redis or the store fails."""
        undeclared = [
            table async for table in self._registry.all() if table.is_declared and table.id not in declared.tables
        ]
        for table in undeclared:
            await self._release(table)
        known = await self._registry.get_many(declared.tables.keys())
        paused = await self._admin.paused_tables()
        different = [
            one for one in declared.tables.values() if not _is_applied(one, known.get(one.id), one.id in paused)
        ]
        taken = await self._free_names(different, declared.tables)
        changes = [one for one in different if one.id not in taken]
        for some in _batches(changes):
            await asyncio.gather(*(self._declare(one, known.get(one.id), is_paused=one.id in paused) for one in some))
        if undeclared or changes:
            log.info("tables_file_applied", changed=len(changes), removed=len(undeclared))
        return AppliedDeclarations(len(changes), len(undeclared), tuple(taken.values()))

    async def _release(self, table: TableRef) -> None:
        """Unregister a table whose entry was removed, or leave it to those who had registered it."""
        if table.declared_paused:
            await self._admin.pause(Scope.TABLE, table.id, paused=False)
        if table.was_registered:
            await self._registry.update(
                table.id, lambda now: replace(now, is_declared=False, was_registered=False, declared_paused=None)
            )
            return
        await self._registry.remove(table)
        await delete_table(self._queue, table.id, kinds=self._kinds)

    async def _declare(self, one: DeclaredTable, known: TableRef | None, *, is_paused: bool) -> None:
        """Register or change a table, paused before it is read if the file pauses it."""
        was_paused_here = known is not None and known.declared_paused
        wanted = one.paused if one.paused is not None else (False if was_paused_here else is_paused)
        if wanted != is_paused:
            await self._admin.pause(Scope.TABLE, one.id, paused=wanted)
        table = one.registration(None)
        if known is not None or not await self._registry.register(table):
            changed = await self._registry.update(one.id, one.registration)
            table = changed or table
            if known is not None:
                await self._history.mark_properties(one.id, known.properties, table.properties)
        await self._refresh_queue.put(table, None)

    async def _free_names(
        self, wanted: Iterable[DeclaredTable], declared: Mapping[TableId, DeclaredTable]
    ) -> dict[TableId, str]:
        """Name tables by their ids that have a name of a declared one; return who cannot have its name, and why.

        Only tables that discovery named, and declared ones that get another name, give theirs away.
        """
        names = {one.name: one for one in wanted}
        owners = await self._registry.find_many(names)
        taken: dict[TableId, str] = {}
        for name, owner in owners.items():
            one = names[name]
            if owner.id == one.id or owner.name != name:
                continue
            if owner.is_discovered or owner.id in declared:
                await self._registry.update(owner.id, _named_by_id)
                continue
            taken[one.id] = (
                f"{one.place}: the name {name!r} belongs to {owner.location}, which was registered by a call; rename "
                "one of them"
            )
        return taken


def _named_by_id(table: TableRef) -> TableRef:
    return replace(table, name=table.id)


def _is_applied(one: DeclaredTable, known: TableRef | None, is_paused: bool) -> bool:  # noqa: FBT001
    if known is None or known != one.registration(known):
        return False
    return one.paused in (None, is_paused)


def _batches(changes: Sequence[DeclaredTable]) -> Iterable[Sequence[DeclaredTable]]:
    return (changes[first : first + AT_ONCE] for first in range(0, len(changes), AT_ONCE))
