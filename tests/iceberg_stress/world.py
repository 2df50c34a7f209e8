"""The services of the stress: a decider that is killed once, and actors, some of which stop at a point to be killed."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands
from tests.support.iceberg_rest_lake import RestLake
from tests.support.redis_server import RedisServer
from tests.support.stack import Process, Stack
from tests.support.waiting import until

POLICY = "target-file-size=64kb,min-input-files=2,fan-in=2,dml-policy=always,delete-ratio-threshold=0.01"
"""Beside DELETE and MERGE is where rewriting is dangerous, and nearly every commit makes work."""

QUEUE_SETTINGS = {"max_attempts": 100, "backoff_base_ms": 50, "backoff_cap_ms": 500}
"""Faults come every few seconds here; a job that is set aside after eight of them would prove nothing."""

FAULTS = ("lost-reply", "dropped", "late", "unavailable", "conflict")
COMMITS_PER_FAULT = 8
"""Commits of which one gets a fault."""

DISTURB_EVERY_S = 0.5
POINTS = ("files_written", "committed", None)
"""Points of a rewrite at which an actor's first run stops for ever, in turn; None: it is killed somewhere."""

REWRITES_BEFORE_KILL = 3
"""Jobs with a rewrite that an actor without a point finishes before it is killed, however slow the machine: one that
was killed after jobs without effect would starve the tables."""

REWROTE = re.compile(r'"versions": \[\d.*"job_finished"')
"""Line of an actor's log about such a job."""

MOST_KILLS = 2 * len(POINTS)
"""Actors that are killed at most, so that in the end there are some that work, however slow the machine."""

START_S = 600.0
"""Longest wait for the first actors: a start takes half a minute of a free machine."""

STATE_S = 120.0
"""Longest wait for the decider's state of a table that no one writes to any more."""


@dataclass(slots=True)
class Actor:
    """An actor and the point at which it stops, if it does."""

    process: Process
    folder: Path
    point: str | None

    @property
    def is_ready(self) -> bool:
        assert self.process.alive, self.process.log.read_text()[-3000:]
        return (self.folder / "actor.ready").exists()

    @property
    def is_due(self) -> bool:
        """Whether it has stopped at its point, or, without one, has rewritten enough."""
        if self.point is not None:
            return (self.folder / "paused").exists()
        return len(REWROTE.findall(self.process.log.read_text())) >= REWRITES_BEFORE_KILL


class World:
    """Starts the services, kills actors one after another, and plans the catalog's faults."""

    def __init__(self, folder: Path, redis: RedisServer, lake: RestLake, random: Random) -> None:
        services = {
            "LAKEWRIGHT_CATALOGS": json.dumps({"lake": lake.options}),
            "LAKEWRIGHT_ROOTS": "catalog://lake",
            "LAKEWRIGHT_DISCOVER": "active",
            "LAKEWRIGHT_DISCOVERY_S": "0",
            "LAKEWRIGHT_POLICY": POLICY,
            "LAKEWRIGHT_SWEEP_S": "1",
            "LAKEWRIGHT_DRIVER_MEMORY": "640m",
        }
        self.stack = Stack(folder, redis, services)
        self._lake = lake
        self._random = random
        self._actors: list[Actor] = []
        self._decider: Process | None = None
        self.kills: Counter[str] = Counter()

    def start(self, tables: Sequence[str]) -> None:
        """Start the decider and two actors, and register the tables."""
        self._decider = self.stack.decider()
        queue = SyncQueueExecutor(connect(self.stack.redis.url), "default")
        queue.run(commands.configure("default", QUEUE_SETTINGS))
        for name in tables:
            body = {"location": f"catalog://lake/db/{name}", "name": name}
            self.stack.post("/v1/tables", body).raise_for_status()
        for _ in range(2):
            self._start_actor()
        until("the actors are ready", lambda: all(one.is_ready for one in self._actors), seconds=START_S)

    def disturb(self) -> None:
        """Plan a fault; kill the older actor when it is due, if the newer one is ready, and start another."""
        if not self._lake.planned():
            plan = [self._random.choice(FAULTS), *[""] * (COMMITS_PER_FAULT - 1)]
            self._lake.fail(*self._random.sample(plan, len(plan)))
        older, newer = self._actors[-2:]
        if len(self._actors) < MOST_KILLS + 2 and newer.is_ready and older.is_due:
            self.kills[older.point or "anywhere"] += 1
            older.process.kill()
            self._start_actor()
            if not self.kills["decider"]:
                self._restart_decider()

    def progress(self) -> tuple[int, int, int]:
        """Return what grows while actors start and are killed: their number, those that were ready, and kills."""
        was_ready = sum((one.folder / "actor.ready").exists() for one in self._actors)
        return len(self._actors), was_ready, self.kills.total()

    def end_actors(self) -> None:
        """Kill all actors, and wait until the catalog makes no commit any more."""
        for actor in self._actors:
            if actor.process.alive:
                actor.process.kill()
        until("commits that were delayed are made", self._lake.is_quiet, seconds=30)

    def wait_for_state(self, table: str, files: int) -> None:
        """Wait until the decider counts so many files in a table."""

        def counts() -> bool:
            found = self.stack.get(f"/v1/tables/{table}/partitions")["partitions"]
            return sum(one["layout"]["files"] for one in found) == files

        until(f"the decider counts {files} files in {table}", counts, seconds=STATE_S)

    def _restart_decider(self) -> None:
        assert self._decider is not None
        self._decider.kill()
        self._decider = self.stack.decider()
        self.kills["decider"] += 1

    def _start_actor(self) -> None:
        number = len(self._actors)
        point = POINTS[number % len(POINTS)] if number < MOST_KILLS else None
        folder = self.stack.folder / f"actor-{number}"
        folder.mkdir()
        stops_at = [] if point is None else [point, str(folder / "paused")]
        process = self.stack.start(
            "actor", ["-m", "tests.iceberg_stress.actor", *stops_at], LAKEWRIGHT_DATA_DIR=str(folder)
        )
        self._actors.append(Actor(process, folder, point))
