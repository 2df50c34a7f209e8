"""The registry of tables: which tables are known, under which name, and which of them are refused and why.

A table's id is derived from its location, so registering twice finds the same entry, and a name belongs to one table.

One table under several names: whose snapshots are live under one of them, the metadata of another do not show.

A catalog may have two entries of one table, or a catalog and a folder; each has its own metadata from then on, and
what expires by one of them may be current by the other. Equal ids of tables show it, as their states keep these.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from redis.asyncio import Redis

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors, translating_redis_errors
from decider.store.redis.redis_health import RedisSafety
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.registry.merge_mark import RegistrySaver
from decider.store.registry.registry_document import SavedEntry, table_entry, table_key
from shared.errors import InvalidInput, RetryableError
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId, TableRef
from shared.typed_json import from_json, to_json

R = TypeVar("R")

PAGE = 500
"""Tables read per round trip when all are listed: large enough to be fast, small enough not to hold up Redis."""


FIRST_CHANGE_MS = 1
"""Time of the registration of a discovered table that was never removed: earlier than any change by a person."""

_WATCHED = (keys.TABLES, keys.REMOVED_TABLES, keys.TABLE_NAMES, keys.MERGED_REGISTRY)


@dataclass(frozen=True, slots=True)
class StoredRefusal:
    """Why a table is not optimized at present: since when, and whether it is missing.

    `code` names a refusal by rule (see `shared.refusals`); it is empty where the log could not be read.
    """

    at_ms: int
    reason: str
    since_ms: int = 0
    is_missing: bool = False
    code: str = ""

    def __post_init__(self) -> None:
        if not self.since_ms:
            object.__setattr__(self, "since_ms", self.at_ms)


@dataclass(frozen=True, slots=True)
class TablePage:
    """Tables in the order of their names; `after` is where the next page begins, None on the last one."""

    tables: tuple[TableRef, ...]
    next_after: str | None


class TableRegistry:
    """Registered tables in Redis, safe to share between deciders.

    Hashes hold tables and refusals by id, and ids by name; a sorted set holds the names in their order.
    Each change has a time, and a removed table leaves a tombstone: so other copies of the registry merge with this one.
    """

    def __init__(
        self,
        redis: Redis,
        safety: RedisSafety | None = None,
        *,
        now_ms: Callable[[], int],
        saver: RegistrySaver | None = None,
    ) -> None:
        """Set the clock of changes, and where they are saved.

        With `safety`, no table is registered in a Redis that might lose it; with `saver`, each change is saved.
        """
        self._redis = redis
        self._safety = safety
        self._now_ms = now_ms
        self._saver = saver
        self._writing = asyncio.Lock()

    async def register(self, table: TableRef) -> bool:
        """Add a table; False if it was known. Raises InvalidInput if its name belongs to another table.

        A discovered one is saved later, with the next pass: until then, discovery finds it again. It is no later than
        any change by a person, which may be saved although Redis has just lost it.
        """

        async def add(pipe: Any) -> TableRef | None:
            if await pipe.hget(keys.TABLES, table.id) is not None:
                return None
            await _require_free_name(pipe, table)
            removed_ms = int(await pipe.hget(keys.REMOVED_TABLES, table.id) or 0)
            least_ms = max(removed_ms + 1, FIRST_CHANGE_MS)
            made = replace(table, changed_ms=least_ms if table.is_discovered else max(self._now_ms(), least_ms))
            pipe.multi()
            pipe.hset(keys.TABLES, made.id, json.dumps(asdict(made)))
            pipe.hdel(keys.REMOVED_TABLES, made.id)
            pipe.srem(keys.REDISCOVERABLE, made.id)
            _queue_name(pipe, made)
            return made

        made = await self._change(add)
        if made is not None and not made.is_discovered:
            await self.save(made)
        return made is not None

    async def update(self, table_id: TableId, change: Callable[[TableRef], TableRef]) -> TableRef | None:
        """Change a known table's name, tenant or properties; return it, None if it is not registered.

        `change` is applied to the table as it is now, so that of two changes at once none is lost. Raises InvalidInput
        if the name is another table's.
        """

        async def replace_table(pipe: Any) -> TableRef | None:
            raw = await pipe.hget(keys.TABLES, table_id)
            if raw is None:
                return None
            before = decode_table(raw)
            after = replace(change(before), changed_ms=max(self._now_ms(), before.changed_ms + 1))
            await _require_free_name(pipe, after)
            pipe.multi()
            # A later release may have added fields, which stay.
            pipe.hset(keys.TABLES, after.id, json.dumps(json.loads(raw) | asdict(after)))
            if after.name != before.name:
                _queue_name_removal(pipe, before)
            _queue_name(pipe, after)
            return after

        after = await self._change(replace_table)
        if after is not None:
            await self.save(after)
        return after

    async def remove(self, table: TableRef, *, may_return: bool = False) -> bool:
        """Delete a table, under whatever name it has now; False if it was not registered.

        may_return: no person removed it, so discovery and events may register it again.
        """

        async def delete(pipe: Any) -> tuple[bool, int]:
            raw = await pipe.hget(keys.TABLES, table.id)
            known = table if raw is None else decode_table(raw)
            before_ms = max(known.changed_ms, int(await pipe.hget(keys.REMOVED_TABLES, table.id) or 0))
            removed_ms = max(self._now_ms(), before_ms + 1)
            owner = await pipe.hget(keys.TABLE_NAMES, known.name)
            pipe.multi()
            pipe.hdel(keys.TABLES, known.id)
            pipe.hdel(keys.REFUSED_TABLES, known.id)
            pipe.hset(keys.REMOVED_TABLES, known.id, removed_ms)
            (pipe.sadd if may_return else pipe.srem)(keys.REDISCOVERABLE, known.id)
            if text(owner or b"") == known.id:
                _queue_name_removal(pipe, known)
            return raw is not None, removed_ms

        removed, removed_ms = await self._change(delete)
        if self._saver is not None:
            await self._saver.save({table_key(table.id): SavedEntry(removed_ms)})
        return removed

    async def save(self, table: TableRef) -> None:
        """Return once a registered table is saved, as it is after every change that did not fail on the way."""
        if self._saver is not None:
            await self._saver.save({table_key(table.id): table_entry(table)})

    @translate_redis_errors
    async def _change(self, body: Callable[[Any], Awaitable[R]]) -> R:
        """Run a transaction on the tables, on a registry that lost nothing."""
        if self._safety is not None:
            await self._safety.require_safe()

        async def checked(pipe: Any) -> R:
            if self._saver is not None and await pipe.get(keys.MERGED_REGISTRY) is None:
                raise RetryableError("Redis was emptied during the change; try again in a moment")
            result = await body(pipe)
            if pipe.command_stack:
                pipe.incr(keys.TABLES_REVISION)
            return result

        # One at a time in this process, so that only other deciders make an attempt fail.
        async with self._writing:
            if self._saver is not None:
                await self._saver.begin()
            return await watched_transaction(self._redis, _WATCHED, checked)

    @translate_redis_errors
    async def get(self, table_id: TableId) -> TableRef | None:
        """Return the table with this id."""
        raw = await self._redis.hget(keys.TABLES, table_id)
        return None if raw is None else decode_table(raw)

    @translate_redis_errors
    async def find(self, name_or_id: str) -> TableRef | None:
        """Return the table with this name or id."""
        owner = await self._redis.hget(keys.TABLE_NAMES, name_or_id)
        return await self.get(TableId(text(owner) if owner else name_or_id))

    @translate_redis_errors
    async def removed(self, ids: Sequence[TableId]) -> frozenset[TableId]:
        """Return the tables among these that a person removed: a person registers them again, discovery does not."""
        if not ids:
            return frozenset()
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hmget(keys.REMOVED_TABLES, [str(one) for one in ids])
            pipe.smismember(keys.REDISCOVERABLE, [str(one) for one in ids])
            removed, may_return = await pipe.execute()
        found = zip(ids, removed, may_return, strict=True)
        return frozenset(one for one, removed_ms, returns in found if removed_ms is not None and not returns)

    @translate_redis_errors
    async def get_many(self, ids: Collection[TableId]) -> dict[TableId, TableRef]:
        """Return the tables among these that are known."""
        found: dict[TableId, TableRef] = {}
        wanted = list(ids)
        for start in range(0, len(wanted), PAGE):
            rows = await self._redis.hmget(keys.TABLES, [str(one) for one in wanted[start : start + PAGE]])
            found |= {table.id: table for table in (decode_table(raw) for raw in rows if raw is not None)}
        return found

    @translate_redis_errors
    async def find_many(self, names: Collection[str]) -> dict[str, TableRef]:
        """Return the tables that have these names or ids, keyed by these."""
        wanted = list(names)
        ids: dict[str, TableId] = {}
        for start in range(0, len(wanted), PAGE):
            some = wanted[start : start + PAGE]
            owners = await self._redis.hmget(keys.TABLE_NAMES, some)
            ids |= {name: TableId(text(owner) if owner else name) for name, owner in zip(some, owners, strict=True)}
        known = await self.get_many(set(ids.values()))
        return {name: known[identity] for name, identity in ids.items() if identity in known}

    @translate_redis_errors
    async def page(self, *, prefix: str, after: str, limit: int) -> TablePage:
        """Return up to `limit` tables whose names begin with `prefix` and come after `after` ("": from the start)."""
        low = f"({after}" if after >= prefix and after else f"[{prefix}"
        high = f"[{prefix}\U0010ffff" if prefix else "+"
        names: Any = await self._redis.zrange(keys.TABLE_ORDER, low, high, bylex=True, offset=0, num=limit + 1)
        shown = [text(name) for name in names[:limit]]
        ids = await self._redis.hmget(keys.TABLE_NAMES, shown) if shown else []
        known = [text(identity) for identity in ids if identity is not None]
        rows = await self._redis.hmget(keys.TABLES, known) if known else []
        tables = tuple(decode_table(raw) for raw in rows if raw is not None)
        return TablePage(tables, shown[-1] if len(names) > limit else None)

    async def all(self) -> AsyncIterator[TableRef]:
        """Yield every table, in no order; one that is added meanwhile may be missed until the next time."""
        place = 0
        rows: Any
        while True:
            with translating_redis_errors():
                place, rows = await self._redis.hscan(keys.TABLES, place, count=PAGE)
            for raw in rows.values():
                yield decode_table(raw)
            if not place:
                return

    @translate_redis_errors
    async def count(self) -> int:
        """Return how many tables are registered."""
        return int(await self._redis.hlen(keys.TABLES))

    @translate_redis_errors
    async def set_refusal(self, table_id: TableId, refusal: StoredRefusal) -> None:
        """Store why a table cannot be refreshed; it stays registered and is tried again."""
        await self._redis.hset(keys.REFUSED_TABLES, table_id, to_json(refusal))

    @translate_redis_errors
    async def clear_refusal(self, table_id: TableId) -> None:
        """Drop a refusal that no longer holds."""
        await self._redis.hdel(keys.REFUSED_TABLES, table_id)

    @translate_redis_errors
    async def refusal(self, table_id: TableId) -> StoredRefusal | None:
        """Return why a table is refused, None if it is not."""
        raw = await self._redis.hget(keys.REFUSED_TABLES, table_id)
        return None if raw is None else decode_refusal(raw)

    @translate_redis_errors
    async def refusals(self, ids: Sequence[TableId]) -> dict[TableId, StoredRefusal]:
        """Return the refusals of the tables among these that are refused."""
        if not ids:
            return {}
        rows = await self._redis.hmget(keys.REFUSED_TABLES, [str(one) for one in ids])
        found = zip(ids, rows, strict=True)
        return {table_id: decode_refusal(raw) for table_id, raw in found if raw is not None}

    @translate_redis_errors
    async def all_refusals(self) -> dict[TableId, StoredRefusal]:
        """Return every refusal."""
        found: dict[TableId, StoredRefusal] = {}
        async for table, raw in self._redis.hscan_iter(keys.REFUSED_TABLES, count=PAGE):
            found[TableId(text(table))] = decode_refusal(raw)
        return found

    @translate_redis_errors
    async def revision(self) -> int:
        """Return a number that grows whenever a table is registered, changed or unregistered."""
        return int(await self._redis.get(keys.TABLES_REVISION) or 0)

    @translate_redis_errors
    async def count_refused(self) -> int:
        """Return how many tables are refused, unreadable or missing."""
        return int(await self._redis.hlen(keys.REFUSED_TABLES))


def decode_refusal(raw: bytes | str) -> StoredRefusal:
    """Read a stored refusal."""
    return from_json(StoredRefusal, raw)


def decode_table(raw: bytes | str) -> TableRef:
    """Read a registered table; fields of a later release are left out."""
    return from_json(TableRef, raw)


async def _require_free_name(pipe: Any, table: TableRef) -> None:
    """Raise InvalidInput if the name of a table is another one's; an id that has no such table does not own it."""
    owner = text(await pipe.hget(keys.TABLE_NAMES, table.name) or b"")
    if not owner or owner == table.id:
        return
    raw = await pipe.hget(keys.TABLES, owner)
    if raw is not None and decode_table(raw).name == table.name:
        raise InvalidInput(
            f"the name {table.name!r} belongs to another table ({owner}); choose another name", field="name"
        )


def _queue_name(pipe: Any, table: TableRef) -> None:
    pipe.hset(keys.TABLE_NAMES, table.name, table.id)
    pipe.zadd(keys.TABLE_ORDER, {table.name: 0})


def _queue_name_removal(pipe: Any, table: TableRef) -> None:
    pipe.hdel(keys.TABLE_NAMES, table.name)
    pipe.zrem(keys.TABLE_ORDER, table.name)


_READ_AT_ONCE = 1_000
"""Ids of tables that one round trip reads: a few milliseconds of Redis."""


class TableTwins:
    """Finds the registered tables with the id of another one, as the newest states have them."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue

    @translate_redis_errors
    async def names(self, table: TableId, table_uuid: str) -> tuple[str, ...]:
        """Return the names of the other registered tables that are this one, in order."""
        others = [name for raw in await self._queue.redis.hkeys(keys.TABLES) if (name := TableId(text(raw))) != table]
        found: list[TableId] = []
        for start in range(0, len(others), _READ_AT_ONCE):
            some = others[start : start + _READ_AT_ONCE]
            async with self._queue.redis.pipeline(transaction=False) as pipe:
                for one in some:
                    pipe.hget(keys.table_state(self._queue.name, one), "table_uuid")
                ids = await pipe.execute()
            found += [one for one, raw in zip(some, ids, strict=True) if raw is not None and text(raw) == table_uuid]
        if not found:
            return ()
        registered = await self._queue.redis.hmget(keys.TABLES, found)
        return tuple(sorted(decode_table(raw).name for raw in registered if raw is not None))
