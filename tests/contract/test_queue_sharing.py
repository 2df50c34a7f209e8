"""Jobs of one table are claimed together, to share a transaction: which, how many, and at whose cost."""

import pytest

from shared.queue import admin_commands, commands, keys
from shared.queue.model import (
    Band,
    Claim,
    Debounce,
    FinishOutcome,
    HeartbeatStatus,
    RunResult,
    Scope,
    Share,
)
from tests.support.queue_bench import LEASE_MS, QUEUE, SETTINGS, Bench, spec

pytestmark = pytest.mark.redis

MIB = 1 << 20
FOUR = Share(4, 100 * MIB)


def enqueue(bench: Bench, partitions: str, **more: object) -> None:
    """Request a job for each partition, one millisecond after the other, which is their order."""
    for partition in partitions:
        bench.enqueue(spec(partition=partition, **more))  # type: ignore[arg-type]
        bench.clock.advance(1)


def partitions(claims: tuple[Claim, ...]) -> str:
    return "".join(claim.key.partition for claim in claims)


def charged(bench: Bench, first: Claim) -> float:
    """By how much the turn of a table that waits is behind the rank of the first job that it was served."""
    turn = bench.state().zset(f"n:{int(first.band)}|{first.tenant}")[first.key.table]
    return turn - first.enqueued_at_ms - first.priority * SETTINGS.aging_ms


def test_further_ready_jobs_of_the_table_come_with_the_first_in_their_order(bench: Bench) -> None:
    enqueue(bench, "a", priority=7)
    enqueue(bench, "bcde", priority=5)
    claims = bench.claim(share=FOUR)
    assert partitions(claims) == "bcde"
    assert sorted({claim.token for claim in claims}) == [claim.token for claim in claims]
    assert partitions(bench.claim(share=FOUR)) == "a"


def test_jobs_that_were_taken_along_are_in_no_index_for_another_worker(bench: Bench) -> None:
    enqueue(bench, "abc")
    assert partitions(bench.claim(share=FOUR)) == "abc"
    assert bench.state().named("f:") == {}
    assert bench.claim(share=FOUR) == ()


def test_jobs_that_come_back_hold_no_slot_with_each_other(bench: Bench) -> None:
    enqueue(bench, "ab")
    claims = bench.claim(share=FOUR)
    jobs = [keys.job(QUEUE, claim.id) for claim in claims]
    for claim in claims:
        bench.finish(claim, RunResult.FAIL)
    assert [bench.client.hget(job, "slot") for job in jobs] == [None, None]


def test_a_worker_that_does_not_share_gets_one_job(bench: Bench) -> None:
    enqueue(bench, "ab")
    assert partitions(bench.claim()) == "a"


def test_only_jobs_of_the_same_table_tenant_and_band_are_taken_along(bench: Bench) -> None:
    enqueue(bench, "a")
    enqueue(bench, "b", table="t-2")
    enqueue(bench, "c", tenant="other")
    enqueue(bench, "d", band=Band.LOW)
    enqueue(bench, "e")
    assert partitions(bench.claim(share=FOUR)) == "ae"


def test_bytes_bound_what_is_taken_along_and_no_job_overtakes_one_that_does_not_fit(bench: Bench) -> None:
    enqueue(bench, "a", cost_bytes=200 * MIB)
    enqueue(bench, "b", cost_bytes=60 * MIB)
    enqueue(bench, "c", cost_bytes=40 * MIB)
    enqueue(bench, "d", cost_bytes=MIB)
    assert partitions(bench.claim(share=FOUR)) == "a", "more bytes than the bound, alone"
    assert partitions(bench.claim(share=FOUR)) == "bc"
    assert partitions(bench.claim(share=FOUR)) == "d"


def test_each_job_is_charged_as_if_it_had_been_claimed_alone(bench: Bench) -> None:
    for share, claims in ((FOUR, 1), (Share(), 4)):
        bench.client.flushdb()
        bench.clock.advance(0)
        enqueue(bench, "abc", cost_bytes=10 * MIB)
        enqueue(bench, "d", cost_bytes=1000 * MIB)
        enqueue(bench, "xy", table="t-2", cost_bytes=1000 * MIB)
        taken = [claim for _ in range(claims) for claim in bench.claim(share=share)]
        assert sorted(claim.key.partition for claim in taken) == list("abcx")[: len(taken)]
        assert charged(bench, taken[0]) == 30_000


def test_a_table_that_shares_is_not_served_again_before_the_others_have_caught_up(bench: Bench) -> None:
    enqueue(bench, "abcd", cost_bytes=10 * MIB)
    enqueue(bench, "vwxyz", table="t-2", cost_bytes=10 * MIB)
    served = [bench.claim(share=Share(3, 100 * MIB)), *(bench.claim() for _ in range(4))]
    assert [claims[0].key.table for claims in served] == ["t-1", "t-2", "t-2", "t-2", "t-1"]


@pytest.mark.parametrize("level", [Scope.TABLE, Scope.TENANT])
def test_each_job_counts_for_a_limit(bench: Bench, level: Scope) -> None:
    name = "t-1" if level is Scope.TABLE else "acme"
    bench.run(admin_commands.set_limit(QUEUE, level, name, admin_commands.SlotLimit(2)))
    enqueue(bench, "abc")
    claims = bench.claim(share=FOUR)
    assert partitions(claims) == "ab"
    assert bench.claim(share=FOUR) == ()
    bench.finish(claims[0])
    assert partitions(bench.claim(share=FOUR)) == "c"


@pytest.mark.parametrize("result", [RunResult.FAIL, RunResult.CRASHED])
def test_jobs_that_failed_together_run_alone_afterwards(bench: Bench, result: RunResult) -> None:
    """One of them may have killed the engine: the next time it takes no other with it, and is known by itself."""
    enqueue(bench, "abc")
    for claim in bench.claim(share=FOUR):
        assert bench.finish(claim, result) is FinishOutcome.DELAYED
    enqueue(bench, "d")
    bench.clock.advance(20_000)
    alone = [partitions(bench.claim(share=FOUR)) for _ in range(4)]
    assert sorted(alone) == ["a", "b", "c", "d"]


def test_jobs_whose_actor_fell_silent_together_run_alone_afterwards(bench: Bench) -> None:
    enqueue(bench, "ab")
    bench.claim(share=FOUR)
    bench.clock.advance(LEASE_MS + 1)
    assert sorted(partitions(bench.claim(share=FOUR)) for _ in range(2)) == ["a", "b"]


def test_a_job_that_was_yielded_may_share_again(bench: Bench) -> None:
    enqueue(bench, "ab")
    for claim in bench.claim(share=FOUR):
        bench.finish(claim, RunResult.YIELD)
    assert partitions(bench.claim(share=FOUR)) == "ab"


def test_each_job_ends_stops_and_comes_back_by_itself(bench: Bench) -> None:
    enqueue(bench, "abc")
    first, second, third = bench.claim(share=FOUR)
    bench.enqueue(spec(2, partition="a"))
    assert bench.finish(first) is FinishOutcome.REQUEUED, "its event came while it ran"
    assert bench.finish(second, RunResult.FAIL) is FinishOutcome.DELAYED
    assert bench.beat(third).status is HeartbeatStatus.OK
    assert bench.finish(third) is FinishOutcome.DELETED
    assert bench.finish(third) is FinishOutcome.STALE


def test_an_end_claims_as_many_jobs_as_a_claim(bench: Bench) -> None:
    enqueue(bench, "a")
    (first,) = bench.claim(share=FOUR)
    enqueue(bench, "bc")
    outcome, claims = bench.finish_and_claim(first, share=FOUR)
    assert (outcome, partitions(claims)) == (FinishOutcome.DELETED, "bc")


def test_a_strict_band_is_counted_once_for_a_shared_claim(bench: Bench) -> None:
    """`strict-in-row` counts claims, each of which takes one slot."""
    bench.run(commands.configure(QUEUE, {"strict_in_row": 3}))
    enqueue(bench, "abcdefghijkl", band=Band.URGENT)
    enqueue(bench, "xyz", table="t-2")
    served = [bench.claim(share=Share(3, 100 * MIB)) for _ in range(4)]
    assert [claims[0].band for claims in served] == [Band.URGENT] * 3 + [Band.NORMAL]


def low_ones_and_urgent_ones(bench: Bench, urgent: str) -> tuple[tuple[Claim, ...], Claim]:
    """Three small jobs that share a slot, a large one in another, and urgent jobs that wait for a slot each."""
    enqueue(bench, "abc", band=Band.LOW)
    together = bench.claim(share=FOUR)
    assert partitions(together) == "abc"
    enqueue(bench, "d", band=Band.LOW, cost_bytes=50 * MIB)
    (large,) = bench.claim(share=FOUR)
    enqueue(bench, urgent, table="t-2", band=Band.URGENT)
    return together, large


def preempt(bench: Bench, times: int = 2) -> list[str]:
    """Partitions of the jobs that are asked to yield."""
    rules = admin_commands.Preemption(0, 0, times)
    return sorted(bench.find_id(one.victim).key.partition for one in bench.run(admin_commands.preempt(QUEUE, rules)))


def test_jobs_of_one_slot_are_one_victim(bench: Bench) -> None:
    """Any of them gives the slot back for all: two of them would free one slot for two urgent jobs."""
    low_ones_and_urgent_ones(bench, "uv")
    assert preempt(bench) == ["c", "d"]
    enqueue(bench, "w", table="t-3", band=Band.URGENT)
    assert preempt(bench) == [], "both slots are about to be free"


def test_the_loss_of_a_slot_is_that_of_all_its_jobs(bench: Bench) -> None:
    enqueue(bench, "abc", band=Band.LOW, cost_bytes=4 * MIB)
    assert partitions(bench.claim(share=FOUR)) == "abc"
    enqueue(bench, "d", band=Band.LOW, cost_bytes=10 * MIB)
    bench.claim(share=FOUR)
    enqueue(bench, "u", table="t-2", band=Band.URGENT)
    assert preempt(bench) == ["d"], "10 MiB are less than three times 4"


def test_a_slot_with_a_job_that_was_preempted_too_often_is_spared(bench: Bench) -> None:
    """The job would yield with the others, and never end where urgent ones keep coming."""
    together, large = low_ones_and_urgent_ones(bench, "u")
    bench.finish(large)
    assert preempt(bench, times=1) == ["c"]
    for claim in together:
        bench.finish(claim, RunResult.YIELD)
    (urgent,) = bench.claim()
    assert urgent.band is Band.URGENT
    assert partitions(bench.claim(share=FOUR)) == "abc"
    enqueue(bench, "v", table="t-2", band=Band.URGENT)
    assert preempt(bench, times=1) == []
    assert preempt(bench, times=2) == ["c"], "the one that yielded before, so that its slot is spared soon"


def test_a_slot_with_a_cancelled_job_may_be_preempted_by_another_of_its_jobs(bench: Bench) -> None:
    """The cancelled one ends by itself and gives no slot back; alone it is about to, and is not asked again."""
    together, large = low_ones_and_urgent_ones(bench, "uv")
    for claim in (together[2], large):
        bench.run(commands.cancel(QUEUE, claim.id, nonce=bench.nonce()))
    assert preempt(bench) == ["b"]


def test_jobs_that_wait_for_one_moment_are_claimed_together(bench: Bench) -> None:
    """Each was to be ready a little before or after it, by the time that its request took."""
    for partition, wait_ms in (("a", 30_000), ("b", 15_993), ("c", 1_750)):
        enqueue(bench, partition, debounce=Debounce(wait_ms, 60_000))
        bench.clock.advance(14_000 if partition != "c" else 1_996)
    assert bench.claim(share=FOUR) == ()
    bench.clock.advance(1)
    assert partitions(bench.claim(share=FOUR)) == "abc"


def test_a_delayed_job_is_not_taken_along(bench: Bench) -> None:
    enqueue(bench, "a")
    enqueue(bench, "b", debounce=Debounce(5_000, 8_000))
    assert partitions(bench.claim(share=FOUR)) == "a"
