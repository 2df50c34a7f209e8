"""A finish and the next claim in one round trip: what each of them promises alone holds for both at once."""

import pytest

from shared.queue import admin_commands
from shared.queue.model import FinishOutcome, JobState, RunResult, Scope
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, spec

pytestmark = pytest.mark.redis


def test_one_call_ends_a_job_and_leases_the_next_one_under_a_later_token(bench: Bench) -> None:
    bench.enqueue(spec(partition="a"))
    (first,) = bench.claim()
    bench.enqueue(spec(partition="b"))
    outcome, (second,) = bench.finish_and_claim(first)
    assert outcome is FinishOutcome.DELETED
    assert second.key.partition == "b"
    assert second.token > first.token
    assert bench.job(spec(partition="b")).state is JobState.LEASED
    assert bench.finish(second) is FinishOutcome.DELETED


def test_a_refused_end_claims_nothing_and_changes_nothing(bench: Bench) -> None:
    bench.enqueue(spec(partition="a"))
    (first,) = bench.claim()
    bench.clock.advance(LEASE_MS + 1)
    (_successor,) = bench.claim(worker="w-2")
    bench.enqueue(spec(partition="b"))
    before = bench.state()
    assert bench.finish_and_claim(first) == (FinishOutcome.STALE, ())
    assert bench.state() == before
    assert bench.job(spec(partition="b")).state is JobState.QUEUED


def test_a_repetition_gets_the_same_claims_and_ends_nothing_twice(bench: Bench) -> None:
    """The reply was lost: the job that came with it is not leased a second time, nor left to run out unnoticed."""
    bench.enqueue(spec(partition="a"))
    (first,) = bench.claim()
    bench.enqueue(spec(partition="b"))
    bench.enqueue(spec(partition="c"))
    reply = bench.finish_and_claim(first, nonce="again")
    after = bench.state()
    assert bench.finish_and_claim(first, nonce="again") == reply
    assert bench.state() == after


def test_a_job_that_comes_back_may_be_the_next_claim(bench: Bench) -> None:
    bench.enqueue(spec())
    (first,) = bench.claim()
    outcome, (second,) = bench.finish_and_claim(first, RunResult.YIELD)
    assert (outcome, second.id, second.previous_token) == (FinishOutcome.REQUEUED, first.id, first.token)


def test_the_place_of_the_ended_job_counts_for_the_next_claim(bench: Bench) -> None:
    """A table with one slot: its next job is claimed in the call that ends the one before."""
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", admin_commands.SlotLimit(1)))
    bench.enqueue(spec(partition="a"))
    (first,) = bench.claim()
    bench.enqueue(spec(partition="b"))
    assert bench.claim() == ()
    outcome, (second,) = bench.finish_and_claim(first)
    assert (outcome, second.key.partition) == (FinishOutcome.DELETED, "b")


@pytest.mark.parametrize("level", [Scope.QUEUE, Scope.TABLE])
def test_a_paused_queue_ends_jobs_and_hands_out_none(bench: Bench, level: Scope) -> None:
    bench.enqueue(spec(partition="a"))
    (first,) = bench.claim()
    bench.enqueue(spec(partition="b"))
    bench.run(admin_commands.pause(QUEUE, level, "t-1" if level is Scope.TABLE else ""))
    assert bench.finish_and_claim(first) == (FinishOutcome.DELETED, ())
