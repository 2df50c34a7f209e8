"""All processes of a soak: Lakewright's own, each of which may be killed and paused, and the writers beside them."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from actor.queue_executor import SyncQueueExecutor, connect
from services.paths import ivy_dir
from shared.queue import commands
from tests.soak.tables import TABLES, TableSpec
from tests.support.stack import Process, Stack
from tests.support.waiting import until

ACTORS = ("a1", "a2", "a3")
AT_FIRST = ACTORS[:2]
"""Actors that are there at the beginning; faults add and retire others."""
DELTALAKE_WRITERS = ("deltalake_1", "deltalake_2", "deltalake_3")
SPARK_WRITER = "spark_1"
LEASE_S = 5.0
END_S = 60.0
"""Within which a service ends that is asked to, on a free machine: an actor completes the group that it writes."""
START_S = 120.0
"""Within which a service is up, on a free machine, as all limits here."""
QUEUE_SETTINGS = {"max_attempts": 100, "backoff_base_ms": 500, "backoff_cap_ms": 5_000}
"""Faults come every few seconds here; a job that is set aside after eight of them would prove nothing."""
SERVICES = {
    "LAKEWRIGHT_POLICY": "target-file-size=256kb,min-input-files=4,dml-policy=always",
    "LAKEWRIGHT_SWEEP_S": "5",
    "LAKEWRIGHT_LEASE_S": str(LEASE_S),
    "LAKEWRIGHT_DRIVER_MEMORY": "640m",
    "LAKEWRIGHT_RESERVED_DISK_MIB": "8",
}
"""`dml-policy=always`: beside DELETE and MERGE is where rewriting is dangerous. The small disk is no larger than
what is kept free by default, so that nothing would ever be rewritten on it."""


@dataclass(slots=True)
class Household:
    """Who runs under which name. `ended`: processes that no one harmed and that ended; `lock`: while one is harmed.

    `older`: a checkout of an earlier version, which services begin with; each start of one takes the other version.
    """

    stack: Stack
    seed: int
    with_lakewright: bool
    writer_options: tuple[str, ...] = ()
    older: Path | None = None
    specs: Sequence[TableSpec] = TABLES
    running: dict[str, Process] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _started: Counter[str] = field(default_factory=Counter)

    @property
    def folder(self) -> Path:
        """Where journals, logs and requests lie."""
        return self.stack.folder

    def start_services(self) -> None:
        """Start the decider and the actors, and register every table; Redis runs already."""
        if not self.with_lakewright:
            return
        self.start_decider()
        SyncQueueExecutor(connect(self.stack.redis.url), "default").run(commands.configure("default", QUEUE_SETTINGS))
        for spec in self.specs:
            body = {"location": (self.stack.tables / spec.place).as_uri(), "name": f"soak.{spec.name}"}
            self.stack.post("/v1/tables", body).raise_for_status()
        for name in AT_FIRST:
            self.start_actor(name)
        until("the actors take jobs", lambda: all(self.is_ready(name) for name in AT_FIRST), seconds=START_S)

    def start_decider(self) -> None:
        """Start the decider, and wait until it answers."""
        root = self._version("decider")
        process = self.stack.start("decider", ["-m", "services.decider"], root=root, **self._jars())
        self.running["decider"] = process
        until("the decider is ready", lambda: self.stack._ready(process), seconds=START_S)

    def start_actor(self, name: str) -> None:
        """Start an actor with a folder of its own, without waiting for it."""
        root = self._version(name)
        data = self.folder / "data" / name
        (data / "actor.ready").unlink(missing_ok=True)
        arguments = ["-m", "tests.soak.actor", str(self.folder), f"{name}_{self._started[name]}"]
        environment = {"LAKEWRIGHT_DATA_DIR": str(data), **self._jars()}
        self.running[name] = self.stack.start(name, arguments, root=root, **environment)

    def actors(self) -> list[str]:
        """Return the names of the actors that run or are started again."""
        return [name for name in ACTORS if name in self.running]

    def retire(self, name: str) -> None:
        """Ask a service to end, and wait; RuntimeError if it ends otherwise than well."""
        process = self.running.pop(name)
        if code := process.terminate(END_S):
            raise RuntimeError(f"{name} ended with {code}:\n{process.log.read_text()[-2000:]}")

    def start_writer(self, name: str) -> None:
        """Start a writer; one that is started again has other ids and another seed."""
        number = self._started[name]
        self._started[name] += 1
        position = (*DELTALAKE_WRITERS, SPARK_WRITER).index(name)
        seed = self.seed + 1_000 * position + number
        module = "tests.soak.spark_writer" if name == SPARK_WRITER else "tests.soak.deltalake_writer"
        url = f"{self.stack.url}/v1/events" if self.with_lakewright else ""
        arguments = [
            *(
                "-m",
                module,
                "--name",
                name,
                "--seed",
                str(seed),
                "--first-id",
                str((position * 1_000 + number) * 10**9),
            ),
            *("--tables", str(self.stack.tables), "--folder", str(self.folder), "--events-url", url),
            *self.writer_options,
        ]
        self.running[name] = self.stack.start(name, arguments)

    def kill(self, name: str) -> None:
        """Kill -9, with the JVM if there is one."""
        self.running.pop(name).kill()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process and all that it has started."""
        os.killpg(self.running[name].popen.pid, number)

    def is_stopped(self, name: str) -> bool:
        """Whether the process itself stands still."""
        stat = Path(f"/proc/{self.running[name].popen.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def start_again(self) -> None:
        """Start again what ended by itself, as a supervisor does, but for Spark; not while a fault is at work."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            starters: dict[str, Callable[[], None]] = {"decider": self.start_decider}
            starters |= {name: partial(self.start_actor, name) for name in ACTORS}
            starters |= {name: partial(self.start_writer, name) for name in DELTALAKE_WRITERS}
            for name, start in starters.items():
                if name in self.running and not self.running[name].alive:
                    self.ended[name] += 1
                    start()
        finally:
            self.lock.release()

    def logs_of_actors(self) -> list[Path]:
        """Return what all actors have logged, dead or alive."""
        return [process.log for process in self.stack.processes if process.name in ACTORS]

    def writers_ended(self) -> bool:
        """Whether all deltalake writers are gone and the Spark writer only reads; RuntimeError if that is dead."""
        self.raise_if_ended(SPARK_WRITER)
        gone = not any(self.running[name].alive for name in DELTALAKE_WRITERS if name in self.running)
        return gone and (self.folder / f"{SPARK_WRITER}.stopped").exists()

    def raise_if_ended(self, name: str) -> None:
        """Raise RuntimeError with the end of its log if a process is gone."""
        if not self.running[name].alive:
            raise RuntimeError(f"{name} ended:\n{self.running[name].log.read_text()[-3000:]}")

    def _version(self, name: str) -> Path | None:
        """Count a start, and return the checkout whose code it takes if that is not this one."""
        self._started[name] += 1
        return self.older if self._started[name] % 2 else None

    def _jars(self) -> dict[str, str]:
        return {"LAKEWRIGHT_IVY_DIR": str(ivy_dir({}))}

    def is_ready(self, name: str) -> bool:
        """Whether an actor takes jobs."""
        self.raise_if_ended(name)
        return (self.folder / "data" / name / "actor.ready").exists()
