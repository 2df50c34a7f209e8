"""Jobs of a table with a work window: held outside of it with the time of its opening, and ended when it closes."""

import pytest

from shared.queue import admin_commands, commands, queries
from shared.queue.admin_commands import Preemption
from shared.queue.model import (
    Band,
    FinishOutcome,
    HeartbeatStatus,
    JobKey,
    JobRequest,
    JobState,
    RunResult,
    Share,
    StopReason,
)
from tests.support.queue_bench import QUEUE, Bench, repaired_by, spec

pytestmark = pytest.mark.redis

HOUR_MS = 3_600_000
ASKED_AGAIN_MS = 900_000


def window(bench: Bench, *times: tuple[int, int], held: str = "all", table: str = "t-1") -> None:
    """Set a window that opens and closes so many milliseconds from now."""
    now_ms = bench.clock.now_ms
    text = ",".join(f"{now_ms + opens}-{now_ms + closes}" for opens, closes in times)
    assert bench.run(admin_commands.set_window(QUEUE, table, f"{held}|{text}|as configured 20:00-06:00 UTC"))


def vacuum(table: str = "t-1") -> JobRequest:
    return JobRequest(JobKey(table, "*", "vacuum"), "acme", Band.NORMAL, 5, 1, 1)


def test_a_job_waits_with_the_time_of_the_opening_and_starts_then(bench: Bench) -> None:
    window(bench, (-HOUR_MS, 0), (HOUR_MS, 2 * HOUR_MS))
    opens_ms = bench.clock.now_ms + HOUR_MS
    bench.enqueue(spec())
    bench.enqueue(spec(table="other"))

    (other,) = bench.claim(slots=2)
    assert other.key.table == "other"
    bench.finish(other)
    held = bench.job()
    assert (held.state, held.opens_ms, bench.wait_ms()) == (JobState.DELAYED, opens_ms, ASKED_AGAIN_MS)

    while bench.clock.now_ms < opens_ms - 1:
        bench.clock.advance(min(ASKED_AGAIN_MS, opens_ms - 1 - bench.clock.now_ms))
        assert bench.claim() == ()
        assert bench.job().opens_ms == opens_ms
    bench.clock.advance(1)
    (claim,) = bench.claim()
    assert claim.key.table == "t-1"
    assert bench.job().opens_ms is None
    assert bench.state().hash("count")["held_by_window"] == "1", "it waited once"


def test_a_running_job_is_asked_to_stop_when_the_window_closes_and_waits_for_the_next_opening(bench: Bench) -> None:
    window(bench, (0, 30_000), (HOUR_MS, 2 * HOUR_MS))
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.clock.advance(29_999)
    assert bench.beat(claim).status is HeartbeatStatus.OK
    bench.clock.advance(1)
    for _ in range(2):
        reply = bench.beat(claim)
        assert (reply.status, reply.reason) == (HeartbeatStatus.STOP, StopReason.WINDOW)
    assert bench.finish(claim, RunResult.YIELD) is FinishOutcome.REQUEUED
    assert bench.claim() == ()
    assert (bench.job().attempts, bench.job().state) == (0, JobState.DELAYED)

    bench.clock.advance(HOUR_MS)
    (again,) = bench.claim()
    assert bench.beat(again).status is HeartbeatStatus.OK, "the closing before is forgotten"


@pytest.mark.parametrize("later", [False, True])
def test_a_request_for_any_time_is_not_held_even_where_it_merges_into_a_job_that_is(bench: Bench, later: bool) -> None:
    window(bench, (HOUR_MS, 2 * HOUR_MS))
    if later:
        bench.enqueue(spec())
        assert bench.claim() == ()
    bench.enqueue(spec(any_time=True))
    bench.enqueue(spec(2))

    (claim,) = bench.claim()
    bench.enqueue(spec(3))
    assert bench.beat(claim).status is HeartbeatStatus.OK
    bench.finish(claim, seen=2)
    assert bench.claim() == (), "the event during the run is held again"


def test_a_request_for_any_time_during_a_run_lets_the_next_run_start_at_once(bench: Bench) -> None:
    window(bench, (0, 1_000))
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.enqueue(spec(2, any_time=True))
    bench.clock.advance(2_000)
    bench.finish(claim, RunResult.YIELD)
    assert len(bench.claim()) == 1


def test_a_job_that_comes_back_for_any_time_does_not_end_with_the_window_before(bench: Bench) -> None:
    window(bench, (0, 1_000))
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.enqueue(spec(2, any_time=True))
    bench.clock.advance(2_000)
    bench.finish(claim, RunResult.DONE, seen=1)
    (again,) = bench.claim()
    assert bench.beat(again).status is HeartbeatStatus.OK


def test_an_expedited_job_is_not_held(bench: Bench) -> None:
    window(bench, (HOUR_MS, 2 * HOUR_MS))
    bench.enqueue(spec())
    assert bench.claim() == ()
    bench.run(admin_commands.expedite(QUEUE, spec().id))
    assert len(bench.claim()) == 1


def test_a_window_for_heavy_work_holds_full_rewrites_and_other_kinds_and_no_merge(bench: Bench) -> None:
    window(bench, (HOUR_MS, 2 * HOUR_MS), held="heavy")
    bench.enqueue(spec(partition="levels"))
    bench.enqueue(spec(partition="full", extent=1))
    bench.enqueue(vacuum())
    assert [claim.key.partition for claim in bench.claim(slots=3)] == ["levels"]
    assert bench.job(vacuum()).opens_ms is not None


def test_a_window_that_changes_or_goes_lets_jobs_start_within_the_time_after_which_they_ask_again(bench: Bench) -> None:
    window(bench, (5 * HOUR_MS, 6 * HOUR_MS))
    bench.enqueue(spec())
    assert bench.claim() == ()
    assert not bench.run(admin_commands.set_window(QUEUE, "t-1", "", expected="another"))
    assert bench.run(admin_commands.set_window(QUEUE, "t-1", ""))
    bench.clock.advance(ASKED_AGAIN_MS)
    assert len(bench.claim()) == 1


def test_without_known_times_nothing_starts(bench: Bench) -> None:
    window(bench, (-2 * HOUR_MS, -HOUR_MS))
    bench.enqueue(spec())
    assert bench.claim() == ()
    assert bench.wait_ms() == ASKED_AGAIN_MS


def test_jobs_are_taken_along_only_if_they_may_start(bench: Bench) -> None:
    window(bench, (HOUR_MS, 2 * HOUR_MS), held="heavy")
    for number, extent in enumerate((0, 1, 0)):
        bench.enqueue(spec(partition=str(number), extent=extent))
        bench.clock.advance(1)
    assert [claim.key.partition for claim in bench.claim(share=Share(4, 1 << 40))] == ["0"]
    assert [claim.key.partition for claim in bench.claim(share=Share(4, 1 << 40))] == ["2"]


def test_jobs_that_share_a_slot_are_all_asked_to_stop(bench: Bench) -> None:
    window(bench, (0, 1_000))
    bench.enqueue(spec(partition="a"))
    bench.enqueue(spec(partition="b"))
    claims = bench.claim(share=Share(4, 1 << 40))
    bench.clock.advance(1_000)
    assert [bench.beat(claim).reason for claim in claims] == [StopReason.WINDOW] * 2


def test_a_held_job_preempts_nothing_and_is_not_foreseen(bench: Bench) -> None:
    bench.enqueue(spec(table="runs", band=Band.LOW))
    (running,) = bench.claim()
    window(bench, (HOUR_MS, 2 * HOUR_MS))
    bench.enqueue(spec(band=Band.URGENT, partition="held"))
    bench.enqueue(spec(band=Band.NORMAL, partition="free", any_time=True))
    bench.enqueue(spec(table="other"))
    bench.clock.advance(3_000)

    assert bench.run(admin_commands.preempt(QUEUE, Preemption(max_wait_ms=0, min_run_ms=0))) == ()
    foreseen = bench.run(queries.order(QUEUE, claims=5))
    assert {one.id for one in foreseen} == {
        spec(partition="free").id,
        spec(table="other").id,
    }
    assert {claim.id for claim in bench.claim(slots=5)} == {one.id for one in foreseen}
    assert bench.beat(running).status is HeartbeatStatus.OK


def test_a_cancelled_job_stays_cancelled_when_the_window_closes(bench: Bench) -> None:
    window(bench, (0, 1_000))
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.clock.advance(1_000)
    assert bench.beat(claim).reason is StopReason.WINDOW
    bench.run(commands.cancel(QUEUE, claim.id, nonce="c"))
    assert bench.beat(claim).reason is StopReason.CANCEL
    assert bench.finish(claim, RunResult.YIELD) is FinishOutcome.DELETED


def test_the_audit_finds_nothing_to_repair_while_jobs_wait_for_a_window(bench: Bench) -> None:
    window(bench, (HOUR_MS, 2 * HOUR_MS))
    bench.enqueue(spec())
    bench.enqueue(spec(partition="any", any_time=True))
    assert len(bench.claim(slots=2)) == 1
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0
