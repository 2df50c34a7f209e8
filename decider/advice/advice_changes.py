"""People apply advice, which changes the table's own properties or its overrides, or dismiss it.

The table's own properties are set by a job, with one `ALTER TABLE`. It changes the metadata, and with that Delta aborts
every other transaction that is open; an override has no such cost, and is not seen by other readers of the table. An
owner may also run the statement; the next analysis recognizes that the advice is in force.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from decider.advice.order_kinds import needs_owner
from decider.events.refresh_queue import RefreshQueue
from decider.optimize.table_requests import TableRequests
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.advice_records import Advice, AdviceStatus
from decider.store.tables.advice_store import AdviceStore
from decider.store.tables.table_state import TableStateStore
from shared.errors import InvalidInput, LakewrightError, RetryableError, Unsupported
from shared.policy.properties import read_properties, read_settings
from shared.table import TableRef

ATTEMPTS = 5
"""How often a record is written again when another decider wrote some advice at the same moment."""

_APPLICABLE = (AdviceStatus.OPEN, AdviceStatus.APPLYING)
"""An advice whose job is lost is applied again: the job of the second request is merged with one that waits."""


class AdviceChanges:
    """Applies and dismisses advice."""

    def __init__(
        self,
        store: AdviceStore,
        registry: TableRegistry,
        states: TableStateStore,
        refresh_queue: RefreshQueue,
        table_requests: TableRequests,
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._states = states
        self._refresh_queue = refresh_queue
        self._table_requests = table_requests
        self._now_ms = now_ms

    async def apply(self, table: TableRef, advice_id: str, *, dry_run: bool = False) -> Advice:
        """Queue the job that sets the table's own properties; `dry_run`: only check that it could be queued.

        Raises InvalidInput where there is no such advice, Unsupported where it was applied or dismissed, where the
        table is refused or its format has no such job, where overrides would hide the change, and where it is its
        owner's.
        """
        advice = await self._find(table, advice_id, _APPLICABLE)
        _require_job(table, advice)
        _require_effect(table, advice)
        if dry_run:
            await self._table_requests.require_properties(table)
            return advice
        # The advice first: what a job does whose advice is not noted would be the owner's doing.
        await self._move(table, advice_id, _APPLICABLE, status=AdviceStatus.APPLYING, job="", problem="")
        try:
            job = await self._table_requests.set_properties(table, advice.change)
        except LakewrightError:
            await self._move(table, advice_id, _APPLICABLE, status=AdviceStatus.OPEN)
            raise
        return await self._move(table, advice_id, None, job=job)

    async def override(self, table: TableRef, advice_id: str) -> Advice:
        """Lay the change over the table's overrides, and note that it was applied.

        Raises InvalidInput where there is no such advice, Unsupported where it was applied or dismissed, where it is
        its owner's, and for an order, which has an effect only in the table's own properties.
        """
        advice = await self._find(table, advice_id, _APPLICABLE)
        _require_job(table, advice)
        if advice.proof.order is not None:
            raise Unsupported(
                "this change has an effect only in the table's own properties: apply the advice without override",
                field="override",
                allowed="false",
            )
        version = (await self._states.versions([table.id])).get(table.id, -1)
        # The registry first: an advice that was applied and is still open is recognized by the next analysis.
        changed = await self._registry.update(
            table.id,
            lambda now: replace(now, properties={**now.properties, **advice.change}, is_discovered=False),
        )
        if changed is None:
            raise InvalidInput(f"{table.name} is no longer registered", field="name")
        await self._refresh_queue.put(changed, None)
        return await self._move(table, advice_id, _APPLICABLE, status=AdviceStatus.APPLIED, applied_version=version)

    async def dismiss(self, table: TableRef, advice_id: str) -> Advice:
        """Dismiss a change: it is not advised again for this table. Raises as `override` does."""
        await self._find(table, advice_id, (AdviceStatus.OPEN,))
        await self._store.dismiss(table.id, advice_id)
        return await self._move(table, advice_id, (AdviceStatus.OPEN,), status=AdviceStatus.DISMISSED)

    async def _find(self, table: TableRef, advice_id: str, allowed: tuple[AdviceStatus, ...] | None) -> Advice:
        advice = await self._store.read(table.id)
        if advice is None or advice.id != advice_id:
            known = "none" if advice is None else advice.id
            raise InvalidInput(
                f"{table.name} no longer has advice {advice_id!r}; read the advice again", field="id", allowed=known
            )
        if allowed is not None and advice.status not in allowed:
            raise Unsupported(
                f"the advice for {table.name} is {advice.status} already", field="id", allowed="open advice"
            )
        return advice

    async def _move(
        self, table: TableRef, advice_id: str, allowed: tuple[AdviceStatus, ...] | None, **changes: Any
    ) -> Advice:
        for _ in range(ATTEMPTS):
            advice = await self._find(table, advice_id, allowed)
            now = replace(advice, changed_ms=self._now_ms(), **changes)
            if await self._store.replace(table.id, advice, now):
                return now
        raise RetryableError(f"the advice for {table.name} changes at this moment; try again")


def _require_job(table: TableRef, advice: Advice) -> None:
    if needs_owner(advice):
        raise Unsupported(
            f"only the owner of {table.name} can make this change, as the advice shows; the next analysis notes it",
            field="id",
            allowed="`lakewright advice show`",
        )


def _require_effect(table: TableRef, advice: Advice) -> None:
    """Raise Unsupported if an override of the table has precedence over a property that the change sets."""
    overrides = read_properties(table.properties)
    changed = read_settings(advice.change).values.keys() & overrides.values.keys()
    if changed:
        names = sorted(overrides.property_names[one] for one in changed)
        raise Unsupported(
            f"overrides of {table.name} have precedence over its own properties ({', '.join(names)}): remove them "
            f"with `lakewright tables change {table.name} --unset NAME`, or apply the advice with override=true",
            field="override",
            allowed="true",
        )
