"""One slot against a real Redis, with a table in memory: who owns a job, when it ends, and what brings it back."""

import json
from collections.abc import Iterator

import pytest

from shared.errors import RetryableError
from shared.policy.policy import MIB
from shared.queue import admin_commands, commands, queries
from shared.queue.model import Band, JobKey, JobRequest, JobState, RunResult
from tests.support.memory_engine import MemoryEngine
from tests.support.time_limits import scaled
from tests.support.waiting import until
from tests.support.worker_bench import EIGHT, Bench, counters, spec

pytestmark = pytest.mark.redis


@pytest.fixture
def bench(redis_url: str) -> Iterator[Bench]:
    made = Bench(redis_url, MemoryEngine(EIGHT))
    yield made
    made.close()


def test_a_job_merges_the_small_files_and_is_gone(bench: Bench) -> None:
    bench.enqueue(1)
    assert bench.worker().run_next()
    assert [file.size_bytes for file in bench.engine.files.values()] == [800_000]
    assert bench.state() is None
    (run,) = bench.runs()
    result = json.loads(run.result)
    assert (run.run_result, result["versions"], result["measured"]["files_removed"]) == ("done", [2], 7)
    assert counters(bench)["files_replaced"] == 8
    assert not bench.worker().run_next()


def test_what_arrives_and_is_seen_while_running_causes_no_useless_run(bench: Bench) -> None:
    """The event of a commit that the run has planned on must not bring the job back."""

    def another_commit() -> None:
        bench.engine.before_commit = lambda: None
        bench.enqueue(bench.engine.append([100_000]))

    bench.engine.before_commit = another_commit
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is None
    assert "plans_empty" not in counters(bench)


def test_what_arrives_unseen_brings_the_job_back(bench: Bench) -> None:
    bench.engine.after_commit = lambda: bench.enqueue(bench.engine.append([100_000] * 8))
    bench.enqueue(1)
    worker = bench.worker()
    worker.run_next()
    assert bench.state() is JobState.QUEUED
    bench.engine.after_commit = lambda: None
    worker.run_next()
    assert bench.state() is None


def test_a_lost_lease_forbids_the_commit_and_the_next_actor_does_the_work(bench: Bench) -> None:
    """The first worker is frozen beyond its lease between files written and commit, as by a long pause of its JVM."""
    other = bench.worker("a-2")

    def freeze() -> None:
        bench.engine.before_commit = lambda: None
        until("the expired lease is given to another worker", other.run_next, seconds=10)

    first = bench.worker("a-1")
    first._heartbeat.close()
    bench.engine.before_commit = freeze
    bench.enqueue(1)
    assert first.run_next()
    assert len(bench.engine.origins) == 1
    assert [file.size_bytes for file in bench.engine.files.values()] == [800_000]
    assert [(run.worker, run.run_result) for run in bench.runs()] == [("a-2", "done"), ("a-1", "expired")]


def test_a_commit_of_a_crashed_run_is_found_and_not_done_again(bench: Bench) -> None:
    class Killed(BaseException):
        """Stands for kill -9 between commit and finish: nothing after it runs."""

    def die() -> None:
        bench.engine.after_commit = lambda: None
        raise Killed

    bench.engine.after_commit = die
    bench.enqueue(1)
    with pytest.raises(Killed):
        bench.worker("a-1").run_next()
    second = bench.worker("a-2")
    until("the expired lease is given to another worker", second.run_next, seconds=10)
    assert len(bench.engine.origins) == 1
    run, expired = bench.runs()
    assert (expired.worker, expired.run_result) == ("a-1", "expired")
    assert json.loads(run.result)["recovered_version"] == 2
    assert counters(bench)["commits_recovered"] == 1
    assert "plans_empty" not in counters(bench)


def test_a_run_tells_the_share_that_is_done_so_that_it_is_known_what_preempting_it_costs(bench: Bench) -> None:
    reported: list[float] = []

    def is_set_by_decider() -> bool:
        job = bench.queue.run(queries.job("default", spec(0).id))
        stated = json.loads((job.progress if job else None) or "{}")
        reported.extend([stated["share"]] if "share" in stated else [])
        return bool(reported)

    bench.engine.before_commit = lambda: until("a heartbeat told the share", is_set_by_decider, seconds=10)
    bench.enqueue(1)
    assert bench.worker().run_next()
    assert reported == [0.0], "nothing had landed yet"


def test_a_failure_is_delayed_and_says_why(bench: Bench) -> None:
    def fail() -> None:
        raise OSError("disk on fire")

    bench.engine.before_commit = fail
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is JobState.DELAYED
    assert "disk on fire" in bench.runs()[0].error
    assert counters(bench)["jobs_failed"] == 1


def test_a_cancelled_job_ends_without_coming_back(bench: Bench) -> None:
    bench.engine.append([5 * MIB] * 6)

    def cancel() -> None:
        bench.queue.run(commands.cancel("default", spec(0).id, nonce="cancel-1"))
        until("a heartbeat was asked to stop", stopped, seconds=10)

    worker = bench.worker(groups_per_commit=1)

    def stopped() -> bool:
        return any(lease.stop_reason for lease in worker._heartbeat._leases.values())

    bench.engine.before_commit = cancel
    bench.enqueue(1)
    worker.run_next()
    assert bench.state() is None
    assert bench.runs()[0].run_result == "cancelled"


def test_a_preempted_job_that_does_not_end_in_time_is_cancelled_and_loses_no_attempt(bench: Bench) -> None:
    """An urgent job gets the slot of a rewrite that is stuck in one large group; that one comes back behind it."""

    def stuck() -> None:
        urgent = JobRequest(JobKey("t-2", "{}", "compact"), "default", Band.URGENT, 0, 1, 1)
        bench.queue.run(commands.enqueue("default", urgent))
        rules = admin_commands.Preemption(max_wait_ms=0, min_run_ms=0)
        assert len(bench.queue.run(admin_commands.preempt("default", rules))) == 1
        assert bench.engine.cancelled.wait(scaled(10)), "the rewrite must be cancelled after its grace"
        raise RetryableError("cancelled")

    bench.engine.before_commit = stuck
    bench.enqueue(1)
    assert bench.worker().run_next()
    job = bench.queue.run(queries.job("default", spec(0).id))
    assert job is not None
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)
    assert bench.runs()[0].run_result == RunResult.YIELD
    assert [one.band for one in bench.queue.run(queries.order("default"))] == [Band.URGENT, Band.NORMAL]
