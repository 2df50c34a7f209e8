"""The registry of tables: which tables are known, under which name, and which of them are refused and why.

A table's id is derived from its location, so registering twice finds the same entry, and a name belongs to one table.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass

from redis.asyncio import Redis

from shared.errors import InvalidInput
from shared.table import TableId, TableRef

TABLES, NAMES, REFUSED = "lw:tables", "lw:names", "lw:refused"
PAGE = 500
"""Tables read per round trip when all are listed: large enough to be fast, small enough not to hold up Redis."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a table is not looked after at present."""

    at_ms: int
    reason: str


class TableRegistry:
    """Registered tables in Redis; the hashes are `lw:tables` (id), `lw:names` (name to id), `lw:refused` (id)."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def register(self, table: TableRef) -> bool:
        """Add a table; False if it was known. Raises InvalidInput if its name belongs to another table."""
        if not await self._redis.hsetnx(NAMES, table.name, table.id):
            owner = (await self._redis.hget(NAMES, table.name) or b"").decode()
            if owner != table.id:
                raise InvalidInput(
                    f"the name {table.name!r} belongs to another table ({owner}); choose another name", field="name"
                )
        return bool(await self._redis.hsetnx(TABLES, table.id, json.dumps(asdict(table))))

    async def remove(self, table: TableRef) -> bool:
        """Forget a table; False if it was not known."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hdel(TABLES, table.id).hdel(NAMES, table.name).hdel(REFUSED, table.id)
            removed, *_ = await pipe.execute()
        return bool(removed)

    async def get(self, table_id: TableId) -> TableRef | None:
        """Return the table with this id."""
        raw = await self._redis.hget(TABLES, table_id)
        return None if raw is None else _decode(raw)

    async def find(self, name_or_id: str) -> TableRef | None:
        """Return the table with this name or id."""
        owner = await self._redis.hget(NAMES, name_or_id)
        return await self.get(TableId(owner.decode() if owner else name_or_id))

    async def all(self) -> AsyncIterator[TableRef]:
        """Yield every table, in no order; one that is added meanwhile may be missed until the next time."""
        async for _, raw in self._redis.hscan_iter(TABLES, count=PAGE):
            yield _decode(raw)

    async def count(self) -> int:
        """Return how many tables are registered."""
        return int(await self._redis.hlen(TABLES))

    async def refuse(self, table_id: TableId, refusal: Refusal) -> None:
        """Note why a table cannot be looked after; it stays registered and is tried again."""
        await self._redis.hset(REFUSED, table_id, json.dumps(asdict(refusal)))

    async def accept(self, table_id: TableId) -> None:
        """Drop a refusal that no longer holds."""
        await self._redis.hdel(REFUSED, table_id)

    async def refusal(self, table_id: TableId) -> Refusal | None:
        """Return why a table is refused, None if it is not."""
        raw = await self._redis.hget(REFUSED, table_id)
        return None if raw is None else Refusal(**json.loads(raw))


def _decode(raw: bytes) -> TableRef:
    return TableRef(**json.loads(raw))
