"""One slot against a real Redis, with a table in memory: who owns a job, when it ends, and what brings it back."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
import redis

from actor.heartbeat import Heartbeat, LeaseTimes
from actor.ports import Control, EngineDied, RewriteOutcome, RewriteRequest
from actor.store.queue import SyncQueue, connect
from actor.worker import Actor, Worker, WorkerSettings
from decider.decide.calibration import Calibration
from shared.errors import RetryableError
from shared.facts import Ask, JobFacts, Predicted
from shared.planner import SETTLED_TAG
from shared.policy import MIB, Policy
from shared.properties import terms
from shared.queue import reads, steering, transitions
from shared.queue.model import Band, JobKey, JobSpec, JobState, Verdict
from tests.support.memory_engine import MemoryEngine

pytestmark = pytest.mark.redis

POLICY = Policy(target_bytes=8 * MIB)
KEY = JobKey("t-1", "{}", "compact")
TIMES = LeaseTimes(lease_s=2.0, interval_s=0.2, margin_s=0.5, grace_s=0.3)
EIGHT = [100_000] * 8


def spec(version: int) -> JobSpec:
    facts = JobFacts("memory://t", "t", POLICY, "worth_it", Predicted(8, 7, 800_000), terms({}))
    return JobSpec(KEY, "default", Band.NORMAL, 5, 800_000, version, facts.encode())


class Bench:
    """A queue, and workers on it."""

    def __init__(self, url: str, engine: MemoryEngine) -> None:
        self.url = url
        self.engine = engine
        self.queue = SyncQueue(connect(url), "default")
        self.stopping = threading.Event()
        self._hearts: list[Heartbeat] = []

    def worker(self, name: str = "a-1", *, groups_per_commit: int = 8) -> Worker:
        heart = Heartbeat(SyncQueue(connect(self.url), "default"), name, TIMES, cancel=self.engine.cancel)
        heart.start()
        self._hearts.append(heart)
        settings = WorkerSettings(idle_s=0.05, groups_per_commit=groups_per_commit)
        queue = SyncQueue(connect(self.url), "default")
        return Worker(self.engine, queue, Actor(name, heart, self.stopping), settings)

    def enqueue(self, version: int) -> None:
        self.queue.run(transitions.enqueue("default", spec(version)))

    def state(self) -> JobState | None:
        view = self.queue.run(reads.job("default", spec(0).id))
        return None if view is None else view.state

    def runs(self) -> list:
        return list(self.queue.run(reads.history("default")).runs)

    def close(self) -> None:
        for heart in self._hearts:
            heart.close()


@pytest.fixture
def bench(redis_url: str) -> Iterator[Bench]:
    made = Bench(redis_url, MemoryEngine(EIGHT))
    yield made
    made.close()


def counters(bench: Bench) -> dict[str, int]:
    raw = redis.Redis.from_url(bench.url).hgetall("{lw:default}:count")
    return {name.decode(): int(value) for name, value in raw.items()}


def test_a_job_merges_the_small_files_and_is_gone(bench: Bench) -> None:
    bench.enqueue(1)
    assert bench.worker().run_next()
    assert [file.size_bytes for file in bench.engine.files.values()] == [800_000]
    assert bench.state() is None
    (run,) = bench.runs()
    result = json.loads(run.result)
    assert (run.verdict, result["versions"], result["measured"]["files_removed"]) == ("done", [2], 7)
    assert counters(bench)["files_replaced"] == 8
    assert not bench.worker().run_next()


def test_a_job_yields_when_its_bytes_are_spent_and_the_next_one_goes_on(bench: Bench) -> None:
    bench.engine = MemoryEngine([5 * MIB] * 8)
    policy = replace(POLICY, max_bytes_per_job=10 * MIB, tolerance=Fraction(0))
    facts = JobFacts("memory://t", "t", policy, "worth_it", Predicted(8, 4, 40 * MIB)).encode()
    bench.queue.run(transitions.enqueue("default", replace(spec(1), facts=facts)))
    worker = bench.worker()
    while worker.run_next():
        pass
    replaced = [json.loads(run.result)["measured"]["bytes"] for run in bench.runs()]
    assert max(replaced) == 10 * MIB
    assert sum(replaced) == 40 * MIB
    assert sorted(file.size_bytes for file in bench.engine.files.values()) == [10 * MIB] * 4


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


def test_stale_groups_are_planned_again(bench: Bench) -> None:
    def take_one() -> None:
        bench.engine.before_commit = lambda: None
        bench.engine.remove("f0")
        bench.engine.append([100_000])

    bench.engine.before_commit = take_one
    bench.enqueue(1)
    bench.worker().run_next()
    assert [file.size_bytes for file in bench.engine.files.values()] == [800_000]
    assert json.loads(bench.runs()[0].result)["groups_stale"] == 1


def test_a_lost_lease_forbids_the_commit_and_the_next_actor_does_the_work(bench: Bench) -> None:
    """The first worker is frozen beyond its lease between files written and commit, as by a long pause of its JVM."""
    other = bench.worker("a-2")

    def freeze() -> None:
        bench.engine.before_commit = lambda: None
        deadline = time.monotonic() + 10
        while not other.run_next():
            assert time.monotonic() < deadline, "the expired lease was never given to another worker"
            frozen.wait(0.05)

    frozen = threading.Event()
    first = bench.worker("a-1")
    first._heartbeat.close()
    bench.engine.before_commit = freeze
    bench.enqueue(1)
    assert first.run_next()
    assert len(bench.engine.origins) == 1
    assert [file.size_bytes for file in bench.engine.files.values()] == [800_000]
    assert [run.worker for run in bench.runs()] == ["a-2"]


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
    deadline = time.monotonic() + 10
    while not second.run_next():
        assert time.monotonic() < deadline
        bench.stopping.wait(0.05)
    assert len(bench.engine.origins) == 1
    (run,) = bench.runs()
    assert json.loads(run.result)["recovered_version"] == 2
    assert counters(bench)["runs_recovered"] == 1
    assert "plans_empty" not in counters(bench)


def test_a_run_tells_the_share_that_is_done_so_that_it_is_known_what_preempting_it_costs(bench: Bench) -> None:
    told: list[float] = []

    def look() -> None:
        deadline = time.monotonic() + 10
        while not told:
            job = bench.queue.run(reads.job("default", spec(0).id))
            said = json.loads((job.progress if job else None) or "{}")
            told.extend([said["share"]] if "share" in said else [])
            assert time.monotonic() < deadline, "no heartbeat told the share"
            bench.stopping.wait(0.02)

    bench.engine.before_commit = look
    bench.enqueue(1)
    assert bench.worker().run_next()
    assert told == [0.0], "nothing had landed yet"


def test_a_refused_table_takes_its_job_away_with_the_reason(bench: Bench) -> None:
    bench.engine.refusal = "table t is clustered"
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is None
    assert bench.runs()[0].error == "table t is clustered"


def test_a_failure_is_delayed_and_says_why(bench: Bench) -> None:
    def fail() -> None:
        raise OSError("disk on fire")

    bench.engine.before_commit = fail
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is JobState.DELAYED
    assert "disk on fire" in bench.runs()[0].error


def test_stopping_yields_at_a_group_boundary_and_loses_nothing(bench: Bench) -> None:
    bench.engine.append([5 * MIB] * 6)
    bench.engine.before_commit = bench.stopping.set
    bench.enqueue(1)
    bench.worker(groups_per_commit=1).run_next()
    assert bench.state() is JobState.QUEUED
    assert bench.runs()[0].verdict == "yield"
    assert counters(bench)["groups_landed"] >= 1


def test_a_cancelled_job_ends_without_coming_back(bench: Bench) -> None:
    bench.engine.append([5 * MIB] * 6)

    def cancel() -> None:
        bench.queue.run(transitions.cancel("default", spec(0).id, nonce="cancel-1"))
        deadline = time.monotonic() + 10
        while not stopped() and time.monotonic() < deadline:
            bench.stopping.wait(0.05)

    worker = bench.worker(groups_per_commit=1)

    def stopped() -> bool:
        return any(lease.stop_reason for lease in worker._heartbeat._leases.values())

    bench.engine.before_commit = cancel
    bench.enqueue(1)
    worker.run_next()
    assert bench.state() is None
    assert bench.runs()[0].verdict == "cancelled"


def test_a_job_that_cannot_be_read_is_set_aside_and_its_slot_lives(bench: Bench) -> None:
    """Facts of another release must not take a slot with them."""
    broken = JobSpec(KEY, "default", Band.NORMAL, 5, 0, 1, '{"location": 1}')
    bench.queue.run(transitions.enqueue("default", broken))
    worker = bench.worker()
    assert worker.run_next()
    assert bench.state() is JobState.DELAYED
    assert not worker._heartbeat._leases


def test_an_actor_whose_engine_died_ends_and_leaves_the_job_to_others(bench: Bench) -> None:
    def die() -> None:
        bench.engine.alive = False
        raise ConnectionRefusedError("no JVM")

    bench.engine.before_commit = die
    bench.enqueue(1)
    with pytest.raises(EngineDied, match="no JVM"):
        bench.worker().run()
    assert bench.state() is JobState.LEASED
    assert bench.runs() == []


def test_a_place_that_cannot_be_reached_is_tried_again(bench: Bench) -> None:
    """A mount that is away, or an actor that may not read there, says nothing about the table."""
    bench.engine.refusal = "there is no Delta table"
    bench.engine.refused_field = "location"
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is JobState.DELAYED


def test_a_wish_made_under_other_properties_outlives_a_run_under_the_old_ones(bench: Bench) -> None:
    def change_policy() -> None:
        bench.engine.before_commit = lambda: None
        bench.engine.configuration = {"lakewright.min-input-files": "2"}
        bench.enqueue(bench.engine.append([100_000] * 2))

    bench.engine.before_commit = change_policy
    bench.enqueue(1)
    bench.worker().run_next()
    assert bench.state() is JobState.QUEUED


def test_releasing_a_lost_lease_leaves_the_new_one_of_another_slot_alone(bench: Bench) -> None:
    worker = bench.worker()
    bench.enqueue(1)
    heart = worker._heartbeat
    (claim,) = bench.queue.run(transitions.claim("default", worker="a-1", nonce="n", slots=1, lease_ms=2000))
    old = heart.hold(claim, sent=time.monotonic())
    new = heart.hold(claim, sent=time.monotonic())
    heart.release(old)
    assert list(heart._leases.values()) == [new]


def test_a_preempted_job_that_does_not_end_in_time_is_cancelled_and_loses_no_attempt(bench: Bench) -> None:
    """An urgent job gets the slot of a rewrite that is stuck in one large group; that one comes back behind it."""

    def stuck() -> None:
        urgent = JobSpec(JobKey("t-2", "{}", "compact"), "default", Band.URGENT, 0, 1, 1)
        bench.queue.run(transitions.enqueue("default", urgent))
        rules = steering.Preemption(patience_ms=0, run_ms=0)
        assert len(bench.queue.run(steering.preempt("default", rules))) == 1
        assert bench.engine.cancelled.wait(10), "the rewrite must be cancelled after its grace"
        raise RetryableError("cancelled")

    bench.engine.before_commit = stuck
    bench.enqueue(1)
    assert bench.worker().run_next()
    job = bench.queue.run(reads.job("default", spec(0).id))
    assert job is not None
    assert (job.state, job.attempts) == (JobState.QUEUED, 0)
    assert bench.runs()[0].verdict == Verdict.YIELD
    assert [one.band for one in bench.queue.run(reads.order("default"))] == [Band.URGENT, Band.NORMAL]


def test_a_job_to_settle_merges_what_levels_leave_and_says_so_and_never_twice(redis_url: str) -> None:
    made = Bench(redis_url, MemoryEngine([MIB, MIB, 100]))
    facts = JobFacts.decode(spec(1).facts)
    try:
        worker = made.worker()
        for version, expected in ((1, [2 * MIB + 100]), (2, [2 * MIB + 100])):
            settle = replace(spec(version), facts=replace(facts, ask=Ask.SETTLE).encode())
            made.queue.run(transitions.enqueue("default", settle))
            assert worker.run_next()
            assert [file.size_bytes for file in made.engine.files.values()] == expected
            assert all(SETTLED_TAG in file.tags for file in made.engine.files.values())
        assert [run.verdict for run in made.runs()] == ["done", "done"]
        assert counters(made)["plans_empty"] == 1
    finally:
        made.close()


def test_a_job_for_a_full_rewrite_leaves_one_small_file(redis_url: str) -> None:
    made = Bench(redis_url, MemoryEngine([9 * MIB, 5 * MIB, 5 * MIB, MIB, 100]))
    facts = JobFacts.decode(spec(1).facts)
    try:
        full = replace(spec(1), facts=replace(facts, ask=Ask.FULL).encode())
        made.queue.run(transitions.enqueue("default", full))
        assert made.worker().run_next()
        sizes = sorted(file.size_bytes for file in made.engine.files.values())
        assert sum(size < 6 * MIB for size in sizes) <= 1
        assert sum(sizes) == 20 * MIB + 100
        assert made.state() is None
    finally:
        made.close()


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
    made = Bench(redis_url, engine)
    try:
        made.enqueue(1)
        assert made.worker().run_next()
        # Eight files of 200 kB are of level 4, and half of their sum lies below the 1 MiB of level 5.
        assert counters(made) | {"groups_missed": 1, "levels_missed": 1} == counters(made)
        raw = redis.Redis.from_url(made.url).hgetall("{lw:default}:meas:t-1")
        sums = Calibration.of({name.decode(): int(value) for name, value in raw.items()})
        assert sums == Calibration(1, 0, 1_600_000, 0, 7, 1_600_000, 800_000)
    finally:
        made.close()


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


def test_a_job_for_a_hot_cell_commits_one_group_at_a_time(redis_url: str) -> None:
    made = Bench(redis_url, MemoryEngine([5 * MIB] * 8))
    policy = replace(POLICY, tolerance=Fraction(0))
    facts = JobFacts("memory://t", "t", policy, "worth_it", Predicted(8, 4, 40 * MIB), is_hot=True).encode()
    try:
        made.queue.run(transitions.enqueue("default", replace(spec(1), facts=facts)))
        assert made.worker().run_next()
        (run,) = made.runs()
        assert len(json.loads(run.result)["versions"]) == 4
    finally:
        made.close()
