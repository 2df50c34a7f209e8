"""Deaths of an engine are counted with the job in Redis: after two it runs alone, one more sets it aside."""

import re
from importlib.resources import files
from itertools import product

import pytest

from shared.queue import admin_commands, commands, queries
from shared.queue.limits import CRASHES_UNTIL_EXCLUSIVE
from shared.queue.model import FinishOutcome, JobState, RunResult
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, spec

pytestmark = pytest.mark.redis

EXPIRED = "expired"
CAUSE = "OutOfMemoryError: Java heap space"


@pytest.fixture(autouse=True)
def many_attempts(bench: Bench) -> None:
    """Let nothing end in quarantine by the number of attempts."""
    bench.run(commands.configure(QUEUE, {"max_attempts": 100, "backoff_base_ms": 1, "backoff_cap_ms": 1}))


def end_once(bench: Bench, verdict: RunResult | str) -> FinishOutcome | None:
    """Claim the job and end its run so; returns where it is then, None if no one said so."""
    bench.clock.advance(20)
    (claim,) = bench.claim()
    if verdict == EXPIRED:
        bench.clock.advance(LEASE_MS)
        return None
    return bench.finish(claim, RunResult(verdict), error=CAUSE)


def test_the_scripts_and_the_workers_count_to_the_same_number() -> None:
    script = files("shared.queue").joinpath("lua", "include", "run_end.lua").read_text()
    assert re.findall(r"CRASHES_UNTIL_EXCLUSIVE = (\d+)", script) == [str(CRASHES_UNTIL_EXCLUSIVE)]


def test_a_job_whose_engine_died_twice_runs_alone_and_is_set_aside_when_it_dies_alone(bench: Bench) -> None:
    bench.enqueue(spec())
    for earlier, outcome in enumerate([FinishOutcome.DELAYED, FinishOutcome.DELAYED, FinishOutcome.QUARANTINED]):
        bench.clock.advance(20)
        (claim,) = bench.claim()
        assert (claim.engine_crashes, claim.runs_exclusively) == (earlier, earlier == 2)
        assert bench.finish(claim, RunResult.CRASHED, error=CAUSE) is outcome
    job = bench.job()
    assert (job.state, job.engine_crashes, job.error) == (JobState.QUARANTINED, 3, CAUSE)
    assert [run.run_result for run in bench.run(queries.history(QUEUE)).runs] == ["crashed"] * 3


def test_it_is_still_known_when_it_is_tried_again_after_a_while(bench: Bench) -> None:
    bench.enqueue(spec())
    for _ in range(3):
        end_once(bench, RunResult.CRASHED)
    bench.clock.advance(bench.wait_ms())
    (claim,) = bench.claim()
    assert claim.runs_exclusively
    assert bench.finish(claim, RunResult.CRASHED) is FinishOutcome.QUARANTINED


def test_a_person_who_requeues_it_and_a_run_that_is_done_have_it_forgotten(bench: Bench) -> None:
    bench.enqueue(spec())
    for _ in range(3):
        end_once(bench, RunResult.CRASHED)
    bench.run(admin_commands.requeue(QUEUE, spec().id))
    (claim,) = bench.claim()
    assert (claim.engine_crashes, claim.attempts) == (0, 0)
    bench.finish(claim, RunResult.CRASHED)
    bench.clock.advance(20)
    (claim,) = bench.claim()
    bench.enqueue(spec(2))
    assert bench.finish(claim, RunResult.DONE, seen=1) is FinishOutcome.REQUEUED
    (claim,) = bench.claim()
    assert claim.engine_crashes == 0


def test_silence_makes_a_job_run_alone_but_proves_nothing_against_it(bench: Bench) -> None:
    """An actor may fall silent because of its network or its machine."""
    bench.enqueue(spec())
    for _ in range(5):
        end_once(bench, EXPIRED)
    (claim,) = bench.claim()
    assert (claim.engine_crashes, claim.runs_exclusively) == (5, True)
    assert bench.job().state is JobState.LEASED


def test_a_job_in_quarantine_always_says_why(bench: Bench) -> None:
    bench.run(commands.configure(QUEUE, {"max_attempts": 1}))
    bench.enqueue(spec())
    end_once(bench, EXPIRED)
    assert bench.claim() == ()
    job = bench.job()
    assert job.state is JobState.QUARANTINED
    assert job.error is not None
    assert "w-1 was silent" in job.error


def test_every_short_life_is_counted_as_the_rule_says(bench: Bench) -> None:
    """All sequences of four ends: deaths add up, nothing else does, and only a death alone sets the job aside."""
    ends = [RunResult.CRASHED, RunResult.FAIL, RunResult.YIELD, EXPIRED]
    for life in product(ends, repeat=4):
        request = spec(partition="-".join(life))
        bench.enqueue(request)
        deaths = 0
        for place, verdict in enumerate(life):
            bench.clock.advance(20)
            (claim,) = bench.claim()
            assert claim.engine_crashes == deaths, (life, place)
            deaths += verdict in (RunResult.CRASHED, EXPIRED)
            if verdict == EXPIRED:
                bench.clock.advance(LEASE_MS)
                continue
            outcome = bench.finish(claim, RunResult(verdict))
            is_set_aside = verdict is RunResult.CRASHED and deaths > CRASHES_UNTIL_EXCLUSIVE
            assert (outcome is FinishOutcome.QUARANTINED) == is_set_aside, (life, place)
            if is_set_aside:
                break
        bench.clock.advance(20)
        for claim in bench.claim():
            bench.finish(claim, RunResult.CANCELLED)
        bench.run(commands.cancel(QUEUE, request.id, nonce=bench.nonce()))
