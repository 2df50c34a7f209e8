"""One slot against a real Redis, with a table in memory: who owns a job, what it asks for, and what brings it back."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
import redis

from actor.ports import Control, RewriteOutcome, RewriteRequest
from decider.decide.calibration import Calibration
from shared.errors import RetryableError
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.partition_stats import IDLE_COMPACTED_TAG
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


def test_a_job_to_settle_merges_what_levels_leave_and_says_so_and_never_twice(redis_url: str) -> None:
    made = Bench(redis_url, MemoryEngine([MIB, MIB, 100]))
    payload = JobPayload.decode(spec(1).payload)
    try:
        worker = made.worker()
        for version, expected in ((1, [2 * MIB + 100]), (2, [2 * MIB + 100])):
            settle = replace(spec(version), payload=replace(payload, rewrite_kind=RewriteKind.IDLE).encode())
            made.queue.run(commands.enqueue("default", settle))
            assert worker.run_next()
            assert [file.size_bytes for file in made.engine.files.values()] == expected
            assert all(IDLE_COMPACTED_TAG in file.tags for file in made.engine.files.values())
        assert [run.run_result for run in made.runs()] == ["done", "done"]
        assert counters(made)["plans_empty"] == 1
    finally:
        made.close()


def test_a_full_rewrite_is_done_although_a_newer_commit_asked_for_less_and_teaches_nothing_of_that(
    redis_url: str,
) -> None:
    with closing(Bench(redis_url, MemoryEngine([9 * MIB, 5 * MIB, 5 * MIB, MIB, 100]))) as made:
        full = replace(
            spec(1),
            payload=replace(JobPayload.decode(spec(1).payload), rewrite_kind=RewriteKind.FULL).encode(),
            extent=1,
        )
        made.queue.run(commands.enqueue("default", full))
        made.enqueue(2)
        made.engine.version = 2
        assert made.worker().run_next()
        assert sum(file.size_bytes < 6 * MIB for file in made.engine.files.values()) <= 1
        assert made.state() is None
        assert not redis.Redis.from_url(made.url).exists("{lw:default}:meas:t-1")


class Shrinking(MemoryEngine):
    """Outputs are half as large as their inputs."""

    share = Fraction(1, 2)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        outcome = super().rewrite(request, control)
        groups = []
        for group in outcome.groups:
            small = tuple(replace(file, size_bytes=int(file.size_bytes * self.share)) for file in group.outputs)
            self.files |= {file.path: file for file in small}
            groups.append(replace(group, outputs=small))
        return replace(outcome, groups=tuple(groups))


def test_a_run_reports_how_much_outputs_shrank_and_which_missed_their_level(redis_url: str) -> None:
    engine = Shrinking([200_000] * 8)
    with closing(Bench(redis_url, engine)) as made:
        made.enqueue(1)
        assert made.worker().run_next()
        # Eight files of 200 kB are of level 4, and half of their sum lies below the 1 MiB of level 5.
        assert counters(made) | {"groups_not_promoted": 1, "levels_not_reached": 1} == counters(made)
        raw = redis.Redis.from_url(made.url).hgetall("{lw:default}:meas:t-1")
        sums = Calibration.of({name.decode(): int(value) for name, value in raw.items()})
        assert sums == Calibration(1, 0, 1_600_000, 0, 7, 1_600_000, 800_000)


def test_sums_forget_what_is_long_ago_and_a_run_that_found_nothing_teaches_nothing(redis_url: str) -> None:
    engine = MemoryEngine()
    made = Bench(redis_url, engine)
    worker = made.worker()
    try:
        for run in range(80):
            made.enqueue(engine.append([100_000 if run < 64 else 50_000] * 8))
            assert worker.run_next()
            for path in list(engine.files):
                engine.remove(path)
            made.enqueue(engine.version)
            assert worker.run_next()
        raw = redis.Redis.from_url(made.url).hgetall("{lw:default}:meas:t-1")
        sums = Calibration.of({name.decode(): int(value) for name, value in raw.items()})
        assert sums.runs == 32 + 16
        assert sums.measured_bytes == 32 * 800_000 + 16 * 400_000
    finally:
        made.close()


OFF = {"lakewright.enabled": "false"}


def test_a_table_that_is_switched_off_between_two_rounds_keeps_what_landed_and_loses_no_request(redis_url: str) -> None:
    """What arrived while the job ran is the decider's word about a newer version; it is not taken back here."""
    made = Bench(redis_url, MemoryEngine(EIGHT))

    def switch_off() -> None:
        made.engine.configuration = OFF
        made.enqueue(made.engine.append(EIGHT))

    made.engine.after_commit = switch_off
    try:
        made.enqueue(1)
        worker = made.worker()
        assert worker.run_next()
        assert len(made.engine.files) == 1 + len(EIGHT)
        assert made.state() is JobState.QUEUED
    finally:
        made.close()
