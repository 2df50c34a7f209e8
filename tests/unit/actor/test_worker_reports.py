"""What a worker reports of a job: done, failed, crashed or cancelled, and nothing where another actor may have it."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from actor.ports import EngineDeath, EngineDied
from shared.errors import Corrupt, PermanentError, RetryableError
from shared.queue.lua_library import ScriptName
from shared.usage import Usage
from tests.support.worker_world import PAYLOAD, World, finish_args


def test_a_run_that_leaves_nothing_to_do_is_done_and_satisfies_what_it_saw() -> None:
    world = World()
    world.run()
    end = world.end()
    assert (end["verdict"], end["seen"], end["cost"], end["id"], end["token"]) == ("done", 2, 800_000, "j-1", 7)


def test_a_run_reports_and_counts_the_same_usage() -> None:
    world = World()
    world.run(cores=Fraction(10**6))  # So many that each nanosecond counts.

    args = finish_args(world.queue.sent[-1])
    counted = dict(zip(args[11::2], map(int, args[12::2]), strict=True))
    reported = Usage.decode(json.loads(world.end()["result"])["usage"])
    assert reported == Usage.of_counters(counted)
    assert reported.core_ms > 0
    assert (reported.bytes_read, reported.reads, reported.writes) == (800_000, 8, 2)


def test_a_table_whose_properties_changed_meanwhile_satisfies_no_request() -> None:
    world = World()
    world.engine.configuration = {"lakewright.min-input-files": "2"}
    world.run()
    assert world.end()["seen"] == -1


def test_a_rewrite_cancelled_because_it_did_not_stop_is_no_failure_of_the_job() -> None:
    world = World()

    def cancelled() -> None:
        world.lease.request_stop("preempt")
        raise RetryableError("cancelled")

    world.engine.before_commit = cancelled
    world.run()
    assert world.end()["verdict"] == "yield"


def test_a_failure_says_what_it_was_and_costs_an_attempt() -> None:
    world = World()

    def fail() -> None:
        raise OSError("disk on fire")

    world.engine.before_commit = fail
    world.run()
    assert (world.end()["verdict"], world.end()["error"]) == ("fail", "OSError: disk on fire")


def die(world: World, death: EngineDeath | None) -> None:
    def fail() -> None:
        world.engine.alive = False
        world.engine.death = death
        raise ConnectionRefusedError("no JVM")

    world.engine.before_commit = fail
    with pytest.raises(EngineDied):
        world.run()


@pytest.mark.parametrize(("was_asked", "verdict"), [(False, "crashed"), (True, "yield")])
def test_an_engine_that_died_is_reported_with_its_cause_and_ends_the_actor(was_asked: bool, verdict: str) -> None:
    world = World()
    die(world, EngineDeath("killed by SIGKILL (9)", was_requested=was_asked))
    assert (world.end()["verdict"], world.end()["error"]) == (verdict, "killed by SIGKILL (9)")
    assert world.heart.released == [world.lease]


def test_an_engine_that_cannot_be_ended_may_still_commit_and_nothing_is_reported() -> None:
    world = World()
    die(world, None)
    assert world.ends() == []


def test_an_engine_that_is_dead_already_claims_no_job() -> None:
    world = World()
    world.engine.alive = False
    with pytest.raises(EngineDied, match="between jobs"):
        world.run()
    assert world.queue.sent == []


@pytest.mark.parametrize(("field", "verdict"), [("clustering", "cancelled"), ("location", "fail")])
def test_a_refused_table_takes_its_job_away_and_a_place_out_of_reach_does_not(field: str, verdict: str) -> None:
    world = World()
    world.engine.refusal, world.engine.refused_field = "not this one", field
    world.run()
    assert (world.end()["verdict"], "not this one" in world.end()["error"]) == (verdict, True)


def test_the_end_is_reported_again_until_the_queue_answers() -> None:
    world = World()
    world.finish_fails = 3
    world.run()
    assert len(world.ends()) == 4
    assert len({end["nonce"] for end in world.ends()}) == 1, "a repetition is recognised by its nonce"


def test_payload_that_cannot_be_read_fail_the_job_and_free_the_slot() -> None:
    world = World()
    world.payload = replace(PAYLOAD, location="memory://t")
    world.answer = lambda transition: (  # type: ignore[method-assign]
        json.dumps(
            [["j-1", "t-1", "{}", "compact", "d", "1", "5", "7", "", "0", "1", "1", "0", "0", "{}", "0", "0", "0", ""]]
        )
        if transition.script is ScriptName.CLAIM
        else "deleted"
    )
    world.queue.answer = world.answer
    assert world.run()
    assert world.end()["verdict"] == "fail"
    assert world.heart.released == [world.lease]


def test_a_job_of_another_kind_is_not_run_as_a_compaction() -> None:
    world = World()
    world.kind = "recluster"
    world.run()
    assert world.engine.reads == 0
    assert world.end()["verdict"] == "fail"
    assert "'recluster'" in world.end()["error"]


@pytest.mark.parametrize(("table_uuid", "verdict"), [("t", "done"), ("another", "cancelled")])
def test_a_job_about_another_table_at_the_same_place_changes_nothing(table_uuid: str, verdict: str) -> None:
    world = World(payload=replace(PAYLOAD, table_uuid=table_uuid))
    world.run()
    assert (world.end()["verdict"], "another" in world.end()["error"]) == (verdict, verdict == "cancelled")
    assert bool(world.engine.origins) is (verdict == "done")


@pytest.mark.parametrize("error", [Corrupt("60 rows in, 59 rows out"), PermanentError("no such class")])
def test_what_repeating_cannot_cure_is_set_aside_at_once(error: Exception) -> None:
    """Corrupt data stays corrupt: eight attempts would only read it eight times."""
    world = World()

    def fail() -> None:
        raise error

    world.engine.before_commit = fail
    world.run()
    assert (world.end()["verdict"], str(error) in world.end()["error"]) == ("quarantine", True)
