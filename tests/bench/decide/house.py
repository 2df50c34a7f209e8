"""A decider as users run it, a process of its own with a Redis of its own, and what it costs them both."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from shared.queue import keys
from shared.table import TableId
from tests.bench.machine import cpu_s
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT, Process, Stack

QUEUE = "default"
WAIT_S = 300.0
POLICY = "target-file-size=128mb"
NO_SWEEP_S = "86400"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall clock, and of CPU in the decider and in Redis."""

    wall_s: float
    decider_s: float
    redis_s: float


@dataclass(slots=True)
class House:
    """One Redis and one decider."""

    stack: Stack
    decider: Process
    client: redis.Redis

    @property
    def url(self) -> str:
        return self.stack.url

    def register(self, location: Path | str, name: str) -> TableId:
        """Register a table and wait until it was read; returns its id."""
        answer = httpx.post(self.url + "/v1/tables", json={"location": str(location), "name": name}, timeout=30)
        answer.raise_for_status()
        identity = TableId(answer.json()["id"])
        self.await_version(identity, 0)
        return identity

    def version(self, table: TableId) -> int:
        """How far a table was folded, -1 if it never was."""
        found: Any = self.client.hget(keys.table_state(QUEUE, table), "version")
        return -1 if found is None else int(found)

    def await_version(self, table: TableId, version: int) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.version(table) < version:
            if not self.decider.alive or time.monotonic() > deadline:
                raise RuntimeError(f"{table} stands at {self.version(table)}:\n{self.decider.log.read_text()[-2000:]}")
            time.sleep(0.002)

    def report(self, tables: Sequence[str]) -> None:
        """Post one event that names tables and no version."""
        body = [{"table": name} for name in tables]
        httpx.post(self.url + "/v1/events", json=body, timeout=30).raise_for_status()

    @contextmanager
    def metered(self) -> Iterator[list[Cost]]:
        """Measure what happens inside; the cost is in the list afterwards."""
        costs: list[Cost] = []
        process, began, at = psutil.Process(self.decider.popen.pid), time.monotonic(), self._redis_s()
        before = cpu_s(process)
        yield costs
        costs.append(Cost(time.monotonic() - began, cpu_s(process) - before, self._redis_s() - at))

    def _redis_s(self) -> float:
        info: Any = self.client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


@contextmanager
def house(folder: Path, *, root: Path = ROOT, module: str = "services.decider", **environment: str) -> Iterator[House]:
    """Start Redis (synced each second) and a decider below `folder`, and end both; no sweep unless requested.

    root: the checkout whose decider it is; module: what is run there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(appendfsync="everysec").start()
    settings = {"LAKEWRIGHT_POLICY": POLICY, "LAKEWRIGHT_SWEEP_S": NO_SWEEP_S, "LAKEWRIGHT_ROOTS": ""}
    stack = Stack(folder, server, settings | environment, root=root)
    try:
        decider = stack.decider(module)
        with server.client() as client:
            yield House(stack, decider, client)
    finally:
        stack.close()
        server.close()
