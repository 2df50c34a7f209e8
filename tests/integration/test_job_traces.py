"""A job keeps the traces of its newest requests through merges, reruns, failures and cancellation."""

from dataclasses import replace

import pytest
import redis as redis_library

from actor.queue_executor import SyncQueueExecutor, connect
from shared.queue import commands, keys
from shared.queue.model import Claim, RunResult
from shared.tracing import MAX_CONTEXTS
from tests.support.queue_bench import end_of
from tests.support.queue_calls import spec

pytestmark = pytest.mark.redis

TRACES = [f"00-{1:032x}-{number:016x}-01" for number in range(12)]


class Jobs:
    """One job in a queue."""

    def __init__(self, redis_url: str) -> None:
        self.queue = SyncQueueExecutor(connect(redis_url), "default")
        self.redis = redis_library.Redis.from_url(redis_url, decode_responses=True)
        self.calls = 0

    def request(self, version: int, trace: str) -> None:
        self.queue.run(commands.enqueue("default", replace(spec(version=version), trace=trace)))

    def claim(self) -> Claim:
        self.calls += 1
        (found,) = self.queue.run(
            commands.claim("default", worker="w", nonce=f"c-{self.calls}", slots=1, lease_ms=60_000)
        )
        return found

    def finish(self, claim: Claim, result: RunResult, seen_version: int) -> None:
        self.queue.run(end_of(claim, result, seen_version=seen_version))

    def fields(self) -> dict[str, str]:
        found = self.redis.hgetall(keys.job("default", spec().id))
        return {name: value for name, value in found.items() if name.endswith("traces")}


@pytest.fixture
def jobs(redis_url: str) -> Jobs:
    return Jobs(redis_url)


def test_the_newest_requests_are_kept_and_a_repetition_changes_nothing(jobs: Jobs) -> None:
    for version, trace in enumerate(TRACES, start=1):
        jobs.request(version, trace)
    newest = TRACES[-MAX_CONTEXTS:]
    assert jobs.queue.traces(spec().id) == tuple(newest)
    jobs.request(12, TRACES[-3])
    assert jobs.fields() == {"traces": " ".join(newest)}


def test_a_request_during_a_run_is_the_next_runs_and_not_this_ones(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    assert jobs.queue.traces(held.id) == (TRACES[1],)
    jobs.finish(held, RunResult.DONE, seen_version=1)
    assert jobs.fields() == {"traces": TRACES[2]}


def test_a_run_that_is_repeated_keeps_its_traces_and_adds_those_that_came_meanwhile(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    jobs.finish(held, RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {"traces": f"{TRACES[1]} {TRACES[2]}"}
    jobs.finish(jobs.claim(), RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {"traces": f"{TRACES[1]} {TRACES[2]}"}


def test_a_rerun_without_a_trace_does_not_continue_the_trace_before_it(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, "")
    jobs.finish(held, RunResult.DONE, seen_version=1)
    assert jobs.fields() == {}


def test_a_cancelled_request_leaves_no_trace(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    jobs.queue.run(commands.cancel("default", held.id, nonce="x"))
    jobs.request(3, TRACES[3])
    jobs.finish(held, RunResult.CANCELLED, seen_version=1)
    assert jobs.fields() == {"traces": TRACES[3]}


def test_jobs_without_traces_have_no_fields_for_them(jobs: Jobs) -> None:
    jobs.request(1, "")
    held = jobs.claim()
    jobs.request(2, "")
    jobs.finish(held, RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {}
