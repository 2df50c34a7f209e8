"""One behaviour for both executors: what every transition means, end to end on a real server."""

import itertools
from collections.abc import Iterator

import pytest
import redis

from actor.store.queue import SyncQueue, connect
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.queue import reads, transitions
from shared.queue.model import (
    Band,
    Beat,
    BeatStatus,
    CancelOutcome,
    Claim,
    Debounce,
    Enqueued,
    EnqueueOutcome,
    FinishOutcome,
    JobKey,
    JobSpec,
    JobState,
    QueueSettings,
    StopReason,
    Token,
    Verdict,
)
from shared.queue.transition import Tries
from tests.support.queue_executors import EXECUTORS, Executor
from tests.support.queue_state import State, TestClock, library_with_test_clock, read_state
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis

QUEUE = "default"
LEASE_MS = 60_000
SETTINGS = QueueSettings(max_attempts=3)


def spec(version: int = 1, *, cell: str = "{}", table: str = "t-1", band: Band = Band.NORMAL, **more) -> JobSpec:
    values = {"tenant": "acme", "priority": 5, "cost_bytes": 1 << 20, "facts": f'{{"v":{version}}}', **more}
    return JobSpec(JobKey(table, cell, "compact"), band=band, version=version, **values)


class Bench:
    """An executor, its clock, and calls with what does not matter filled in."""

    def __init__(self, executor: Executor, client: redis.Redis) -> None:
        self.executor = executor
        self.client = client
        self.clock = TestClock(client, QUEUE)
        self._nonces = (f"n{number}" for number in itertools.count())
        self.run = executor.run
        self.run(transitions.configure(QUEUE, SETTINGS))

    def enqueue(self, wish: JobSpec) -> Enqueued:
        return self.run(transitions.enqueue(QUEUE, wish))

    def claim(self, slots: int = 1, *, worker: str = "w-1", nonce: str = "") -> tuple[Claim, ...]:
        nonce = nonce or next(self._nonces)
        return self.run(transitions.claim(QUEUE, worker=worker, nonce=nonce, slots=slots, lease_ms=LEASE_MS))

    def beat(self, claim: Claim, progress: str = ""):
        beats = [Beat(claim.id, claim.token, progress)]
        return self.run(transitions.heartbeat(QUEUE, worker="w-1", beats=beats, lease_ms=LEASE_MS))[0]

    def finish(self, claim: Claim, verdict: Verdict = Verdict.DONE, *, seen: int | None = None, **more) -> FinishOutcome:
        values = {"worker": "w-1", "nonce": next(self._nonces), "cost_bytes": claim.cost_bytes, **more}
        seen = claim.version if seen is None else seen
        end = transitions.finish(
            QUEUE, id=claim.id, token=claim.token, verdict=verdict, seen_version=seen, **values
        )
        return self.run(end).outcome

    def ingest(self, expected: int, version: int, **more):
        values = {"table": "t-1", "cursor": {"version": str(version)}, "cells": {}, **more}
        return self.run(transitions.ingest(QUEUE, expected=expected, **values))

    def job(self, wish: JobSpec | None = None):
        return self.run(reads.job(QUEUE, (wish or spec()).id))

    def state(self) -> State:
        return read_state(self.client, QUEUE)


@pytest.fixture(params=list(EXECUTORS))
def bench(request: pytest.FixtureRequest, redis_server: RedisServer, redis_url: str) -> Iterator[Bench]:
    with redis_server.client() as client:
        made = EXECUTORS[request.param](redis_url, QUEUE, library_with_test_clock(), Tries(2, 0.01))
        with made as executor:
            yield Bench(executor, client)


# The life of a job


def test_a_job_is_queued_claimed_and_gone(bench: Bench) -> None:
    assert bench.enqueue(spec()) == Enqueued(EnqueueOutcome.QUEUED, JobState.QUEUED)
    (claim,) = bench.claim(slots=3)
    assert (claim.id, claim.key, claim.tenant, claim.band) == (spec().id, spec().key, "acme", Band.NORMAL)
    assert (claim.attempts, claim.previous_token, claim.lease_until_ms) == (0, None, bench.clock.now_ms + LEASE_MS)
    assert bench.finish(claim) is FinishOutcome.GONE
    assert bench.job() is None
    assert bench.claim() == ()


def test_wishes_for_one_key_become_one_job_with_the_best_of_each(bench: Bench) -> None:
    bench.enqueue(spec(2, band=Band.LOW, priority=9))
    assert bench.enqueue(spec(1, band=Band.HIGH, priority=3)).outcome is EnqueueOutcome.MERGED
    (claim,) = bench.claim(slots=2)
    assert (claim.band, claim.priority, claim.version, claim.facts) == (Band.HIGH, 3, 2, '{"v":2}')


@pytest.mark.parametrize(("seen", "outcome"), [(1, FinishOutcome.REQUEUED), (2, FinishOutcome.GONE)])
def test_an_event_during_a_run_is_served_only_by_a_run_that_saw_it(
    bench: Bench, seen: int, outcome: FinishOutcome
) -> None:
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    assert bench.enqueue(spec(2)) == Enqueued(EnqueueOutcome.DIRTY, JobState.LEASED)
    assert bench.job().version == 1, "the running snapshot is never touched"
    assert bench.finish(claim, seen=seen) is outcome
    assert [again.version for again in bench.claim()] == ([2] if outcome is FinishOutcome.REQUEUED else [])


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.YIELD, Verdict.CANCELLED])
def test_a_run_that_is_not_done_never_takes_an_event_with_it(bench: Bench, verdict: Verdict) -> None:
    """Whatever version it has seen: only DONE satisfies."""
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    bench.enqueue(spec(2))
    bench.finish(claim, verdict, seen=99)
    job = bench.job()
    assert job is not None
    assert (job.version, job.pending_version) == (2, None)


def test_failures_back_off_with_jitter_and_end_in_quarantine_exactly_at_the_maximum(bench: Bench) -> None:
    bench.enqueue(spec())
    outcomes, delays = [], []
    for _ in range(SETTINGS.max_attempts):
        (claim,) = bench.claim()
        outcomes.append(bench.finish(claim, Verdict.FAIL, error="disk full"))
        delays.append(bench.job().ready_at_ms - bench.clock.now_ms)
        assert bench.claim() == (), "not before its time"
        bench.clock.advance(delays[-1])
    assert outcomes == [FinishOutcome.DELAYED, FinishOutcome.DELAYED, FinishOutcome.QUARANTINED]
    base = SETTINGS.backoff_base_ms
    assert base / 2 <= delays[0] <= base <= delays[1] <= 2 * base
    assert delays[2] == SETTINGS.half_open_ms
    assert bench.job().error == "disk full"


def test_a_quarantined_job_gets_one_try_after_a_while_and_keeps_merging_until_then(bench: Bench) -> None:
    bench.run(transitions.configure(QUEUE, QueueSettings(max_attempts=1)))
    bench.enqueue(spec(1))
    (claim,) = bench.claim()
    assert bench.finish(claim, Verdict.FAIL) is FinishOutcome.QUARANTINED
    assert bench.enqueue(spec(2)) == Enqueued(EnqueueOutcome.MERGED, JobState.QUARANTINED)
    bench.clock.advance(SETTINGS.half_open_ms)
    (claim,) = bench.claim()
    assert claim.version == 2
    assert bench.finish(claim, Verdict.FAIL) is FinishOutcome.QUARANTINED


def test_yielding_costs_no_attempt_and_no_age(bench: Bench) -> None:
    bench.enqueue(spec())
    (first,) = bench.claim()
    bench.clock.advance(1_000)
    assert bench.finish(first, Verdict.YIELD) is FinishOutcome.REQUEUED
    (second,) = bench.claim()
    assert (second.attempts, second.t0_ms, second.previous_token) == (0, first.t0_ms, first.token)


def test_an_expired_lease_counts_as_an_attempt_and_names_its_token_to_the_next(bench: Bench) -> None:
    bench.enqueue(spec())
    (first,) = bench.claim()
    bench.clock.advance(LEASE_MS)
    (second,) = bench.claim(worker="w-2")
    assert (second.attempts, second.previous_token) == (1, first.token)
    assert second.token > first.token
    before = bench.state()
    assert bench.finish(first) is FinishOutcome.STALE
    assert bench.beat(first).status is BeatStatus.LOST
    assert bench.state() == before, "a stale call changes nothing"


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
    assert bench.beat(claim, '{"groups":1}').status is BeatStatus.OK
    bench.clock.advance(LEASE_MS - 1)
    assert bench.beat(claim).status is BeatStatus.OK
    assert bench.claim(worker="w-2") == ()
    assert bench.job().progress == '{"groups":1}', "an empty progress leaves the last one"


# Debounce


def test_debounce_waits_for_quiet_but_never_longer_than_its_maximum(bench: Bench) -> None:
    wish = spec(debounce=Debounce(quiet_ms=1_000, max_delay_ms=2_500))
    assert bench.enqueue(wish).state is JobState.DELAYED
    for _ in range(2):
        bench.clock.advance(900)
        assert bench.enqueue(wish).state is JobState.DELAYED
    bench.clock.advance(700)
    assert len(bench.claim()) == 1, "2,500 ms after the first, although never quiet"


def test_a_wish_without_debounce_ends_the_waiting(bench: Bench) -> None:
    bench.enqueue(spec(debounce=Debounce(1_000, 1_000)))
    assert bench.enqueue(spec(band=Band.URGENT)).state is JobState.QUEUED
    assert len(bench.claim()) == 1


def test_a_wish_does_not_shorten_a_back_off(bench: Bench) -> None:
    bench.enqueue(spec(1))
    bench.finish(bench.claim()[0], Verdict.FAIL)
    ready = bench.job().ready_at_ms
    assert bench.enqueue(spec(2)).state is JobState.DELAYED
    assert (bench.job().ready_at_ms, bench.job().version) == (ready, 2)


# Cancel


def test_a_waiting_job_is_cancelled_at_once(bench: Bench) -> None:
    bench.enqueue(spec())
    assert bench.run(transitions.cancel(QUEUE, spec().id)) is CancelOutcome.GONE
    assert bench.run(transitions.cancel(QUEUE, spec().id)) is CancelOutcome.UNKNOWN
    assert bench.claim() == ()


@pytest.mark.parametrize("verdict", [Verdict.YIELD, Verdict.FAIL, Verdict.CANCELLED])
def test_a_running_job_is_told_to_stop_and_does_not_come_back(bench: Bench, verdict: Verdict) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    assert bench.run(transitions.cancel(QUEUE, claim.id)) is CancelOutcome.STOPPING
    reply = bench.beat(claim)
    assert (reply.status, reply.reason) == (BeatStatus.STOP, StopReason.CANCEL)
    assert bench.finish(claim, verdict) is FinishOutcome.GONE


def test_a_cancelled_job_whose_worker_died_does_not_come_back(bench: Bench) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.run(transitions.cancel(QUEUE, claim.id))
    bench.clock.advance(LEASE_MS)
    assert bench.claim() == ()
    assert bench.job() is None


# Order


def test_a_better_priority_overtakes_only_what_is_not_much_older(bench: Bench) -> None:
    """Four steps of priority are worth four ageing intervals."""
    bench.enqueue(spec(cell="old", priority=5))
    bench.clock.advance(4 * SETTINGS.aging_ms - 1)
    bench.enqueue(spec(cell="overtakes", priority=1))
    bench.clock.advance(2)
    bench.enqueue(spec(cell="too late", priority=1))
    assert [claim.key.cell for claim in bench.claim(slots=3)] == ["overtakes", "old", "too late"]


def test_a_strict_band_is_served_first_whatever_it_has_cost(bench: Bench) -> None:
    for number in range(3):
        bench.enqueue(spec(cell=f"low {number}", band=Band.LOW))
        bench.enqueue(spec(cell=f"urgent {number}", band=Band.URGENT, cost_bytes=1 << 40))
    bands = [claim.band for claim in bench.claim(slots=6)]
    assert bands == [Band.URGENT] * 3 + [Band.LOW] * 3


def test_tenants_and_tables_share_by_cost_not_by_number_of_jobs(bench: Bench) -> None:
    """Of 3 GiB each, a tenant with jobs of 1 GiB gets one for every four of a tenant with jobs of a quarter."""
    gib = 1 << 30
    for number in range(12):
        bench.enqueue(spec(cell=f"s{number}", table="small", tenant="a", cost_bytes=gib // 4))
    for number in range(3):
        bench.enqueue(spec(cell=f"b{number}", table="big", tenant="b", cost_bytes=gib))
    served = [claim.key.table for claim in bench.claim(slots=10)]
    assert (served.count("small"), served.count("big")) == (8, 2)


def test_weights_divide_what_a_tenant_is_charged(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "weight:tenant|heavy", "3")
    for number in range(12):
        bench.enqueue(spec(cell=f"{number}", table="h", tenant="heavy"))
        bench.enqueue(spec(cell=f"{number}", table="l", tenant="light"))
    served = [claim.tenant for claim in bench.claim(slots=12)]
    assert (served.count("heavy"), served.count("light")) == (9, 3)


def test_a_newcomer_behind_a_long_backlog_is_served_next(bench: Bench) -> None:
    for number in range(50):
        bench.enqueue(spec(cell=f"{number}", tenant="crowd", table="crowded"))
    bench.claim(slots=10)
    bench.enqueue(spec(cell="x", tenant="newcomer", table="other"))
    served = [claim.tenant for claim in bench.claim(slots=2)]
    assert "newcomer" in served


def test_a_run_that_cost_more_than_estimated_is_charged_the_difference(bench: Bench) -> None:
    for number in range(6):
        bench.enqueue(spec(cell=f"{number}", tenant="modest", table="m"))
        bench.enqueue(spec(cell=f"{number}", tenant="wrong", table="w"))
    first, second = bench.claim(slots=2)
    wrong = first if first.tenant == "wrong" else second
    bench.finish(wrong, cost_bytes=4 << 20)
    served = [claim.tenant for claim in bench.claim(slots=3)]
    assert served == ["modest"] * 3


# Ingest


def test_ingest_moves_cursor_cells_jobs_ledger_and_counters_together(bench: Bench) -> None:
    jobs = [spec(7), spec(7, cell="b")]
    ledger = [("first", 0), ("none", -1), ("second", 1)]
    done = bench.ingest(-1, 7, cells={"a": "1", "b": "2"}, jobs=jobs, ledger=ledger, counters={"commits": 3})
    assert (done.applied, done.version) == (True, 7)
    assert done.outcomes == (EnqueueOutcome.QUEUED, EnqueueOutcome.QUEUED)
    state = bench.state()
    assert state.hash("cur:t-1")["version"] == "7"
    assert state.hash("cells:t-1") == {"a": "1", "b": "2"}
    assert state.hash("count:t-1") == state.hash("count") == {"commits": "3"}
    records = bench.client.xrange("{lw:default}:led:t-1")
    assert [(fields[b"record"], fields[b"out"]) for _, fields in records] == [
        (b"first", b"queued"),
        (b"none", b""),
        (b"second", b"queued"),
    ]
    assert len(bench.claim(slots=3)) == 2


def test_the_second_of_two_deciders_writes_nothing_and_learns_the_version(bench: Bench) -> None:
    bench.ingest(-1, 3)
    before = bench.state()
    late = bench.ingest(-1, 2, cells={"a": "1"}, jobs=[spec()], counters={"x": 1})
    assert (late.applied, late.version, late.outcomes) == (False, 3, ())
    assert bench.state() == before


def test_cells_are_set_and_dropped_and_a_reset_drops_all_others(bench: Bench) -> None:
    bench.ingest(-1, 1, cells={"a": "1", "b": "2", "c": "3"})
    bench.ingest(1, 2, cells={"a": None, "b": "4"})
    assert bench.state().hash("cells:t-1") == {"b": "4", "c": "3"}
    bench.ingest(2, 2, cells={"d": "5"}, reset=True)
    assert bench.state().hash("cells:t-1") == {"d": "5"}


def test_a_reset_carries_a_large_table_in_one_call(bench: Bench) -> None:
    cells = {f"cell {number}": str(number) for number in range(20_000)}
    assert bench.ingest(-1, 1, cells=cells, reset=True).applied
    assert bench.state().hash("cells:t-1") == cells


def test_the_ledger_is_capped(bench: Bench) -> None:
    records = [(str(number), -1) for number in range(1_000)]
    bench.ingest(-1, 1, ledger=records, ledger_kept=200)
    assert 200 <= bench.state().streams["led:t-1"] <= 400


# Reading


def test_reads_show_every_state_and_page_through_it(bench: Bench) -> None:
    for number in range(5):
        bench.enqueue(spec(cell=f"{number}"))
        bench.clock.advance(1_000)
    (claim,) = bench.claim()
    depth = bench.run(reads.depth(QUEUE))
    assert depth.depth == {
        JobState.QUEUED: 4,
        JobState.DELAYED: 0,
        JobState.LEASED: 1,
        JobState.QUARANTINED: 0,
    }
    assert depth.oldest_wait_ms == 4_000
    first = bench.run(reads.jobs(QUEUE, JobState.QUEUED, limit=3))
    rest = bench.run(reads.jobs(QUEUE, JobState.QUEUED, offset=first.next_offset or 0, limit=3))
    assert [view.key.cell for view in (*first.jobs, *rest.jobs)] == ["1", "2", "3", "4"]
    assert rest.next_offset is None
    (leased,) = bench.run(reads.jobs(QUEUE, JobState.LEASED)).jobs
    assert (leased.id, leased.token, leased.worker) == (claim.id, claim.token, "w-1")
    assert (leased.started_ms, leased.lease_until_ms) == (bench.clock.now_ms, claim.lease_until_ms)


def test_the_history_keeps_every_run_with_its_result_newest_first(bench: Bench) -> None:
    for number in range(3):
        bench.enqueue(spec(number))
        bench.clock.advance(10)
        (claim,) = bench.claim()
        bench.clock.advance(100)
        bench.finish(claim, result=f'{{"run":{number}}}', counters={"runs": 1})
    page = bench.run(reads.history(QUEUE, limit=2))
    rest = bench.run(reads.history(QUEUE, before=page.next_before or "", limit=2))
    runs = (*page.runs, *rest.runs)
    assert [run.result for run in runs] == ['{"run":2}', '{"run":1}', '{"run":0}']
    last = runs[0]
    assert (last.id, last.token, last.verdict, last.outcome) == (claim.id, claim.token, "done", "gone")
    assert (last.started_ms - last.t0_ms, last.finished_ms - last.started_ms) == (10, 100)
    assert bench.state().hash("count:t-1") == bench.state().hash("count") == {"runs": "3"}


# The executor itself


def test_a_script_that_the_server_forgot_is_loaded_again(bench: Bench) -> None:
    bench.enqueue(spec())
    bench.client.script_flush()
    assert len(bench.claim()) == 1


def test_a_newer_schema_is_refused_and_nothing_is_written(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "schema", "2")
    before = bench.state()
    with pytest.raises(PermanentError, match="has schema 2, this release knows 1"):
        bench.enqueue(spec())
    assert bench.state() == before


def test_without_memory_nothing_new_is_taken_but_what_runs_can_end(bench: Bench) -> None:
    bench.enqueue(spec(cell="a"))
    bench.enqueue(spec(cell="b"))
    (claim,) = bench.claim()
    bench.client.config_set("maxmemory", "1mb")
    try:
        with pytest.raises(RetryableError, match="OOM"):
            bench.enqueue(spec(cell="c"))
        assert bench.beat(claim).status is BeatStatus.OK
        assert bench.finish(claim) is FinishOutcome.GONE
        assert len(bench.claim()) == 1
    finally:
        bench.client.config_set("maxmemory", "0")


def test_a_silent_server_is_named(redis_server: RedisServer) -> None:
    for make in EXECUTORS.values():
        with make("redis://127.0.0.1:1/0", QUEUE, None, Tries(2, 0.01)) as executor:
            with pytest.raises(RetryableError, match=r"127\.0\.0\.1:1 did not answer depth in 2 tries"):
                executor.run(reads.depth(QUEUE))


def test_a_client_that_retries_by_itself_is_refused(redis_server: RedisServer) -> None:
    """The client library's default is ten silent retries."""
    with redis.Redis(port=redis_server.port) as client, pytest.raises(InvalidInput, match="retries by itself"):
        SyncQueue(client, QUEUE)
    url = f"{redis_server.url}?retry_on_timeout=yes"
    with redis.Redis.from_url(url) as client, pytest.raises(InvalidInput, match="retries by itself"):
        SyncQueue(client, QUEUE)
    with connect(url) as client:
        assert SyncQueue(client, QUEUE).name == QUEUE


def test_a_beat_for_an_unknown_job_is_lost(bench: Bench) -> None:
    beats = [Beat(spec().id, Token(1))]
    (reply,) = bench.run(transitions.heartbeat(QUEUE, worker="w-1", beats=beats, lease_ms=LEASE_MS))
    assert reply.status is BeatStatus.LOST
