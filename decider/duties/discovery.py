"""Discovery: the allowed roots are walked now and then, and every table found is registered; no event is needed.

The walk is in order, so one path says how far it came: another decider goes on from there. It is slow on purpose, a few
requests a second, because it finds what is new and not what is urgent. It is also how the registry comes back after
Redis has lost everything.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from decider.observe.lake import Folder
from decider.store.rounds import Round, Rounds, RoundState
from shared.errors import LakewrightError, RetryableError

LEASE_MS = 60_000
"""How long a root stays with a decider that fell silent: longer than the slowest listing."""

TICK_S = 5.0
"""Pause between two looks at which root is due; one that Redis knows nothing of is due at once."""

SAVE_EVERY = 20
"""Folders between two records of the progress: what is walked again after a crash."""

log = structlog.get_logger()


class Lake(Protocol):
    """Everything below one root."""

    async def look(self, path: str) -> Folder:
        """Return what lies at a path below the root."""

    def location_of(self, path: str) -> str:
        """Return the canonical location of a path below the root."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, how fast and how deep: seconds between the ends and starts of walks, requests per second, folders."""

    interval_s: float = 3_600.0
    requests_per_s: float = 10.0
    depth: int = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What one look at a path brought."""

    path: str
    folder: Folder


class Discovery:
    """Walks the roots; `adopt` registers the table at a location and says whether it is new."""

    def __init__(
        self,
        roots: Sequence[str],
        open_lake: Callable[[str], Lake],
        adopt: Callable[[str], Awaitable[bool]],
        rounds: Rounds,
        *,
        pace: Pace,
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

    async def run_once(self) -> tuple[Round, ...]:
        """Walk the roots that are due and that no other decider is walking; return what became of each."""
        done: list[Round] = []
        for root in self.roots:
            if not await self._rounds.take(root):
                continue
            try:
                before = (await self._rounds.read([root])).get(root)
                if before is None or self._is_due(before):
                    done.append(await self._walk_root(self._started(root, before)))
            finally:
                await self._rounds.leave(root)
        return tuple(done)

    async def progress(self) -> tuple[Round, ...]:
        """Return what is known of each root, whoever walks it."""
        return tuple((await self._rounds.read(self.roots)).values())

    async def call_for(self) -> None:
        """Make every root due that is not being walked."""
        await self._rounds.call_for(self.roots)

    def _is_due(self, before: Round) -> bool:
        is_running = before.state is RoundState.RUNNING
        return is_running or self._now_ms() - before.finished_ms >= self.pace.interval_s * 1000

    def _started(self, root: str, before: Round | None) -> Round:
        """Begin a walk, or go on with one that another decider left."""
        if before is not None and before.state is RoundState.RUNNING:
            log.info("discovery_resumed", root=root, place=before.place)
            return before
        return Round(root, started_ms=self._now_ms(), moved_ms=self._now_ms())

    async def _walk_root(self, round_: Round) -> Round:
        try:
            lake = self._open_lake(round_.root)
            async for found in _walk(lake, "", self.pace.depth, tuple(round_.place.split("/"))):
                is_new = found.folder.is_table and await self._adopt(lake.location_of(found.path))
                round_ = self._moved(round_, found, is_new=is_new)
                if round_.folders % SAVE_EVERY == 0 and not await self._save(round_):
                    return round_
                await asyncio.sleep(found.folder.requests / self.pace.requests_per_s)
        except LakewrightError as problem:
            round_ = replace(round_, state=RoundState.FAILED, problem=str(problem), finished_ms=self._now_ms())
            log.warning("discovery_failed", root=round_.root, place=round_.place, error=str(problem))
        else:
            round_ = replace(round_, state=RoundState.DONE, finished_ms=self._now_ms())
            log.info("discovered", root=round_.root, folders=round_.folders, tables=round_.tables)
        await self._rounds.keep(round_)
        return round_

    def _moved(self, round_: Round, found: Found, *, is_new: bool) -> Round:
        return replace(
            round_,
            place=found.path,
            folders=round_.folders + 1,
            tables=round_.tables + found.folder.is_table,
            new_tables=round_.new_tables + is_new,
            moved_ms=self._now_ms(),
        )

    async def _save(self, round_: Round) -> bool:
        log.info(
            "discovering", root=round_.root, place=round_.place, folders=round_.folders, new_tables=round_.new_tables
        )
        return await self._rounds.keep(round_)


async def _walk(lake: Lake, path: str, depth: int, after: tuple[str, ...]) -> AsyncIterator[Found]:
    """Yield what lies at a path and below it, in order; subtrees that end before `after` are left out."""
    folder = await lake.look(path)
    yield Found(path, folder)
    if depth == 0:
        return
    for name in folder.folders:
        child = f"{path}/{name}" if path else name
        parts = tuple(child.split("/"))
        if parts < after[: len(parts)]:
            continue
        async for found in _walk(lake, child, depth - 1, after):
            yield found
