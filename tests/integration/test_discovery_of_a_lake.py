"""A thousand tables that discovery finds: nothing is rewritten unasked, and then the end that is shown is true."""

import asyncio
import heapq
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from decider.api.routes.history import backlog_progress
from decider.api.routes.status import amplification
from decider.background.discovery import TRIES, Discovery, DiscoveryLimits
from decider.background.history_sampler import HistorySampler
from decider.formats.scanner import ScannedFolder
from decider.store.fleet_history import FleetHistory
from decider.store.redis.queue_executor import connect
from decider.store.registry.discovery_lease import DiscoveryLeases, DiscoveryProgress, DiscoveryState
from decider.store.samples import SampleStep
from shared.errors import LakewrightError, PermanentError, RetryableError
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.policy import MIB, Policy
from shared.queue import commands, keys
from shared.queue.model import Claim
from shared.table import CommitOrigin
from tests.support.delta_tables import PLAIN, metadata_of
from tests.support.live_decider import LiveDecider, deciders
from tests.support.queue_bench import end_of
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis

TABLES = 1_000
LIMIT_S = 300
"""For what is read or walked of all tables at once; some 12 s where nothing else runs."""
SLOTS = 4
JOB_MS, BYTES_PER_MS = 1_500, 30_000
"""A run of one slot: its commit, and the encoding of rows."""
MINUTE_MS = 60_000
FIRST_FIFTH, ERROR = 0.2, 0.2
"""The share of the time left by which the end may be wrong, from the first fifth on; samples are a minute apart."""


class Lake:
    """Tables of small files on the disk, logs alone, and an actor whose runs take simulated time."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng = root, rng
        self.live: dict[str, dict[str, int]] = {}
        self.versions: dict[str, int] = {}
        for number in range(TABLES):
            name = f"t{number:04d}"
            (root / name / "_delta_log").mkdir(parents=True)
            mean = rng.choice([1, 4, 16]) * MIB
            sizes = [rng.randrange(mean // 2, mean * 2) for _ in range(rng.randrange(16, 120))]
            self.live[name] = {f"part-{place}.parquet": size for place, size in enumerate(sizes)}
            adds = [self._add(path, size, is_new=True) for path, size in self.live[name].items()]
            self._commit(name, [{"protocol": PLAIN}, {"metaData": metadata_of({"id": "long"})}, *adds], "WRITE")

    def rewrite(self, name: str, claim: Claim) -> int:
        """Merge the files that are not full into full ones, by one commit; return their bytes."""
        live = self.live[name]
        small = {path: size for path, size in live.items() if size < 96 * MIB}
        if len(small) < 2:
            return 0
        gone = [{"remove": {"path": path, "size": size, "dataChange": False}} for path, size in small.items()]
        total, made = sum(small.values()), []
        for part in range(-(-total // (128 * MIB))):
            path, size = f"lw-{claim.token}-{part}.parquet", min(128 * MIB, total - part * 128 * MIB)
            made.append(self._add(path, size, is_new=False))
            live[path] = size
        for path in small:
            del live[path]
        mark = CommitMetadata(CommitOrigin(claim.id, claim.token), partition=claim.key.partition, mode="major")
        self._commit(name, [*gone, *made], "OPTIMIZE", mark.encode())
        return total

    def _add(self, path: str, size: int, *, is_new: bool) -> dict[str, Any]:
        stats = '{"numRecords":1000}'
        body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": is_new}
        return {"add": {**body, "stats": stats}}

    def _commit(self, name: str, actions: list[dict[str, Any]], operation: str, mark: str | None = None) -> None:
        self.versions[name] = version = self.versions.get(name, -1) + 1
        info = {"timestamp": 1_767_225_600_000, "operation": operation, **({"userMetadata": mark} if mark else {})}
        lines = [json.dumps(one) + "\n" for one in [*actions, {"commitInfo": info}]]
        (self.root / name / "_delta_log" / f"{version:020d}.json").write_text("".join(lines))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", random.Random(5))


@pytest.fixture
def decider(redis_url: str, lake: Lake) -> Iterator[LiveDecider]:
    limits = DiscoveryLimits(interval_s=0, requests_per_s=1e6)
    with deciders(redis_url, roots=(lake.root.as_uri(),), policy=Policy(), is_discovery_active=False) as start:
        yield start(discovery=limits)


def claimed(decider: LiveDecider, slots: int) -> tuple[Claim, ...]:
    claim = commands.claim("default", worker="w", nonce=uuid4().hex, slots=slots, lease_ms=600_000)
    return decider.run(decider.services.queue.executor.run(claim))


@pytest.mark.long("contracts")
def test_a_thousand_tables_wait_until_they_are_resumed_and_their_end_is_foreseen(
    decider: LiveDecider, lake: Lake
) -> None:
    (found,) = decider.run(decider.services.requests.discovery.run_once(), LIMIT_S)
    decider.drain(LIMIT_S)
    assert found.new_tables == TABLES
    queue, now_ms = decider.services.queue, decider.services.operations.now_ms()
    decider.run(queue.executor.redis.set(keys.history_lease("default"), "test"))
    decider.run(queue.executor.redis.delete(keys.history("default", MINUTE_MS)))
    history = FleetHistory(queue.executor, "test")
    figures = (history, decider.services.tables.index, queue.admin, queue.counters)
    sampler = HistorySampler(*figures, events_received=lambda: 0, now_ms=lambda: now_ms)

    def sampled() -> Any:
        sample = decider.run(sampler.run_once())
        counted = amplification(decider.run(queue.counters.read()))
        left = counted.backlog_bytes_left
        today = decider.run(history.samples(SampleStep.MINUTE, now_ms - 24 * 60 * MINUTE_MS))
        return sample, backlog_progress(today, left, counted.backlog_bytes_found - left, now_ms)

    for pause in (*(60 * MINUTE_MS for _ in range(9)), MINUTE_MS):  # Most of a day in which no one looks at it.
        assert claimed(decider, SLOTS) == ()
        sample, progress = sampled()
        now_ms += pause
    assert sample.states == {"paused": TABLES}
    assert (sample.rewrites, progress.done_bytes, progress.ends_at) == (0, 0, None)
    backlog_bytes = progress.left_bytes
    assert backlog_bytes == sum(sum(files.values()) for files in lake.live.values())
    assert decider.post("/v1/tables/resume", {}).json()["message"] == f"{TABLES} tables resumed."
    began_ms, free_ms, foreseen = now_ms, [now_ms] * SLOTS, []
    while progress.left_bytes:
        touched = []
        while free_ms[0] <= now_ms and (claims := claimed(decider, 1)):
            table = Path(json.loads(claims[0].payload)["location"]).name
            took_bytes = lake.rewrite(table, claims[0])
            heapq.heapreplace(free_ms, free_ms[0] + JOB_MS + took_bytes // BYTES_PER_MS)
            decider.run(queue.executor.run(end_of(claims[0], cost_bytes=took_bytes)))
            touched.append({"table": table})
        decider.post("/v1/events", touched).raise_for_status()
        decider.drain()
        sample, progress = sampled()
        foreseen.append((now_ms, progress.ends_at))
        now_ms += MINUTE_MS
    end_ms, errors = foreseen.pop()[0], []
    for at_ms, ends_at in foreseen:
        assert ends_at is not None
        done, error_ms = (at_ms - began_ms) / (end_ms - began_ms), abs(ends_at.timestamp() * 1_000 - end_ms)
        errors.append((done, error_ms / (end_ms - at_ms), error_ms))
    print(f"\n{backlog_bytes / 2**30:.0f} GiB in {(end_ms - began_ms) / MINUTE_MS:.0f} minutes; share of it, and")
    print("error of the time left:", ", ".join(f"{done:.0%} {error:.0%}" for done, error, _ in errors[::3]))
    for done, error, error_ms in errors:
        assert done < FIRST_FIFTH or error <= ERROR or error_ms <= MINUTE_MS, (done, error)


ROOT = "s3://lake"
LEASE_MS = round(scaled(900))
FAULTY_TABLES = "abcmz"


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
        return ScannedFolder(is_table=bool(path), folders=() if path else tuple(FAULTY_TABLES), requests=self.requests)

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
        assert walks.found == list(FAULTY_TABLES)


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
        assert (done.state, walks.found) == (DiscoveryState.DONE, list(FAULTY_TABLES))
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
