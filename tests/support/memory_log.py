"""A table's log in memory behind the decider's `LogReader`, for histories that no library writes on demand."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from decider.formats.delta.checksum import Checksum
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile, Snapshot, TableMetadata, TableProtocol


class MemoryLog:
    """Commits in a list; `oldest` is the first version that log retention has left.

    `has_checksums`: the writer leaves one beside each commit, as Spark does.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self.commits = [Commit(0, 0, "CREATE TABLE", metadata=metadata, data_change=False)]
        self.oldest = 0
        self.has_checksums = False

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

    async def commit(self, version: int, metadata: TableMetadata) -> Commit | None:
        if not self.oldest <= version < len(self.commits):
            return None
        found = self.commits[version]
        return replace(found, digest=self._digest(version))

    async def digest(self, version: int) -> str | None:
        return self._digest(version) if self.oldest <= version < len(self.commits) else None

    async def checksum(self, version: int) -> Checksum | None:
        if not self.has_checksums or version != len(self.commits) - 1:
            return None
        files = (await self.snapshot()).files
        return Checksum(len(files), sum(file.size_bytes for file in files))

    async def versions_after(self, version: int) -> tuple[int, ...]:
        return tuple(range(max(version + 1, self.oldest), len(self.commits)))

    async def snapshot(self, version: int | None = None) -> Snapshot:
        live: dict[object, DataFile] = {}
        metadata, protocol = None, TableProtocol(1, 2)
        for commit in self.commits:
            for file in commit.removed:
                live.pop(file.key, None)
            for added in commit.added:
                live[added.key] = added
            metadata, protocol = commit.metadata or metadata, commit.protocol or protocol
        assert metadata is not None
        newest = len(self.commits) - 1
        return Snapshot(newest, 0, metadata, protocol, tuple(live.values()), self._digest(newest))

    def _digest(self, version: int) -> str:
        return hashlib.blake2b(repr(self.commits[version]).encode(), digest_size=8).hexdigest()
