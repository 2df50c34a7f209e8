"""One job's run, in what the worker's tests do not reach."""

import pytest

from actor.engines import EngineSet
from actor.job_run import JobRun
from actor.slot_queue import HeldJob
from shared.queue import decode
from tests.support.memory_engine import MemoryEngine
from tests.support.worker_world import World


def test_a_run_that_was_not_opened_names_its_job_instead_of_planning_nothing() -> None:
    world = World()
    (claim,) = decode.claims(world.claimed())
    run = JobRun(
        HeldJob(claim, world.heart.track(claim, sent_at_s=0.0)),
        EngineSet([MemoryEngine()]),
        max_rounds=1,
        max_conflicts=1,
    )
    with pytest.raises(RuntimeError, match="job j-1 was not opened"):
        run.plan(lambda: False)
