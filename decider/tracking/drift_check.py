"""Compares the rolling state periodically with the checksums that a table's writers left, or with their checkpoints.

A check reads one small object and, for a checksum, the table's partitions, and only if the table has moved since the
last one; so an idle table costs nothing. If the two differ, the log shows which of them is wrong, so that a writer
with wrong checksums does not cause a rebuild each time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from decider.formats.table_format import TableReader
from decider.store.table_state import TableState, TableStateStore
from shared.layout.partition_stats import EMPTY_STATS
from shared.table import TableId, TableRef

DRIFT = "drift"
"""Counter of tables whose state was found to differ, and first word of the reason for such a rebuild."""

DEFAULT_EVERY_MS = 3_600_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StateDrift:
    """A state that differs from its table: the position of its cursor, and the difference."""

    cursor: TableState
    reason: str


@dataclass(frozen=True, slots=True)
class _LastCheck:
    """The last check of a table: when, on which version, and whether its checksums were missing, or wrong."""

    at_ms: int
    version: int
    is_distrusted: bool = False
    has_checksums: bool = True


class DriftCheck:
    """Compares each table at most once in `every_ms`, counted from its first refresh in this process; 0 is never."""

    def __init__(self, states: TableStateStore, now_ms: Callable[[], int], *, every_ms: int = DEFAULT_EVERY_MS) -> None:
        self._states = states
        self._now_ms = now_ms
        self._every_ms = every_ms
        self._last: dict[TableId, _LastCheck] = {}

    async def found(self, table: TableRef, reader: TableReader) -> StateDrift | None:
        """Compare, if it is due, and return the difference; None if there is none or it cannot be determined."""
        now_ms = self._now_ms()
        last = self._last.setdefault(table.id, _LastCheck(now_ms, -1))
        if last.is_distrusted or not self._is_due(last, now_ms):
            return None
        cursor = await self._states.state(table.id)
        if cursor is None or cursor.version == last.version:
            return None
        self._last[table.id] = replace(last, at_ms=now_ms, version=cursor.version)
        if await self._agrees(table, reader, cursor, since=last.version):
            return None
        files, total = await self._counted(table)
        if not await self._is_unchanged(table, cursor):
            return None
        live = (await reader.live_files(cursor.position)).totals
        if live == (files, total):
            self._last[table.id] = _LastCheck(now_ms, cursor.version, is_distrusted=True)
            log.warning("checksum_invalid", table=table.name, version=cursor.version, live=live[0])
            return None
        reason = (
            f"{DRIFT}: at version {cursor.version} the state counted {files} files of {total} bytes, "
            f"the log holds {live[0]} of {live[1]}"
        )
        log.error("state_drift_detected", table=table.name, version=cursor.version, counted=files, live=live[0])
        return StateDrift(cursor, reason)

    async def _agrees(self, table: TableRef, reader: TableReader, cursor: TableState, *, since: int) -> bool:
        """Return whether what the writers counted agrees with the state, or they have counted nothing.

        One request: for the version's checksum or, where the last one was missing, for the newest checkpoint, if one
        may have been written after version `since`.
        """
        last = self._last[table.id]
        if not last.has_checksums and any(version > since for version, _ in cursor.file_counts):
            checkpointed = await reader.checkpointed_files()
            counted = None if checkpointed is None else dict(cursor.file_counts).get(checkpointed[0])
            return counted is None or checkpointed is None or counted == checkpointed[1]
        totals = await reader.totals(cursor.position)
        self._last[table.id] = replace(last, has_checksums=totals is not None)
        if totals is None:
            return True
        return await self._counted(table) == (totals.files, totals.bytes)

    def _is_due(self, last: _LastCheck, now_ms: int) -> bool:
        return self._every_ms > 0 and now_ms - last.at_ms >= self._every_ms

    async def _counted(self, table: TableRef) -> tuple[int, int]:
        total = EMPTY_STATS
        async for _, state in self._states.iterate_partitions(table.id):
            total += state.total
        return total.files, total.bytes

    async def _is_unchanged(self, table: TableRef, cursor: TableState) -> bool:
        """Whether no other decider moved the table meanwhile: otherwise its partitions are of two versions."""
        now = await self._states.state(table.id)
        return now is not None and (now.version, now.rebuilds) == (cursor.version, cursor.rebuilds)
