"""Progress of the ledger archive: what is archived, and the pending batch.

A batch is stored before it is appended: its number, and for each table the records it holds. Any decider that finds it
appends the same records under the same number, so a crash between append and update neither doubles nor loses one; and
only one batch can be pending, regardless of the number of deciders.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import WatchError

from decider.archive.ledger_rows import kept
from decider.decide.funnel import CommitCounter
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys
from shared.queue.decode import text
from shared.table import TableId

START = "0-0"
"""The position before every record of a stream."""

Span = tuple[str, str]
"""Records after the first entry, up to and including the second."""


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """A numbered batch of records of several tables."""

    number: int
    spans: Mapping[TableId, Span]

    @property
    def ends(self) -> dict[TableId, str]:
        """Archived position of each table after the batch."""
        return {table: end for table, (_, end) in self.spans.items()}


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """Number of the latest archived batch (0: none), and the pending batch."""

    number: int
    pending: LedgerBatch | None


class LedgerBatches:
    """Reads ledgers from where the archive ends; the hash `arch` holds number and batch, `arch:at` the positions."""

    def __init__(self, queue: AsyncQueueExecutor) -> None:
        self._queue = queue
        self._key, self._places = keys.archive_progress(queue.name), keys.archived_up_to(queue.name)

    @translate_redis_errors
    async def progress(self) -> ArchiveProgress:
        """Return the progress of the archive."""
        return _progress(await self._queue.redis.hgetall(self._key))

    @translate_redis_errors
    async def now_ms(self) -> int:
        """Return the server's clock, by which records are ordered."""
        seconds, microseconds = await self._queue.redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    @translate_redis_errors
    async def ahead(self, tables: Sequence[TableId], *, until_ms: int, limit: int) -> dict[TableId, list[str]]:
        """Return the positions of up to `limit` records that are not archived and not after `until_ms`, by table.

        The tables get equal shares; what one does not use goes to those that have more. Nothing is read beyond it.
        """
        starts = await self._ends(tables)
        ahead: dict[TableId, list[str]] = {}
        asking = list(tables)
        room = limit
        while asking and room > 0:
            share = max(1, room // len(asking))
            asked, asking = asking[:room], asking[room:]
            async with self._queue.redis.pipeline(transaction=False) as pipe:
                for table in asked:
                    pipe.xrange(keys.ledger(self._queue.name, table), f"({starts[table]}", str(until_ms), count=share)
                pages: list[Any] = await pipe.execute()
            for table, page in zip(asked, pages, strict=True):
                if page:
                    ahead.setdefault(table, []).extend(text(entry) for entry, _ in page)
                    starts[table] = ahead[table][-1]
                    room -= len(page)
            asking = [table for table, page in zip(asked, pages, strict=True) if len(page) == share] + asking
        return ahead

    @translate_redis_errors
    async def plan(self, number: int, ends: Mapping[TableId, str]) -> LedgerBatch | None:
        """Store the next batch, which contains each table's records up to its end; None if another caller was first.

        A table that is archived up to there by now, or further, is left out: no position ever moves back.
        """
        async with self._queue.redis.pipeline(transaction=True) as pipe:
            await pipe.watch(self._key)
            found = _progress(await pipe.hgetall(self._key))
            if found.pending is not None or found.number >= number:
                return None
            starts = await self._ends(list(ends))
            spans = {table: (starts[table], end) for table, end in ends.items() if _place(starts[table]) < _place(end)}
            if not spans:
                return None
            batch = LedgerBatch(number, spans)
            pipe.multi()  # type: ignore[no-untyped-call] # redis-py has no type for it
            pipe.hset(self._key, "pending", json.dumps({"number": number, "spans": batch.spans}))
            try:
                await pipe.execute()
            except WatchError:
                return None
        return batch

    @translate_redis_errors
    async def read(self, batch: LedgerBatch) -> dict[TableId, list[tuple[str, str, str]]]:
        """Return the records of a batch by table, as entry, record and outcome; trimmed ones are omitted."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for table, (start, end) in batch.spans.items():
                pipe.xrange(keys.ledger(self._queue.name, table), f"({start}", end)
            pages: list[Any] = await pipe.execute()
        return {
            table: [(text(entry), *kept(fields)) for entry, fields in page]
            for table, page in zip(batch.spans, pages, strict=True)
        }

    @translate_redis_errors
    async def note(self, number: int, ends: Mapping[TableId, str], *, unreadable: int = 0) -> bool:
        """Note that the batch of this number is archived; False if that, or more, was noted already.

        unreadable: records of it that this release could not read, which are counted over all tables.
        """
        async with self._queue.redis.pipeline(transaction=True) as pipe:
            await pipe.watch(self._key)
            if _progress(await pipe.hgetall(self._key)).number >= number:
                return False
            pipe.multi()  # type: ignore[no-untyped-call] # redis-py has no type for it
            if ends:
                pipe.hset(self._places, mapping={str(table): end for table, end in ends.items()})
            pipe.hset(self._key, "number", str(number))
            pipe.hdel(self._key, "pending")
            if unreadable:
                pipe.hincrby(keys.counters(self._queue.name), CommitCounter.RECORDS_UNREADABLE, unreadable)
            try:
                await pipe.execute()
            except WatchError:
                return False
        return True

    @translate_redis_errors
    async def trim(self, tables: Iterable[TableId], *, before_ms: int) -> None:
        """Delete archived records that are older than `before_ms`."""
        chosen = list(tables)
        ends = await self._ends(chosen)
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for table in chosen:
                least = min(before_ms, int(ends[table].partition("-")[0]))
                pipe.xtrim(keys.ledger(self._queue.name, table), minid=str(least), approximate=False)
            await pipe.execute()

    async def _ends(self, tables: Sequence[TableId]) -> dict[TableId, str]:
        found = await self._queue.redis.hmget(self._places, list(tables)) if tables else []
        return {table: START if end is None else text(end) for table, end in zip(tables, found, strict=True)}


def _place(entry: str) -> tuple[int, int]:
    """Return an entry's id as numbers, which order as the entries of its stream do."""
    at_ms, _, seq = entry.partition("-")
    return int(at_ms), int(seq)


def _progress(raw: Mapping[Any, Any]) -> ArchiveProgress:
    values = {text(name): text(value) for name, value in raw.items()}
    pending = json.loads(values["pending"]) if "pending" in values else None
    batch = None
    if pending is not None:
        spans = {TableId(table): (start, end) for table, (start, end) in pending["spans"].items()}
        batch = LedgerBatch(pending["number"], spans)
    return ArchiveProgress(int(values.get("number", 0)), batch)
