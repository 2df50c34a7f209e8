"""One behaviour for both executors: the life of a job, and what the executor itself adds, on a real server."""

import pytest
import redis

from actor.queue_executor import SyncQueueExecutor, connect
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.queue import commands, queries
from shared.queue.model import (
    Band,
    CancelOutcome,
    Debounce,
    Enqueued,
    EnqueueOutcome,
    FinishOutcome,
    HeartbeatEntry,
    HeartbeatStatus,
    JobState,
    RunResult,
    StopReason,
    Token,
)
from shared.retry import RetryPolicy
from tests.support.queue_bench import LEASE_MS, QUEUE, SETTINGS, Bench, spec
from tests.support.queue_executors import EXECUTORS
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis


# The life of a job


def test_a_job_is_queued_claimed_and_gone(bench: Bench) -> None:
    assert bench.enqueue(spec()) == Enqueued(EnqueueOutcome.QUEUED, JobState.QUEUED)
    (claim,) = bench.claim(slots=3)
    assert (claim.id, claim.key, claim.tenant, claim.band) == (spec().id, spec().key, "acme", Band.NORMAL)
    assert (claim.attempts, claim.previous_token, claim.lease_until_ms) == (0, None, bench.clock.now_ms + LEASE_MS)
    assert bench.finish(claim) is FinishOutcome.DELETED
    assert bench.find() is None
    assert bench.claim() == ()


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


@pytest.mark.parametrize(("seen", "outcome"), [(1, FinishOutcome.REQUEUED), (2, FinishOutcome.DELETED)])
def test_an_event_during_a_run_is_served_only_by_a_run_that_saw_it(
    bench: Bench, seen: int, outcome: FinishOutcome
) -> None:
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    assert bench.enqueue(spec(2)) == Enqueued(EnqueueOutcome.RERUN_REQUESTED, JobState.LEASED)
    assert bench.job().version == 1, "the running snapshot is never touched"
    assert bench.finish(claim, seen=seen) is outcome
    assert [again.version for again in bench.claim()] == ([2] if outcome is FinishOutcome.REQUEUED else [])


@pytest.mark.parametrize("verdict", [RunResult.FAIL, RunResult.QUARANTINE, RunResult.YIELD, RunResult.CANCELLED])
def test_a_run_that_is_not_done_never_takes_an_event_with_it(bench: Bench, verdict: RunResult) -> None:
    """Whatever version it has seen: only DONE satisfies."""
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    bench.enqueue(spec(2))
    bench.finish(claim, verdict, seen=99)
    job = bench.job()
    assert (job.version, job.pending_version) == (2, None)


def test_failures_back_off_with_jitter_and_end_in_quarantine_exactly_at_the_maximum(bench: Bench) -> None:
    bench.enqueue(spec())
    outcomes: list[FinishOutcome] = []
    delays: list[int] = []
    for _ in range(SETTINGS.max_attempts):
        (claim,) = bench.claim()
        outcomes.append(bench.finish(claim, RunResult.FAIL, error="disk full"))
        delays.append(bench.wait_ms())
        assert bench.claim() == (), "not before its time"
        bench.clock.advance(delays[-1])
    assert outcomes == [FinishOutcome.DELAYED, FinishOutcome.DELAYED, FinishOutcome.QUARANTINED]
    base = SETTINGS.backoff_base_ms
    assert base / 2 <= delays[0] <= base <= delays[1] <= 2 * base
    assert delays[2] == SETTINGS.half_open_ms
    assert bench.job().error == "disk full"


def test_a_failure_that_repeating_cannot_cure_is_quarantined_with_its_first_attempt(bench: Bench) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    assert bench.finish(claim, RunResult.QUARANTINE, error="rows differ") is FinishOutcome.QUARANTINED
    assert (bench.job().error, bench.job().attempts) == ("rows differ", 1)
    assert bench.wait_ms() == SETTINGS.half_open_ms
    assert bench.claim() == ()


def test_a_quarantined_job_gets_one_try_after_a_while_and_keeps_merging_until_then(bench: Bench) -> None:
    bench.run(commands.configure(QUEUE, {"max_attempts": 1}))
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    assert bench.finish(claim, RunResult.FAIL) is FinishOutcome.QUARANTINED
    assert bench.enqueue(spec(2)) == Enqueued(EnqueueOutcome.MERGED, JobState.QUARANTINED)
    bench.clock.advance(SETTINGS.half_open_ms)
    (claim,) = bench.claim()
    assert claim.version == 2
    assert bench.finish(claim, RunResult.FAIL) is FinishOutcome.QUARANTINED


def test_yielding_costs_no_attempt_and_no_age(bench: Bench) -> None:
    bench.enqueue(spec())
    (first,) = bench.claim()
    bench.clock.advance(1_000)
    assert bench.finish(first, RunResult.YIELD) is FinishOutcome.REQUEUED
    (second,) = bench.claim()
    assert (second.attempts, second.enqueued_at_ms, second.previous_token) == (0, first.enqueued_at_ms, first.token)


def test_an_expired_lease_counts_as_an_attempt_and_names_its_token_to_the_next(bench: Bench) -> None:
    bench.enqueue(spec())
    (first,) = bench.claim()
    bench.clock.advance(LEASE_MS)
    (second,) = bench.claim(worker="w-2")
    assert (second.attempts, second.previous_token) == (1, first.token)
    assert second.token > first.token
    before = bench.state()
    assert bench.finish(first) is FinishOutcome.STALE
    assert bench.beat(first).status is HeartbeatStatus.LOST
    assert bench.state() == before, "a stale call changes nothing"


def test_a_run_whose_lease_ran_out_is_in_the_history(bench: Bench) -> None:
    """No one reports it, and yet it held a slot: whoever searches for a crash finds it there."""
    bench.enqueue(spec())
    (first,) = bench.claim(worker="w-1")
    bench.clock.advance(LEASE_MS)
    (second,) = bench.claim(worker="w-2")
    bench.finish(second)
    done, expired = bench.run(queries.history(QUEUE)).runs
    assert (done.run_result, done.token) == ("done", second.token)
    assert (expired.run_result, expired.outcome, expired.token, expired.worker) == (
        "expired",
        "requeued",
        first.token,
        "w-1",
    )
    assert expired.finished_ms - expired.started_ms == LEASE_MS


def test_crashes_end_in_quarantine_too(bench: Bench) -> None:
    """A job that kills its worker must not kill workers for ever."""
    bench.enqueue(spec())
    for _ in range(SETTINGS.max_attempts):
        assert len(bench.claim()) == 1
        bench.clock.advance(LEASE_MS)
    assert bench.claim() == ()
    assert bench.job().state is JobState.QUARANTINED


def test_a_heartbeat_keeps_the_lease_and_the_progress(bench: Bench) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.clock.advance(LEASE_MS - 1)
    assert bench.beat(claim, '{"groups":1}').status is HeartbeatStatus.OK
    bench.clock.advance(LEASE_MS - 1)
    assert bench.beat(claim).status is HeartbeatStatus.OK
    assert bench.claim(worker="w-2") == ()
    assert bench.job().progress == '{"groups":1}', "an empty progress leaves the last one"


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


# The executor itself


def test_a_script_that_the_server_forgot_is_loaded_again(bench: Bench) -> None:
    bench.enqueue(spec())
    bench.client.function_flush()
    assert len(bench.claim()) == 1


def test_the_next_schema_is_worked_with_so_that_services_can_be_upgraded_one_by_one(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "schema", "2")
    bench.enqueue(spec())
    (claim,) = bench.claim()
    assert bench.finish(claim) is FinishOutcome.DELETED


def test_the_schema_after_the_next_is_refused_and_nothing_is_written(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "schema", "3")
    before = bench.state()
    with pytest.raises(PermanentError, match="has schema 3, this release knows 1"):
        bench.enqueue(spec())
    assert bench.state() == before


def test_without_memory_nothing_new_is_taken_but_what_runs_can_end(bench: Bench) -> None:
    bench.enqueue(spec(partition="a"))
    bench.enqueue(spec(partition="b"))
    (claim,) = bench.claim()
    bench.client.config_set("maxmemory", "1mb")
    try:
        with pytest.raises(RetryableError, match="OOM"):
            bench.enqueue(spec(partition="c"))
        assert bench.beat(claim).status is HeartbeatStatus.OK
        assert bench.finish(claim) is FinishOutcome.DELETED
        assert len(bench.claim()) == 1
    finally:
        bench.client.config_set("maxmemory", "0")


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_silent_server_is_named(name: str) -> None:
    made = EXECUTORS[name]("redis://127.0.0.1:1/0", QUEUE, None, RetryPolicy(2, 0.01))
    stated = r"127\.0\.0\.1:1 did not answer depth in 2 tries"
    with made as executor, pytest.raises(RetryableError, match=stated):
        executor.run(queries.depth(QUEUE))


def test_a_client_that_retries_by_itself_is_refused(redis_server: RedisServer) -> None:
    """The client library's default is ten silent retries."""
    with redis.Redis(port=redis_server.port) as client, pytest.raises(InvalidInput, match="retries by itself"):
        SyncQueueExecutor(client, QUEUE)
    url = f"{redis_server.url}?retry_on_timeout=yes"
    with redis.Redis.from_url(url) as client, pytest.raises(InvalidInput, match="retries by itself"):
        SyncQueueExecutor(client, QUEUE)
    with connect(url) as client:
        assert SyncQueueExecutor(client, QUEUE).name == QUEUE


def test_a_beat_for_an_unknown_job_is_lost(bench: Bench) -> None:
    beats = [HeartbeatEntry(spec().id, Token(1))]
    (reply,) = bench.run(commands.heartbeat(QUEUE, worker="w-1", beats=beats, lease_ms=LEASE_MS))
    assert reply.status is HeartbeatStatus.LOST
