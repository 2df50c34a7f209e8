"""Fixtures for all tests: a real server, flushed for each test; a missing one is a skip that says so."""

import asyncio
import inspect
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from shared.retry import RetryPolicy
from tests.support.queue_bench import EXECUTORS, QUEUE, Bench
from tests.support.queue_state import library_with_test_clock
from tests.support.recording_tracer import RecordingTracer, recorded
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack

pytest_plugins = [
    "pytester",
    "tests.support.interrupted",
    "tests.support.scaled_timeouts",
    "tests.support.long_suites",
    "tests.support.allowed_skips",
    "tests.support.run_seconds",
]


EXAMPLES = {"dev": 25, "ci": 100, "nightly": 1_000}
"""Random examples of each property that sets no number of its own, by the profile of Hypothesis."""
PROFILE = "LAKEWRIGHT_HYPOTHESIS_PROFILE"
"""Names the profile; `make test` takes dev, so that it ends soon."""


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return what a failing property test needs to be run again: pass the seed with --hypothesis-seed."""
    return [f"hypothesis seed: {config.option.hypothesis_seed}"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose a new seed for each session, early enough for Hypothesis to take it as if it had been given."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = secrets.randbits(32)
    for name, examples in EXAMPLES.items():
        hypothesis.settings.register_profile(name, deadline=None, print_blob=True, max_examples=examples)
    hypothesis.settings.load_profile(os.environ.get(PROFILE, "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A server for the whole session, synced each second; tests that kill theirs start one of their own."""
    with RedisServer(appendfsync="everysec") as server:
        yield server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A server for one test, free to be killed: what it has acknowledged is on disk."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def stack(tmp_path: Path, own_redis_server: RedisServer) -> Iterator[Stack]:
    """Services as real processes, which the test starts."""
    with Stack(tmp_path, own_redis_server) as made:
        yield made


@pytest.fixture
def tracer() -> Iterator[RecordingTracer]:
    """A tracer that records the spans of this process in memory."""
    with recorded() as made:
        yield made


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


GROUPS = 2
"""Of each kind: a file's tests stay in one process, as all that share a JVM do, and no process has most of the work."""


@pytest.hookimpl(tryfirst=True)  # Before pytest-xdist reads the groups.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distribute files with Spark over two processes at most, alike in tests; so those with services or a browser, too.

    What parses all sources runs in one process, which keeps the syntax of each.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return  # `-p no:xdist`: the marker is not registered, and there is nothing to distribute.
    for item in items:
        module = item.getparent(pytest.Module)
        if module and hasattr(module.obj, "nodes_in"):
            item.add_marker(pytest.mark.xdist_group("sources"))
    for kind, marker in (("services", "e2e"), ("spark", "spark"), ("page", "browser")):
        marked = [item for item in items if item.get_closest_marker(marker)]
        sizes, numbers = [0] * GROUPS, dict[Path, int]()
        for path, tests in Counter(item.path for item in marked).most_common():
            numbers[path] = sizes.index(min(sizes))
            sizes[numbers[path]] += tests
        for item in marked:
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(f"{kind}-{numbers[item.path]}"))
