"""Background jobs give way on machines that other programs use, hot ones do not, and none waits for ever."""

import pytest

from shared.queue import admin_commands
from shared.queue.model import Band, FinishOutcome, HeartbeatStatus, JobState, RunResult, Share, StopReason
from tests.support.queue_bench import QUEUE, Bench, repaired_by, spec

pytestmark = pytest.mark.redis

HOUR_MS = 3_600_000


def test_a_busy_machine_gets_the_hot_jobs_alone_and_a_calm_one_the_rest(bench: Bench) -> None:
    bench.enqueue(spec(gives_way=True))
    bench.enqueue(spec(table="hot", band=Band.LOW))

    (hot,) = bench.claim(slots=2, is_busy=True)
    assert hot.key.table == "hot"
    assert bench.claim(is_busy=True) == ()
    waiting = bench.job(spec())
    assert (waiting.state, waiting.attempts) == (JobState.DELAYED, 0)
    assert waiting.error == "waits for an actor on a machine that is less busy (LAKEWRIGHT_BACKGROUND_LOAD)"

    (claim,) = bench.claim()
    assert claim.key == spec().key
    assert bench.job(spec()).error is None
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0


def test_a_running_background_job_is_asked_to_stop_and_comes_back_where_it_is_calm(bench: Bench) -> None:
    bench.enqueue(spec(gives_way=True))
    bench.enqueue(spec(table="hot"))
    claims = {claim.key.table: claim for claim in bench.claim(slots=2)}
    background, hot = claims[spec().key.table], claims["hot"]
    assert bench.beat(background).status is HeartbeatStatus.OK
    for _ in range(2):
        reply = bench.beat(background, is_busy=True)
        assert (reply.status, reply.reason) == (HeartbeatStatus.STOP, StopReason.LOAD)
    assert bench.beat(hot, is_busy=True).status is HeartbeatStatus.OK
    assert bench.finish(background, RunResult.YIELD) is FinishOutcome.REQUEUED
    assert bench.claim(is_busy=True) == ()

    (again,) = bench.claim()
    assert (again.key, again.attempts) == (spec().key, 0)
    assert bench.beat(again).status is HeartbeatStatus.OK, "the request to stop is forgotten"


@pytest.mark.parametrize("is_set_aside", [False, True])
@pytest.mark.parametrize("hot", [{}, {"any_time": True}])
def test_a_job_is_background_only_if_all_of_its_requests_are(
    bench: Bench, is_set_aside: bool, hot: dict[str, bool]
) -> None:
    bench.enqueue(spec(gives_way=True))
    if is_set_aside:
        assert bench.claim(is_busy=True) == ()
    bench.enqueue(spec(2, **hot))
    bench.enqueue(spec(3, gives_way=True))

    (claim,) = bench.claim(is_busy=True)
    assert bench.beat(claim, is_busy=True).status is HeartbeatStatus.OK
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0


def test_a_hot_request_during_a_background_run_starts_the_next_run_on_a_busy_machine(bench: Bench) -> None:
    bench.enqueue(spec(gives_way=True))
    (claim,) = bench.claim()
    bench.enqueue(spec(2))
    assert bench.beat(claim, is_busy=True).reason is StopReason.LOAD
    bench.finish(claim, RunResult.YIELD)
    assert len(bench.claim(is_busy=True)) == 1


def test_an_expedited_job_is_no_background_job_any_more(bench: Bench) -> None:
    bench.enqueue(spec(gives_way=True))
    assert bench.claim(is_busy=True) == ()
    bench.run(admin_commands.expedite(QUEUE, spec().id))
    assert len(bench.claim(is_busy=True)) == 1


def test_a_hot_job_does_not_take_background_jobs_along_on_a_busy_machine(bench: Bench) -> None:
    share = Share(jobs=8, bytes=1 << 30)
    bench.enqueue(spec(partition="a"))
    bench.enqueue(spec(partition="b", gives_way=True))
    (hot,) = bench.claim(share=share, is_busy=True)
    assert hot.key.partition == "a"
    bench.finish(hot)
    assert bench.claim(is_busy=True) == ()
    bench.enqueue(spec(partition="a"))
    assert len(bench.claim(share=share)) == 2, "a calm one takes both"


def test_no_background_job_waits_for_a_calm_machine_for_longer_than_a_day(bench: Bench) -> None:
    bench.enqueue(spec(gives_way=True))
    for _ in range(24):
        assert bench.claim(is_busy=True) == ()
        bench.clock.advance(HOUR_MS)
    (claim,) = bench.claim(is_busy=True)
    assert bench.beat(claim, is_busy=True).status is HeartbeatStatus.OK
