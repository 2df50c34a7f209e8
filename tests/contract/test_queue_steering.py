"""One behaviour for both executors: weights, limits, pauses, the guard against strict bands, promotion, preemption."""

import pytest

from shared.errors import InvalidInput
from shared.queue import admin_commands, commands, keys, queries
from shared.queue.admin_commands import Preemption, SlotLimit, SlotQuota
from shared.queue.model import (
    Band,
    Debounce,
    HeartbeatStatus,
    JobId,
    JobState,
    MoveOutcome,
    RunResult,
    Scope,
    StopReason,
)
from shared.queue.queries import DispatchReason
from tests.support.queue_bench import QUEUE, SETTINGS, Bench, repaired_by, spec

pytestmark = pytest.mark.redis

AT_ONCE = Preemption(max_wait_ms=0, min_run_ms=0)


def fill(bench: Bench, count: int, **more: object) -> None:
    for number in range(count):
        bench.enqueue(spec(partition=f"{more.get('band')} {number}", **more))  # type: ignore[arg-type] # as spec takes it


# Limits and pauses


def test_a_table_at_its_limit_waits_and_lets_others_pass(bench: Bench) -> None:
    """The limit holds over all bands in which the table has jobs, and each run's end lets one more in."""
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SlotLimit(2)))
    fill(bench, 3, band=Band.NORMAL)
    fill(bench, 3, band=Band.LOW)
    fill(bench, 1, band=Band.LOW, table="other")
    served = bench.claim(slots=8)
    assert sorted(claim.key.table for claim in served) == ["other", "t-1", "t-1"]
    assert bench.claim() == ()
    bench.finish(next(claim for claim in served if claim.key.table == "t-1"))
    assert [claim.key.table for claim in bench.claim(slots=8)] == ["t-1"]


def test_a_tenant_at_its_limit_waits_with_all_its_tables(bench: Bench) -> None:
    bench.run(admin_commands.set_limit(QUEUE, Scope.TENANT, "acme", SlotLimit(1)))
    fill(bench, 2, table="a")
    fill(bench, 2, table="b")
    (claim,) = bench.claim(slots=8)
    bench.finish(claim)
    assert len(bench.claim(slots=8)) == 1
    bench.run(admin_commands.set_limit(QUEUE, Scope.TENANT, "acme", None))
    assert len(bench.claim(slots=8)) == 2


def test_a_quota_is_a_share_of_all_slots_and_at_least_one(bench: Bench) -> None:
    bench.run(commands.configure(QUEUE, {"slots": 8}))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "big", SlotQuota(50)))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "small", SlotQuota(1)))
    fill(bench, 8, table="big")
    fill(bench, 8, table="small")
    served = [claim.key.table for claim in bench.claim(slots=8)]
    assert (served.count("big"), served.count("small")) == (4, 1)


@pytest.mark.parametrize(
    ("level", "name"), [(Scope.QUEUE, ""), (Scope.BAND, "2"), (Scope.TENANT, "acme"), (Scope.TABLE, "t-1")]
)
def test_what_is_paused_is_not_handed_out_until_it_is_resumed(bench: Bench, level: Scope, name: str) -> None:
    fill(bench, 2)
    bench.run(admin_commands.pause(QUEUE, level, name))
    assert bench.claim(slots=2) == ()
    fill(bench, 3)
    assert bench.claim(slots=3) == ()
    bench.run(admin_commands.pause(QUEUE, level, name, paused=False))
    assert len(bench.claim(slots=3)) == 3


def test_resuming_finds_the_limit_that_was_there(bench: Bench) -> None:
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SlotLimit(1)))
    bench.run(admin_commands.pause(QUEUE, Scope.TABLE, "t-1"))
    bench.run(admin_commands.pause(QUEUE, Scope.TABLE, "t-1", paused=False))
    fill(bench, 3)
    assert len(bench.claim(slots=3)) == 1


def test_a_paused_band_stays_paused_when_the_queue_is_resumed(bench: Bench) -> None:
    bench.run(admin_commands.pause(QUEUE, Scope.BAND, "2"))
    bench.run(admin_commands.pause(QUEUE, Scope.QUEUE))
    bench.run(admin_commands.pause(QUEUE, Scope.QUEUE, paused=False))
    fill(bench, 1)
    assert bench.claim() == ()


def test_a_table_keeps_its_debt_while_it_is_parked(bench: Bench) -> None:
    """Leaving the tree at the limit must not be a way to be served for nothing."""
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "greedy", SlotLimit(1)))
    fill(bench, 3, table="greedy", cost_bytes=3 << 20)
    fill(bench, 9, table="modest", cost_bytes=1 << 20)
    served = []
    for _ in range(8):
        (claim,) = bench.claim()
        served.append(claim.key.table)
        bench.finish(claim)
    assert (served.count("greedy"), served.count("modest")) == (2, 6)


@pytest.mark.parametrize("lost", ["j:", "infl", "lease", "h:", "p:", "v", "n:", "i:"])
def test_an_audit_lets_in_who_is_parked_for_a_run_that_is_lost(bench: Bench, lost: str) -> None:
    """Whatever single key a cut log took with it, one audit is enough for what still waits to be served."""
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SlotLimit(1)))
    fill(bench, 3)
    (running,) = bench.claim()
    assert bench.claim() == ()
    start = keys.prefix(QUEUE)
    prefix = keys.job(QUEUE, running.id) if lost == "j:" else start + lost
    found = sorted(key.decode() for key in bench.client.scan_iter(match=start + "*"))
    bench.client.delete(next((key for key in found if key.startswith(prefix)), "none of them"))
    sum(repaired_by(bench.executor, QUEUE, bench.client))
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0
    bench.finish(running)
    served = []
    while claims := bench.claim():
        served += [claim.key.partition for claim in claims]
        for claim in claims:
            bench.finish(claim)
    assert len(served) == 2


@pytest.mark.parametrize("weight", [0.0, -1.0, 101.0, float("nan")])
def test_a_weight_out_of_range_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInput):
        admin_commands.set_weight(QUEUE, Scope.TENANT, "acme", weight)


def test_only_tenants_and_tables_have_limits() -> None:
    with pytest.raises(InvalidInput, match="a band has no limit"):
        admin_commands.set_limit(QUEUE, Scope.BAND, "2", SlotLimit(1))


# The guard, and what is foreseen


def test_after_eight_strict_claims_a_weighted_band_that_waits_is_served(bench: Bench) -> None:
    fill(bench, 20, band=Band.URGENT)
    fill(bench, 3, band=Band.LOW)
    foreseen = bench.run(queries.order(QUEUE, claims=20))
    served = bench.claim(slots=20)
    assert [claim.band for claim in served] == ([Band.URGENT] * 8 + [Band.LOW]) * 2 + [Band.URGENT] * 2
    assert [one.id for one in foreseen] == [claim.id for claim in served]
    assert [one.reason for one in foreseen[7:10]] == [
        DispatchReason.STRICT_PRIORITY,
        DispatchReason.STARVATION_GUARD,
        DispatchReason.STRICT_PRIORITY,
    ]


def test_a_merge_that_moves_the_only_weighted_job_does_not_forget_the_row_of_strict_claims(bench: Bench) -> None:
    """Moving empties the tree for a moment; found by the state machine."""
    bench.enqueue(spec(1, partition="waits", band=Band.LOW))
    fill(bench, 8, band=Band.URGENT)
    bench.claim(slots=8)
    bench.enqueue(spec(2, partition="waits", band=Band.LOW, tenant="other"))
    bench.enqueue(spec(partition="one more", band=Band.URGENT))
    assert [claim.band for claim in bench.claim(slots=2)] == [Band.LOW, Band.URGENT]


def test_the_order_is_foreseen_through_weights_limits_and_costs_without_claiming(bench: Bench) -> None:
    bench.run(admin_commands.set_weight(QUEUE, Scope.TENANT, "acme", 3))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "b", SlotLimit(2)))
    for number in range(10):
        bench.enqueue(spec(partition=f"{number}", table="a", cost_bytes=(number % 3 + 1) << 22, priority=number % 4))
        bench.enqueue(spec(partition=f"{number}", table="b", tenant="umbrella"))
        bench.enqueue(spec(partition=f"{number}", table="c", tenant="umbrella", band=Band.LOW))
    before = bench.state()
    foreseen = bench.run(queries.order(QUEUE, claims=20))
    assert bench.state() == before
    assert [one.id for one in foreseen] == [claim.id for claim in bench.claim(slots=20)]


@pytest.mark.parametrize("level", [Scope.TABLE, Scope.TENANT])
def test_the_order_is_foreseen_past_more_than_it_reads_at_once_of_those_at_a_limit(bench: Bench, level: Scope) -> None:
    """A limit that came after the claims leaves whoever is at it in the tree until it is met."""
    names = [f"{number:02}" for number in range(45)]
    for partition in ("runs", "waits"):
        for name in names:
            bench.enqueue(spec(partition=partition, **{"table": name, level.value: name}))
        for _ in names if partition == "runs" else ():
            bench.claim()
    for name in names[:30]:
        bench.run(admin_commands.set_limit(QUEUE, level, name, SlotLimit(1)))
    foreseen = bench.run(queries.order(QUEUE, claims=5))
    assert len(foreseen) == 5
    assert [one.id for one in foreseen] == [claim.id for claim in bench.claim(slots=5)]


# Moving jobs


def test_promotion_makes_a_delayed_job_the_next_one(bench: Bench) -> None:
    bench.enqueue(spec())
    (claim,) = bench.claim()
    bench.finish(claim, RunResult.FAIL)
    fill(bench, 3, band=Band.HIGH)
    assert bench.run(admin_commands.expedite(QUEUE, claim.id)) is MoveOutcome.QUEUED
    (promoted,) = bench.claim()
    assert (promoted.id, promoted.band, promoted.priority, promoted.attempts) == (claim.id, Band.URGENT, 0, 1)
    assert bench.run(admin_commands.expedite(QUEUE, claim.id)) is MoveOutcome.LEASED


def test_requeueing_a_quarantined_job_forgets_its_failures(bench: Bench) -> None:
    bench.enqueue(spec())
    for _ in range(SETTINGS.max_attempts):
        bench.run(admin_commands.expedite(QUEUE, spec().id))
        (claim,) = bench.claim()
        bench.finish(claim, RunResult.FAIL, error="broken")
    assert bench.job().state is JobState.QUARANTINED
    assert bench.run(admin_commands.requeue(QUEUE, claim.id)) is MoveOutcome.QUEUED
    assert (bench.job().attempts, bench.job().error) == (0, None)


def test_moving_a_job_that_is_not_there_says_so(bench: Bench) -> None:
    assert bench.run(admin_commands.expedite(QUEUE, JobId("x"))) is MoveOutcome.UNKNOWN
    assert bench.run(admin_commands.requeue(QUEUE, JobId("x"))) is MoveOutcome.UNKNOWN


# Preemption


def test_a_strict_job_takes_the_slot_of_the_lowest_band_and_the_least_loss(bench: Bench) -> None:
    bench.enqueue(spec(partition="normal", band=Band.NORMAL, cost_bytes=1 << 20))
    bench.enqueue(spec(partition="dear", band=Band.LOW, cost_bytes=8 << 20))
    bench.enqueue(spec(partition="nearly done", band=Band.LOW, cost_bytes=4 << 20))
    running = {claim.key.partition: claim for claim in bench.claim(slots=3)}
    bench.beat(running["dear"], '{"share": 0.1}')
    bench.beat(running["nearly done"], '{"share": 0.9}')
    bench.enqueue(spec(partition="urgent", band=Band.URGENT))
    (revoked,) = bench.run(admin_commands.preempt(QUEUE, AT_ONCE))
    assert revoked.victim == running["dear"].id
    reply = bench.beat(running["dear"])
    assert (reply.status, reply.reason) == (HeartbeatStatus.STOP, StopReason.PREEMPT)
    assert bench.beat(running["normal"]).status is HeartbeatStatus.OK


def test_a_run_of_the_lowest_band_is_found_among_any_number_of_leases(bench: Bench) -> None:
    """A look reads a hundred leases; the next ones read the others."""
    fill(bench, 120, band=Band.URGENT)
    held = [claim for _ in range(15) for claim in bench.claim(slots=8)]
    fill(bench, 1, band=Band.LOW, table="low")
    (low,) = bench.claim()
    assert len(held) == 120
    fill(bench, 1, band=Band.URGENT, table="urgent")
    revoked = []
    for _ in range(2):
        revoked += bench.run(admin_commands.preempt(QUEUE, AT_ONCE))
        bench.clock.advance(2_000)
    assert [one.victim for one in revoked] == [low.id]


def test_a_waiting_rewrite_stops_a_run_of_the_background_and_no_other(bench: Bench) -> None:
    """A vacuum of many files runs for an hour; one that has begun must not keep a hot table waiting either."""
    fill(bench, 1, band=Band.LOW, table="rewrite")
    fill(bench, 2, band=Band.BACKGROUND, table="vacuum")
    running = bench.claim(slots=3)
    assert [claim.key.table for claim in running] == ["rewrite", "vacuum", "vacuum"]
    fill(bench, 1, band=Band.BACKGROUND, table="waits-too")
    assert bench.run(admin_commands.preempt(QUEUE, AT_ONCE)) == ()
    fill(bench, 3, band=Band.NORMAL, table="hot")
    revoked = bench.run(admin_commands.preempt(QUEUE, AT_ONCE))
    assert {one.victim for one in revoked} == {claim.id for claim in running[1:]}
    assert bench.run(admin_commands.preempt(QUEUE, AT_ONCE)) == (), "the other runs are rewrites"
    for claim in running[1:]:
        assert bench.beat(claim).reason is StopReason.PREEMPT
        bench.finish(claim, RunResult.YIELD)
    assert [claim.key.table for claim in bench.claim(slots=2)] == ["hot", "hot"]


def test_an_urgent_job_stops_a_run_of_the_background_before_a_rewrite_does(bench: Bench) -> None:
    fill(bench, 1, band=Band.NORMAL, table="rewrite")
    fill(bench, 1, band=Band.BACKGROUND, table="vacuum")
    (rewrite, vacuum) = bench.claim(slots=2)
    bench.enqueue(spec(partition="normal", table="hot", band=Band.NORMAL))
    bench.enqueue(spec(partition="urgent", table="hot", band=Band.URGENT))
    (revoked,) = bench.run(admin_commands.preempt(QUEUE, AT_ONCE))
    assert (revoked.victim, "urgent" in bench.find_id(revoked.waiting).key.partition) == (vacuum.id, True)
    assert bench.beat(rewrite).status is HeartbeatStatus.OK


def test_one_waiting_job_revokes_one_run_at_a_time(bench: Bench) -> None:
    fill(bench, 3, band=Band.LOW)
    bench.claim(slots=3)
    bench.enqueue(spec(partition="urgent", band=Band.URGENT))
    assert len(bench.run(admin_commands.preempt(QUEUE, AT_ONCE))) == 1
    assert bench.run(admin_commands.preempt(QUEUE, AT_ONCE)) == ()


def test_a_job_is_preempted_twice_at_most_and_loses_no_attempt(bench: Bench) -> None:
    bench.enqueue(spec(partition="low", band=Band.LOW))
    for number in range(3):
        (low,) = bench.claim()
        bench.enqueue(spec(partition=f"urgent {number}", band=Band.URGENT))
        assert len(bench.run(admin_commands.preempt(QUEUE, AT_ONCE))) == (1 if number < 2 else 0)
        bench.finish(low, RunResult.YIELD)
        (urgent,) = bench.claim()
        assert urgent.band is Band.URGENT
        bench.finish(urgent)
    assert bench.claim()[0].attempts == 0


def test_no_one_is_preempted_for_a_weighted_band_or_within_a_strict_one_or_before_its_time(bench: Bench) -> None:
    bench.enqueue(spec(partition="low", band=Band.LOW))
    bench.enqueue(spec(partition="running", band=Band.URGENT))
    bench.claim(slots=2)
    fill(bench, 2, band=Band.HIGH)
    assert bench.run(admin_commands.preempt(QUEUE, AT_ONCE)) == ()
    bench.enqueue(spec(partition="waits", band=Band.URGENT))
    rules = Preemption(max_wait_ms=5_000, min_run_ms=60_000)
    bench.clock.advance(59_000)
    assert bench.run(admin_commands.preempt(QUEUE, rules)) == ()
    bench.clock.advance(1_000)
    (revoked,) = bench.run(admin_commands.preempt(QUEUE, rules))
    assert revoked.victim == spec(partition="low").id


def test_an_urgent_run_gives_its_slot_to_no_one(bench: Bench) -> None:
    bench.enqueue(spec(partition="running", band=Band.URGENT))
    bench.claim()
    bench.enqueue(spec(partition="waits", band=Band.URGENT))
    assert bench.run(admin_commands.preempt(QUEUE, AT_ONCE)) == ()


@pytest.mark.parametrize(("waited_ms", "revoked"), [(4_999, 0), (5_000, 1)])
def test_a_job_may_preempt_once_it_has_waited_as_long_as_its_patience(
    bench: Bench, waited_ms: int, revoked: int
) -> None:
    bench.enqueue(spec(partition="low", band=Band.LOW))
    bench.claim()
    bench.enqueue(spec(partition="waits", band=Band.URGENT))
    bench.clock.advance(waited_ms)
    assert len(bench.run(admin_commands.preempt(QUEUE, Preemption(max_wait_ms=5_000, min_run_ms=0)))) == revoked


@pytest.mark.parametrize(("waited_ms", "revoked"), [(4_999, 0), (5_000, 1)])
def test_a_debounce_is_no_wait_for_a_slot(bench: Bench, waited_ms: int, revoked: int) -> None:
    bench.enqueue(spec(partition="low", band=Band.LOW))
    bench.claim()
    bench.enqueue(spec(partition="waits", table="t-2", band=Band.URGENT, debounce=Debounce(50_000, 50_000)))
    bench.run(admin_commands.pause(QUEUE, Scope.BAND, "0"))
    bench.clock.advance(50_000)
    assert bench.claim() == (), "the debounce is over, and the band is paused"
    bench.run(admin_commands.pause(QUEUE, Scope.BAND, "0", paused=False))
    bench.clock.advance(waited_ms)
    assert len(bench.run(admin_commands.preempt(QUEUE, Preemption(max_wait_ms=5_000, min_run_ms=0)))) == revoked
