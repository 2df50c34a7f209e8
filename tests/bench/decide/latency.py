"""From the POST of an event until the decision is in the store, at a steady rate, with few and with many tables.

Redis itself tells when a table's cursor has moved (keyspace notifications), and it moves in the same script that
writes partitions, jobs and ledger. Two deciders, each with a Redis of its own, take turns: one knows 100 tables and the
other 100,000, so that whatever else the machine does meanwhile weighs on both.

A decider that notes what the time from an event to its decision is spent on; its code runs unchanged inside.

Times are wall clock and include waiting for the event loop. SIGUSR1 has it write the sums since the last one as JSON.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

import redis
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from decider.api.routes.events import EventReceiver
from decider.events.refresh_queue import RefreshQueue
from decider.storage.reading_threads import ReadingThreads
from decider.store.redis.queue_executor import AsyncQueueExecutor, connect
from decider.store.registry.table_registry import TableRegistry
from decider.store.tables.ingest import StateUpdate, ingest
from decider.store.tables.table_state import TableState
from decider.tracking.refresh import TableRefresher
from services.decider.__main__ import main
from shared.layout.partition_stats import file_stats
from shared.policy.policy import MIB, Policy
from shared.queue import keys
from shared.table import PartitionColumn, TableId, TableMetadata, TableProtocol, TableRef
from tests.bench.decide.house import QUEUE, House, house
from tests.bench.decide.logs import WrittenLog
from tests.support.stack import ROOT
from tests.support.waiting import until

BUSY_TABLES = 20
PARTITIONS_OF_AN_IDLE_TABLE = 3
AT_ONCE = 64
SETTLE_S = 30.0


@dataclass(frozen=True, slots=True)
class Load:
    """Commits a second, seconds of a window, windows on each side, and the tables that each side has registered."""

    per_s: float
    seconds: float
    windows: int
    few: int
    many: int


@dataclass(slots=True)
class Watcher:
    """Notes when the cursor of each table was seen at which version."""

    home: House
    seen: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        """Watch until asked to stop."""
        pubsub, client = self._subscribed(), self.home.client
        start = len(keys.table_state(QUEUE, TableId("")))
        while not stop.is_set():
            message: Any = pubsub.get_message(timeout=0.05)
            if message is None:
                continue
            at = time.monotonic()
            key = message["channel"].decode().partition(":")[2]
            version: Any = client.hget(key, "version")
            if version is not None:
                self.seen.setdefault(key[start:], []).append((int(version), at))
        pubsub.close()

    def _subscribed(self) -> Any:
        client = redis.Redis.from_url(self.home.stack.redis.socket_url)
        client.config_set("notify-keyspace-events", "Kh")
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        escaped = keys.table_state(QUEUE, TableId("")).replace("[", "\\[")
        pubsub.psubscribe(f"__keyspace@0__:{escaped}*")
        return pubsub


@dataclass(slots=True)
class Side:
    """One of the two: a decider with its busy tables, and the delays measured on it."""

    home: House
    folder: Path
    names: list[str]
    ids: dict[str, TableId]
    windows: list[list[float]] = field(default_factory=list)
    late_s: float = 0.0

    def window(self, *, per_s: float, seconds: float, seed: int) -> None:
        """Send at this rate for so long, and note the delay of each commit."""
        watcher, stop = Watcher(self.home), threading.Event()
        watching = threading.Thread(target=watcher.run, args=(stop,))
        watching.start()
        try:
            sent = self._send(per_s, seconds, seed)
            for name in self.names:
                self.home.await_version(self.ids[name], max(v for n, v, *_ in sent if n == name))
            time.sleep(0.2)
        finally:
            stop.set()
            watching.join()
        self.windows.append([_delay(watcher, self.ids[name], version, at) for name, version, at, _ in sent])
        self.late_s = max(self.late_s, *(late for *_, late in sent))

    def _send(self, per_s: float, seconds: float, seed: int) -> list[tuple[str, int, float, float]]:
        command = [sys.executable, "-m", "tests.bench.decide.senders", "--port", str(self.home.stack.port)]
        command += ["--folder", str(self.folder), "--count", str(int(per_s * seconds)), "--per-s", str(per_s)]
        command += ["--seed", str(seed), "--tables", *self.names]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the senders failed:\n{done.stderr[-2000:]}")
        return [tuple(row) for row in json.loads(done.stdout)]


def latency(folder: Path, load: Load, *, seed: int) -> dict[str, Any]:
    """Measure both sides in turns; the figures at 200 commits/s are those of the side with few tables."""
    with ExitStack() as stack:
        sides = []
        for count in (load.few, load.many):
            home = stack.enter_context(house(folder / f"house-{count}"))
            began = time.monotonic()
            sides.append(_side(home, folder / f"tables-{count}", count, seed))
            print(f"  {count:,} tables registered in {time.monotonic() - began:.0f} s", flush=True)
            sides[-1].window(
                per_s=load.per_s, seconds=min(2.0, load.seconds), seed=seed
            )  # Imports, connections, scripts.
            sides[-1].windows.clear()
            sides[-1].late_s = 0.0
        for number in range(load.windows):
            for side, count in zip(sides, (load.few, load.many), strict=True):
                side.window(per_s=load.per_s, seconds=load.seconds, seed=seed + number)
                now = side.windows[-1]
                print(
                    f"  window {number + 1} of {load.windows}, {count:,} tables: {len(now)} commits, "
                    f"p50 {1e3 * quantile(now, 0.5):.1f} ms, p99 {1e3 * quantile(now, 0.99):.1f} ms",
                    flush=True,
                )
    return _figures(*sides)


def phases(folder: Path, load: Load, *, seed: int) -> dict[str, Any]:
    """Measure what the time from an event to its decision is spent on: means in ms, of one window with few tables."""
    written = folder / "phases.json"
    settings: dict[str, Any] = {PHASES_FILE: str(written)}
    with house(folder / "house-timed", module="tests.bench.decide.latency", **settings) as home:
        side = _side(home, folder / "tables-timed", load.few, seed)
        side.window(per_s=load.per_s, seconds=min(2.0, load.seconds), seed=seed)  # Imports, connections, scripts.
        _spent(home, written)
        side.window(per_s=load.per_s, seconds=load.seconds, seed=seed)
        spent = _spent(home, written)
    calls, refreshes = len(side.windows[-1]), spent.pop("refreshes")
    folding = spent["refreshing"] - spent["reading"] - spent["redis"]
    means = {"accepting": spent["accepting"] / calls, "folding": folding / refreshes}
    means |= {name: spent[name] / refreshes for name in ("waiting", "reading", "redis")}
    return {f"mean_ms_{name}": round(1e3 * mean, 2) for name, mean in means.items()} | {
        "commits_per_refresh": round(calls / refreshes, 2)
    }


def _spent(home: House, written: Path) -> dict[str, float]:
    """Have the decider write its sums, and return them."""
    written.unlink(missing_ok=True)
    home.decider.popen.send_signal(signal.SIGUSR1)
    until("the decider has written its times", written.exists, seconds=10)
    found: dict[str, float] = json.loads(written.read_text())
    return found


def _figures(first: Side, second: Side) -> dict[str, Any]:
    p50, p99 = ([median(quantile(one, q) for one in side.windows) for side in (first, second)] for q in (0.5, 0.99))
    return {
        "p50_ms_at_200": round(1e3 * p50[0], 2),
        "p99_ms_at_200": round(1e3 * p99[0], 2),
        "latency_ratio_100k_to_100_tables": round(p50[1] / p50[0], 3),
        "latency_ratio_100k_to_100_tables_p99": round(p99[1] / p99[0], 3),
        "p99_ms_with_many_tables": round(1e3 * p99[1], 2),
        "senders_late_ms_max": round(1e3 * max(first.late_s, second.late_s), 1),
    }


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _delay(watcher: Watcher, identity: TableId, version: int, at: float) -> float:
    return min(seen_at for seen, seen_at in watcher.seen[identity] if seen >= version) - at


def _side(home: House, folder: Path, tables: int, seed: int) -> Side:
    logs = [WrittenLog(folder / f"busy-{n}", seed + n) for n in range(min(BUSY_TABLES, tables))]
    ids = {log.path.name: home.register(log.path, log.path.name) for log in logs}
    asyncio.run(_fill(home, folder, tables - len(logs)))
    return Side(home, folder, list(ids), ids)


async def _fill(home: House, folder: Path, tables: int) -> None:
    """Register idle tables with a cursor and some partitions each, through the decider's own stores."""
    client = connect(home.stack.redis.url)
    queue, registry, policy = (
        AsyncQueueExecutor(client, QUEUE),
        TableRegistry(client, now_ms=lambda: 0),
        Policy(target_bytes=128 * MIB),
    )
    metadata = TableMetadata("5f6fcd10-5d3c-4be9-a4c3-9d3f3b8f0a11", (PartitionColumn("day", "day", "date"),))
    cursor = TableState(
        41, metadata, TableProtocol(1, 2), policy.state_version, "0123456789abcdef", folded_ms=1, commit_ms=1
    )
    state = file_stats(policy.size_levels, MIB).encode()
    step = StateUpdate(
        {f'{{"day":"2026-01-{n + 1:02d}"}}': state for n in range(PARTITIONS_OF_AN_IDLE_TABLE)}, reset=True
    )

    async def add(number: int) -> None:
        name = f"idle-{number:06d}"
        table = TableRef(TableId(f"{name}-0123456789ab"), name, f"{folder.as_uri()}/{name}")
        await registry.register(table)
        await ingest(queue, table.id, old=None, new=cursor, update=step)

    for start in range(0, tables, AT_ONCE):
        await asyncio.gather(*map(add, range(start, min(start + AT_ONCE, tables))))
    await client.aclose()


PHASES_FILE = "BENCH_PHASES_FILE"

_spent_of: Counter[str] = Counter()
_is_refresh: ContextVar[bool] = ContextVar("is_refresh", default=False)
_queued: dict[str, float] = {}


def _timed(owner: type, name: str, phase: str, *, only_in_refresh: bool = True) -> None:
    """Add the time of a coroutine method to a phase."""
    real: Callable[..., Any] = getattr(owner, name)

    @wraps(real)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        if only_in_refresh and not _is_refresh.get():
            return await real(*args, **kwargs)
        began = time.perf_counter()
        try:
            return await real(*args, **kwargs)
        finally:
            _spent_of[phase] += time.perf_counter() - began

    setattr(owner, name, timed)


def _note_queue() -> None:
    """Note when a table is queued and when its refresh begins."""
    put, refresh = RefreshQueue.put, TableRefresher.refresh

    async def noting_put(self: Any, table: Any, version: int | None) -> None:
        _queued.setdefault(table.id, time.perf_counter())
        await put(self, table, version)

    async def noting_refresh(self: Any, table: Any, version: int | None) -> None:
        began = time.perf_counter()
        _spent_of["waiting"] += began - _queued.pop(table.id, began)
        token = _is_refresh.set(True)
        try:
            await refresh(self, table, version)
        finally:
            _is_refresh.reset(token)
            _spent_of["refreshing"] += time.perf_counter() - began
            _spent_of["refreshes"] += 1

    RefreshQueue.put = noting_put  # type: ignore[method-assign]
    TableRefresher.refresh = noting_refresh  # type: ignore[method-assign]


def _write(*_: object) -> None:
    place = Path(os.environ[PHASES_FILE])
    place.with_suffix(".tmp").write_text(json.dumps(_spent_of))
    place.with_suffix(".tmp").rename(place)
    _spent_of.clear()


if __name__ == "__main__":
    _timed(EventReceiver, "accept", "accepting", only_in_refresh=False)
    _timed(ReadingThreads, "run", "reading")
    _timed(Redis, "execute_command", "redis")
    _timed(Pipeline, "execute", "redis")
    _note_queue()
    signal.signal(signal.SIGUSR1, _write)
    main()
