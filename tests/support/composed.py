"""The services of compose.yaml as containers, for tests of the images; `make test-images` builds these first."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.support.stack import free_port
from tests.support.time_limits import scaled

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
