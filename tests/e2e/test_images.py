"""The images do together what compose.yaml says: a table is compacted, no row changes, and all end when asked to.

`make test-images` builds them first, which takes minutes.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-thirty-two-characters"  # noqa: S105 - of this test alone
WRITE = """
import pyarrow, deltalake
for n in range(12):
    rows = pyarrow.table({"id": range(n * 100, n * 100 + 100)})
    deltalake.write_deltalake("/lake/web/clicks", rows, mode="append")
"""
START_S = 240
"""Seconds for Spark's start and its self-test, some twenty on two free cores."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.long("images"),
]


class Composed:
    """The services of compose.yaml under a project's name of their own, on a free port."""

    def __init__(self, lake: Path) -> None:
        self.lake, self.port = lake, free_port()
        self.name = f"lakewright-test-{self.port}"
        self.environment = {
            **os.environ,
            "LAKEWRIGHT_TOKEN": TOKEN,
            "LAKEWRIGHT_LAKE": str(lake),
            "LAKEWRIGHT_PORT": str(self.port),
        }

    def docker(self, *arguments: str) -> str:
        """Run the engine's command and return what it says."""
        done = subprocess.run(
            ["docker", *arguments], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def compose(self, *arguments: str) -> str:
        """Run compose on the file of this project."""
        return self.docker("compose", "--project-name", self.name, *arguments)

    def states(self, field: str) -> dict[str, str]:
        """Return a field of each container's state, by service."""
        asked = '{{index .Config.Labels "com.docker.compose.service"}} {{.State.' + field + "}}"
        lines = self.docker("inspect", "-f", asked, *self.compose("ps", "--all", "--quiet").split())
        return {line.split()[0]: line.split()[1] for line in lines.splitlines()}

    def as_actor(self, *command: str) -> str:
        """Run a command of the decider's image on the lake, as the user that the actor is."""
        image = os.environ.get("DECIDER_IMAGE", "lakewright-decider")
        return self.docker("run", "--rm", "-v", f"{self.lake}:/lake", "--entrypoint", command[0], image, *command[1:])

    def call(self, path: str, body: dict[str, str] | None = None) -> Any:
        """Call the decider; with a body it is a POST."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers)
        with urllib.request.urlopen(asked, timeout=scaled(10)) as answer:  # noqa: S310 - of the loopback address
            return json.load(answer)

    def page(self) -> str:
        """Return the start page; it needs no token."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=scaled(10)) as answer:
            return str(answer.read().decode())


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composed]:
    lake = tmp_path / "lake"
    lake.mkdir()
    lake.chmod(0o777)  # Whoever runs the tests is not the user of the containers.
    services = Composed(lake)
    try:
        services.compose("up", "--detach", "--no-build")
        yield services
    finally:
        services.as_actor("sh", "-c", "rm -rf /lake/*")  # Its files are another user's.
        services.compose("down", "--volumes", "--timeout", "60")


def test_the_images_compact_a_table_end_when_asked_and_remember_it(composed: Composed) -> None:
    until("all are healthy", lambda: set(composed.states("Health.Status").values()) == {"healthy"}, seconds=START_S)
    assert 'src="./page/index-' in composed.page(), "the image holds the built page"
    composed.as_actor("python", "-c", WRITE)
    place = composed.lake / "web" / "clicks"
    assert len(DeltaTable(place).file_uris()) == 12
    assert composed.call("/v1/events", {"table": "file:///lake/web/clicks"})["accepted"] == 1
    until("the table is compacted", lambda: len(DeltaTable(place).file_uris()) == 1, seconds=START_S)
    assert sorted(DeltaTable(place).to_pyarrow_table()["id"].to_pylist()) == list(range(1200))

    reported = composed.call("/v1/tables/web.clicks/decisions")["decisions"]
    composed.compose("stop")
    assert composed.states("ExitCode") == {"redis": "0", "decider": "0", "actor": "0"}

    composed.compose("start")
    until(
        "Redis and the decider are back", lambda: composed.states("Health.Status")["decider"] == "healthy", seconds=60
    )
    remembered = composed.call("/v1/tables/web.clicks/decisions")["decisions"]
    assert reported
    assert all(decision in remembered for decision in reported)
    composed.compose("stop")  # Spark may still be starting; both have to end well.
    assert composed.states("ExitCode")["actor"] == "0"
