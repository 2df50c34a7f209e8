"""What people do with advice: apply it, which changes the table's overrides, or dismiss it.

An override changes the policy without a commit to the table: `ALTER TABLE` changes the metadata, and with it Delta
aborts every writer whose transaction is open. An owner may set the table's own properties instead; the next
analysis recognizes that the advice is in force.
"""

from collections.abc import Callable
from dataclasses import replace

from decider.events.refresh_queue import RefreshQueue
from decider.store.advice_records import Advice, AdviceStatus
from decider.store.advice_store import AdviceStore
from decider.store.table_registry import TableRegistry
from decider.store.table_state import TableStateStore
from shared.errors import InvalidInput, RetryableError, Unsupported
from shared.table import TableRef

ATTEMPTS = 5
"""How often a record is written again when another decider wrote some advice at the same moment."""


class AdviceChanges:
    """Applies and dismisses advice."""

    def __init__(
        self,
        store: AdviceStore,
        registry: TableRegistry,
        states: TableStateStore,
        refresh_queue: RefreshQueue,
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._states = states
        self._refresh_queue = refresh_queue
        self._now_ms = now_ms

    async def apply(self, table: TableRef, advice_id: str) -> Advice:
        """Lay the change over the table's overrides, and note that it was applied.

        Raises InvalidInput where there is no such advice, Unsupported where it is not open.
        """
        advice = await self._open(table, advice_id)
        version = (await self._states.versions([table.id])).get(table.id, -1)
        # The registry first: an advice that was applied and is still open is recognized by the next analysis.
        changed = await self._registry.update(
            table.id,
            lambda now: replace(now, properties={**now.properties, **advice.change}, is_discovered=False),
        )
        if changed is None:
            raise InvalidInput(f"{table.name} is not registered any more", field="name")
        await self._refresh_queue.put(changed, None)
        return await self._move(table, advice_id, AdviceStatus.APPLIED, applied_version=version)

    async def dismiss(self, table: TableRef, advice_id: str) -> Advice:
        """Dismiss a change: it is not advised again for this table. Raises as `apply` does."""
        await self._open(table, advice_id)
        await self._store.dismiss(table.id, advice_id)
        return await self._move(table, advice_id, AdviceStatus.DISMISSED)

    async def _open(self, table: TableRef, advice_id: str) -> Advice:
        advice = await self._store.read(table.id)
        if advice is None or advice.id != advice_id:
            known = "none" if advice is None else advice.id
            raise InvalidInput(
                f"{table.name} has no advice {advice_id!r} any more; read the advice again", field="id", allowed=known
            )
        if advice.status is not AdviceStatus.OPEN:
            raise Unsupported(
                f"the advice for {table.name} is {advice.status} already", field="id", allowed="open advice"
            )
        return advice

    async def _move(
        self, table: TableRef, advice_id: str, status: AdviceStatus, *, applied_version: int = -1
    ) -> Advice:
        for _ in range(ATTEMPTS):
            advice = await self._open(table, advice_id)
            now = replace(advice, status=status, changed_ms=self._now_ms(), applied_version=applied_version)
            if await self._store.replace(table.id, advice, now):
                return now
        raise RetryableError(f"the advice for {table.name} changes at this moment; try again")
