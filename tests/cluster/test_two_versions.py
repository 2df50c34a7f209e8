"""An earlier version and this one side by side: an upgrade and a rollback while jobs run and writers write.

The earlier version is a commit with another library of scripts in Redis; pods of both serve one queue for a while.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, count
from threading import Event

import pytest

from tests.cluster.images import EARLIER_TAG, TAG
from tests.cluster.lake import Lake
from tests.cluster.release import LONG_S, Release
from tests.support.time_limits import scaled

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(0), pytest.mark.long("cluster")]

WRITER_COMMITS = 20
BOTH = {EARLIER_TAG, TAG}
EARLIER = f"--set=image.tag={EARLIER_TAG},actor.replicas=2"


def test_an_upgrade_and_a_rollback_between_versions_lose_nothing(lake: Lake, release: Release) -> None:
    release.install(EARLIER)
    revision = release.revision()
    assert serving(release) == {"decider": {EARLIER_TAG}, "actor": {EARLIER_TAG}}
    changes = {
        "upgrade": lambda: release.install("--set=actor.replicas=2"),
        "rollback": lambda: release.roll_back(revision),
    }
    tables = {step: [f"{step}/table{number}" for number in range(2)] for step in changes}
    with writer(lake) as written:
        for step, change in changes.items():
            release.scale_actors(0)
            for table in tables[step]:
                lake.write(table, rows=20_000)
            release.scale_actors(2)
            release.wait_for_rewrites()
            assert while_it_runs(change, lambda: serving(release)) == {"decider": True, "actor": True}, step
    assert len(written) > 2
    release.install()
    for table in chain.from_iterable(tables.values()):
        release.require_compacted(table, 240_000)
    for table in written:
        release.require_compacted(table, WRITER_COMMITS * 50, files=16)


def serving(release: Release) -> dict[str, set[str]]:
    """Return the versions of the ready pods, by component."""
    return {
        component: {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in release.ready_pods(component)}
        for component in ("decider", "actor")
    }


def while_it_runs(change: Callable[[], None], versions: Callable[[], dict[str, set[str]]]) -> dict[str, bool]:
    """Make a change, and return for each component whether pods of both versions served at one time meanwhile."""
    seen = {"decider": False, "actor": False}
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        while not changing.done():
            now = versions()
            seen = {component: seen[component] or now[component] == BOTH for component in seen}
        changing.result(scaled(LONG_S))
    return seen


@contextmanager
def writer(lake: Lake) -> Iterator[list[str]]:
    """Write one small table after another, and serve the names of those that are whole."""
    written: list[str] = []
    stop = Event()

    def write() -> None:
        for number in count():
            if stop.is_set():
                return
            table = f"meanwhile/table{number}"
            lake.write(table, commits=WRITER_COMMITS, rows=50)
            written.append(table)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield written
        finally:
            stop.set()
        writing.result()
