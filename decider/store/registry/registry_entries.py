"""The registry in Redis as entries that merge with the saved registry: tables, and tombstones of removed ones.

An entry is written only over an earlier change, compared in the same transaction. So a decider that writes late, with
what it read long ago, changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.redis.watched_transaction import watched_transaction
from decider.store.registry.operator_settings import OperatorSettings
from decider.store.registry.registry_document import (
    TABLE,
    Entries,
    SavedEntry,
    entry_of_record,
    newer,
    record_of_entry,
    table_key,
    without_old_tombstones,
)
from decider.store.registry.table_registry import PAGE, decode_table
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId, TableRef

_Present = tuple[TableRef | None, SavedEntry | None]
"""Content of Redis for a key: the registered table, and the later of that and its tombstone as an entry."""


@dataclass(frozen=True, slots=True)
class AppliedEntries:
    """Changes in Redis: tables that were added or changed, and tables that were removed."""

    restored: tuple[TableRef, ...] = ()
    removed: tuple[TableRef, ...] = ()


class RegistryEntries:
    """Reads and writes the registered tables, and what operators set in the queue and its groups, as entries."""

    def __init__(self, redis: Redis, operators: Sequence[OperatorSettings], now_ms: Callable[[], int]) -> None:
        self._redis = redis
        self._operators = operators
        self._now_ms = now_ms

    @translate_redis_errors
    async def read(self) -> dict[str, SavedEntry]:
        """Return the entry of every table that is registered or was removed, and of every setting of the queue.

        Tables are read before tombstones: one that is removed meanwhile has both, of which the removal is later.
        """
        found: dict[str, SavedEntry] = {}
        async for _, raw in self._redis.hscan_iter(keys.TABLES, count=PAGE):
            entry = entry_of_record(raw)
            found[table_key(entry.value["id"])] = entry
        async for raw_id, changed_ms in self._redis.hscan_iter(keys.REMOVED_TABLES, count=PAGE):
            key, removal = table_key(TableId(text(raw_id))), SavedEntry(int(changed_ms))
            found[key] = newer(found.get(key), removal) or removal
        for operator in self._operators:
            found |= await operator.read()
        return found

    async def apply(self, entries: Entries, known: Entries) -> AppliedEntries:
        """Write the entries that are later than `known`, what Redis had when it was read.

        Those of the queue are first, so that no job of a paused table runs in between.
        """
        later = {key: entry for key, entry in entries.items() if newer(known.get(key), entry) != known.get(key)}
        for operator in self._operators:
            await operator.apply(later)
        tables = [key for key in later if key.startswith(TABLE)]
        restored: list[TableRef] = []
        removed: list[TableRef] = []
        for first in range(0, len(tables), PAGE):
            page = {key: later[key] for key in tables[first : first + PAGE]}
            done = await self._apply_page(page, entries)
            restored += done.restored
            removed += done.removed
        await self._delete_old_tombstones(known)
        return AppliedEntries(tuple(restored), tuple(removed))

    @translate_redis_errors
    async def _delete_old_tombstones(self, known: Entries) -> None:
        """Delete the removals that are too old to matter."""
        old = known.keys() - without_old_tombstones(known, self._now_ms()).keys()
        removed = [key.removeprefix(TABLE) for key in old if key.startswith(TABLE)]
        if removed:
            await self._redis.hdel(keys.REMOVED_TABLES, *removed)

    @translate_redis_errors
    async def _apply_page(self, page: Entries, all_entries: Entries) -> AppliedEntries:
        async def write(pipe: Any) -> AppliedEntries:
            before = await _read_page(pipe, page)
            owners = await _owners(pipe, page, before)
            pipe.multi()
            return _write_page(pipe, page, before, _NameOwners(owners, all_entries))

        return await watched_transaction(self._redis, (keys.TABLES, keys.REMOVED_TABLES, keys.TABLE_NAMES), write)


@dataclass(frozen=True, slots=True)
class _NameOwners:
    """Owners of names: the table that has each in Redis, and the one that should have it by all entries."""

    owners: Mapping[str, str]
    entries: Entries

    def is_free(self, name: str, table: TableId) -> bool:
        """Return whether a table may have a name: no other has it, or the entry of that one has another name."""
        owner = self.owners.get(name, table)
        if owner == table:
            return True
        entry = self.entries.get(table_key(TableId(owner)))
        return entry is not None and (entry.value is None or entry.value["name"] != name)


async def _read_page(pipe: Any, page: Entries) -> dict[str, _Present]:
    """Return the tables of a page as Redis has them, with their entries."""
    ids = [key.removeprefix(TABLE) for key in page]
    tables = await pipe.hmget(keys.TABLES, ids)
    removals = await pipe.hmget(keys.REMOVED_TABLES, ids)
    found: dict[str, _Present] = {}
    for key, raw, removed_ms in zip(page, tables, removals, strict=True):
        table = None if raw is None else decode_table(raw)
        removal = None if removed_ms is None else SavedEntry(int(removed_ms))
        found[key] = table, newer(None if raw is None else entry_of_record(raw), removal)
    return found


async def _owners(pipe: Any, page: Entries, before: Mapping[str, _Present]) -> dict[str, str]:
    """Return which table has each name that the entries of a page have in Redis, or should have."""
    names = [entry.value["name"] for entry in page.values() if entry.value is not None]
    names += [table.name for table, _ in before.values() if table is not None]
    if not names:
        return {}
    ids = await pipe.hmget(keys.TABLE_NAMES, names)
    return {name: text(found) for name, found in zip(names, ids, strict=True) if found is not None}


def _write_page(pipe: Any, page: Entries, before: Mapping[str, _Present], names: _NameOwners) -> AppliedEntries:
    """Queue the commands of a transaction for the entries that are later than in Redis."""
    restored: list[TableRef] = []
    removed: list[TableRef] = []
    for key, entry in page.items():
        table, present = before[key]
        if newer(present, entry) == present:
            continue
        if entry.value is None:
            pipe.hset(keys.REMOVED_TABLES, key.removeprefix(TABLE), entry.changed_ms)
            if table is not None:
                removed.append(table)
        else:
            after = decode_table(record_of_entry(entry))
            if not names.is_free(after.name, after.id):
                continue  # Registered since Redis was read; the next pass resolves it.
            restored.append(after)
    replaced = (before[table_key(made.id)][0] for made in restored)
    for old in (*removed, *(table for table in replaced if table is not None)):
        pipe.hdel(keys.TABLES, old.id)
        if names.owners.get(old.name) == old.id:
            pipe.hdel(keys.TABLE_NAMES, old.name)
            pipe.zrem(keys.TABLE_ORDER, old.name)
    for old in removed:
        pipe.hdel(keys.REFUSED_TABLES, old.id)
    for made in restored:
        pipe.hset(keys.TABLES, made.id, record_of_entry(page[table_key(made.id)]))
        pipe.hset(keys.TABLE_NAMES, made.name, made.id)
        pipe.zadd(keys.TABLE_ORDER, {made.name: 0})
        pipe.hdel(keys.REMOVED_TABLES, made.id)
    pipe.incr(keys.TABLES_REVISION)
    return AppliedEntries(tuple(restored), tuple(removed))
