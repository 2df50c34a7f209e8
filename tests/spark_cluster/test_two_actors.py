"""Actors share a cluster: each works beside the other, none starves, and executors without work are given back."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support import spark_events
from tests.support.large_files import contents, everything, left_behind, linked
from tests.support.spark_world import World
from tests.support.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.long("spark-cluster"),
]

GIVES_BACK_SOON: Mapping[str, Any] = {
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "5s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
}
"""Idle times that are a minute by default."""

FILES, OUTPUTS = 64, 32
"""Of each table, before and after."""


@contextmanager
def two_actors(world: World, *names: str, **options: Any) -> Iterator[list[Path]]:
    """Run actors that start at the same time, each with a folder of its own for its event log."""
    folders = [world.stack.folder / f"events-{name}" for name in names]
    started = []
    for name, folder in zip(names, folders, strict=True):
        folder.mkdir()
        given = {**GIVES_BACK_SOON, "spark.eventLog.dir": folder.as_uri(), **options}
        started.append(world.start(name, options=given))
    try:
        for process in started:
            world.await_ready(process)
        yield folders
        assert all(process.alive for process in started)
    finally:
        for process in started:
            if process.alive:
                process.terminate()


class Tables:
    """Tables of a test, with what is in them before they are registered."""

    def __init__(self, world: World, source: Path, prefix: str, *, count: int) -> None:
        self._world = world
        folder = world.stack.tables
        self.paths = [linked(source, folder / f"{prefix}-{number}", files=FILES) for number in range(count)]
        self._before = [(everything(path), contents(path, "name")) for path in self.paths]

    def register(self) -> None:
        """Register all of them at once."""
        for path in self.paths:
            self._world.register(path, target_file_size="1mb", row_group_copy="never")

    def are_done(self) -> bool:
        """Return whether the jobs of all have run, and nothing waits or runs."""
        return all(map(self._world.is_done, self.paths))

    def runs(self) -> Sequence[dict[str, Any]]:
        """Return the runs of all, after checking that each succeeded and left the rows as they were, and no file."""
        runs = [run for path in self.paths for run in self._world.runs(path)]
        assert [(run["result"], run["attempts"]) for run in runs] == [("done", 0)] * len(self.paths), runs
        for path, (files, rows) in zip(self.paths, self._before, strict=True):
            assert contents(path, "name") == rows
            assert len(DeltaTable(str(path)).file_uris()) == OUTPUTS
            assert left_behind(path, files) == []
        return runs


def await_no_executors(world: World) -> None:
    """Wait until the applications hold no core: the event log of an executor that was given back has its end."""
    until("all executors are given back", lambda: not world.cluster.executors(), seconds=120)
    until("no core is used", lambda: world.cluster.state()["coresused"] == 0, seconds=30)


def test_two_actors_with_a_bound_work_side_by_side_and_give_executors_back(world: World, many_files: Path) -> None:
    with two_actors(world, "left", "right", **{"spark.cores.max": 1}) as logs:
        tables = Tables(world, many_files, "bounded", count=6)
        tables.register()
        until("all tables are compacted", tables.are_done, seconds=300)
        assert {run["actor"] for run in tables.runs()} == {"left", "right"}
        left, right = (spark_events.task_ends(log) for log in logs)
        assert {one.reason for one in (*left, *right)} == {"Success"}
        assert any(one.is_beside(other) for one, other in product(left, right)), "they never worked at once"
        await_no_executors(world)
        again = Tables(world, many_files, "bounded-again", count=1)
        again.register()
        until("executors are allocated again", again.are_done, seconds=120)
        again.runs()
        await_no_executors(world)


def test_actors_without_a_bound_leave_the_cluster_to_each_other_when_they_have_no_work(
    world: World, many_files: Path
) -> None:
    """Spark takes no executor from an application that uses it: who comes second waits, already in its self-test."""
    with two_actors(world, "first", "second"):
        tables = Tables(world, many_files, "unbounded", count=6)
        tables.register()
        until("all tables are compacted", tables.are_done, seconds=300)
        assert {run["actor"] for run in tables.runs()} == {"first", "second"}
        await_no_executors(world)
