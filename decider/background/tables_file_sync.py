"""Tables file sync: applies the tables file at the start, when it changes, and after a loss of Redis.

A decider applies a file that is new to it. So of two whose files differ for a moment, as mounted ones do while they are
replaced, the one that still has the old file leaves the newer one in force.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from redis.asyncio import Redis

from decider.background.runner import Schedule
from decider.declared.table_declarations import AppliedDeclarations, TableDeclarations
from decider.declared.tables_file import MAX_BYTES, DeclaredTables, TablesFileReader
from decider.storage.local_files import read_chosen_file
from decider.storage.reading_threads import ReadingThreads
from decider.store.redis.redis_errors import translate_redis_errors
from shared.errors import InvalidInput
from shared.queue import keys
from shared.queue.decode import text

EVERY_S = 5.0
"""Seconds between two looks at the file: its size and times, and one small read of Redis."""

FULL_EVERY_S = 300.0
"""Seconds after which the registry is compared although the file is the same: as often as the sweep."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TablesFileStatus:
    """The file as this decider knows it.

    tables: how many the file in force declares. applied_ms: when it was compared last, 0 for never. error: why the file
    as it is now is refused. problems: entries that could not be applied.
    """

    path: str
    tables: int = 0
    applied_ms: int = 0
    error: str = ""
    problems: tuple[str, ...] = ()


class TablesFile:
    """A file whose last good content is in force; reads it again only where it was replaced or written."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._path = path
        self._now_ms = now_ms
        self._seen: tuple[int, ...] = ()
        self._good: DeclaredTables | None = None
        self.status = TablesFileStatus(str(path))

    def current(self, reader: TablesFileReader) -> DeclaredTables | None:
        """Return the last good content, None before the first; a file that is refused is logged once."""
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return self._good
            declared = reader.read(read_chosen_file(self._path, MAX_BYTES), str(self._path))
        except OSError as problem:
            self._seen = ()
            self._refuse(f"{self._path}: {problem.strerror}")
        except InvalidInput as problem:
            self._seen = seen
            self._refuse(str(problem))
        else:
            self._seen, self._good = seen, declared
            self.status = replace(self.status, tables=len(declared.tables), error="")
        return self._good

    def note(self, applied: AppliedDeclarations) -> None:
        """Note that the content was compared with the registry."""
        if applied.problems and applied.problems != self.status.problems:
            log.warning("tables_file_entries_refused", file=str(self._path), problems=applied.problems)
        self.status = replace(self.status, applied_ms=self._now_ms(), problems=applied.problems)

    def _refuse(self, error: str) -> None:
        if error != self.status.error:
            log.warning("tables_file_refused", error=error)
        self.status = replace(self.status, error=error)


class TablesFileSync:
    """Applies the file; any number of deciders may do so."""

    def __init__(
        self,
        file: TablesFile,
        reader: TablesFileReader,
        declarations: TableDeclarations,
        redis: Redis,
        *,
        clock_s: Callable[[], float],
    ) -> None:
        self.schedule = Schedule(EVERY_S, "tables_file_sync_failed")
        self._file = file
        self._reader = reader
        self._declarations = declarations
        self._redis = redis
        self._clock_s = clock_s
        self._threads = ReadingThreads()
        self._applied = self._run = ""
        self._full_at_s = float("-inf")

    async def run_once(self) -> AppliedDeclarations:
        """Apply the file if it is new to this decider, or Redis may have lost it, or that was long ago."""
        declared = await self._threads.run("the tables file", self._file.current, self._reader)
        if declared is None:
            return AppliedDeclarations()
        in_force, run = await self._mark()
        is_new = declared.digest != self._applied or not in_force or run != self._run
        is_due = in_force == declared.digest and self._clock_s() >= self._full_at_s
        if not (is_new or is_due):
            return AppliedDeclarations()
        applied = await self._declarations.apply(declared)
        await self._set_mark(declared.digest)
        self._applied, self._run = declared.digest, run
        self._full_at_s = self._clock_s() + FULL_EVERY_S
        self._file.note(applied)
        return applied

    @translate_redis_errors
    async def _mark(self) -> tuple[str, str]:
        """Return the digest of the file that was applied last, by any decider, and the id of the server's process."""
        server = await self._redis.info("server")
        return text(await self._redis.get(keys.TABLES_FILE) or b""), str(server.get("run_id", ""))

    @translate_redis_errors
    async def _set_mark(self, digest: str) -> None:
        await self._redis.set(keys.TABLES_FILE, digest)
