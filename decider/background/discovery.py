"""Discovery: the allowed roots are walked now and then, and every table found is registered; no event is needed.

The walk is in order, so one path says how far it came: another decider goes on from there, and so does a walk that
failed for the moment. A folder that cannot be read is left out, counted and shown, and hides nothing behind it. The
walk is slow on purpose, a few requests a second, because it finds what is new and not what is urgent. It is also how
the registry comes back after Redis has lost everything.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from decider.formats.scanner import ScannedFolder
from decider.store.discovery_lease import DiscoveryLeases, DiscoveryProgress, DiscoveryState
from shared.errors import InvalidInput, LakewrightError, PermanentError, RetryableError

LEASE_MS = 60_000
"""How long a root stays with a decider that fell silent; one that walks renews it three times in that time."""

TICK_S = 5.0
"""Pause between two looks at which root is due; one that Redis knows nothing of is due at once."""

SAVE_EVERY = 20
"""Folders between two records of the progress: what is walked again after a crash."""

AGAIN_S = 60.0
"""Pause before a walk that failed goes on from its place: a store that throttles is asked once a minute."""

TRIES = 5
"""Failures in a row at one folder, whose parents can be read, after which it is left out until the next walk."""

log = structlog.get_logger()


class FolderLister(Protocol):
    """Everything below one root."""

    async def look(self, path: str) -> ScannedFolder:
        """Return what lies at a path below the root."""

    def location_of(self, path: str) -> str:
        """Return the canonical location of a path below the root."""


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """How often, how fast and how deep: seconds between the ends and starts of walks, requests per second, folders."""

    interval_s: float = 3_600.0
    requests_per_s: float = 10.0
    depth: int = 5


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one look at a path brought; `error` is why it brought nothing."""

    path: str
    folder: ScannedFolder
    problem: LakewrightError | None = None


class Discovery:
    """Walks the roots; `adopt` registers the table at a location and says whether it is new."""

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
        self.roots = tuple(roots)
        self.pace = pace
        self._open_lake = open_lake
        self._adopt = adopt
        self._rounds = rounds
        self._now_ms = now_ms

    async def run(self) -> None:
        """Walk every root when it is due, until cancelled; without roots or interval there is nothing to do."""
        while True:
            if self.roots and self.pace.interval_s:
                try:
                    await self.run_once()
                except RetryableError as problem:
                    log.warning("discovery_failed", error=str(problem))
            await asyncio.sleep(TICK_S)

    async def run_once(self) -> tuple[DiscoveryProgress, ...]:
        """Walk the roots that are due and that no other decider is walking; return what became of each."""
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
        """Return what is known of each root, whoever walks it."""
        return tuple((await self._rounds.read(self.roots)).values())

    async def call_for(self) -> None:
        """Make every root due that is not being walked."""
        await self._rounds.request_scan(self.roots)

    def _is_due(self, before: DiscoveryProgress) -> bool:
        if before.state is DiscoveryState.RUNNING:
            return True
        pause_s = self.pace.interval_s
        if before.state is DiscoveryState.FAILED:
            pause_s = min(pause_s, AGAIN_S)
        return self._now_ms() - before.finished_ms >= pause_s * 1000

    def _started(self, root: str, before: DiscoveryProgress | None) -> DiscoveryProgress:
        """Begin a walk, or go on with one that failed or that another decider left."""
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
                # On the way back to its place a walk passes what it has counted already.
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
        log.info("discovery_completed", root=round_.root, folders=round_.folders, tables=round_.tables)
        await self._rounds.save(round_)
        return round_

    async def _hold(self, root: str) -> None:
        """Renew our hold on a root until cancelled or another decider has it: one listing may outlast a lease."""
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
        """Register what was found and count it; what cannot be read or registered is left out."""
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
    """Yield what lies at a path and below it, in order; subtrees that end before `after` are left out.

    Raises what the look at the root raises; below it a look that failed is yielded as its problem.
    """
    try:
        folder = await lake.look(path)
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
