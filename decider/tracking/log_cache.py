"""The logs that this process has open: a reader per table, the least recently used closed first."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from decider.formats.delta.checksum import Checksum
from shared.table import Commit, Snapshot, TableMetadata

OPEN_LOGS = 1_000
"""Logs kept open; an open log is a client object of a few kilobytes."""


class TrackedLog(Protocol):
    """Reads the log of one table."""

    async def commit(self, version: int, metadata: TableMetadata) -> Commit | None:
        """Return one commit, None if that version does not exist."""

    async def digest(self, version: int) -> str | None:
        """Return the digest of one commit, None if it does not exist."""

    async def checksum(self, version: int) -> Checksum | None:
        """Return what the writer of a version counted, None where it left nothing that can be used."""

    async def versions_after(self, version: int) -> tuple[int, ...]:
        """Return the versions above `version` that have a commit file, ascending."""

    async def snapshot(self, version: int | None = None) -> Snapshot:
        """Return all live files of a version, the newest by default."""


class LogCache:
    """Opens logs on demand and keeps the last used ones."""

    def __init__(self, open_log: Callable[[str], TrackedLog]) -> None:
        self._open_log = open_log
        self._open: OrderedDict[str, TrackedLog] = OrderedDict()

    def at(self, location: str) -> TrackedLog:
        """Return the reader of the log at a location."""
        reader = self._open.pop(location, None) or self._open_log(location)
        self._open[location] = reader
        if len(self._open) > OPEN_LOGS:
            self._open.popitem(last=False)
        return reader
