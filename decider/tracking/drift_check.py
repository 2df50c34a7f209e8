"""Compares the rolling state periodically with the checksums that a table's writers left, or with their checkpoints.

Each hour a check reads one small object and, for a checksum, the table's partitions, if the table has moved since the
last one; so an idle table costs nothing. The object is also read at once after a commit that may have repeated an
action on a file that this process does not remember. If no writer has counted for a day after such a commit, the log
itself is: one read of it, as for a rebuild.

If a count differs, the log shows which of the two is wrong, so that a writer with wrong checksums does not cause a
rebuild each time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from decider.decide.funnel import CommitCounter
from decider.formats.table_format import TableReader
from decider.store.tables.table_state import TableState, TableStateStore
from shared.layout.partition_stats import EMPTY_STATS
from shared.table import TableId, TableRef

DEFAULT_EVERY_MS = 3_600_000

UNCOUNTED_MS = 86_400_000
"""Time after which a suspected state that no writer has counted is compared with the log itself, at its cost."""

MAX_MISSES = 3
"""Checks at once that find no checksum until they are left to the hourly ones: a writer leaves it after the commit."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StateDrift:
    """A state that differs from its table: the position of its cursor, and the difference."""

    cursor: TableState
    reason: str


@dataclass(frozen=True, slots=True)
class _LastCheck:
    """The last check of a table: when, on which version, and whether its checksums were missing, or wrong.

    suspected_ms: when a commit first may have misled the state, since a count last agreed; None: none has.
    """

    at_ms: int
    version: int
    is_distrusted: bool = False
    has_checksums: bool = True
    suspected_ms: int | None = None
    misses: int = 0

    @property
    def is_urgent(self) -> bool:
        """True if the next refresh checks, whenever the last check was."""
        return self.suspected_ms is not None and self.has_checksums and self.misses < MAX_MISSES


class DriftCheck:
    """Compares each table at most once in `every_ms`, counted from its first refresh in this process; 0 is never."""

    def __init__(self, states: TableStateStore, now_ms: Callable[[], int], *, every_ms: int = DEFAULT_EVERY_MS) -> None:
        self._states = states
        self._now_ms = now_ms
        self._every_ms = every_ms
        self._last: dict[TableId, _LastCheck] = {}

    def suspect(self, table: TableId) -> None:
        """Note that the state may be wrong: it is checked as soon as a writer's count is there."""
        now_ms = self._now_ms()
        last = self._last.setdefault(table, _LastCheck(now_ms, -1))
        if last.suspected_ms is None:
            self._last[table] = replace(last, suspected_ms=now_ms)

    async def found(self, table: TableRef, reader: TableReader) -> StateDrift | None:
        """Compare, if it is due, and return the difference; None if there is none or it cannot be determined."""
        now_ms = self._now_ms()
        last = self._last.setdefault(table.id, _LastCheck(now_ms, -1))
        is_due = self._is_due(last, now_ms)
        if last.is_distrusted or not (is_due or (self._every_ms > 0 and last.is_urgent)):
            return None
        cursor = await self._states.state(table.id)
        if cursor is None or (cursor.version == last.version and last.suspected_ms is None):
            return None
        agrees = await self._agrees(table, reader, cursor, last, is_due=is_due)
        if is_due:
            self._last[table.id] = last = replace(self._last[table.id], at_ms=now_ms, version=cursor.version)
        if agrees is None and last.suspected_ms is not None and now_ms - last.suspected_ms >= UNCOUNTED_MS:
            self._last[table.id] = replace(last, suspected_ms=None)
            return await self._compared_with_log(table, reader, cursor)
        if agrees is not False:
            return None
        return await self._compared_with_log(table, reader, cursor, is_writers=True)

    async def _compared_with_log(
        self, table: TableRef, reader: TableReader, cursor: TableState, *, is_writers: bool = False
    ) -> StateDrift | None:
        """Return how a state differs from the live files; if it does not, a count `is_writers` is wrong."""
        files, total = await self._counted(table)
        if not await self._is_unchanged(table, cursor):
            return None
        live = (await reader.live_files(cursor.position)).totals
        if live == (files, total):
            if is_writers:
                self._last[table.id] = _LastCheck(self._now_ms(), cursor.version, is_distrusted=True)
                log.warning("checksum_invalid", table=table.name, version=cursor.version, live=live[0])
            return None
        reason = (
            f"{CommitCounter.DRIFT}: at version {cursor.version} the state counted {files} files of {total} bytes, "
            f"the log holds {live[0]} of {live[1]}"
        )
        log.error("state_drift_detected", table=table.name, version=cursor.version, counted=files, live=live[0])
        return StateDrift(cursor, reason)

    async def _agrees(
        self, table: TableRef, reader: TableReader, cursor: TableState, last: _LastCheck, *, is_due: bool
    ) -> bool | None:
        """Return whether what the writers counted agrees with the state, None if they have counted nothing.

        One request: for the version's checksum or, where the last one was missing, for the newest checkpoint, if one
        may have been written after the last check.
        """
        if not last.has_checksums and any(version > last.version for version, _ in cursor.file_counts):
            checkpointed = await reader.checkpointed_files()
            counted = None if checkpointed is None else dict(cursor.file_counts).get(checkpointed[0])
            agrees = None if counted is None or checkpointed is None else counted == checkpointed[1]
        else:
            totals = await reader.totals(cursor.position)
            if totals is None:
                missed = replace(last, misses=last.misses + 1, has_checksums=last.has_checksums and not is_due)
                self._last[table.id] = missed
                return None
            # At once, the sums that move with the state are enough: to read all partitions costs as much as they are.
            sums = cursor.summary
            counted_now = await self._counted(table) if is_due else (sums.files, sums.bytes)
            agrees = counted_now == (totals.files, totals.bytes)
            suspected_ms = None if agrees else last.suspected_ms
            self._last[table.id] = replace(last, has_checksums=True, misses=0, suspected_ms=suspected_ms)
        return agrees

    def _is_due(self, last: _LastCheck, now_ms: int) -> bool:
        return self._every_ms > 0 and now_ms - last.at_ms >= self._every_ms

    async def _counted(self, table: TableRef) -> tuple[int, int]:
        total = EMPTY_STATS
        async for _, state in self._states.iterate_partitions(table.id):
            total += state.total
        return total.files, total.bytes

    async def _is_unchanged(self, table: TableRef, cursor: TableState) -> bool:
        """Return whether no other decider moved the table meanwhile: otherwise its partitions are of two versions."""
        now = await self._states.state(table.id)
        return now is not None and (now.version, now.rebuilds) == (cursor.version, cursor.rebuilds)
