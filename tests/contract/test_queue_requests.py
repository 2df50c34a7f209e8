"""What becomes of requests for a job: they merge, wait for quiet, are cancelled; one behavior for both executors."""

import pytest

from shared.queue import commands
from shared.queue.model import (
    Band,
    CancelOutcome,
    Debounce,
    EnqueueOutcome,
    FinishOutcome,
    HeartbeatStatus,
    JobState,
    RunResult,
    StopReason,
)
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, spec

pytestmark = pytest.mark.redis


def test_requests_for_one_key_become_one_job_with_the_best_of_each(bench: Bench) -> None:
    bench.enqueue(spec(2, band=Band.LOW, priority=9))
    assert bench.enqueue(spec(1, band=Band.HIGH, priority=3)).outcome is EnqueueOutcome.MERGED
    (claim,) = bench.claim(slots=2)
    assert (claim.band, claim.priority, claim.version, claim.payload) == (Band.HIGH, 3, 2, '{"v":2}')


def test_versions_are_compared_as_numbers(bench: Bench) -> None:
    bench.enqueue(spec(10))
    bench.enqueue(spec(9))
    assert (bench.job().version, bench.job().payload) == (10, '{"v":10}')
    (claim,) = bench.claim()
    bench.enqueue(spec(100))
    bench.enqueue(spec(99))
    assert bench.job().pending_version == 100
    assert bench.finish(claim, seen=99) is FinishOutcome.REQUEUED


# Debounce


def test_debounce_waits_for_quiet_but_never_longer_than_its_maximum(bench: Bench) -> None:
    debounce = Debounce(quiet_ms=1_000, max_delay_ms=2_500)
    assert bench.enqueue(spec(1, debounce=debounce)).state is JobState.DELAYED
    for version in (2, 3):
        bench.clock.advance(900)
        assert bench.enqueue(spec(version, debounce=debounce)).state is JobState.DELAYED
    bench.clock.advance(699)
    assert bench.claim() == (), "the last arrival was 699 ms before"
    bench.clock.advance(1)
    assert len(bench.claim()) == 1, "2,500 ms after the first, although never quiet"


def test_a_wait_that_is_over_does_not_begin_again(bench: Bench) -> None:
    """Although no actor was free to claim the job before the next request came."""
    debounce = Debounce(quiet_ms=1_000, max_delay_ms=2_500)
    bench.enqueue(spec(1, debounce=debounce))
    bench.clock.advance(1_000)
    assert bench.enqueue(spec(2, debounce=debounce)).state is JobState.QUEUED
    assert [claim.version for claim in bench.claim()] == [2]


def test_a_request_that_is_repeated_is_no_new_arrival(bench: Bench) -> None:
    request = spec(debounce=Debounce(quiet_ms=1_000, max_delay_ms=2_500))
    bench.enqueue(request)
    bench.clock.advance(900)
    bench.enqueue(request)
    bench.clock.advance(99)
    assert bench.claim() == ()
    bench.clock.advance(1)
    assert len(bench.claim()) == 1


def test_a_request_without_debounce_ends_the_waiting(bench: Bench) -> None:
    bench.enqueue(spec(debounce=Debounce(1_000, 1_000)))
    assert bench.enqueue(spec(band=Band.URGENT)).state is JobState.QUEUED
    assert len(bench.claim()) == 1


def test_a_request_does_not_shorten_a_back_off(bench: Bench) -> None:
    bench.enqueue(spec(1))
    bench.finish(bench.claim()[0], RunResult.FAIL)
    ready = bench.job().ready_at_ms
    assert bench.enqueue(spec(2)).state is JobState.DELAYED
    assert (bench.job().ready_at_ms, bench.job().version) == (ready, 2)


# Cancel


def test_a_waiting_job_is_cancelled_at_once(bench: Bench) -> None:
    bench.enqueue(spec())
    assert bench.run(commands.cancel(QUEUE, spec().id, nonce=bench.nonce())) is CancelOutcome.DELETED
    assert bench.run(commands.cancel(QUEUE, spec().id, nonce=bench.nonce())) is CancelOutcome.UNKNOWN
    assert bench.claim() == ()


@pytest.mark.parametrize("verdict", [RunResult.YIELD, RunResult.FAIL, RunResult.CANCELLED])
def test_a_running_job_is_asked_to_stop_and_does_not_come_back(bench: Bench, verdict: RunResult) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    assert bench.run(commands.cancel(QUEUE, claim.id, nonce=bench.nonce())) is CancelOutcome.STOPPING
    reply = bench.beat(claim)
    assert (reply.status, reply.reason) == (HeartbeatStatus.STOP, StopReason.CANCEL)
    assert bench.finish(claim, verdict) is FinishOutcome.DELETED


def test_a_cancelled_job_whose_worker_died_does_not_come_back(bench: Bench) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.run(commands.cancel(QUEUE, claim.id, nonce=bench.nonce()))
    bench.clock.advance(LEASE_MS)
    assert bench.claim() == ()
    assert bench.find() is None


def test_a_cancel_takes_what_was_requested_for_before_it_and_leaves_what_comes_after(bench: Bench) -> None:
    """A request noted beside the run belongs to what is cancelled; one that comes later is a new request."""
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    bench.enqueue(spec(2))
    bench.run(commands.cancel(QUEUE, claim.id, nonce=bench.nonce()))
    assert bench.job().pending_version is None
    assert bench.finish(claim, RunResult.CANCELLED) is FinishOutcome.DELETED
    bench.enqueue(spec(2))
    (claim,) = bench.claim()
    bench.run(commands.cancel(QUEUE, claim.id, nonce=bench.nonce()))
    bench.enqueue(spec(3))
    assert bench.finish(claim, RunResult.CANCELLED) is FinishOutcome.REQUEUED
    assert bench.job().version == 3


@pytest.mark.parametrize("is_running", [False, True])
def test_a_repeated_cancel_spares_what_was_requested_for_in_between(bench: Bench, *, is_running: bool) -> None:
    """Its reply was lost, and it is sent again with the same nonce."""
    bench.enqueue(spec(1))
    if is_running:
        bench.claim()
    cancel = commands.cancel(QUEUE, spec().id, nonce="c")
    first = bench.run(cancel)
    bench.enqueue(spec(2))
    before = bench.state()
    assert bench.run(cancel) is first
    assert bench.state() == before


@pytest.mark.parametrize("is_running", [False, True])
def test_what_a_person_forces_wins_over_an_event_of_the_same_version(bench: Bench, *, is_running: bool) -> None:
    """Facts are opaque: the greater text says nothing of which terms shall hold. A newer version still wins."""
    if is_running:
        bench.enqueue(spec(4, payload="running"))
        bench.claim()
    forced, common = spec(5, payload="a", precedence=1), spec(5, payload="z")
    bench.enqueue(forced)
    bench.enqueue(common)
    bench.enqueue(forced)
    mark = "d_" if is_running else ""
    assert bench.state().jobs[forced.id][f"{mark}payload"] == "a"
    bench.enqueue(spec(6, payload="b"))
    assert bench.state().jobs[forced.id][f"{mark}payload"] == "b"


@pytest.mark.parametrize("seen", [10, 11])
def test_a_request_for_more_is_not_lost_in_a_newer_one_for_less(bench: Bench, seen: int) -> None:
    """Neither while it waits nor beside a run, and only a run that reached as far has served it."""
    bench.enqueue(spec(10, extent=1, payload="full"))
    bench.enqueue(spec(11, payload="levels"))
    (claim,) = bench.claim()
    assert (claim.version, claim.payload, claim.extent) == (11, "levels", 1)
    bench.finish(claim)
    bench.enqueue(spec(9))
    (claim,) = bench.claim()
    bench.enqueue(spec(10, extent=1))
    bench.enqueue(spec(11))
    assert bench.finish(claim, seen=seen) is FinishOutcome.REQUEUED
    (claim,) = bench.claim()
    assert (claim.version, claim.extent) == (11, 1)


def test_a_request_that_may_wait_waits_when_it_came_beside_a_run_too(bench: Bench) -> None:
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    bench.enqueue(spec(2, debounce=Debounce(5_000, 20_000)))
    bench.clock.advance(1_000)
    bench.enqueue(spec(3, debounce=Debounce(6_000, 20_000)))
    assert bench.finish(claim) is FinishOutcome.DELAYED
    assert (bench.job().state, bench.wait_ms()) == (JobState.DELAYED, 5_000)
    bench.clock.advance(4_000)
    bench.enqueue(spec(4, debounce=Debounce(5_000, 20_000)))
    assert bench.wait_ms() == 5_000, "it is debounced like any other"
    bench.clock.advance(5_000)
    (claim,) = bench.claim()
    bench.enqueue(spec(5, debounce=Debounce(5_000, 20_000)))
    bench.enqueue(spec(6))
    assert bench.finish(claim) is FinishOutcome.REQUEUED, "someone did not want to wait"


def test_a_job_of_the_release_before_is_merged_as_if_what_it_lacks_were_none(bench: Bench) -> None:
    bench.enqueue(spec(5, payload="a"))
    bench.client.hdel(f"{{lw:default}}:j:{spec().id}", "precedence", "extent")
    bench.enqueue(spec(5, payload="b"))
    assert bench.job().payload == "b"
    bench.client.hdel(f"{{lw:default}}:j:{spec().id}", "extent")
    (claim,) = bench.claim()
    assert claim.extent == 0
    bench.client.hdel(f"{{lw:default}}:j:{spec().id}", "precedence", "extent")
    bench.enqueue(spec(5, payload="c", precedence=1))
    bench.client.hdel(f"{{lw:default}}:j:{spec().id}", "d_extent", "d_quiet", "d_max")
    assert bench.finish(claim, RunResult.FAIL) is FinishOutcome.DELAYED
    assert bench.job().payload == "c"
