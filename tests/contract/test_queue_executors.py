"""One behavior for both executors: the runs of a job, and what the executor itself adds, on a real server."""

import pytest
import redis

from actor.queue_executor import SyncQueueExecutor, connect
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.queue import commands, queries
from shared.queue.model import (
    Band,
    Enqueued,
    EnqueueOutcome,
    FinishOutcome,
    HeartbeatEntry,
    HeartbeatStatus,
    JobState,
    RunResult,
    Token,
)
from shared.retry import RetryPolicy
from tests.support.queue_bench import EXECUTORS, LEASE_MS, QUEUE, SETTINGS, Bench, spec
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


# The executor itself


def test_a_script_that_the_server_forgot_is_loaded_again(bench: Bench) -> None:
    bench.enqueue(spec())
    bench.client.function_flush()
    assert len(bench.claim()) == 1


def test_the_next_schema_is_worked_with_so_that_services_can_be_upgraded_one_by_one(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "schema", "3")
    bench.enqueue(spec())
    (claim,) = bench.claim()
    assert bench.finish(claim) is FinishOutcome.DELETED


def test_the_schema_after_the_next_is_refused_and_nothing_is_written(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "schema", "4")
    before = bench.state()
    with pytest.raises(PermanentError, match="has schema 4, this release knows 2"):
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
