"""What chaos happens to: a Redis, a network, workers as processes, and a producer that replays its log as tables do."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from actor.queue_executor import connect
from shared.errors import PermanentError, RetryableError
from shared.jobs.payload import COMPACT
from shared.queue import commands
from shared.queue.model import Band, JobKey, JobRequest
from shared.retry import RetryPolicy
from tests.chaos.follower import Follower
from tests.chaos.history import Ack, History, Rollback, now_ns, read_workers, records
from tests.chaos.network import Network
from tests.chaos.table import payload
from tests.chaos.worker import QUEUE, Log, NotingQueue
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import comes_true

ROOT = Path(__file__).parents[2]
SETTINGS = {"max_attempts": 100, "backoff_base_ms": 50, "backoff_cap_ms": 500, "half_open_ms": 500}
TABLES, PARTITIONS = 4, 6
TRIES = RetryPolicy(3, 0.05)
TAIL_BYTES = 20_000
"""As much of a worker's log as the driver reads while the run goes on: some thirty jobs."""


@dataclass(slots=True)
class Table:
    """A table's log as its writer knows it: the partition that each version changed; the length is the version."""

    name: str
    file: Path
    log: list[int] = field(default_factory=list)
    reported: int = -1

    def append(self, partition: int) -> None:
        self.log.append(partition)
        with self.file.open("ab") as file:
            file.write(b".")

    def spec(self, version: int) -> JobRequest:
        key = JobKey(self.name, str(self.log[version]), COMPACT)
        return JobRequest(key, f"of-{self.name}", Band(version % 4), 5, 1 << 20, version, payload(self.file))


@dataclass(slots=True)
class World:
    """All of it; `folder` holds the logs of the workers.

    hits: how often a worker was killed or paused at each label. broken: what a fault should have shown and did not.
    not_shown: what could not be shown. property_removed: acknowledged events that Redis lost, by fault.
    """

    redis: RedisServer
    network: Network
    folder: Path
    random: Random
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    rollbacks: list[Rollback] = field(default_factory=list)
    refused: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    taken_back: Counter[str] = field(default_factory=Counter)
    recovered_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    follower: Follower | None = None
    kills: int = 0
    started: int = 0
    queues: dict[tuple[int, str], NotingQueue] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.tables = [Table(f"t{number}", self.folder / f"t{number}.table") for number in range(TABLES)]

    def queue(self) -> NotingQueue:
        """Return the producer's own way to the queue, beside the network's weather."""
        place = (threading.get_ident(), self.network.direct_url)
        if place not in self.queues:
            client = connect(self.network.direct_url, timeout_s=scaled(1.0))
            noting = NotingQueue(client, QUEUE, retry_policy=TRIES)
            self.queues[place] = noting.watch(Log(self.folder / f"driver-{len(self.queues)}.jsonl"))
        return self.queues[place]

    def close(self) -> None:
        """End the workers, the connections, the network and Redis."""
        if self.follower is not None:
            self.follower.close()
        for name in list(self.workers):
            self.kill_worker(name)
        for queue in self.queues.values():
            queue.redis.close()
            queue.log.close()
        self.network.close()
        self.redis.close()

    def history(self) -> History:
        """Return all that happened until now."""
        events: dict[str, list[int]] = defaultdict(list)
        for table in self.tables:
            for version in range(len(table.log)):
                events[table.spec(version).id].append(version)
        return History(
            {job: tuple(versions) for job, versions in events.items()},
            tuple(self.acks),
            *read_workers(self.folder.glob("*.jsonl")),
            tuple(self.rollbacks),
        )

    def expect(self, holds: object, what: str) -> None:
        """Note a promise that a fault has found broken."""
        if not holds:
            self.broken.append(what)

    # Workers

    def start_worker(self, *kind: str, module: str = "worker") -> str:
        """Start a worker under a new name; `kind`: none, or `previous`."""
        self.started += 1
        name = f"w{self.started}"
        command = [sys.executable, "-m", f"tests.chaos.{module}", self.network.url, name, str(self.folder)]
        self.workers[name] = subprocess.Popen([*command, str(self.started), *kind], cwd=ROOT)
        return name

    def kill_worker(self, name: str) -> None:
        """SIGKILL, and someone takes its place."""
        process = self.workers.pop(name)
        process.kill()
        process.wait()
        self.kills += 1

    def request(self, label: str, job: str | None = None) -> Path:
        """Let the first worker that reaches this label stop there, with this job or with any."""
        request = self.folder / (f"halt-{label}" if job is None else f"halt-{label}@{job}")
        request.touch()
        return request

    def stopped(self, request: Path) -> str | None:
        """Return the name of the worker that has stopped on request; None if none did."""
        wait(lambda: not request.exists(), seconds=10)
        try:
            request.unlink()
        except FileNotFoundError:
            (taken,) = self.folder.glob(f"taken-{request.name}-*")
            name = taken.name.rpartition("-")[2]
            os.waitpid(self.workers[name].pid, os.WUNTRACED)
            taken.unlink()
            return name
        return None

    def go_on(self, name: str) -> None:
        os.kill(self.workers[name].pid, signal.SIGCONT)

    def tail(self, name: str) -> list[dict[str, Any]]:
        """Return the newest entries of a worker's log."""
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return records(file.read().decode())

    def has_noted(self, event: str, since: int) -> bool:
        """Whether any worker has noted an event since a time."""
        return any(
            one["event"] == event and one["at"] >= since for name in list(self.workers) for one in self.tail(name)
        )

    # Producer

    def commit(self) -> bool:
        """A writer commits to one table, and the queue is told what its cursor does not know; False if it cannot be."""
        with self.lock:
            table = self.random.choice(self.tables)
            table.append(self.random.randrange(PARTITIONS))
            return self._report(table)

    def notify_all(self) -> bool:
        """Sweep: every table is brought up to date."""
        with self.lock:
            return all(self._report(table) for table in self.tables)

    def _report(self, table: Table) -> bool:
        """Bring the cursor up to the table's log; what a torn log has forgotten is told again."""
        while table.reported < len(table.log) - 1:
            version, sent = table.reported + 1, now_ns()
            cursor, job = {"version": str(version)}, table.spec(version)
            call = commands.ingest(
                QUEUE, table=table.name, expected_version=table.reported, state_fields=cursor, partitions={}, jobs=[job]
            )
            try:
                done = self.queue().run(call)
            except (RetryableError, PermanentError):
                self.refused += 1
                return False
            at = now_ns()
            self.expect(
                done.version >= table.reported, f"{table.name} went back from {table.reported} to {done.version}"
            )
            for known in range(version, done.version + 1):
                # Not applied: an earlier call was, and its reply was lost.
                outcome = done.outcomes[0].value if done.applied else None
                self.acks.append(Ack(table.spec(known).id, table.name, known, outcome, sent, at))
            table.reported = done.version
        return True

    def take_back(self, fault: str, since: int) -> int:
        """Note what Redis does not know any more after a fault that began at `since`; the lock must be held."""
        lost = 0
        with self.redis.client() as client:
            cursors = [client.hget(f"{{lw:{QUEUE}}}:cur:{table.name}", "version") for table in self.tables]
        for table, found in zip(self.tables, cursors, strict=True):
            cursor = -1 if found is None else int(found)
            lost += max(0, table.reported - cursor)
            table.reported = min(table.reported, cursor)
            self.rollbacks.append(Rollback(table.name, cursor, since, now_ns()))
        self.taken_back[fault] += lost
        return lost

    def await_service(self, fault: str, since: int) -> None:
        """Note how long it took from the kill until an event was taken again, which the tables' writer tries again."""
        self.expect(wait(self.commit, seconds=30), f"{fault}: no service within {scaled(30):.0f} s")
        self.recovered_s[fault].append((now_ns() - since) / 1e9)
        # An early cut takes the settings, too, and a back-off of the default length would outlast the end of the run.
        self.queue().run(commands.configure(QUEUE, SETTINGS))


def wait(condition: Callable[[], object], *, seconds: float) -> bool:
    """Wait for a condition; False if it did not come true in time."""
    return bool(comes_true(condition, seconds=seconds))
