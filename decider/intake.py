"""Intake: a hint becomes a known table worth looking at, or a counted reason why it does not.

Hints are never trusted beyond that. A table is known by name or location; an unknown one is registered only if it
lies under an allowed root.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import structlog

from decider.batch import COMPACT
from decider.follow import Follower
from decider.inbox import Inbox
from decider.observe.locations import canonical_location, is_under, table_id
from decider.observe.shapes.hint import Hint
from decider.store.queue import AsyncQueue
from decider.store.removal import forget
from decider.store.tables import Refusal, TableRegistry
from shared.errors import InvalidInput, PermanentError
from shared.table import TableRef

log = structlog.get_logger()


class Intake:
    """Resolves hints to tables and puts these into the inbox."""

    def __init__(self, registry: TableRegistry, inbox: Inbox, *, roots: Sequence[str] = ()) -> None:
        self._registry = registry
        self._inbox = inbox
        self._roots = roots

    async def take(self, hints: Iterable[Hint]) -> tuple[int, Counter[str]]:
        """Take hints; return how many led to a table, and counts of the reasons why the others did not."""
        ignored: Counter[str] = Counter()
        accepted = 0
        for hint in hints:
            table = await self._resolve(hint)
            if table is None:
                ignored["unknown_table" if hint.location is None else "outside_allowed_roots"] += 1
                continue
            await self._inbox.put(table, hint.version)
            accepted += 1
        return accepted, ignored

    async def _resolve(self, hint: Hint) -> TableRef | None:
        if hint.location is None:
            return await self._registry.find(hint.name) if hint.name else None
        known = await self._registry.get(table_id(hint.location))
        if known is not None or not is_under(hint.location, self._roots):
            return known
        return await self.register(hint.location)

    async def register(self, location: str, *, name: str | None = None, tenant: str = "default") -> TableRef:
        """Register a table and look at it; returns what is known if it was registered before.

        Raises InvalidInput for a location outside the allowed roots, where there are any: whoever may call us must not
        make us read with our credentials where we were not told to.
        """
        canonical = canonical_location(location)
        if self._roots and not is_under(canonical, self._roots):
            raise InvalidInput(
                f"{canonical} lies outside the allowed roots; add its root to LAKEWRIGHT_ROOTS",
                field="location",
                allowed=", ".join(self._roots),
            )
        identity = table_id(canonical)
        known = await self._registry.get(identity)
        if known is not None:
            return known
        table = TableRef(identity, name or identity, canonical, tenant)
        await self._registry.register(table)
        await self._inbox.put(table, None)
        log.info("registered", table=table.name, location=canonical)
        return table


class Watch:
    """Follows tables for the inbox and keeps the registry's refusals true."""

    def __init__(
        self, follower: Follower, registry: TableRegistry, queue: AsyncQueue, now_ms: Callable[[], int]
    ) -> None:
        self._follower = follower
        self._registry = registry
        self._queue = queue
        self._now_ms = now_ms

    async def look(self, table: TableRef, version: int | None) -> None:
        """Follow one table; a log that we cannot or must not read is noted as a refusal and tried again later."""
        try:
            followed = await self._follower.follow(table, version)
        except (InvalidInput, PermanentError) as problem:
            await self._registry.refuse(table.id, Refusal(self._now_ms(), str(problem)))
            log.warning("table_refused", table=table.name, why=str(problem))
            return
        if followed.rescan and await self._registry.get(table.id) is None:
            # It was removed while it waited, and the look has just brought its state back.
            await forget(self._queue, table.id, kind=COMPACT)
        if await self._registry.refusal(table.id) is not None:
            await self._registry.accept(table.id)
