"""Discovery: scans the allowed roots periodically and registers every table found, without events.

A scan is ordered, so one path is its progress: another decider, or a retry after a failure, resumes there. A folder
that cannot be read is skipped, counted and shown. A scan is slow on purpose, a few requests per second, because it
finds what is new and not what is urgent. It also restores the registry after a loss of Redis.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from decider.background.runner import Schedule
from decider.formats.scanner import ScannedFolder
from decider.store.registry.discovery_lease import DiscoveryLeases, DiscoveryProgress, DiscoveryState
from shared.errors import InvalidInput, LakewrightError, PermanentError, RetryableError

LEASE_MS = 60_000
"""Lease of a root; a scanning decider renews it three times in that time."""

TICK_S = 5.0
"""Seconds between two checks for due roots; a root that Redis does not know is due at once."""

SAVE_EVERY = 20
"""Folders between two saves of the progress: scanned again after a crash."""

AGAIN_S = 60.0
"""Seconds before a failed scan resumes: a throttling store is retried once a minute."""

TRIES = 5
"""Consecutive failures at one folder after which it is skipped until the next scan."""

log = structlog.get_logger()


class FolderLister(Protocol):
    """Lists the folders below one root."""

    async def scan(self, path: str) -> ScannedFolder:
        """List a path below the root."""

    def location_of(self, path: str) -> str:
        """Return the canonical location of a path below the root."""


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """Interval between scans in seconds, maximum requests per second, and maximum folder depth."""

    interval_s: float = 3_600.0
    requests_per_s: float = 10.0
    depth: int = 5


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of reading one path; `error` is why there is none."""

    path: str
    folder: ScannedFolder
    problem: LakewrightError | None = None


class Discovery:
    """Scans the roots; `adopt` registers the table at a location and returns whether it is new."""

    def __init__(
        self,
        roots: Sequence[str],
        open_lake: Callable[[str], FolderLister],
        adopt: Callable[[str], Awaitable[bool]],
        rounds: DiscoveryLeases,
        *,
        pace: DiscoveryLimits,
        now_ms: Callable[[], int],
    ) -> None:
        self.schedule = Schedule(TICK_S, "discovery_failed")
        self.roots = tuple(roots)
        self.pace = pace
        self._open_lake = open_lake
        self._adopt = adopt
        self._rounds = rounds
        self._now_ms = now_ms

    @property
    def is_periodic(self) -> bool:
        """True if it scans by itself: it has roots and an interval."""
        return bool(self.roots and self.pace.interval_s)

    async def run_once(self) -> tuple[DiscoveryProgress, ...]:
        """Scan the due roots that no other decider scans; return the progress of each."""
        done: list[DiscoveryProgress] = []
        for root in self.roots:
            if not await self._rounds.acquire(root):
                continue
            try:
                before = (await self._rounds.read([root])).get(root)
                if before is None or self._is_due(before):
                    done.append(await self._walk_root(self._started(root, before)))
            finally:
                await self._rounds.release(root)
        return tuple(done)

    async def progress(self) -> tuple[DiscoveryProgress, ...]:
        """Return the progress of each root, over all deciders."""
        return tuple((await self._rounds.read(self.roots)).values())

    async def call_for(self) -> None:
        """Make every root due that is not being scanned."""
        await self._rounds.request_scan(self.roots)

    def _is_due(self, before: DiscoveryProgress) -> bool:
        if before.state is DiscoveryState.RUNNING:
            return True
        pause_s = self.pace.interval_s
        if before.state is DiscoveryState.FAILED:
            pause_s = min(pause_s, AGAIN_S)
        return self._now_ms() - before.finished_ms >= pause_s * 1000

    def _started(self, root: str, before: DiscoveryProgress | None) -> DiscoveryProgress:
        """Start a scan, or resume one that failed or was abandoned."""
        if before is not None and before.state is not DiscoveryState.DONE:
            log.info("discovery_resumed", root=root, path=before.last_path)
            problem = before.error if before.unreadable else ""
            return replace(before, state=DiscoveryState.RUNNING, finished_ms=0, error=problem)
        return DiscoveryProgress(root, started_ms=self._now_ms(), updated_ms=self._now_ms())

    async def _walk_root(self, round_: DiscoveryProgress) -> DiscoveryProgress:
        holding = asyncio.create_task(self._hold(round_.root))
        start, is_resumed = _parts(round_.last_path), bool(round_.folders)
        try:
            lake = self._open_lake(round_.root)
            async for found in _walk(lake, "", self.pace.depth, start):
                if isinstance(found.problem, RetryableError) and not self._is_hopeless(round_, found.path):
                    return await self._failed(_stuck(round_, found.path), found.problem)
                # A resumed scan passes folders that are counted already.
                if not (is_resumed and _parts(found.path) <= start):
                    round_ = await self._taken(round_, found, lake)
                    if round_.folders % SAVE_EVERY == 0 and not await self._save(round_):
                        return round_
                await asyncio.sleep(found.folder.requests / self.pace.requests_per_s)
        except LakewrightError as problem:
            return await self._failed(round_, problem)
        finally:
            holding.cancel()
        round_ = replace(round_, state=DiscoveryState.DONE, finished_ms=self._now_ms())
        log.info(
            "discovery_completed",
            root=round_.root,
            folders=round_.folders,
            tables=round_.tables,
            new_tables=round_.new_tables,
        )
        await self._rounds.save(round_)
        return round_

    async def _hold(self, root: str) -> None:
        """Renew the lease of a root until cancelled or lost: one listing may outlast a lease."""
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._rounds.lease_ms / 3_000)
            try:
                is_ours = await self._rounds.renew(root)
            except RetryableError as problem:
                log.warning("root_lock_not_renewed", root=root, error=str(problem))

    async def _failed(self, round_: DiscoveryProgress, problem: LakewrightError) -> DiscoveryProgress:
        round_ = replace(round_, state=DiscoveryState.FAILED, error=str(problem), finished_ms=self._now_ms())
        log.warning("discovery_failed", root=round_.root, path=round_.last_path, error=str(problem))
        await self._rounds.save(round_)
        return round_

    def _is_hopeless(self, round_: DiscoveryProgress, path: str) -> bool:
        return round_.failing_path == path and round_.attempts >= TRIES - 1

    async def _taken(self, round_: DiscoveryProgress, found: ProbeResult, lake: FolderLister) -> DiscoveryProgress:
        """Register and count a folder; skip one that cannot be read or registered."""
        problem, is_new = found.problem, False
        if found.folder.is_table:
            try:
                is_new = await self._adopt(lake.location_of(found.path))
            except (InvalidInput, PermanentError) as refused:
                problem = refused
        if problem is not None:
            round_ = replace(round_, unreadable=round_.unreadable + 1, error=str(problem))
            log.warning("folder_skipped", root=round_.root, path=found.path, reason=str(problem))
        return replace(
            round_,
            last_path=found.path,
            folders=round_.folders + 1,
            tables=round_.tables + found.folder.is_table,
            new_tables=round_.new_tables + is_new,
            updated_ms=self._now_ms(),
            failing_path="",
            attempts=0,
        )

    async def _save(self, round_: DiscoveryProgress) -> bool:
        log.info(
            "discovery_progress",
            root=round_.root,
            path=round_.last_path,
            folders=round_.folders,
            new_tables=round_.new_tables,
        )
        return await self._rounds.save(round_)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


def _stuck(round_: DiscoveryProgress, path: str) -> DiscoveryProgress:
    return replace(round_, failing_path=path, attempts=round_.attempts + 1 if round_.failing_path == path else 1)


async def _walk(lake: FolderLister, path: str, depth: int, after: tuple[str, ...]) -> AsyncIterator[ProbeResult]:
    """Yield a path and everything below it, in order, without subtrees that end before `after`.

    Raises the error of listing the root; errors below it are yielded.
    """
    try:
        folder = await lake.scan(path)
    except LakewrightError as problem:
        if not path:
            raise
        yield ProbeResult(path, ScannedFolder(is_table=False), problem)
        return
    yield ProbeResult(path, folder)
    if depth == 0:
        return
    for name in folder.folders:
        child = f"{path}/{name}" if path else name
        parts = _parts(child)
        if parts < after[: len(parts)]:
            continue
        async for found in _walk(lake, child, depth - 1, after):
            yield found
