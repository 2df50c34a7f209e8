"""Ledgers that grow and the archive that deciders fill from them, with real parts: Redis and a Delta table."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from decider.archive.delta_archive import ArchiveSpec, DeltaArchive
from decider.archive.ledger_batches import LedgerBatches
from decider.archive.ledger_reader import LedgerReader
from decider.archive.ledger_rows import LEDGER_SCHEMA
from decider.background.ledger_archiver import APP, LedgerArchiver
from decider.events.refresh_queue import RefreshQueue
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry.table_registry import TableRegistry
from shared.errors import RetryableError
from shared.layout.partition_stats import stats_of_sizes
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.queue import commands
from shared.table import TableId, TableRef
from tests.support.decisions import decide_on_state, encoded


async def _ignored(_table: TableRef, _version: int | None) -> None:
    """No one follows tables here."""


class World:
    """Three tables whose ledgers grow, and an archive that any number of deciders fill."""

    def __init__(self, url: str, folder: Path) -> None:
        self.queue = AsyncQueueExecutor(connect(url), "default")
        self.registry = TableRegistry(self.queue.redis, now_ms=lambda: 0)
        self.ledgers = LedgerReader(self.queue)
        self.folder = folder
        self.tables = [TableRef(TableId(f"t-{n}"), f"lake.t{n}", f"file:///lake/t{n}") for n in range(3)]
        self.written = 0
        self.calls = 0

    def decider(self) -> "Watched":
        return Watched(self)

    async def write(self, records: int = 1) -> None:
        """Add records to each table's ledger."""
        for table in self.tables:
            await self.registry.register(table)
            for _ in range(records):
                self.written += 1
                made = decide_on_state(
                    WHOLE_TABLE, stats_of_sizes(Policy().size_levels, [1_000] * 9), Policy(), self.written
                )
                await self.keep(table, encoded(made, Policy(), self.written))

    async def keep(self, table: TableRef, record: str) -> None:
        """Add one record to a table's ledger."""
        self.calls += 1
        await self.queue.run(commands.decide("default", nonce=f"n{self.calls}", table=table.id, record=record))

    def archived(self) -> Counter[int]:
        """How often the archive holds each record, named by its version."""
        return Counter(self.column("version"))

    def column(self, name: str) -> list[Any]:
        found = QueryBuilder().register("ledger", DeltaTable(str(self.folder))).execute(f"SELECT {name} FROM ledger")
        return list(pa.table(found.read_all()).column(name).to_pylist())

    def expect_each_once(self) -> None:
        assert self.archived() == Counter(range(1, self.written + 1))


class Watched(LedgerArchiver):
    """A decider's archive duty that can be made to die at a labelled point."""

    def __init__(self, world: World) -> None:
        own = TableRef(TableId("own"), APP, world.folder.as_uri())
        self.archive = DeltaArchive(ArchiveSpec(world.folder.as_uri(), LEDGER_SCHEMA, ("day",)))
        self.batches = LedgerBatches(world.queue)
        super().__init__(self.archive, self.batches, world.registry, RefreshQueue(_ignored), own=own)

    def dies_at(self, part: object, call: str) -> "Watched":
        async def dead(*_: object, **__: object) -> None:
            raise RetryableError("killed here")

        setattr(part, call, dead)
        return self


@asynccontextmanager
async def in_world(url: str, folder: Path) -> AsyncIterator[World]:
    world = World(url, folder / "ledger")
    yield world
    await world.queue.redis.aclose()
