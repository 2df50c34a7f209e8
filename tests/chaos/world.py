"""What chaos happens to: a Redis, a network, workers as processes, and a producer that replays its log as tables do."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from actor.store.queue import SyncQueue, connect
from shared.errors import PermanentError, RetryableError
from shared.queue import transitions
from shared.queue.model import Band, JobKey, JobSpec
from shared.queue.settings import QueueSettings
from shared.queue.transition import Tries
from tests.chaos.network import Network
from tests.chaos.worker import QUEUE
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
SETTINGS = QueueSettings(max_attempts=100, backoff_base_ms=50, backoff_cap_ms=500, half_open_ms=500)
TABLES, CELLS = 4, 6


@dataclass(slots=True)
class Table:
    """A table's log as its writer knows it: the cell that each version touched."""

    name: str
    log: list[int] = field(default_factory=list)
    told: int = -1

    def spec(self, version: int) -> JobSpec:
        band = Band(version % 4)
        return JobSpec(JobKey(self.name, str(self.log[version]), "c"), f"of-{self.name}", band, 5, 1 << 20, version)


@dataclass(slots=True)
class World:
    """All of it; `folder` holds the logs of the workers."""

    redis: RedisServer
    network: Network
    folder: Path
    random: Random
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=lambda: [Table(f"t{number}") for number in range(TABLES)])
    kills: int = 0
    recovered_s: list[float] = field(default_factory=list)
    acknowledged_lost: int = 0
    started: int = 0
    queues: dict[tuple[int, int], SyncQueue] = field(default_factory=dict)

    def queue(self) -> SyncQueue:
        """Return the producer's own way to the queue, beside the network's weather."""
        place = (threading.get_ident(), self.network.target_port)
        if place not in self.queues:
            client = connect(f"redis://127.0.0.1:{self.network.target_port}/0", timeout_s=1.0)
            self.queues[place] = SyncQueue(client, QUEUE, tries=TRIES)
        return self.queues[place]

    def close(self) -> None:
        """End the workers, the connections, the network and Redis."""
        for name in list(self.workers):
            self.kill_worker(name)
        for queue in self.queues.values():
            queue.redis.close()
        self.network.close()
        self.redis.close()

    def start_worker(self, *kind: str) -> str:
        """Start a worker under a new name; `kind`: none, `skewed` or `previous`."""
        self.started += 1
        name = f"w{self.started}"
        log = str(self.folder / f"{name}.jsonl")
        command = [sys.executable, "-m", "tests.chaos.worker", self.network.url, name, log, str(self.started)]
        self.workers[name] = subprocess.Popen([*command, *kind], cwd=ROOT)
        return name

    def kill_worker(self, name: str) -> None:
        """SIGKILL, and somebody takes its place."""
        process = self.workers.pop(name)
        process.kill()
        process.wait()
        self.kills += 1

    def signal_worker(self, name: str, number: signal.Signals) -> None:
        os.kill(self.workers[name].pid, number)

    def label_of(self, name: str) -> str:
        """Return the last thing that a worker logged."""
        path = self.folder / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return lines[-1] if lines else ""

    def commit(self) -> None:
        """A writer commits to one table, and the queue is told what its cursor does not know yet."""
        table = self.random.choice(self.tables)
        table.log.append(self.random.randrange(CELLS))
        with contextlib.suppress(RetryableError, PermanentError):
            self.tell(self.queue(), table)

    def tell(self, queue: SyncQueue, table: Table) -> None:
        """Bring the cursor up to the table's log; what a torn log has forgotten is told again."""
        expected = table.told
        while expected < len(table.log) - 1:
            version = expected + 1
            done = queue.run(
                transitions.ingest(
                    QUEUE,
                    table=table.name,
                    expected=expected,
                    cursor={"version": str(version)},
                    cells={},
                    jobs=[table.spec(version)],
                )
            )
            if done.version < table.told:
                self.acknowledged_lost += table.told - done.version
            expected = table.told = done.version

    def tell_all(self) -> None:
        """Sweep: every table is brought up to date, from what the store itself says of its cursor."""
        queue = self.queue()
        for table in self.tables:
            known = queue.redis.hget(f"{{lw:{QUEUE}}}:cur:{table.name}", "version")
            found = -1 if known is None else int(known)
            self.acknowledged_lost += max(0, table.told - found)
            table.told = found
            self.tell(queue, table)

    def wait_until_served(self, since: float) -> None:
        """Note how long it took until the queue was served again."""
        queue = self.queue()
        while True:
            with contextlib.suppress(RetryableError):
                queue.redis.ping()
                self.recovered_s.append(time.monotonic() - since)
                return


TRIES = Tries(3, 0.05)
