"""Jobs that share a commit, against a real Redis: what each of them loses and keeps when something happens to one."""

from collections.abc import Iterator

import pytest

from shared.policy import MIB
from shared.queue import commands
from shared.queue.model import JobState, Share
from shared.table import PartitionKey
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until
from tests.support.worker_bench import EIGHT, Bench, spec

pytestmark = pytest.mark.redis

A, B, C = (PartitionKey(f'{{"p":"{name}"}}') for name in "abc")
FOUR = Share(4, 100 * MIB)


@pytest.fixture
def bench(redis_url: str) -> Iterator[Bench]:
    engine = MemoryEngine()
    for partition in (A, B, C):
        engine.append(EIGHT, partition)
    made = Bench(redis_url, engine)
    for partition in (A, B, C):
        made.enqueue(1, partition)
    yield made
    made.close()


def jobs_of_commits(bench: Bench) -> list[set[str]]:
    return [{origin.job for origin in origins} for _, origins in sorted(bench.engine.signed.items())]


def results(bench: Bench) -> dict[str, list[str]]:
    """The results of the runs of each job, newest first."""
    found: dict[str, list[str]] = {}
    for run in bench.runs():
        found.setdefault(run.key.partition, []).append(run.run_result)
    return found


def test_one_claim_one_commit_and_an_end_for_each(bench: Bench) -> None:
    worker = bench.worker(share=FOUR)
    assert worker.run_next()
    assert jobs_of_commits(bench) == [{spec(0, partition).id for partition in (A, B, C)}]
    assert results(bench) == {A: ["done"], B: ["done"], C: ["done"]}
    assert not worker.run_next()


def test_an_event_during_the_run_brings_back_the_job_of_its_partition_only(bench: Bench) -> None:
    def commit_of_others() -> None:
        bench.engine.after_commit = lambda: None
        bench.enqueue(bench.engine.append(EIGHT, B) + 5, B)

    bench.engine.after_commit = commit_of_others
    bench.worker(share=FOUR).run_next()
    assert [bench.state(partition) for partition in (A, B, C)] == [None, JobState.QUEUED, None]


def test_a_cancel_during_the_run_ends_one_job_and_the_others_go_on(bench: Bench) -> None:
    """The other writers never let this partition come to rest; only the cancelled job ends before its work does."""

    def cancel() -> None:
        bench.engine.before_commit = lambda: None
        bench.queue.run(commands.cancel("default", spec(0, B).id, nonce="n"))
        for partition in (A, B, C):
            bench.engine.append(EIGHT, partition)

    bench.engine.before_commit = cancel
    bench.worker(share=FOUR).run_next()
    assert results(bench) == {A: ["done"], B: ["cancelled"], C: ["done"]}
    assert [bench.state(partition) for partition in (A, B, C)] == [None, None, None]


def test_jobs_of_an_actor_that_fell_silent_before_its_commit_are_done_once_by_the_next(bench: Bench) -> None:
    other = bench.worker("a-2", share=FOUR)

    def freeze() -> None:
        bench.engine.before_commit = lambda: None
        for _ in range(3):
            until("an expired lease is given to another worker", other.run_next, seconds=10)

    first = bench.worker("a-1", share=FOUR)
    first._heartbeat.close()
    bench.engine.before_commit = freeze
    assert first.run_next()
    assert results(bench) == {partition: ["done", "expired"] for partition in (A, B, C)}
    alone = [[spec(0, partition).id] for partition in (A, B, C)]
    assert sorted(map(list, jobs_of_commits(bench))) == sorted(alone), "each alone after an expired lease"
    assert sorted(file.size_bytes for file in bench.engine.files.values()) == [800_000] * 3
