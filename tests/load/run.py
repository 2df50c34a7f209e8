"""A decider under load: what it answers, how long others wait, what memory it takes, and how soon it has caught up.

With hostile clients, the same load runs before them, beside them and after them.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from tests.attacks.attack import Limit, as_quiet
from tests.attacks.cases.hostile_files import plant
from tests.attacks.hostile import HONEST, HOSTILE_TABLES, KINDS, PAUSE_S, TOKENS, Crowd
from tests.load.lake import Lake
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack
from tests.support.time_limits import scaled

CATCH_UP_S = 30.0
"""Seconds after the last event in which all tables have to be followed to their newest version."""

MEMORY_BOUND = 1.5
"""The decider's memory at the end, as a multiple of that after a quarter of the time: what grows with events, leaks."""

SENDERS_PATIENCE_S = 30.0
"""Seconds in which a sender repeats what was not accepted."""

UNKNOWN_AT_ONCE = 50
"""Tables that are made known by one request; a decider checks 64."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: `commits_per_s` of the events tell of new commits, the rest of data files and of old commits again.

    batch: events in one request, as a queue of notifications hands them on. clients: hostile ones, by kind. quiet_s:
    time without them, before and after; pause_s: between two calls of one of them.
    """

    seconds: float = 60.0
    events_per_s: int = 2_000
    commits_per_s: int = 400
    tables: int = 200
    batch: int = 100
    clients: Mapping[str, int] = field(
        default_factory=lambda: {"slow heads": 20, "slow bodies of a token": 20, "large bodies": 1}
    )
    quiet_s: float = 0.0
    pause_s: float = PAUSE_S
    seed: int = 1


ATTACKED = Plan(300.0, 500, 100, 2_000, batch=10, clients=dict.fromkeys(KINDS, 16), quiet_s=60.0)
"""Five minutes beside sixteen hostile clients of each kind."""


@dataclass(slots=True)
class Figures:
    """What was seen; `post_ms` by phase: `quiet before`, `attacked` and `quiet after`."""

    events: int = 0
    commits: int = 0
    events_per_s: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    hostile: dict[str, dict[str, int]] = field(default_factory=dict)
    post_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    probe_ms: dict[str, float] = field(default_factory=dict)
    rss_mb: list[int] = field(default_factory=list)
    lag_s_max: float = 0.0
    caught_up_s: float | None = None
    wrong_tables: int = 0
    lost_batches: int = 0

    def limits(self) -> Iterator[Limit]:
        """Yield what was promised, and whether it was kept."""
        early = self.rss_mb[len(self.rss_mb) // 4]
        yield Limit("every batch is accepted, at once or repeated", not self.lost_batches, str(self.statuses))
        yield Limit(f"no table is behind after {scaled(CATCH_UP_S):g} s", self.caught_up_s is not None, "")
        yield Limit("every table is as a count finds it", not self.wrong_tables, f"{self.wrong_tables} differ")
        grown = f"{early} to {self.rss_mb[-1]} MB"
        yield Limit(f"memory grows {MEMORY_BOUND:g} times at most", self.rss_mb[-1] <= MEMORY_BOUND * early, grown)
        large = self.hostile.get("large bodies", {})
        is_refused = large.get("413", 0) > 0 and not any(outcome.startswith(("2", "5")) for outcome in large)
        yield Limit("large bodies are refused", is_refused, str(large))
        idle = [kind for kind, fared in self.hostile.items() if not fared]
        yield Limit("every kind of hostile client was there", not idle, ", ".join(idle))
        if "quiet before" in self.post_ms:
            quiet = max(self.post_ms[f"quiet {when}"]["p99"] for when in ("before", "after"))
            yield as_quiet(self.post_ms["attacked"]["p99"] / 1000, quiet / 1000)


class Load:
    """One run against a decider that serves already."""

    def __init__(self, plan: Plan, stack: Stack, say: Callable[[str], None]) -> None:
        self._plan, self._stack, self._say = plan, stack, say
        self._lake = Lake(stack.tables, plan.tables, plan.seed)
        self._figures = Figures()
        self._statuses: Counter[str] = Counter()
        self._probe_ms: list[float] = []

    async def run(self) -> Figures:
        """Post events for the planned time, then wait until the decider has caught up."""
        process = psutil.Process(next(one.popen.pid for one in self._stack.processes if one.name == "decider"))
        stop, plan = asyncio.Event(), self._plan
        async with (
            httpx.AsyncClient(
                base_url=self._stack.url,
                headers={"authorization": f"Bearer {HONEST}"},
                timeout=scaled(30),
                trust_env=False,
                limits=httpx.Limits(max_connections=32),
            ) as api,
            asyncio.TaskGroup() as group,
        ):
            await self._make_known(api)
            group.create_task(self._watch(api, process, stop))
            await self._post_for(api, plan.quiet_s, "quiet before")
            crowd = await asyncio.to_thread(Crowd, self._stack.port, plan.clients, plan.pause_s)
            began_s, before = time.monotonic(), self._figures.events
            await self._post_for(api, plan.seconds, "attacked")
            self._figures.events_per_s = round((self._figures.events - before) / (time.monotonic() - began_s), 1)
            await asyncio.to_thread(crowd.close)
            self._figures.hostile = crowd.fared
            await self._catch_up(api)
            await self._post_for(api, plan.quiet_s, "quiet after")
            await self._catch_up(api)
            stop.set()
        self._figures.wrong_tables = self._lake.wrong_tables(self._stack.redis)
        self._figures.statuses = dict(self._statuses)
        self._figures.probe_ms = _quantiles(self._probe_ms)
        return self._figures

    async def _make_known(self, api: httpx.AsyncClient) -> None:
        """Commit to every table once; those of hostile clients have a hostile file as their next commit."""
        for _ in range(0, self._plan.tables, UNKNOWN_AT_ONCE):
            await self._post(api, self._lake.batch(UNKNOWN_AT_ONCE, UNKNOWN_AT_ONCE), [])
            self._figures.commits = self._lake.commits
        hostile = Lake(self._stack.tables, HOSTILE_TABLES, self._plan.seed, "hostile")
        await self._post(api, hostile.batch(HOSTILE_TABLES, HOSTILE_TABLES), [])
        await self._catch_up(api)
        for number, table in enumerate(hostile.tables):
            plant(table.path, 1, number)

    async def _post_for(self, api: httpx.AsyncClient, seconds: float, phase: str) -> None:
        """Post events at an even pace for so many seconds."""
        plan, figures, took_ms = self._plan, self._figures, list[float]()
        started, waiting, before = time.monotonic(), set[asyncio.Task[None]](), figures.commits
        for number in range(round(seconds * plan.events_per_s / plan.batch)):
            due = started + number * plan.batch / plan.events_per_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            # Commits are spread evenly: the whole part of what is due by now.
            commits = before + round((number + 1) * plan.batch * plan.commits_per_s / plan.events_per_s)
            body = await asyncio.to_thread(self._lake.batch, plan.batch, commits - figures.commits)
            figures.events, figures.commits = figures.events + plan.batch, commits
            task = asyncio.create_task(self._post(api, body, took_ms))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        await asyncio.gather(*waiting)
        if took_ms:
            figures.post_ms[phase] = _quantiles(took_ms)

    async def _post(self, api: httpx.AsyncClient, body: dict[str, object], took_ms: list[float]) -> None:
        """Post until the events are accepted, as senders do that are asked to try again."""
        started = time.monotonic()
        while time.monotonic() - started < scaled(SENDERS_PATIENCE_S):
            try:
                status = str((await api.post("/v1/events", json=body)).status_code)
            except httpx.HTTPError as problem:
                status = type(problem).__name__
            self._statuses[status] += 1
            if status == "202":
                break
            await asyncio.sleep(0.2)
        else:
            self._figures.lost_batches += 1
        took_ms.append(1000 * (time.monotonic() - started))

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
        self._figures.caught_up_s = None
        while time.monotonic() - started < scaled(CATCH_UP_S):
            backlog = (await api.get("/v1/status")).json()["backlog"]
            if not backlog["tables_waiting"] and self._lake.is_followed(self._stack.redis):
                self._figures.caught_up_s = round(time.monotonic() - started, 1)
                return
            await asyncio.sleep(0.2)


def _quantiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100) if len(values) > 1 else [0.0] * 99
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": round(max(values, default=0.0), 1)}


def run(plan: Plan, folder: Path, redis: RedisServer, say: Callable[[str], None]) -> Figures:
    """Start a decider for a lake below `folder`, run the plan, and return the figures."""
    lake = (folder / "tables").as_uri()
    stack = Stack(folder, redis, {"LAKEWRIGHT_BUCKETS": f"lake={lake}", "LAKEWRIGHT_LOG_LEVEL": "error", **TOKENS})
    stack.tables.mkdir()
    try:
        stack.decider()
        return asyncio.run(Load(plan, stack, say).run())
    finally:
        stack.close()
