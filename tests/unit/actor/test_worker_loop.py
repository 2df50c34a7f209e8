"""The loop of a slot: it claims until it is asked to stop, waits out an outage, and ends with its engine."""

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.engines import EngineSet
from actor.ports import EngineDied
from actor.worker import Worker, WorkerSettings
from shared.errors import RetryableError
from shared.policy.policy import MIB
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from tests.support.worker_world import PAYLOAD, POLICY, World


def worker(world: World) -> Worker:
    return Worker(EngineSet([world.engine]), world.queue, world.actor, WorkerSettings(idle_s=0.001))


def test_a_slot_runs_its_job_after_an_outage_and_ends_when_it_is_asked_to() -> None:
    world, claims = World(), list[Command[Any]]()

    def answer(transition: Command[Any]) -> Any:
        if transition.script is ScriptName.CLAIM:
            claims.append(transition)
            if len(claims) == 1:
                raise RetryableError("no answer")
            if len(claims) == 3:
                world.stopping.set()
        return world.answer(transition)

    world.queue.answer = answer
    with capture_logs() as logs:
        worker(world).run()
    assert (len(claims), world.end()["verdict"], len(world.engine.origins)) == (3, "done", 1)
    events = [one["event"] for one in logs]
    assert events.index("queue_unavailable") < events.index("queue_available") < events.index("job_finished")
    assert claims[0].args == claims[1].args, "a claim that was not answered is repeated, for it may have leased a job"


def test_a_slot_that_is_drained_claims_nothing() -> None:
    world = World()
    world.actor.draining.set()
    world.stopping.wait = lambda _seconds: world.stopping.set()  # type: ignore[assignment, func-returns-value]
    worker(world).run()
    assert world.queue.sent == []


def test_a_slot_whose_engine_died_ends_and_claims_nothing() -> None:
    world = World()
    world.engine.alive = False
    with pytest.raises(EngineDied, match="died between jobs: killed by SIGKILL"):
        worker(world).run()
    assert world.queue.sent == []


def test_while_another_slot_is_alone_nothing_is_claimed() -> None:
    world = World()
    assert world.actor.gate.enter()
    with world.actor.gate.exclusive(lambda: False) as is_alone:
        assert is_alone
        assert world.run() is False
    assert world.queue.sent == []


def test_an_end_that_cannot_be_reported_is_given_up_when_the_lease_is_over() -> None:
    world = World()
    world.heart.may = lambda: setattr(world.heart, "lease_ms", 5)
    world.finish_fails = 10**9
    with capture_logs() as logs:
        assert world.run()
    assert len(world.ends()) > 1
    assert [one["job"] for one in logs if one["event"] == "finish_undeliverable"] == ["j-1"]


def test_a_defect_while_a_job_ends_is_raised_and_not_taken_for_a_death_of_the_engine() -> None:
    world = World()

    def answer(transition: Command[Any]) -> Any:
        if transition.script is ScriptName.FINISH:
            raise RuntimeError("a defect")
        return world.answer(transition)

    world.queue.answer = answer
    with pytest.raises(RuntimeError, match="a defect"):
        world.run()


def test_a_job_that_has_spent_its_bytes_goes_back_to_the_queue() -> None:
    payload = replace(PAYLOAD, policy=replace(POLICY, max_bytes_per_job=10 * MIB))
    world = World(*[5 * MIB] * 6, payload=payload)
    world.run()
    assert (world.end()["verdict"], len(world.engine.origins), world.engine.reads) == ("yield", 1, 1)
    assert sum(file.size_bytes == 5 * MIB for file in world.engine.files.values()) == 4


def test_a_job_that_must_run_alone_and_is_asked_to_stop_while_it_waits_goes_back() -> None:
    """The other slot's job may take hours; the suspect has done nothing, and counts no attempt."""
    world = World()
    world.deaths = 2
    assert world.actor.gate.enter()
    world.stopping.set()
    assert world.run()
    assert (world.end()["verdict"], world.engine.origins) == ("yield", {})
    assert world.heart.released == [world.lease]
