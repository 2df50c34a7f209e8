"""An engine that dies is named in the job's record, and a job that kills engines runs alone and is set aside."""

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat
from actor.ports import EngineDied
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.jobs.payload import JobPayload, PredictedCost
from shared.policy.properties import policy_digest
from shared.queue import commands, queries
from shared.queue.limits import CRASHES_UNTIL_EXCLUSIVE
from shared.queue.model import Band, JobKey, JobRequest, JobState, RunResult
from shared.queue.records import JobView
from tests.support.memory_engine import MemoryEngine
from tests.support.queue_bench import end_of
from tests.support.time_limits import scaled
from tests.support.waiting import until
from tests.support.worker_bench import EIGHT, POLICY, TIMES, Bench, spec

pytestmark = pytest.mark.redis


@pytest.fixture
def bench(redis_url: str) -> Iterator[Bench]:
    made = Bench(redis_url, MemoryEngine(EIGHT))
    made.queue.run(commands.configure("default", {"backoff_base_ms": 1, "backoff_cap_ms": 1}))
    yield made
    made.stopping.set()
    made.close()


def job(bench: Bench) -> JobView:
    found = bench.queue.run(queries.job("default", spec(0).id))
    assert found is not None, "the job is gone"
    return found


def die(bench: Bench) -> Callable[[], None]:
    def now() -> None:
        bench.engine.alive = False
        raise ConnectionRefusedError("no JVM")

    return now


def run_until_it_dies(bench: Bench, name: str) -> None:
    """Play the supervisor: a new process with a new engine, which the job kills."""
    bench.engine.alive = True
    bench.engine.before_commit = die(bench)
    worker = bench.worker(name)

    def claimed_and_died() -> bool:
        try:
            worker.run_next()
        except EngineDied:
            return True
        return False

    until("the job is claimed and kills the engine", claimed_and_died)


def test_after_two_deaths_a_job_is_set_aside_by_the_third_and_restarts_no_actor_any_more(bench: Bench) -> None:
    bench.enqueue(1)
    for number in range(CRASHES_UNTIL_EXCLUSIVE + 1):
        run_until_it_dies(bench, f"a-{number}")
    assert (job(bench).state, job(bench).error) == (JobState.QUARANTINED, "killed by SIGKILL (9)")
    bench.engine.alive = True
    assert not bench.worker("a-9").run_next()


def test_a_suspected_job_that_is_innocent_runs_alone_one_group_at_a_time_and_is_done(bench: Bench) -> None:
    bench.enqueue(1)
    bench.engine.append([100_000] * 300)
    for number in range(CRASHES_UNTIL_EXCLUSIVE):
        run_until_it_dies(bench, f"a-{number}")
    bench.engine.alive = True
    bench.engine.before_commit = lambda: None
    bench.engine.group_counts.clear()
    worker = bench.worker("a-9")
    until("the job runs", worker.run_next)
    assert bench.state() is None, "done"
    assert len(bench.engine.group_counts) > 1, "there was more than one group to do"
    assert set(bench.engine.group_counts) == {1}


def other(number: int) -> JobRequest:
    payload = JobPayload("memory://t", "t", POLICY, "eligible", PredictedCost(8, 7, 800_000), policy_digest({}))
    return JobRequest(JobKey(f"o-{number}", "{}", "compact"), "default", Band.LOW, 5, 800_000, 1, payload.encode())


def test_no_other_job_of_the_actor_runs_beside_a_suspected_one(bench: Bench) -> None:
    """Two slots: the suspected job waits for the other slot's job to end, and none begins while it runs."""
    lock, busy, at_once = threading.Lock(), threading.Event(), [0]
    release, most = threading.Event(), [0]

    def work() -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        busy.set()
        release.wait(scaled(10))
        with lock:
            at_once[0] -= 1

    bench.engine.before_commit = work
    heart = Heartbeat(SyncQueueExecutor(connect(bench.url), "default"), "two", TIMES)
    actor = ActorContext("two", heart, bench.stopping)
    slots = [
        threading.Thread(
            target=Worker(
                EngineSet([bench.engine]),
                SyncQueueExecutor(connect(bench.url), "default"),
                actor,
                WorkerSettings(idle_s=0.01),
            ).run
        )
        for _ in range(2)
    ]
    heart.start()
    try:
        bench.queue.run(commands.enqueue("default", other(1)))
        slots[0].start()
        assert busy.wait(scaled(10)), "the first slot has an innocent job"
        bench.engine.append(EIGHT)
        make_suspected(bench)
        slots[1].start()
        until("the suspected job is claimed", lambda: job(bench).state is JobState.LEASED)
        bench.queue.run(commands.enqueue("default", other(2)))
        until("it waits alone", lambda: not actor.gate.enter())
        assert most[0] == 1
        release.set()
        until("the suspected job is done", lambda: bench.state() is None)
        until("the other job is done", lambda: bench.queue.run(queries.job("default", other(2).id)) is None)
        assert most[0] == 1, "jobs ran side by side"
    finally:
        release.set()
        bench.stopping.set()
        for slot in slots:
            if slot.ident is not None:
                slot.join(scaled(10))
        heart.close()


def make_suspected(bench: Bench) -> None:
    """Queue the job with two deaths on its record, by the queue's own transitions."""
    bench.enqueue(1)
    nonces = (f"n{number}" for number in itertools.count())

    def crashed_once() -> bool:
        claims = bench.queue.run(commands.claim("default", worker="x", nonce=next(nonces), slots=1, lease_ms=60_000))
        for claim in claims:
            died = end_of(claim, RunResult.CRASHED, worker="x", cost_bytes=0, seen_version=-1, error="it died")
            bench.queue.run(died)
        return bool(claims)

    for _ in range(CRASHES_UNTIL_EXCLUSIVE):
        until("it is ready and crashes", crashed_once)
