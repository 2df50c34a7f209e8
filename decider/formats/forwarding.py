"""A reader of tables that passes each call to another one, which it has to find first."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from decider.formats.table_format import HistoryEnd, RetainedHistory, TableReader, TableTotals, VacuumPreview
from decider.state.file_columns import LiveFiles
from shared.jobs.options import VacuumOptions
from shared.layout.upkeep import UpkeepFound
from shared.policy.policy import Policy
from shared.table import NOTHING_EXAMINED, Commit, ExaminedTable, Position, Snapshot, TableMetadata

R = TypeVar("R")


class ForwardingReader:
    """`TableReader` but for the rule of refusals; a subclass finds the reader, and again for the newest version."""

    location: str

    async def _found(self, *, is_newest: bool = False) -> TableReader:
        raise NotImplementedError

    async def _read(self, read: Callable[[TableReader], Awaitable[R]], *, is_newest: bool) -> R:
        return await read(await self._found(is_newest=is_newest))

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        """Yield the commits after a position."""
        async for commit in (await self._found()).changes(after, metadata, until=until):
            yield commit

    async def contains(self, position: Position) -> bool:
        """Return whether the history still contains a position."""
        return await (await self._found()).contains(position)

    async def end_of_history(self, after: Position) -> HistoryEnd:
        """Return what follows a position."""
        return await (await self._found()).end_of_history(after)

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        """Return all live files at a position."""
        return await self._read(lambda reader: reader.snapshot(at), is_newest=at is None)

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        """Return the newest snapshot with the bounds of a column."""
        return await self._read(lambda reader: reader.snapshot_with_ranges(column), is_newest=True)

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        """Return all live files at a position for counting."""
        return await self._read(lambda reader: reader.live_files(at), is_newest=at is None)

    async def totals(self, at: Position) -> TableTotals | None:
        """Return what the writer counted."""
        return await (await self._found()).totals(at)

    async def checkpoint(self) -> int | None:
        """Return the version of the newest checkpoint."""
        return await (await self._found()).checkpoint()

    async def upkeep(
        self, kinds: Collection[str], examined: Mapping[str, ExaminedTable] = NOTHING_EXAMINED
    ) -> Mapping[str, UpkeepFound]:
        """Return what the newest metadata need."""
        return await (await self._found()).upkeep(kinds, examined)

    async def checkpointed_files(self) -> tuple[int, int] | None:
        """Return version and number of files of the newest checkpoint."""
        return await (await self._found()).checkpointed_files()

    async def removals(self) -> Sequence[tuple[int, int]]:
        """Return the files that were removed."""
        return await (await self._found()).removals()

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Return what a vacuum would delete."""
        return await (await self._found(is_newest=True)).plan_vacuum(policy, options, now_ms)

    async def retained(self) -> RetainedHistory:
        """Return the newest unbroken part of the history."""
        return await (await self._found()).retained()
