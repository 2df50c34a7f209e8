"""A decider in the midst of the faults: it follows tables whose writers commit all the time, and loses none of it.

Its senders repeat an event until it is accepted, as senders do; from then on it is the decider's to follow.
"""

import threading
from pathlib import Path

import httpx
import psutil

from tests.attacks.cases.hostile_files import KINDS, plant
from tests.chaos.network import Network
from tests.load.lake import Lake
from tests.support.redis_server import RedisServer
from tests.support.stack import Process, Stack, s3_event
from tests.support.time_limits import scaled
from tests.support.waiting import comes_true

TABLES = 6
COMMIT_EVERY_S = 0.2
BUCKET = "lake"
LONGEST_PAUSES_S = 150
"""A decider waits up to a minute before it reads a table again, and as long before a task that crashed goes on."""


class Follower:
    """A decider, the lake it follows, and the thread that commits to it."""

    def __init__(self, folder: Path, redis: RedisServer, network: Network, seed: int) -> None:
        self.folder = folder
        tables = folder / "tables"
        tables.mkdir(parents=True)
        self.data.mkdir()
        self._stack = Stack(
            folder,
            redis,
            {
                "LAKEWRIGHT_REDIS_URL": network.url,
                "LAKEWRIGHT_BUCKETS": f"{BUCKET}={tables.as_uri()}",
                "LAKEWRIGHT_LOG_LEVEL": "error",
            },
        )
        self.process: Process = self._stack.handicapped_decider("at-times")
        self._lake = Lake(tables, TABLES, seed)
        self._others = [Lake(tables, len(KINDS), seed, "hostile"), Lake(tables, 2, seed, "hung")]
        self._lock = threading.Lock()
        self._unaccepted: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._commit_all_the_time)
        self._thread.start()

    @property
    def data(self) -> Path:
        """Where the decider keeps its files."""
        return self.folder / "data"

    @property
    def open_files(self) -> int:
        """Descriptors that it has open."""
        return psutil.Process(self.process.popen.pid).num_fds()

    def follows(self) -> bool:
        """Commit once more, and return whether that is accepted and followed."""
        with self._lock:
            table = self._lake.tables[0]
            self._unaccepted.add(table.advance())
            version = table.version

        def knows() -> bool:
            self._send()
            found = self._known(table.path.name)
            return found is not None and found >= version

        return bool(comes_true(knows, seconds=30))

    def plant_hostile_files(self) -> None:
        """Have four tables with hostile files as their next commits, and tell the decider."""
        lake = self._others[0]
        if lake.tables[0].version < 0:
            self._tell(lake)
            for number, table in enumerate(lake.tables):
                plant(table.path, 1, number)
        with self._lock:
            self._unaccepted |= {f"{table.path.name}/_delta_log/{1:020d}.json" for table in lake.tables}

    def hang(self) -> None:
        """Have commits in tables whose reads hang."""
        self._tell(self._others[1])

    def _tell(self, lake: Lake) -> None:
        with self._lock:
            self._unaccepted |= {table.advance() for table in lake.tables}
        comes_true(lambda: self._send() or not self._unaccepted, seconds=30)

    def problems(self, redis: RedisServer) -> list[str]:
        """End the commits, and return what the decider has lost or counted wrongly."""
        self._ended.set()
        self._thread.join()
        is_followed = comes_true(lambda: self._send() or self._lake.is_followed(redis), seconds=LONGEST_PAUSES_S)
        found = [] if self.process.alive else ["follower: the decider has ended"]
        if not is_followed:
            waiting = f"{len(self._unaccepted)} events were never accepted"
            said = [line for line in self.process.log.read_text("utf-8").splitlines() if "table_refresh" in line][-3:]
            found.append(f"follower: accepted events were not followed: {self._lake.behind(redis)}; {waiting}; {said}")
        wrong = self._lake.wrong_tables(redis) if is_followed else 0
        return [*found, f"follower: {wrong} tables differ from a count"] if wrong else found

    def close(self) -> None:
        """End the decider and the commits."""
        self._ended.set()
        self._thread.join()
        self._stack.close()

    def _known(self, name: str) -> int | None:
        try:
            found = self._stack.get(f"/v1/tables/{name}")["state"]
        except httpx.HTTPError:
            return None
        return None if found is None else int(found["version"])

    def _commit_all_the_time(self) -> None:
        while not self._ended.wait(COMMIT_EVERY_S):
            with self._lock:
                table = self._lake.tables[self._lake.commits % TABLES]
                self._lake.commits += 1
                self._unaccepted.add(table.advance())
            self._send()

    def _send(self) -> None:
        """Send the events that were not accepted yet."""
        with self._lock:
            keys = sorted(self._unaccepted)
        if not keys:
            return
        body = {"Records": [record for key in keys for record in s3_event(key, BUCKET)["Records"]]}
        try:
            answer = httpx.post(f"{self._stack.url}/v1/events", json=body, timeout=scaled(5))
        except httpx.HTTPError:
            return
        if answer.status_code == httpx.codes.ACCEPTED:
            with self._lock:
                self._unaccepted -= set(keys)
