"""A decider under load: what it answers, how long others wait, what memory it takes, and how soon it has caught up."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.locations import table_id
from shared.queue import keys
from tests.load.lake import Lake
from tests.load.nuisance import Nuisance
from tests.support.outside import POLICY
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.time_limits import scaled

QUEUE = "default"
"""Name of the queue, as services call it unless told otherwise."""

BATCH = 100
"""Events in one request, as a queue of notifications hands them on."""

CATCH_UP_S = 30.0
"""Seconds after the last event in which all tables have to be followed to their newest version."""

MEMORY_BOUND = 1.5
"""The decider's memory at the end, as a multiple of that after a quarter of the time: what grows with events, leaks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: `commits_per_s` of the events tell of new commits, the rest of data files and of old commits again."""

    seconds: float = 60.0
    events_per_s: int = 2_000
    commits_per_s: int = 400
    tables: int = 200
    slow_clients: int = 40
    seed: int = 1


@dataclass(slots=True)
class Figures:
    """What was seen."""

    events: int = 0
    commits: int = 0
    events_per_s: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    nuisance: dict[str, int] = field(default_factory=dict)
    post_ms: dict[str, float] = field(default_factory=dict)
    probe_ms: dict[str, float] = field(default_factory=dict)
    rss_mb: list[int] = field(default_factory=list)
    lag_s_max: float = 0.0
    caught_up_s: float | None = None
    wrong_tables: int = 0

    def broken(self) -> list[str]:
        """Return the promises that were not kept."""
        failed = {status: count for status, count in self.statuses.items() if status != "202"}
        early = self.rss_mb[len(self.rss_mb) // 4]
        checks = {
            f"not every batch was accepted: {failed}": not failed,
            f"a big body was answered otherwise than by 413: {dict(self.nuisance)}": not any(
                name.startswith("big: ") and name not in ("big: 413", "big: closed") for name in self.nuisance
            ),
            "no big body was refused": self.nuisance.get("big: 413", 0) > 0,
            f"memory grew from {early} to {self.rss_mb[-1]} MB": self.rss_mb[-1] <= MEMORY_BOUND * early,
            f"not caught up within {scaled(CATCH_UP_S):g} s": self.caught_up_s is not None,
            f"{self.wrong_tables} tables differ from a count": self.wrong_tables == 0,
        }
        return [sentence for sentence, kept in checks.items() if not kept]


class Load:
    """One run against a decider that serves already."""

    def __init__(self, plan: Plan, stack: Stack, say: Callable[[str], None]) -> None:
        self._plan, self._stack, self._say = plan, stack, say
        self._lake = Lake(stack.tables, plan.tables, plan.seed)
        self._figures = Figures()
        self._statuses: Counter[str] = Counter()
        self._post_ms: list[float] = []
        self._probe_ms: list[float] = []

    async def run(self) -> Figures:
        """Post events for the planned time, then wait until the decider has caught up."""
        process = psutil.Process(next(one.popen.pid for one in self._stack.processes if one.name == "decider"))
        nuisance = Nuisance("127.0.0.1", self._stack.port)
        stop = asyncio.Event()
        limits = httpx.Limits(max_connections=32)
        async with httpx.AsyncClient(
            base_url=self._stack.url, timeout=scaled(30), trust_env=False, limits=limits
        ) as api:
            async with asyncio.TaskGroup() as group:
                for number in range(self._plan.slow_clients):
                    group.create_task(nuisance.slow_client(stop, with_body=number % 2 == 0))
                group.create_task(nuisance.big_bodies(stop))
                group.create_task(self._watch(api, process, stop))
                await self._post_all(api)
                await self._catch_up(api)
                stop.set()
            self._figures.wrong_tables = self._wrong_tables()
        self._figures.statuses, self._figures.nuisance = dict(self._statuses), dict(nuisance.answers)
        self._figures.post_ms, self._figures.probe_ms = _quantiles(self._post_ms), _quantiles(self._probe_ms)
        return self._figures

    async def _post_all(self, api: httpx.AsyncClient) -> None:
        plan, figures = self._plan, self._figures
        batches = round(plan.seconds * plan.events_per_s / BATCH)
        started, waiting = time.monotonic(), set()
        for number in range(batches):
            due = started + number * BATCH / plan.events_per_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            # Commits are spread evenly: the whole part of what is due by now.
            commits = round((number + 1) * BATCH * plan.commits_per_s / plan.events_per_s) - figures.commits
            body = await asyncio.to_thread(self._lake.batch, BATCH, commits)
            figures.events, figures.commits = figures.events + BATCH, figures.commits + commits
            task = asyncio.create_task(self._post(api, body))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        await asyncio.gather(*waiting)
        figures.events_per_s = round(figures.events / (time.monotonic() - started), 1)

    async def _post(self, api: httpx.AsyncClient, body: dict[str, object]) -> None:
        started = time.monotonic()
        try:
            answer = await api.post("/v1/events", json=body)
            self._statuses[str(answer.status_code)] += 1
        except httpx.HTTPError as problem:
            self._statuses[type(problem).__name__] += 1
        self._post_ms.append(1000 * (time.monotonic() - started))

    async def _watch(self, api: httpx.AsyncClient, process: psutil.Process, stop: asyncio.Event) -> None:
        """Ask as a probe does, and read memory and lag, once a second."""
        while not stop.is_set():
            started = time.monotonic()
            (await api.get("/livez")).raise_for_status()
            self._probe_ms.append(1000 * (time.monotonic() - started))
            lag_s = (await api.get("/v1/status")).json()["backlog"]["oldest_wait_s"]
            figures = self._figures
            figures.lag_s_max = max(figures.lag_s_max, lag_s)
            figures.rss_mb.append(process.memory_info().rss // 1_048_576)
            self._say(f"{figures.events:>8} events  {figures.rss_mb[-1]} MB  lag {lag_s:.1f} s")
            await asyncio.sleep(1)

    async def _catch_up(self, api: httpx.AsyncClient) -> None:
        started = time.monotonic()
        while time.monotonic() - started < scaled(CATCH_UP_S):
            backlog = (await api.get("/v1/status")).json()["backlog"]
            if not backlog["tables_waiting"] and self._is_up_to_date():
                self._figures.caught_up_s = round(time.monotonic() - started, 1)
                return
            await asyncio.sleep(0.2)

    def _is_up_to_date(self) -> bool:
        """Whether every table's cursor in Redis is at the newest commit on disk."""
        with self._stack.redis.client() as redis:
            pipe = redis.pipeline(transaction=False)
            for table in self._lake.tables:
                pipe.hget(keys.table_state(QUEUE, table_id(table.path.as_uri())), "version")
            return [int(version or -1) for version in pipe.execute()] == [table.version for table in self._lake.tables]

    def _wrong_tables(self) -> int:
        """Count the tables whose stored partitions differ from a rebuild of what was written, integer for integer."""
        wrong = 0
        with self._stack.redis.client() as redis:
            for table in self._lake.tables:
                raw = redis.hgetall(keys.partitions(QUEUE, table_id(table.path.as_uri())))
                stored = {partition.decode(): PartitionStats.decode(state.decode()) for partition, state in raw.items()}
                wrong += stored != {
                    partition: stats_of_sizes(POLICY.size_levels, sizes) for partition, sizes in table.live.items()
                }
        return wrong


def _quantiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100) if len(values) > 1 else [0.0] * 99
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": round(max(values, default=0.0), 1)}


def run(plan: Plan, folder: Path, redis: RedisServer, say: Callable[[str], None]) -> Figures:
    """Start a decider for a lake below `folder`, run the plan, and return the figures."""
    lake = (folder / "tables").as_uri()
    stack = Stack(folder, redis, {"LAKEWRIGHT_BUCKETS": f"lake={lake}", "LAKEWRIGHT_LOG_LEVEL": "error"})
    stack.tables.mkdir()
    try:
        stack.decider()
        return asyncio.run(Load(plan, stack, say).run())
    finally:
        stack.close()
