"""An actor whose machine others use: background work ends and waits, hot work goes on, and then the rest is done."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from services import machine_load
from services.machine_load import CpuTicks, MachineLoad, read_ticks
from shared.jobs.payload import JobPayload, RewriteKind
from shared.policy.policy import MIB
from shared.queue import commands, queries
from shared.queue.model import JobState
from shared.table import PartitionKey
from tests.support.burners import burners, ticks_of
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until
from tests.support.worker_bench import EIGHT, Bench, spec

pytestmark = pytest.mark.redis

COLD, HOT = PartitionKey('{"dt":"cold"}'), PartitionKey('{"dt":"hot"}')
GROUPS = 4
"""File groups of the background job; each is committed by itself."""


class World(Bench):
    """A cold partition with a background job of several groups, which holds at its first one until others need it."""

    def __init__(self, url: str) -> None:
        super().__init__(url, MemoryEngine())
        self.engine.append([4 * MIB, 4 * MIB] * GROUPS, COLD)
        self.commits = 0

        def commit() -> None:
            self.commits += 1
            if self.commits == 1:
                until("the first group is held until the job is asked to stop", self.is_asked_to_stop, seconds=60)

        self.engine.before_commit = commit
        background = spec(1, COLD)
        payload = replace(JobPayload.decode(background.payload), rewrite_kind=RewriteKind.FULL)
        self.queue.run(
            commands.enqueue("default", replace(background, payload=payload.encode(), gives_way=True, extent=1))
        )

    def is_asked_to_stop(self) -> bool:
        view = self.queue.run(queries.job("default", spec(0, COLD).id))
        return view is not None and view.stop == "load"

    def hot_job_runs(self) -> None:
        """Return once a partition that a commit has changed is merged."""
        self.enqueue(self.engine.append(EIGHT, HOT), HOT)
        until("the hot job has run", lambda: self.state(HOT) is None)

    @contextmanager
    def actor(self, is_busy: Callable[[], bool]) -> Iterator[None]:
        """Run a slot that looks at the load of its machine."""
        slot = threading.Thread(target=self.worker(groups_per_commit=1, is_busy=is_busy).run)
        slot.start()
        try:
            yield
        finally:
            self.stopping.set()
            slot.join()


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    made = World(redis_url)
    yield made
    made.close()


def stops_and_resumes(world: World, load_begins: Callable[[], object], load_ends: Callable[[], object]) -> None:
    """Let others use the machine while a background job runs, and check what becomes of it and of a hot job."""
    until("the background job runs", lambda: world.commits == 1)
    load_begins()
    until("the background job waits", lambda: world.state(COLD) is JobState.DELAYED, seconds=60)
    assert world.commits == 1, "what was written is committed, and no further group is begun"
    world.hot_job_runs()
    assert (world.commits, world.state(COLD)) == (2, JobState.DELAYED)
    load_ends()
    until("the background job is done", lambda: world.state(COLD) is None, seconds=60)
    merged = [file.size_bytes for file in world.engine.files.values() if file.partition == COLD]
    assert merged == [8 * MIB] * GROUPS
    ends = [run.run_result for run in world.runs() if run.id == spec(0, COLD).id]
    assert sorted(ends) == ["done", "yield"]


def test_background_work_gives_way_to_a_reading_of_others_and_is_done_afterwards(world: World) -> None:
    busy = threading.Event()
    with world.actor(busy.is_set):
        stops_and_resumes(world, busy.set, busy.clear)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux says what its processes use")
def test_background_work_gives_way_to_programs_that_use_the_cores(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticks are those of Linux; of the others, only the programs of this test count, whatever else runs here."""
    monkeypatch.setattr(machine_load, "SAMPLE_S", 0.2)
    monkeypatch.setattr(machine_load, "WINDOW_S", 1.0)
    used_by: dict[int, int] = {}

    def read() -> CpuTicks | None:
        used_by.update({one: ticks for one in list(used_by) if (ticks := ticks_of(one))})
        found = read_ticks()
        assert found is not None
        return replace(found, used=found.own + sum(used_by.values()))

    with ExitStack() as others, world.actor(MachineLoad(0.2, read).is_busy):
        stops_and_resumes(
            world,
            load_begins=lambda: used_by.update(dict.fromkeys(others.enter_context(burners(os.cpu_count() or 1)), 0)),
            load_ends=others.close,
        )
