"""The demonstration's course: start everything, let a writer of its own write, wait until nothing is left, count.

Nothing here helps Lakewright along: the writer posts events as a bucket would, and the result is read from the table.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from services.demo.report import DemoSnapshot, figures, line, read_snapshot
from services.demo.row_checksum import POLICY, TABLE, DemoTable, fingerprint, read_manifest
from shared.errors import PermanentError

START_S = 600.0
"""Longest wait for Redis, decider and Spark to come up while they live: 30 s cold, minutes where others compute."""
SETTLE_S = 300.0
"""Longest wait for the last jobs after the writer stopped, and after each step since: a rewrite takes a second, minutes
where others compute."""
ANSWER_S = 60.0
"""Longest wait for an answer of the decider, for the same reason."""
SWEEP_S = 2.0
"""Seconds between sweeps in the demonstration, so that three of them can be watched passing without work."""
LOOK_S = 0.5
LINE_S = 5.0
"""Seconds between two lines about how far it is."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """Where and how long: folder for everything, seconds of writing, commits per second, seed of the rows."""

    folder: Path
    seconds: float
    per_second: float
    seed: int


class DemoRun:
    """One run of the demonstration."""

    def __init__(self, setting: DemoSettings, table: DemoTable, console: Console) -> None:
        self._setting = setting
        self._table = table
        self._console = console
        self._manifest = setting.folder / "written.jsonl"
        self._port = free_port()

    @contextmanager
    def run(self) -> Iterator[dict[str, Any]]:
        """Run it and yield what was measured, while everything still serves the page."""
        self._print(f"Everything lies in {self._setting.folder}")
        with self._standalone() as standalone, httpx.Client(base_url=self.url, timeout=ANSWER_S) as client:
            self._wait_until_up(client, standalone)
            table = self._create_table(client)
            self._print(f"Watch it in a browser: {self.url}/#/tables/{table}")
            with self._writer() as writer:
                self._watch(client, table, writer)
            glance = read_snapshot(client, table)
            expected = read_manifest(self._manifest)
            self._print("Reading the whole table and comparing it with what the writer wrote …")
            found = fingerprint(self._table.read())
            yield figures(self._table.history(), POLICY, glance, expected, found)

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self._port}"

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False)

    @contextmanager
    def _standalone(self) -> Iterator[subprocess.Popen[bytes]]:
        """`lakewright standalone` as a user would start it, with its output in a file."""
        environment = {
            **os.environ,
            "LAKEWRIGHT_DATA_DIR": str(self._setting.folder / "lakewright"),
            "LAKEWRIGHT_HTTP_ADDRESS": f"127.0.0.1:{self._port}",
            **self._table.environment(),
            "LAKEWRIGHT_SWEEP_S": str(SWEEP_S),
        }
        self._print("Starting Redis, the decider and a Spark actor …")
        log = self._setting.folder / "standalone.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.standalone"], env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            yield process
        finally:
            end_process(process)

    def _wait_until_up(self, client: httpx.Client, standalone: subprocess.Popen[bytes]) -> None:
        started = time.monotonic()
        with self._console.status(waiting_text(0.0)) as status:
            while not self._is_up(client):
                waited_s = time.monotonic() - started
                status.update(waiting_text(waited_s))
                if standalone.poll() is not None or waited_s > START_S:
                    log = self._setting.folder / "standalone.log"
                    raise PermanentError(f"it did not come up; its last words:\n{log.read_text()[-2000:]}")
                time.sleep(0.2)

    def _is_up(self, client: httpx.Client) -> bool:
        try:
            ready = client.get("/readyz").status_code == httpx.codes.OK
            return ready and (self._setting.folder / "lakewright" / "actor.ready").exists()
        except httpx.TransportError:
            return False

    def _create_table(self, client: httpx.Client) -> str:
        self._table.create()
        answer = client.post("/v1/tables", json={"location": self._table.location, "name": f"demo.{TABLE}"})
        return str(answer.raise_for_status().json()["name"])

    @contextmanager
    def _writer(self) -> Iterator[subprocess.Popen[bytes]]:
        setting = self._setting
        arguments = {
            "--location": self._table.location,
            "--events-url": f"{self.url}/v1/events",
            "--seconds": str(setting.seconds),
            "--per-second": str(setting.per_second),
            "--seed": str(setting.seed),
            "--manifest": str(self._manifest),
        }
        flat = [part for pair in arguments.items() for part in pair]
        with (setting.folder / "writer.log").open("wb") as output:
            command = [sys.executable, "-m", "services.demo.writer", *flat]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _watch(self, client: httpx.Client, table: str, writer: subprocess.Popen[bytes]) -> None:
        """Show what happens until the writer is done and three sweeps passed without work."""
        started = time.monotonic()
        quiet_since: float | None = None
        deadline, before = started + self._setting.seconds + SETTLE_S, (0, 0, 0, 0)
        shown_s = started
        while True:
            history, glance = self._table.history(), read_snapshot(client, table)
            if time.monotonic() - shown_s >= LINE_S:
                shown_s = time.monotonic()
                self._print(line(history))
            reached = (history.newest_version, glance.version, glance.running, glance.waiting)
            if reached != before:
                before = reached
                deadline = max(deadline, time.monotonic() + SETTLE_S)
            done = writer.poll() is not None and _is_settled(glance, history.newest_version)
            quiet_since = (quiet_since or time.monotonic()) if done else None
            if quiet_since is not None and time.monotonic() - quiet_since > 3 * SWEEP_S:
                break
            if time.monotonic() > deadline:
                raise PermanentError("the last jobs did not end; see the logs in the folder given by --keep")
            time.sleep(LOOK_S)
        if writer.returncode != 0:
            raise PermanentError(f"the writer failed:\n{(self._setting.folder / 'writer.log').read_text()[-2000:]}")


def waiting_text(waited_s: float) -> str:
    """Return what is waited for, and for how long already: Spark's start is the longest silence."""
    return f"waiting for the decider and the actor ({waited_s:.0f} s; about 30 s where nothing else computes)"


def _is_settled(glance: DemoSnapshot, version: int) -> bool:
    return not glance.running and not glance.waiting and not glance.backlog and glance.version >= version


def free_port() -> int:
    """Return a port of this host that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


END_S = 300.0
"""Longest wait for a process that was asked to end: Spark's takes seconds, minutes where others compute."""


def end_process(process: subprocess.Popen[bytes], wait_s: float = END_S) -> None:
    """Ask a process to end; kill it if it has not in time, so that the demonstration ends with its own result."""
    process.terminate()
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
