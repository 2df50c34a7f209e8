"""A Delta table for the decider: a position is a commit's version and the digest of its file."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

from decider.formats.delta.log import COMMITS_AHEAD, DeltaLog
from decider.formats.delta.storage import DeltaStorage
from decider.formats.table_format import HistoryEnd, RetainedHistory, TableTotals, VacuumPreview
from decider.state.file_columns import LiveFiles
from decider.storage.object_reads import ObjectReader
from shared.errors import InvalidInput
from shared.formats import delta
from shared.jobs.options import VacuumOptions
from shared.layout.upkeep import UpkeepFound
from shared.policy.policy import Policy
from shared.refusals import Refusal
from shared.table import (
    BEFORE_FIRST,
    NOTHING_EXAMINED,
    Commit,
    ExaminedTable,
    Position,
    Snapshot,
    TableMetadata,
    TableProtocol,
)


class DeltaTable:
    """`TableReader` on a Delta log."""

    checks_history = False

    def __init__(self, log: DeltaLog, reads: ObjectReader) -> None:
        self._log = log
        self._storage = DeltaStorage(log, reads)
        # Commits that the last call of `changes` and those before it had found when its caller had enough for now.
        self._taken = 0
        self.location = log.location

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        """Yield the commits above a version, one request each, and a few to find the end unless `until` names it.

        As many are read at once as have been found before, so that no more requests fail than succeed. The next call
        starts with as many if the caller leaves this one before its end, and has taken all commits that were read.
        """
        self._log.check_place()
        version, taken = after.version, self._taken
        while until is None or version < until:
            last = version + min(COMMITS_AHEAD, max(1, taken))
            wanted = range(version + 1, (last if until is None else min(last, until)) + 1)
            self._taken = 0
            async for commit in self._log.commits(wanted, metadata):
                metadata = commit.metadata or metadata
                version = commit.version
                if version == wanted[-1]:
                    taken += len(wanted)
                    self._taken = taken
                yield commit
            if version < wanted[-1]:
                break
        self._taken = 0

    async def contains(self, position: Position) -> bool:
        """Return whether the commit of that version still has that digest; an unknown digest is not compared."""
        return not position.digest or await self._log.digest(position.version) == position.digest

    async def end_of_history(self, after: Position) -> HistoryEnd:
        """List the log above a version: nothing means the end, and a gap means that log retention removed commits."""
        later = await self._log.versions_after(after.version)
        if not later:
            return HistoryEnd(is_end=True)
        if later[0] > after.version + 1:
            return HistoryEnd(lost=f"versions {after.version + 1} to {later[0] - 1} are missing from the log")
        return HistoryEnd()

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        """Return all live files of a version; see `DeltaLog.snapshot` for what it raises."""
        return await self._log.snapshot(None if at is None else at.version)

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        """Return the newest snapshot with the bounds of a column that the log has."""
        found = await self._log.snapshot(sort_column=column)
        if found.metadata.sort_key is None:
            raise InvalidInput(
                f"{self.location}: files have no bounds of {column!r} by which ranges can be compared",
                field="sort_keys",
                allowed="columns at the top level with numbers, texts, dates or timestamps, unless the table's "
                "checkpoints keep no statistics as JSON",
            )
        return found

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        """Return all live files of a version for counting."""
        return await self._log.live_files(None if at is None else at.version)

    async def totals(self, at: Position) -> TableTotals | None:
        """Return the counts of the version's checksum file."""
        return await self._log.checksum(at.version)

    async def checkpoint(self) -> int | None:
        """Return the version that `_last_checkpoint` names."""
        found = await self._log.last_checkpoint()
        return -1 if found is None else found

    async def upkeep(
        self,
        kinds: Collection[str],  # noqa: ARG002 - the protocol's
        examined: Mapping[str, ExaminedTable] = NOTHING_EXAMINED,  # noqa: ARG002 - the protocol's
    ) -> Mapping[str, UpkeepFound]:
        """Return nothing: the log lists the files and their deletion vectors, and has no statistics of columns."""
        return {}

    async def checkpointed_files(self) -> tuple[int, int] | None:
        """Return version and number of `add` actions that `_last_checkpoint` names."""
        return await self._log.checkpointed_files()

    async def removals(self) -> Sequence[tuple[int, int]]:
        """Return what the newest checkpoint and later commits have removed."""
        return await self._storage.removals()

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        """Plan as an actor does, on the same log and store."""
        self._log.check_place()
        return await self._storage.plan_vacuum(policy, options, now_ms)

    async def retained(self) -> RetainedHistory:
        """Return the versions above the newest gap; commits below it do not lead to those above."""
        versions = await self._log.versions_after(BEFORE_FIRST.version)
        missing = None
        for index in range(len(versions) - 1, 0, -1):
            if versions[index] != versions[index - 1] + 1:
                missing = (versions[index - 1] + 1, versions[index] - 1)
                versions = versions[index:]
                break
        return RetainedHistory(tuple(map(Position, versions)), is_whole=versions[:1] == (0,), missing=missing)

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        """Refuse tables with features that a rewrite is not known to preserve."""
        return delta.refusal(metadata, protocol)
