"""One behaviour for both executors: who is served first, what ingest moves, and what reads show, on a real server."""

from typing import Any

import pytest

from shared.queue import admin_commands, commands, queries
from shared.queue.admin_commands import SlotLimit
from shared.queue.model import (
    Band,
    DecideOutcome,
    EnqueueOutcome,
    FinishOutcome,
    JobState,
    Scope,
    StagedState,
    Timer,
    TimerChange,
)
from tests.support.queue_bench import QUEUE, SETTINGS, Bench, spec

pytestmark = pytest.mark.redis


# Order


def test_a_better_priority_overtakes_only_what_is_not_much_older(bench: Bench) -> None:
    """Four steps of priority are worth four ageing intervals."""
    bench.enqueue(spec(partition="old", priority=5))
    bench.clock.advance(4 * SETTINGS.aging_ms - 1)
    bench.enqueue(spec(partition="overtakes", priority=1))
    bench.clock.advance(2)
    bench.enqueue(spec(partition="too late", priority=1))
    assert [claim.key.partition for claim in bench.claim(slots=3)] == ["overtakes", "old", "too late"]


def test_a_strict_band_is_served_first_whatever_it_has_cost(bench: Bench) -> None:
    for number in range(3):
        bench.enqueue(spec(partition=f"low {number}", band=Band.LOW))
        bench.enqueue(spec(partition=f"urgent {number}", band=Band.URGENT, cost_bytes=1 << 40))
    bands = [claim.band for claim in bench.claim(slots=6)]
    assert bands == [Band.URGENT] * 3 + [Band.LOW] * 3


@pytest.mark.parametrize("strict_bands", [0, 1, 4])
def test_the_background_is_served_only_while_no_other_band_has_a_job_that_may_start(
    bench: Bench, strict_bands: int
) -> None:
    bench.run(commands.configure(QUEUE, {"strict_bands": strict_bands, "strict_in_row": 2}))
    for number in range(40):
        bench.enqueue(spec(partition=f"idle {number}", table="idle", band=Band.BACKGROUND, cost_bytes=0))
    for number in range(5):
        for band in (Band.URGENT, Band.NORMAL, Band.LOW):
            bench.enqueue(spec(partition=f"{band} {number}", band=band, cost_bytes=1 << 40))
    foreseen = bench.run(queries.order(QUEUE, claims=20))
    served = bench.claim(slots=20)
    assert [claim.id for claim in served] == [one.id for one in foreseen]
    assert [claim.band is Band.BACKGROUND for claim in served] == [False] * 15 + [True] * 5
    reason = queries.DispatchReason.BACKGROUND
    assert [one.reason is reason for one in foreseen] == [False] * 15 + [True] * 5
    bench.enqueue(spec(partition="arrives later", band=Band.LOW, cost_bytes=1 << 40))
    assert [claim.band for claim in bench.claim(slots=2)] == [Band.LOW, Band.BACKGROUND]


def test_a_band_that_may_not_start_leaves_the_slot_to_the_background(bench: Bench) -> None:
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "busy", SlotLimit(1)))
    for number in range(3):
        bench.enqueue(spec(partition=f"{number}", table="busy", band=Band.NORMAL))
        bench.enqueue(spec(partition=f"{number}", table="idle", band=Band.BACKGROUND))
    served = bench.claim(slots=3)
    assert [claim.key.table for claim in served] == ["busy", "idle", "idle"]
    bench.finish(served[0])
    assert [claim.key.table for claim in bench.claim(slots=2)] == ["busy", "idle"]


def test_what_the_background_has_cost_is_no_debt_of_its_own_and_no_credit_of_others(bench: Bench) -> None:
    """It moves no tag of the weighted bands: they share as if it had never been served."""
    for number in range(8):
        bench.enqueue(spec(partition=f"{number}", table="idle", band=Band.BACKGROUND, cost_bytes=1 << 40))
    for claim in bench.claim(slots=8):
        bench.finish(claim, cost_bytes=1 << 41)
    for number in range(4):
        bench.enqueue(spec(partition=f"n{number}", table="n", band=Band.NORMAL))
        bench.enqueue(spec(partition=f"l{number}", table="l", band=Band.LOW))
    served = [claim.band for claim in bench.claim(slots=6)]
    assert (served.count(Band.NORMAL), served.count(Band.LOW)) == (3, 3)


@pytest.mark.parametrize("claims", [1, 2])
def test_the_order_foresees_that_a_weighted_band_has_its_turn_however_few_claims_are_foreseen(
    bench: Bench, claims: int
) -> None:
    bench.run(commands.configure(QUEUE, {"strict_in_row": 1}))
    for partition, band in (("a", Band.URGENT), ("b", Band.URGENT), ("c", Band.LOW)):
        bench.enqueue(spec(partition=partition, band=band))
    assert [claim.band for claim in bench.claim()] == [Band.URGENT]
    foreseen = bench.run(queries.order(QUEUE, claims=claims))
    assert foreseen[0].band is Band.LOW
    assert [claim.id for claim in bench.claim(claims)] == [one.id for one in foreseen]


def test_tenants_and_tables_share_by_cost_not_by_number_of_jobs(bench: Bench) -> None:
    """Of 3 GiB each, a tenant with jobs of 1 GiB gets one for every four of a tenant with jobs of a quarter."""
    gib = 1 << 30
    for number in range(12):
        bench.enqueue(spec(partition=f"s{number}", table="small", tenant="a", cost_bytes=gib // 4))
    for number in range(3):
        bench.enqueue(spec(partition=f"b{number}", table="big", tenant="b", cost_bytes=gib))
    served = [claim.key.table for claim in bench.claim(slots=10)]
    assert (served.count("small"), served.count("big")) == (8, 2)


def test_weights_divide_what_a_tenant_is_charged(bench: Bench) -> None:
    bench.client.hset("{lw:default}:cfg", "weight:tenant|heavy", "3")
    for number in range(12):
        bench.enqueue(spec(partition=f"{number}", table="h", tenant="heavy"))
        bench.enqueue(spec(partition=f"{number}", table="l", tenant="light"))
    served = [claim.tenant for claim in bench.claim(slots=12)]
    assert (served.count("heavy"), served.count("light")) == (9, 3)


def test_a_newcomer_behind_a_long_backlog_is_served_next(bench: Bench) -> None:
    for number in range(50):
        bench.enqueue(spec(partition=f"{number}", tenant="crowd", table="crowded"))
    bench.claim(slots=10)
    bench.enqueue(spec(partition="x", tenant="newcomer", table="other"))
    served = [claim.tenant for claim in bench.claim(slots=2)]
    assert "newcomer" in served


def test_a_run_that_cost_more_than_estimated_is_charged_the_difference(bench: Bench) -> None:
    for number in range(6):
        bench.enqueue(spec(partition=f"{number}", tenant="modest", table="m"))
        bench.enqueue(spec(partition=f"{number}", tenant="wrong", table="w"))
    first, second = bench.claim(slots=2)
    wrong = first if first.tenant == "wrong" else second
    bench.finish(wrong, cost_bytes=4 << 20)
    served = [claim.tenant for claim in bench.claim(slots=3)]
    assert served == ["modest"] * 3


# Ingest


def test_ingest_moves_cursor_partitions_jobs_ledger_and_counters_together(bench: Bench) -> None:
    jobs = [spec(7), spec(7, partition="b")]
    ledger = [("first", 0), ("none", -1), ("second", 1)]
    done = bench.ingest(-1, 7, partitions={"a": "1", "b": "2"}, jobs=jobs, ledger=ledger, counters={"commits": 3})
    assert (done.applied, done.version) == (True, 7)
    assert done.outcomes == (EnqueueOutcome.QUEUED, EnqueueOutcome.QUEUED)
    state = bench.state()
    assert state.hash("cur:t-1")["version"] == "7"
    assert state.hash("partitions:t-1") == {"a": "1", "b": "2"}
    assert state.hash("count:t-1") == state.hash("count") == {"commits": "3"}
    records: Any = bench.client.xrange("{lw:default}:led:t-1")
    assert [(fields[b"record"], fields[b"out"]) for _, fields in records] == [
        (b"first", b"queued"),
        (b"none", b""),
        (b"second", b"queued"),
    ]
    assert len(bench.claim(slots=3)) == 2


def test_the_second_of_two_deciders_writes_nothing_and_learns_the_version(bench: Bench) -> None:
    bench.ingest(-1, 3)
    before = bench.state()
    late = bench.ingest(-1, 2, partitions={"a": "1"}, jobs=[spec()], counters={"x": 1})
    assert (late.applied, late.version, late.outcomes) == (False, 3, ())
    assert bench.state() == before


def test_partitions_are_set_and_dropped_and_a_reset_drops_all_others(bench: Bench) -> None:
    bench.ingest(-1, 1, partitions={"a": "1", "b": "2", "c": "3"})
    bench.ingest(1, 2, partitions={"a": None, "b": "4"})
    assert bench.state().hash("partitions:t-1") == {"b": "4", "c": "3"}
    bench.ingest(2, 2, partitions={"d": "5"}, reset=True)
    assert bench.state().hash("partitions:t-1") == {"d": "5"}


def test_a_reset_carries_a_large_table_in_one_call(bench: Bench) -> None:
    partitions = {f"partition {number}": str(number) for number in range(20_000)}
    assert bench.ingest(-1, 1, partitions=partitions, reset=True).applied
    assert bench.state().hash("partitions:t-1") == partitions


def test_the_ledger_is_capped(bench: Bench) -> None:
    records = [(str(number), -1) for number in range(1_000)]
    bench.ingest(-1, 1, ledger=records, ledger_kept=200)
    assert 200 <= bench.state().streams["led:t-1"] <= 400


def test_timers_are_set_moved_and_stopped_and_the_first_of_each_table_is_known(bench: Bench) -> None:
    bench.ingest(-1, 1, timers=[Timer("a", 50), Timer("b", 70), Timer("c", 90, TimerChange.EARLIER)])
    bench.ingest(
        1, 2, timers=[Timer("a", 60), Timer("b", 80, TimerChange.EARLIER), Timer("c", 40, TimerChange.EARLIER)]
    )
    assert bench.state().zset("due:t-1") == {"a": 60, "b": 70, "c": 40}
    assert bench.state().zset("due") == {"t-1": 40}
    bench.ingest(2, 3, timers=[Timer("c", 0, TimerChange.STOP)])
    assert bench.state().zset("due") == {"t-1": 60}
    bench.ingest(3, 3, reset=True)
    assert bench.state().zset("due:t-1") == bench.state().zset("due") == {}


def test_a_decision_takes_its_timer_queues_its_job_and_keeps_its_record_together(bench: Bench) -> None:
    timer = Timer("a", 50)
    bench.ingest(-1, 1, timers=[timer, Timer("b", 90)])
    call = commands.decide(
        QUEUE, nonce="n", table="t-1", timer=timer, job=spec(), record="why", counters={"enqueued": 1}
    )
    for _ in range(2):
        # The second time stands for a reply that was lost.
        assert bench.run(call) is DecideOutcome.QUEUED
        state = bench.state()
        assert (state.zset("due"), state.streams["led:t-1"]) == ({"t-1": 90}, 1)
        assert state.hash("count:t-1") == {"enqueued": "1"}
    assert len(bench.claim(slots=3)) == 1


def test_a_decision_whose_timer_is_another_by_now_changes_nothing(bench: Bench) -> None:
    bench.ingest(-1, 1, timers=[Timer("a", 50)])
    before = bench.state()
    for timer in (Timer("a", 49), Timer("x", 50)):
        call = commands.decide(QUEUE, nonce=timer.name, table="t-1", timer=timer, job=spec(), record="why")
        assert bench.run(call) is DecideOutcome.TIMER_CHANGED
    assert bench.state() == before


@pytest.mark.parametrize("is_running", [False, True])
def test_a_timer_rings_again_later_where_the_partition_has_a_job(bench: Bench, *, is_running: bool) -> None:
    bench.ingest(-1, 1, timers=[Timer("a", 50)])
    bench.enqueue(spec())
    if is_running:
        bench.claim()
    call = commands.decide(
        QUEUE, nonce="n", table="t-1", timer=Timer("a", 50), rearm_at_ms=99, job=spec(5), record="why"
    )
    assert bench.run(call) is DecideOutcome.ALREADY_QUEUED
    assert bench.state().zset("due") == {"t-1": 99}
    assert bench.job().version == 1
    assert "led:t-1" not in bench.state().streams


def test_a_rebuild_puts_in_place_what_was_staged_or_nothing(bench: Bench) -> None:
    bench.ingest(-1, 1, partitions={"old": "1"}, timers=[Timer("old", 1)])
    before = bench.state()
    assert not bench.ingest(1, 2, reset=StagedState("gone", 2, 1)).applied
    assert bench.state() == before
    for name in ("new:x", "newdue:x"):
        bench.client.delete("{lw:default}:" + name)
    bench.client.hset("{lw:default}:new:x", mapping={"a": "1", "b": "2"})
    bench.client.zadd("{lw:default}:newdue:x", {"a": 7})
    for key in ("new:x", "newdue:x"):
        bench.client.expire("{lw:default}:" + key, 100)
    staged = bench.state()
    for incomplete in (StagedState("x", 3, 1), StagedState("x", 2, 2)):
        assert not bench.ingest(1, 2, reset=incomplete).applied
        assert bench.state() == staged, "a failover lost a part of what was staged"
    assert bench.ingest(1, 2, reset=StagedState("x", 2, 1)).applied
    state = bench.state()
    assert state.hash("partitions:t-1") == {"a": "1", "b": "2"}
    assert (state.zset("due:t-1"), state.zset("due")) == ({"a": 7}, {"t-1": 7})
    assert {"partitions:t-1", "due:t-1"} <= state.without_ttl


def test_the_end_of_a_run_brings_nothing_back_of_a_table_that_was_forgotten_meanwhile(bench: Bench) -> None:
    """What a run counted is the queue's, too; there it stays."""
    bench.ingest(-1, 0, counters={"commits": 1})
    bench.enqueue(spec())
    (claim,) = bench.claim()
    for kept in ("cur", "partitions", "count", "meas"):
        bench.client.delete(f"{{lw:default}}:{kept}:t-1")
    assert bench.finish(claim, counters={"runs": 1}, measures={"runs": 1}) is FinishOutcome.DELETED
    assert not bench.client.keys("*:t-1")
    assert bench.state().hash("count") == {"commits": "1", "runs": "1"}


# Reading


def test_reads_show_every_state_and_page_through_it(bench: Bench) -> None:
    for number in range(5):
        bench.enqueue(spec(partition=f"{number}"))
        bench.clock.advance(1_000)
    (claim,) = bench.claim()
    depth = bench.run(queries.depth(QUEUE))
    assert depth.depth == {
        JobState.QUEUED: 4,
        JobState.DELAYED: 0,
        JobState.LEASED: 1,
        JobState.QUARANTINED: 0,
    }
    assert depth.oldest_wait_ms == 4_000
    first = bench.run(queries.jobs(QUEUE, JobState.QUEUED, limit=3))
    rest = bench.run(queries.jobs(QUEUE, JobState.QUEUED, offset=first.next_offset or 0, limit=3))
    assert [view.key.partition for view in (*first.jobs, *rest.jobs)] == ["1", "2", "3", "4"]
    assert rest.next_offset is None
    (leased,) = bench.run(queries.jobs(QUEUE, JobState.LEASED)).jobs
    assert (leased.id, leased.token, leased.worker) == (claim.id, claim.token, "w-1")
    assert (leased.started_ms, leased.lease_until_ms) == (bench.clock.now_ms, claim.lease_until_ms)


def test_the_history_keeps_every_run_with_its_result_newest_first(bench: Bench) -> None:
    bench.ingest(-1, 0)
    for number in range(3):
        bench.enqueue(spec(number))
        bench.clock.advance(10)
        (claim,) = bench.claim()
        bench.clock.advance(100)
        bench.finish(claim, result=f'{{"run":{number}}}', counters={"runs": 1})
    page = bench.run(queries.history(QUEUE, limit=2))
    rest = bench.run(queries.history(QUEUE, before=page.next_before or "", limit=2))
    runs = (*page.runs, *rest.runs)
    assert [run.result for run in runs] == ['{"run":2}', '{"run":1}', '{"run":0}']
    last = runs[0]
    assert (last.id, last.token, last.run_result, last.outcome) == (claim.id, claim.token, "done", "deleted")
    assert (last.started_ms - last.enqueued_at_ms, last.finished_ms - last.started_ms) == (10, 100)
    assert bench.state().hash("count:t-1") == bench.state().hash("count") == {"runs": "3"}
