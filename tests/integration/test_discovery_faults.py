"""A walk that meets faults still ends: what cannot be read is left out and counted, what failed is gone back to."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from decider.background.discovery import TRIES, Discovery, DiscoveryLimits
from decider.formats.scanner import ScannedFolder
from decider.store.redis.queue_executor import connect
from decider.store.registry.discovery_lease import DiscoveryLeases, DiscoveryProgress, DiscoveryState
from shared.errors import LakewrightError, PermanentError, RetryableError
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis

ROOT = "s3://lake"
LEASE_MS = round(scaled(900))
TABLES = "abcmz"


@dataclass
class FaultyLake:
    """One folder of tables by name; `faults` are raised by the reads a path, in order, the last one for ever."""

    faults: Mapping[str, list[LakewrightError | None]] = field(default_factory=dict)
    requests: int = 2
    scans: Counter[str] = field(default_factory=Counter)

    async def scan(self, path: str) -> ScannedFolder:
        """Fail, or return the tables below the root, or one of them."""
        self.scans[path] += 1
        stated = self.faults.get(path, [None])
        problem = stated[min(self.scans[path], len(stated)) - 1]
        if problem is not None:
            raise problem
        return ScannedFolder(is_table=bool(path), folders=() if path else tuple(TABLES), requests=self.requests)

    def location_of(self, path: str) -> str:
        """Return the path."""
        return path


@dataclass
class Walks:
    """A discovery over that lake; `late_ms` is added to its clock."""

    rounds: DiscoveryLeases
    lake: FaultyLake
    requests_per_s: float = 1_000_000.0
    found: list[str] = field(default_factory=list)
    late_ms: int = 0

    def __post_init__(self) -> None:
        async def adopt(location: str) -> bool:
            self.found.append(location)
            return True

        pace = DiscoveryLimits(interval_s=3_600.0, requests_per_s=self.requests_per_s)
        self.discovery = Discovery(
            (ROOT,), lambda _: self.lake, adopt, self.rounds, pace=pace, now_ms=lambda: 1_000_000 + self.late_ms
        )

    async def once(self) -> DiscoveryProgress | None:
        """Walk if it is due, a minute after the last time."""
        self.late_ms += 60_000
        return next(iter(await self.discovery.run_once()), None)


@asynccontextmanager
async def two_leases(redis_url: str) -> AsyncIterator[tuple[DiscoveryLeases, DiscoveryLeases]]:
    async with connect(redis_url) as redis, asyncio.timeout(scaled(30)):
        yield DiscoveryLeases(redis, "we", lease_ms=LEASE_MS), DiscoveryLeases(redis, "they", lease_ms=LEASE_MS)


async def test_a_folder_that_must_not_be_read_is_left_out_and_shown_and_what_lies_behind_it_is_found(
    redis_url: str,
) -> None:
    async with two_leases(redis_url) as (rounds, _):
        walks = Walks(rounds, FaultyLake({"m": [PermanentError("status code: 403")]}))
        done = await walks.once()
        assert done is not None
        assert (done.state, walks.found) == (DiscoveryState.DONE, list("abcz"))
        assert (done.unreadable, "403" in done.error, done.tables) == (1, True, 4)
        assert await walks.once() is None, "it is not due before its interval is over"


async def test_a_failure_of_the_moment_is_gone_back_to_and_nothing_is_walked_twice(redis_url: str) -> None:
    async with two_leases(redis_url) as (rounds, _):
        away = RetryableError("status code: 503")
        walks = Walks(rounds, FaultyLake({"m": [away, None], "": [None, away, None]}))
        failed = await walks.once()
        assert failed is not None
        assert (failed.state, failed.last_path, failed.error) == (DiscoveryState.FAILED, "c", str(away))
        again = await walks.once()
        assert again is not None
        assert (again.state, again.last_path) == (DiscoveryState.FAILED, "c"), "the root failing forgets nothing"
        done = await walks.once()
        assert done is not None
        assert (done.state, done.tables, done.folders, done.error) == (DiscoveryState.DONE, 5, 6, "")
        assert walks.found == list(TABLES)


async def test_a_folder_that_fails_again_and_again_is_left_out_in_the_end(redis_url: str) -> None:
    async with two_leases(redis_url) as (rounds, _):
        walks = Walks(rounds, FaultyLake({"m": [RetryableError("timed out")]}))
        states = [made.state for _ in range(TRIES) if (made := await walks.once())]
        assert states == [DiscoveryState.FAILED] * (TRIES - 1) + [DiscoveryState.DONE]
        assert walks.found == list("abcz")


async def test_a_root_stays_with_its_walk_however_long_one_folder_takes(redis_url: str) -> None:
    """Seven hundred requests for one folder, at the pace requested, outlast the lease."""
    async with two_leases(redis_url) as (rounds, others):
        walks = Walks(rounds, FaultyLake(requests=700), requests_per_s=700 * 5 / (2 * LEASE_MS / 1000))
        walk = asyncio.create_task(walks.once())
        taken = []
        while not walk.done():
            await asyncio.wait([walk], timeout=LEASE_MS / 3_000)
            if not walk.done():
                taken.append(await others.acquire(ROOT))
        done = walk.result()
        assert done is not None
        assert (done.state, walks.found) == (DiscoveryState.DONE, list(TABLES))
        assert len(taken) > 3
        assert not any(taken)


async def test_a_lease_that_ran_out_is_taken_again_unless_another_decider_has_it(redis_url: str) -> None:
    async with two_leases(redis_url) as (rounds, others):
        assert await rounds.save(DiscoveryProgress(ROOT, last_path="a")), "no one took it"
        assert not await others.acquire(ROOT)
        await rounds.release(ROOT)
        assert await others.acquire(ROOT)
        assert not await rounds.save(DiscoveryProgress(ROOT, last_path="b"))
        assert (await rounds.read([ROOT]))[ROOT].last_path == "a"
