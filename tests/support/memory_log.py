"""What tests of following need without Delta: a log in memory, files and commits, and a count of live files."""

import hashlib
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from decider.formats.table_format import Deletion, HistoryEnd, RetainedHistory, TableTotals, VacuumPreview
from decider.state.file_columns import LiveFiles
from shared.formats import delta
from shared.jobs.options import VacuumOptions
from shared.layout.partition_stats import PartitionStats
from shared.layout.stats_sum import PartitionSums
from shared.layout.upkeep import UpkeepFound
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.refusals import Refusal
from shared.table import (
    NOTHING_EXAMINED,
    Commit,
    CommitOrigin,
    DataFile,
    ExaminedTable,
    PartitionColumn,
    PartitionKey,
    Position,
    RemovedFile,
    Snapshot,
    TableMetadata,
    TableProtocol,
)

CHECKPOINT_EVERY = 10


class MemoryLog:
    """Commits in a list; `oldest` is the first version that log retention has left.

    `has_checksums`: the writer leaves one beside each commit, as Spark does. `has_checkpoints`: every tenth version has
    one that names its number of files.
    """

    checks_history = False

    def __init__(self, metadata: TableMetadata) -> None:
        self.commits = [Commit(0, 0, "CREATE TABLE", metadata=metadata, data_change=False)]
        self.oldest = 0
        self.has_checksums = False
        self.has_checkpoints = False
        self.checkpointed = -1

    def add(
        self,
        added: Iterable[DataFile] = (),
        removed: Iterable[RemovedFile] = (),
        *,
        metadata: TableMetadata | None = None,
        protocol: TableProtocol | None = None,
        data_change: bool = True,
        by_us: bool = False,
    ) -> int:
        version, origin = len(self.commits), CommitOrigin("j", 1) if by_us else None
        files = (tuple(added), tuple(removed))
        self.commits.append(
            Commit(
                version,
                0,
                "WRITE",
                *files,
                metadata=metadata,
                protocol=protocol,
                data_change=data_change,
                origin=origin,
            )
        )
        return version

    def command(
        self, operation: str, at_ms: int, execution_ms: int, added: Iterable[DataFile], *, by_us: bool = False
    ) -> None:
        """Commit what a command did that ran for so long and ended at `at_ms`; or a rewrite of ours."""
        made = Commit(len(self.commits), at_ms, operation, tuple(added), execution_ms=execution_ms)
        self.commits.append(replace(made, origin=CommitOrigin("j", 1), data_change=False) if by_us else made)

    async def changes(
        self, after: Position, metadata: TableMetadata, *, until: int | None = None
    ) -> AsyncGenerator[Commit, None]:
        version = after.version + 1
        while self.oldest <= version < len(self.commits) and (until is None or version <= until):
            yield replace(self.commits[version], digest=self._digest(version))
            version += 1

    async def contains(self, position: Position) -> bool:
        at = position.version
        return self.oldest <= at < len(self.commits) and self._digest(at) == position.digest

    async def end_of_history(self, after: Position) -> HistoryEnd:
        first = max(after.version + 1, self.oldest)
        if first >= len(self.commits):
            return HistoryEnd(is_end=True)
        if first > after.version + 1:
            return HistoryEnd(lost=f"versions {after.version + 1} to {first - 1} are missing from the log")
        return HistoryEnd()

    async def snapshot_with_ranges(self, column: str) -> Snapshot:
        found = await self.snapshot()
        key = PartitionColumn(column, column, "long")
        return replace(found, metadata=replace(found.metadata, sort_key=key))

    async def live_files(self, at: Position | None = None) -> LiveFiles:
        return LiveFiles.of(await self.snapshot(at))

    async def totals(self, at: Position) -> TableTotals | None:
        if not self.has_checksums or at.version != len(self.commits) - 1:
            return None
        files = (await self.snapshot()).files
        return TableTotals(len(files), sum(file.size_bytes for file in files))

    async def checkpoint(self) -> int | None:
        return self.checkpointed

    async def upkeep(
        self, kinds: Collection[str], examined: Mapping[str, ExaminedTable] = NOTHING_EXAMINED
    ) -> Mapping[str, UpkeepFound]:
        return {}

    async def checkpointed_files(self) -> tuple[int, int] | None:
        version = (len(self.commits) - 1) // CHECKPOINT_EVERY * CHECKPOINT_EVERY
        return (version, len(self._live(version))) if self.has_checkpoints and version else None

    async def removals(self) -> Sequence[tuple[int, int]]:
        return [(one.timestamp_ms, gone.size_bytes or 0) for one in self.commits for gone in one.removed]

    async def plan_vacuum(self, policy: Policy, options: VacuumOptions, now_ms: int) -> VacuumPreview:
        gone = tuple(Deletion(one.path, one.size_bytes or 0) for commit in self.commits for one in commit.removed)
        return VacuumPreview(len(self.commits) - 1, now_ms - policy.retention_s * 1000, gone)

    async def retained(self) -> RetainedHistory:
        positions = map(Position, range(self.oldest, len(self.commits)))
        return RetainedHistory(tuple(positions), is_whole=not self.oldest)

    def refusal(self, metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
        return delta.refusal(metadata, protocol)

    async def snapshot(self, at: Position | None = None) -> Snapshot:
        live = self._live(len(self.commits) - 1)
        metadata, protocol = None, TableProtocol(1, 2)
        for commit in self.commits:
            metadata, protocol = commit.metadata or metadata, commit.protocol or protocol
        assert metadata is not None
        newest = len(self.commits) - 1
        refused = self.refusal(metadata, protocol)
        return Snapshot(newest, 0, metadata, protocol, tuple(live.values()), self._digest(newest), refused)

    def _live(self, version: int) -> dict[object, DataFile]:
        live: dict[object, DataFile] = {}
        for commit in self.commits[: version + 1]:
            for file in commit.removed:
                live.pop(file.key, None)
            for added in commit.added:
                live[added.key] = added
        return live

    def _digest(self, version: int) -> str:
        return hashlib.blake2b(repr(self.commits[version]).encode(), digest_size=8).hexdigest()


def count_live_files(files: Iterable[DataFile], policy: Policy) -> dict[PartitionKey, PartitionStats]:
    """Count all live files of a table into the states of its partitions."""
    sums = PartitionSums(policy)
    for file in files:
        sums.add(file)
    # A window that is among the newest in the end was so all the time, so that clamping once loses none of its files.
    return {partition: state.clamped() for partition, state in sums.stats().items()}


def file(path: str, size: int = MIB, partition: PartitionKey = WHOLE_TABLE, **more: Any) -> DataFile:
    return DataFile(path, size, partition, **more)


def removed(of: DataFile, **more: Any) -> RemovedFile:
    return RemovedFile(of.path, of.dv_id, of.size_bytes, of.partition, of.deleted_rows, **{"tags": of.tags, **more})


def commit(version: int = 1, operation: str = "WRITE", **more: Any) -> Commit:
    return Commit(version, 0, operation, **more)
