"""Jobs that share a commit, against a real Redis: what each of them loses and keeps when something happens to one."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from shared.errors import RetryableError
from shared.policy.policy import MIB
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
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


class ActorDied(BaseException):
    """Ends an actor as SIGKILL does: nothing of it runs any more."""


@pytest.mark.parametrize("reported", [0, 1, 2])
def test_an_actor_that_died_between_its_commit_and_the_ends_of_its_jobs_doubles_nothing(
    bench: Bench, reported: int
) -> None:
    """Each unreported job comes back by its lease, finds the commit by its own token, and nothing left to do."""
    first = bench.worker("a-1", share=FOUR)
    run, ends = first._queue.queue.run, count()

    def die(command: Command[Any]) -> Any:
        if command.script in (ScriptName.FINISH, ScriptName.FINISH_AND_CLAIM) and next(ends) == reported:
            raise ActorDied
        return run(command)

    first._queue.queue.run = die  # type: ignore[method-assign]
    with pytest.raises(ActorDied):
        first.run_next()
    first._heartbeat.close()
    shared, before = bench.engine.version, set(bench.engine.files)
    assert [len(jobs) for jobs in jobs_of_commits(bench)] == [3]
    other = bench.worker("a-2", share=FOUR)
    for _ in range(3 - reported):
        until("an expired lease is given to another worker", other.run_next, seconds=10)
    assert set(bench.engine.files) == before
    assert [len(jobs) for jobs in jobs_of_commits(bench)] == [3], "nothing is committed twice"
    assert sorted(results(bench).values()) == [["done"]] * reported + [["done", "expired"]] * (3 - reported)
    recovered = [json.loads(one.result).get("recovered_version") for one in bench.runs() if one.worker == "a-2"]
    assert recovered == [shared] * (3 - reported), "each finds the commit by its own token"
    assert [bench.state(partition) for partition in (A, B, C)] == [None] * 3


def test_a_job_claimed_with_an_end_whose_answers_are_lost_is_run_and_counts_no_attempt(bench: Bench) -> None:
    """The end took effect and leased the next job: the repetition is told so, however many answers are lost."""
    worker = bench.worker("a-1")
    run, lost = worker._queue.queue.run, []

    def lose(command: Command[Any]) -> Any:
        answer = run(command)
        if command.script is ScriptName.FINISH_AND_CLAIM and len(lost) < 3:
            lost.append(command)
            raise RetryableError("the answer was lost")
        if answer == () and command.script is ScriptName.CLAIM:
            bench.stopping.set()
        return answer

    worker._queue.queue.run = lose  # type: ignore[method-assign]
    worker.run()
    assert len(lost) == 3
    assert results(bench) == {A: ["done"], B: ["done"], C: ["done"]}
    assert {one.attempts for one in bench.runs()} == {0}
    assert sum(len(jobs) for jobs in jobs_of_commits(bench)) == 3


def test_jobs_whose_claim_was_not_answered_are_run_and_count_no_attempt(bench: Bench) -> None:
    worker = bench.worker("a-1", share=FOUR)
    run, lost = worker._queue.queue.run, []

    def lose(command: Command[Any]) -> Any:
        answer = run(command)
        if command.script is ScriptName.CLAIM and len(lost) < 2:
            lost.append(command)
            raise RetryableError("the answer was lost")
        return answer

    worker._queue.queue.run = lose  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(RetryableError):
            worker.run_next()
    assert worker.run_next()
    assert results(bench) == {A: ["done"], B: ["done"], C: ["done"]}
    assert [len(jobs) for jobs in jobs_of_commits(bench)] == [3]
