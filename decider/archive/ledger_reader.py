"""Reads the ledger: decisions of a table, newest first, and the decisions effective at a time.

The stream is capped per table, and every read here reads a bounded number of records. One that this release cannot
read is shown as such: it hides no other.
"""

from collections.abc import AsyncIterator
from typing import Any

from decider.archive.ledger_rows import kept, placed_ms
from decider.decide import ledger
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.ledger import LedgerRecord, UnreadableRecord
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors, translating_redis_errors
from shared.queue import keys
from shared.queue.decode import text
from shared.table import PartitionKey, TableId

PAGE = 200
"""Records read per round trip; a record has about 700 bytes."""

MAX_SCANNED = 6_000
"""Maximum records read per call, some 5 MB: all that Redis holds of a table (1,000, or 5,000 with an archive)."""


class LedgerReader:
    """Reads decisions from the stream `led:<table>`."""

    def __init__(self, queue: AsyncQueueExecutor, actions: ActionRegistry = ACTIONS) -> None:
        self._queue = queue
        self._actions = actions

    def read(self, record: str, outcome: str, at_ms: int) -> LedgerRecord | UnreadableRecord:
        """Read one record as far as this release can; `at_ms` is its place in the ledger."""
        return ledger.read(record, outcome, at_ms, self._actions)

    @translate_redis_errors
    async def newest(
        self, table: TableId, *, limit: int, partition: PartitionKey | None = None
    ) -> tuple[LedgerRecord | UnreadableRecord, ...]:
        """Return up to `limit` records, newest first, of one partition if it is given."""
        found: list[LedgerRecord | UnreadableRecord] = []
        async for record in self._backwards(table):
            if partition is None or record.partition == partition:
                found.append(record)
            if len(found) == limit:
                break
        return tuple(found)

    @translate_redis_errors
    async def in_force(
        self, table: TableId, at_ms: int, *, limit: int, partition: PartitionKey | None = None
    ) -> tuple[LedgerRecord | UnreadableRecord, ...]:
        """Return the newest record of each partition and action that was made at or before `at_ms`, newest first.

        The newest of those whose partition cannot be read is included, unless one partition is requested.
        """
        found: dict[tuple[PartitionKey | None, str], LedgerRecord | UnreadableRecord] = {}
        wanted = limit if partition is None else min(limit, len(self._actions))
        async for record in self._backwards(table):
            if record.at_ms <= at_ms and (partition is None or record.partition == partition):
                found.setdefault((record.partition, record.action), record)
            if len(found) == wanted:
                break
        return tuple(found.values())

    async def _backwards(self, table: TableId) -> AsyncIterator[LedgerRecord | UnreadableRecord]:
        key, before, scanned = keys.ledger(self._queue.name, table), "+", 0
        while scanned < MAX_SCANNED:
            with translating_redis_errors():
                entries: Any = await self._queue.redis.xrevrange(key, max=before, count=PAGE)
            for entry, fields in entries:
                yield self.read(*kept(fields), placed_ms(text(entry)))
            if len(entries) < PAGE:
                return
            scanned += PAGE
            before = f"({text(entries[-1][0])}"
