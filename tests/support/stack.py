"""A whole Lakewright of real processes for end-to-end tests: Redis, decider, actor, each of which can be killed."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from tests.support.local_http import LOCAL
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
POLICY = "target-file-size=256kb,min-input-files=4,max-job-wait=off"

QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For processes that start a JVM: each path runs a few times only, and the first compiler serves that better."""


def s3_event(key: str, bucket: str = "lake", name: str = "ObjectCreated:Put") -> dict[str, Any]:
    """Return one S3 notification."""
    about = {"bucket": {"name": bucket}, "object": {"key": key, "size": 1204, "eTag": "d41d8cd9", "sequencer": "0A"}}
    return {"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": name, "s3": about}]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lakewright(
    *arguments: str, env: Mapping[str, str] | None = None, seconds: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own, in this environment or ours, and return how it ended."""
    return subprocess.run(
        [sys.executable, "-m", "services.cli", *arguments],
        cwd=ROOT,
        env={**QUICK_JAVA, **(os.environ if env is None else env)},
        capture_output=True,
        text=True,
        timeout=scaled(seconds),
        check=False,
    )


@dataclass(slots=True)
class Process:
    """One service with its log file."""

    name: str
    popen: subprocess.Popen
    log: Path

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def kill(self) -> None:
        """Kill -9, with the JVM that an actor started."""
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(scaled(30))

    def terminate(self, seconds: float = 60.0) -> int:
        """Ask to end, and return the exit code."""
        self.popen.terminate()
        return self.popen.wait(scaled(seconds))


@dataclass(slots=True)
class Stack:
    """Starts services in `folder` and ends them all."""

    folder: Path
    redis: RedisServer
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    root: Path = ROOT
    """The checkout whose code runs."""

    @property
    def tables(self) -> Path:
        return self.folder / "tables"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        python: str = sys.executable,
        root: Path | None = None,
        **environment: str,
    ) -> Process:
        """Start `python arguments…` as a process group of its own, with the code below `root` if that is another."""
        log = self.folder / f"{name}-{len(self.processes)}.log"
        settings = {
            "LAKEWRIGHT_REDIS_URL": self.redis.url,
            "LAKEWRIGHT_HTTP_ADDRESS": f"127.0.0.1:{self.port}",
            "LAKEWRIGHT_DATA_DIR": str(self.folder / "data"),
            "LAKEWRIGHT_ROOTS": self.tables.as_uri(),
            "LAKEWRIGHT_DISCOVER": "active",
            "LAKEWRIGHT_BUCKETS": f"demo={self.tables.as_uri()}",
            "LAKEWRIGHT_POLICY": POLICY,
            "LAKEWRIGHT_LEASE_S": f"{scaled(5):.0f}",
            # Tests run beside each other, and wait for background work, too.
            "LAKEWRIGHT_BACKGROUND_LOAD": "1",
            **QUICK_JAVA,
        }
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [python, *arguments],
                cwd=root or self.root,
                env={**os.environ, **settings, **self.environment, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        return process

    def decider(self, module: str = "services.decider", **environment: str) -> Process:
        return self._until_ready(self.start("decider", ["-m", module], **environment))

    def handicapped_decider(self, handicap: str, **environment: str) -> Process:
        """Start a decider with a handicap of `tests.attacks.handicapped`."""
        return self._until_ready(self.start("decider", ["-m", "tests.attacks.handicapped", handicap], **environment))

    def _until_ready(self, process: Process) -> Process:
        until("the decider is ready", lambda: self._ready(process), seconds=30)
        return process

    def actor(self, *, pause_at: str | None = None) -> Process:
        """Start an actor; `pause_at` holds its first run at that labelled point for ever (see `paused`)."""
        if pause_at is None:
            return self.start("actor", ["-m", "services.actor"])
        return self.start("actor", ["-m", "tests.support.paused_actor", pause_at, str(self.pause_file)])

    @property
    def pause_file(self) -> Path:
        return self.folder / "paused"

    def paused(self) -> str:
        """Return what the paused actor noted when it reached its point, empty before."""
        return self.pause_file.read_text() if self.pause_file.exists() else ""

    def get(self, path: str, **params: Any) -> Any:
        answer = httpx.get(self.url + path, params=params, timeout=scaled(10), **LOCAL)
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=scaled(10), **LOCAL)

    def notify(self, table: Path, version: int) -> None:
        """Post the S3 notification of one commit."""
        from services.demo.writer import notification

        self.post("/v1/events", notification(table.name, version)).raise_for_status()

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.alive:
                process.kill()

    def __enter__(self) -> Self:
        self.tables.mkdir()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
        for process in self.processes:
            # Shown by pytest only if the test failed.
            print(f"--- {process.log.name}\n{process.log.read_text()[-6000:]}")

    def _ready(self, process: Process) -> bool:
        assert process.alive, process.log.read_text()[-3000:]
        try:
            return httpx.get(self.url + "/readyz", timeout=scaled(2), **LOCAL).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


def commits_of(table: Path) -> list[list[dict[str, Any]]]:
    """Return the actions of every commit in a local log, read without any library."""
    files = sorted((table / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in commit.read_text().splitlines()] for commit in files]
