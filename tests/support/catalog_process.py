"""A REST catalog as a process: it is up once it answers for its configuration."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.stack import ROOT
from tests.support.waiting import until

START_S = 300.0
"""Longest wait for a catalog while its process lives: it takes seconds where no others compute."""


@contextmanager
def catalog_process(
    command: Sequence[str], url: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a command that serves a catalog at `url`, with its output in `log`; None: this process' environment."""
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)

    def is_up() -> bool:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            return httpx.get(f"{url}/v1/config").is_success
        except httpx.TransportError:
            return False

    try:
        until(f"the catalog at {url} answers", is_up, seconds=START_S)
        yield
    finally:
        server.kill()
        server.wait()
