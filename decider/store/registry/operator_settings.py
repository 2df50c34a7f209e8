"""Settings of operators in a queue (pauses, limits, weights, budgets, settings) as entries that outlive its Redis.

The queue's own hash also holds what properties and deciders set, which they set again by themselves. Operators would
not: a table that one of them paused would be rewritten after a loss of Redis.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.registry.merge_mark import RegistrySaver
from decider.store.registry.registry_document import Entries, SavedEntry, newer
from shared.policy.budgets import encode_budgets
from shared.queue import admin_commands, commands, keys
from shared.queue.admin_commands import SlotLimit, SlotQuota
from shared.queue.command import Command
from shared.queue.decode import text
from shared.queue.model import Scope

SETTINGS_FIELD = "settings"
"""Field of the queue's settings, which are one entry because ranges of some depend on others."""


class OperatorSettings:
    """Settings of operators in one queue, as a hash of entries."""

    def __init__(
        self, queue: AsyncQueueExecutor, now_ms: Callable[[], int], saver: RegistrySaver | None = None
    ) -> None:
        """With `saver`, each change is saved before the call returns."""
        self._queue = queue
        self._now_ms = now_ms
        self._saver = saver
        self._hash = keys.administered(queue.name)
        self._prefix = f"queue/{queue.name.replace('/', '@')}/"

    async def begin(self) -> None:
        """Return if a change may begin, before any part of it is in force. Raises LakewrightError otherwise."""
        if self._saver is not None:
            await self._saver.begin()

    async def record_pause(self, scope: Scope, name: str, *, paused: bool, is_saved: bool = True) -> None:
        """Record that a queue, band, tenant or table was paused or resumed; not `is_saved`: the next pass saves it."""
        await self._record(f"pause|{scope}|{name}", lambda _: paused or None, is_saved=is_saved)

    async def record_weight(self, scope: Scope, name: str, weight: float | None) -> None:
        """Record a weight; None is the default."""
        await self._record(f"weight|{scope}|{name}", lambda _: weight)

    async def record_limit(self, scope: Scope, name: str, limit: SlotLimit | SlotQuota | None) -> None:
        """Record a limit of concurrent jobs; None for none."""
        await self._record(f"limit|{scope}|{name}", lambda _: _encode_limit(limit))

    async def record_budget(self, scope: Scope, name: str, budget: str) -> None:
        """Record a budget as it was written; empty for none."""
        await self._record(f"budget|{scope}|{name}", lambda _: budget or None)

    async def record_settings(self, settings: Mapping[str, int]) -> None:
        """Record changed settings of the queue."""
        await self._record(SETTINGS_FIELD, lambda before: {**(before or {}), **settings})

    @translate_redis_errors
    async def read(self) -> dict[str, SavedEntry]:
        """Return the entries by their keys in the saved registry."""
        found = await self._queue.redis.hgetall(self._hash)
        return {self._prefix + text(field): _decode(raw) for field, raw in found.items()}

    async def apply(self, entries: Entries) -> None:
        """Set again what is later than in Redis; entries of other queues and of tables are left out."""
        for key, entry in entries.items():
            if key.startswith(self._prefix):
                await self._apply(key.removeprefix(self._prefix), entry)

    @translate_redis_errors
    async def _record(self, field: str, change: Callable[[Any], Any], *, is_saved: bool = True) -> None:
        """Record the change of a value; of two at once, the one that is recorded last is the later one everywhere."""

        async def write(pipe: Any) -> SavedEntry:
            raw = await pipe.hget(self._hash, field)
            before = None if raw is None else _decode(raw)
            least_ms = 0 if before is None else before.changed_ms + 1
            entry = SavedEntry(max(self._now_ms(), least_ms), change(None if before is None else before.value))
            pipe.multi()
            pipe.hset(self._hash, field, _encode(entry))
            return entry

        entry = await watched_transaction(self._queue.redis, (self._hash,), write)
        if self._saver is not None and is_saved:
            await self._saver.save({self._prefix + field: entry})

    @translate_redis_errors
    async def _apply(self, field: str, entry: SavedEntry) -> None:
        """Set a value and record it; if an operator sets another meanwhile, that one is set again, because it is later.

        The record is last: a call that dies before it is repeated.
        """

        async def write(pipe: Any) -> None:
            raw = await pipe.hget(self._hash, field)
            chosen = newer(None if raw is None else _decode(raw), entry) or entry
            await self._queue.run(_command(self._queue.name, field, chosen.value))
            pipe.multi()
            pipe.hset(self._hash, field, _encode(chosen))

        await watched_transaction(self._queue.redis, (self._hash,), write)


def _command(queue: str, field: str, value: Any) -> Command[Any]:
    """Return the call that sets what an entry records."""
    if field == SETTINGS_FIELD:
        return commands.configure(queue, value or {})
    kind, scope, name = field.split("|", 2)
    match kind:
        case "pause":
            return admin_commands.pause(queue, Scope(scope), name, paused=bool(value))
        case "weight":
            return admin_commands.set_weight(queue, Scope(scope), name, value)
        case "budget":
            return admin_commands.set_budget(queue, Scope(scope), name, encode_budgets(value or ""))
        case _:
            return admin_commands.set_limit(queue, Scope(scope), name, _decode_limit(value))


def _encode_limit(limit: SlotLimit | SlotQuota | None) -> str | None:
    match limit:
        case None:
            return None
        case SlotLimit(count):
            return str(count)
        case SlotQuota(percent):
            return f"{percent}%"


def _decode_limit(value: str | None) -> SlotLimit | SlotQuota | None:
    if value is None:
        return None
    return SlotQuota(int(value[:-1])) if value.endswith("%") else SlotLimit(int(value))


def _encode(entry: SavedEntry) -> str:
    return json.dumps([entry.changed_ms, entry.value])


def _decode(raw: bytes | str) -> SavedEntry:
    changed_ms, value = json.loads(raw)
    return SavedEntry(changed_ms, value)
