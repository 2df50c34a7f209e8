"""`lakewright standalone --actors auto:2`: no actor without work, two with much, none again; no rewrite is cut off."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import writers
from tests.support.stack import POLICY, ROOT, free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.long("crashes")]

TOKEN = "a-token-of-thirty-two-characters"  # noqa: S105 - of no one
TABLES, FILES = 24, 8


@dataclass(slots=True)
class Standalone:
    """The standalone as a user starts it, and its interface."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    folder: Path

    def get(self, path: str, **params: Any) -> Any:
        return self.client.get(path, params=params).raise_for_status().json()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log()
        try:
            return self.client.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def actors(self) -> dict[str, str]:
        """Return the states of the actors that take jobs, or finish them."""
        return {one["id"]: one["state"] for one in self.get("/v1/actors")["actors"]}

    def log(self) -> str:
        return (self.folder / "standalone.log").read_text()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]

    def stopped_actors(self) -> dict[str, str]:
        """Return how each process of an actor ended. An actor says goodbye first: its process ends a moment later."""
        stopped = (one for one in self.events() if one["event"] == "child_stopped")
        return {one["child"]: one["ended"] for one in stopped if one["child"].startswith("actor")}

    def is_at_rest(self) -> bool:
        status = self.get("/v1/status")
        depth = status["queue"]["depth"]
        waits = any(depth[state] for state in ("queued", "delayed", "leased")) or status["backlog"]["tables_waiting"]
        return not waits


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    address = f"127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "LAKEWRIGHT_DATA_DIR": str(tmp_path / "data"),
        "LAKEWRIGHT_HTTP_ADDRESS": address,
        "LAKEWRIGHT_POLICY": POLICY,
        "LAKEWRIGHT_TOKENS": f"admin:{TOKEN}",
        "LAKEWRIGHT_LOG_FORMAT": "json",
        # A second of work for each slot is enough for a further actor, and three seconds without it are a pause.
        "LAKEWRIGHT_ACTOR_WORK_S": "1",
        "LAKEWRIGHT_ACTOR_IDLE_S": "3",
        "LAKEWRIGHT_SHARED_JOBS": "1",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    environment.pop("LAKEWRIGHT_REDIS_URL", None)
    command = [sys.executable, "-m", "services.standalone", "--actors", "auto:2"]
    with (tmp_path / "standalone.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://{address}", headers=headers, timeout=scaled(10)) as client:
        made = Standalone(process, client, tmp_path)
        try:
            until("the standalone is ready", made.is_ready, seconds=120)
            yield made
        finally:
            process.terminate()
            process.wait(scaled(120))
            print(made.log()[-8000:])


def test_actors_follow_the_backlog_to_the_bound_and_back_and_no_rewrite_is_cut_off(standalone: Standalone) -> None:
    assert standalone.actors() == {}
    rng, tables = random.Random(11), [standalone.folder / f"table-{number}" for number in range(TABLES)]
    for table in tables:
        writers.create(table)
        writers.append_small_files(table, rng, files=FILES)
    before = [writers.found(table) for table in tables]
    for table in tables:
        answer = standalone.client.post("/v1/tables", json={"location": table.as_uri(), "name": f"db.{table.name}"})
        answer.raise_for_status()
    assert standalone.get("/v1/backlog")["work_s"] > 0
    seen: set[str] = set()

    def are_two_at_once() -> bool:
        seen.update(standalone.actors())
        return len(standalone.actors()) == 2

    until("two actors run", are_two_at_once, seconds=240)
    until("all work is done", standalone.is_at_rest, seconds=240)
    until("no actor runs", lambda: not standalone.actors(), seconds=120)
    assert [writers.found(table) for table in tables] == before
    runs = standalone.get("/v1/jobs", state="finished", page_size=200)["jobs"]
    assert {run["result"] for run in runs} == {"done"}
    assert {run["actor"] for run in runs} <= seen | {"actor-1", "actor-2"}
    until("both processes end", lambda: len(standalone.stopped_actors()) == 2, seconds=120)
    assert standalone.stopped_actors() == {"actor-1": "itself", "actor-2": "itself"}
    targets = [one["target"] for one in standalone.events() if one["event"] == "actors_scaled"]
    assert (max(targets), targets[-1]) == (2, 0)
