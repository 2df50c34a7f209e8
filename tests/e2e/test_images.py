"""The images do together what compose.yaml says: a table is compacted, no row changes, and all end when asked to.

`make test-images` builds them first, which takes minutes.
"""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from deltalake import DeltaTable

from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-thirty-two-characters"  # noqa: S105 - of these tests alone
START_S = 240
"""Seconds for Spark's start and its self-test, some twenty on two free cores."""


class Composed:
    """The services of compose.yaml under a project's name of their own, on a free port."""

    def __init__(self, lake: Path, *profiles: str) -> None:
        tables = lake.with_name("tables")  # Unless named, compose makes this folder in the source tree.
        lake.mkdir()
        tables.mkdir()
        lake.chmod(0o777)  # Whoever runs the tests is not the user of the containers.
        self.lake, self.port, self.profiles = lake, free_port(), profiles
        self.name = f"lakewright-test-{self.port}"
        self.environment = {
            **os.environ,
            "LAKEWRIGHT_TOKEN": TOKEN,
            "LAKEWRIGHT_LAKE": str(lake),
            "LAKEWRIGHT_TABLES": str(tables),
            "LAKEWRIGHT_PORT": str(self.port),
        }

    def __enter__(self) -> Self:
        try:
            self.compose("up", "--detach", "--no-build")
        except AssertionError:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the containers, their volumes and the files of the lake."""
        self.as_actor("sh", "-c", "rm -rf /lake/*")  # Its files are another user's.
        self.compose("down", "--volumes", "--timeout", "60")

    def docker(self, *arguments: str) -> str:
        """Run the engine's command and return what it says."""
        done = subprocess.run(
            ["docker", *arguments], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def compose(self, *arguments: str) -> str:
        """Run compose on the file of this project."""
        profiles = [word for profile in self.profiles for word in ("--profile", profile)]
        return self.docker("compose", "--project-name", self.name, *profiles, *arguments)

    def states(self, field: str) -> dict[str, str]:
        """Return a field of each container's state, by service."""
        asked = '{{index .Config.Labels "com.docker.compose.service"}} {{.State.' + field + "}}"
        lines = self.docker("inspect", "-f", asked, *self.compose("ps", "--all", "--quiet").split())
        return {line.split()[0]: line.split()[1] for line in lines.splitlines()}

    def as_actor(self, *command: str) -> str:
        """Run a command of the decider's image on the lake, as the user that the actor is."""
        return self.run(os.environ.get("DECIDER_IMAGE", "lakewright-decider"), *command)

    def run(self, image: str, *command: str, mounts: Mapping[str, str] | None = None) -> str:
        """Run a command of an image on the lake; `mounts`: further files by their path inside."""
        places = {"/lake": str(self.lake), **(mounts or {})}
        volumes = [word for inside, outside in places.items() for word in ("-v", f"{outside}:{inside}")]
        return self.docker("run", "--rm", *volumes, "--entrypoint", command[0], image, *command[1:])

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


IMAGES = {
    "decider": ("decider/Dockerfile", "services.decider"),
    "actor": ("actor/Dockerfile", "services.actor"),
}
"""What each image of ours is built from, and what it runs, by the name of its service in compose.yaml."""


def compose(**variables: str) -> dict[str, Any]:
    """Return the file as compose reads it with these variables set, and the token that it demands."""

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            # A variable without a value is handed on from the shell, or left out.
            return {key: filled(inner) for key, inner in value.items() if inner is not None}
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        text = re.sub(r"\$\{\w+:\?[^}]*\}", "a-token-of-thirty-two-characters", str(value))
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)

    found = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    services = found["services"]
    return {"services": {name: filled(service) for name, service in services.items()}}


def dockerfile(name: str) -> str:
    """Return what an image is built from."""
    return (ROOT / "services" / IMAGES[name][0]).read_text("utf-8")


WRITE = """
import pyarrow, deltalake
for n in range(12):
    rows = pyarrow.table({"id": range(n * 100, n * 100 + 100)})
    deltalake.write_deltalake("/lake/web/clicks", rows, mode="append")
"""
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.long("images"),
]


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composed]:
    with Composed(tmp_path / "lake") as services:
        yield services


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
