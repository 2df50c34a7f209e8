"""Jobs of a table whose write amplification is limited: what is rewritten in 30 days, by what was added in them."""

from dataclasses import replace

import pytest

from shared.layout.partition_stats import PartitionStats
from shared.layout.upkeep import UPKEEP
from shared.policy.budgets import AMPLIFICATION_DAYS, encode_budgets
from shared.prices import Usage
from shared.queue import admin_commands, keys, queries
from shared.queue.model import Claim, JobKey, JobRequest, RunResult, Scope, Share
from tests.support.queue_bench import QUEUE, Bench, repaired_by, spec

pytestmark = pytest.mark.redis

DAY_MS = 86_400_000
AGAIN_MS = 906_000
MIB = 1 << 20
BASE = 16
"""MiB that a job of 8 MiB weighs, with its fixed work."""


def limit(bench: Bench, text: str = "2.0") -> None:
    bench.run(admin_commands.set_amplification(QUEUE, "t-1", text))


def today(bench: Bench) -> int:
    return bench.clock.now_ms // DAY_MS


def added(bench: Bench, *mib: float) -> None:
    """Let writers have added so much, today and on each day before."""
    days = ",".join(f"[{today(bench) - ago},{round(one * MIB)}]" for ago, one in enumerate(mib))
    bench.client.hset(keys.table_state(QUEUE, "t-1"), mapping={"version": "1", "ingested": f"[{days}]"})


def learned(bench: Bench, read_mib: float = 8, written_mib: float = 8) -> None:
    """Let merges of 8 MiB have rewritten so much; the next may rewrite a quarter more."""
    figures = (1_000, read_mib * MIB, written_mib * MIB, 8, 2)
    sums, rates = ([10 * one for one in figures], [one / BASE for one in figures])
    text = ",".join(map(str, [10, 10 * BASE, *sums, *rates]))
    bench.client.hset(keys.rates(QUEUE, "t-1"), "compact|0", text)


def before(bench: Bench, **mib: float) -> None:
    """Let jobs have rewritten so much, each so many days ago: `of_29=3`."""
    days = ((today(bench) - int(ago.removeprefix("of_")), round(one * MIB)) for ago, one in mib.items())
    text = ",".join(f"{day},{count}" for day, count in days)
    bench.client.hset(keys.rates(QUEUE, "t-1"), "rewritten", text)


def job(partition: str = "{}", kind: str = "compact", priority: int = 5, *, any_time: bool = False) -> JobRequest:
    request = spec(partition=partition, cost_bytes=8 * MIB, priority=priority, any_time=any_time)
    return replace(request, key=JobKey("t-1", partition, kind))


def end(bench: Bench, claim: Claim, mib: float, result: RunResult = RunResult.DONE) -> None:
    bench.finish(claim, result, counters=Usage(bytes_read=round(mib * MIB)).counters())


def rewritten(bench: Bench) -> dict[int, float]:
    """MiB by day, today 0 and yesterday 1."""
    numbers = [int(one) for one in bench.state().hash("rates:t-1").get("rewritten", "").split(",") if one]
    return {today(bench) - day: count / MIB for day, count in zip(numbers[::2], numbers[1::2], strict=True)}


def held(bench: Bench, request: JobRequest) -> tuple[str, float]:
    """What a job waits for, and for how many days, as of midnight."""
    found = bench.job(request)
    return found.holder, (found.opens_ms or 0) / DAY_MS - today(bench)


def test_a_job_that_may_rewrite_more_than_the_limit_permits_waits(bench: Bench) -> None:
    learned(bench)
    added(bench, 10, 0)
    limit(bench)
    bench.enqueue(job("a", priority=0))
    bench.enqueue(job("b"))
    bench.enqueue(job("c", priority=9))
    assert [claim.key.partition for claim in bench.claim(slots=3)] == ["a", "b"]
    assert rewritten(bench) == {0: 20}, "the most that they are predicted to rewrite"
    assert held(bench, job("c"))[0] == "amplification|t-1"


@pytest.mark.parametrize(("read", "written", "starts"), [(8, 1, True), (1, 8, True), (8.1, 1, False), (1, 8.1, False)])
def test_the_greater_of_what_is_replaced_and_written_counts(
    bench: Bench, read: float, written: float, starts: bool
) -> None:
    learned(bench, read, written)
    added(bench, 5, 0)
    limit(bench)
    bench.enqueue(job())
    assert bool(bench.claim()) is starts


@pytest.mark.parametrize(("age", "starts"), [(0, False), (AMPLIFICATION_DAYS - 1, False), (AMPLIFICATION_DAYS, True)])
def test_what_was_rewritten_counts_for_thirty_days(bench: Bench, age: int, starts: bool) -> None:
    learned(bench)
    added(bench, 5, 0)
    before(bench, **{f"of_{age}": 0.1})
    limit(bench)
    bench.enqueue(job())
    assert bool(bench.claim()) is starts


@pytest.mark.parametrize(("age", "starts"), [(AMPLIFICATION_DAYS - 1, True), (AMPLIFICATION_DAYS, False)])
def test_what_was_added_counts_for_thirty_days(bench: Bench, age: int, starts: bool) -> None:
    learned(bench)
    added(bench, *[0] * age, 5)
    limit(bench)
    bench.enqueue(job())
    assert bool(bench.claim()) is starts


@pytest.mark.parametrize(
    ("mib", "done", "holder", "days"),
    [
        ([10], {"of_0": 15}, "amplification|t-1", 1),
        ([0] * 10 + [10], {"of_0": 15}, "amplification|t-1", 3),
        ([0] * 10 + [10], {"of_29": 15}, "amplification|t-1", 1),
        ([0] * 10 + [10], {"of_20": 300}, "amplification|t-1", 10),
        ([1], {}, "amplification|t-1", 4),
        ([0] * 29 + [1], {}, "!amplification|t-1", 30),
        ([], {}, "!amplification|t-1", 30),
    ],
    ids=[
        "added at the present pace",
        "slowly",
        "rewritten long ago",
        "much rewritten",
        "young",
        "too large",
        "nothing",
    ],
)
def test_a_job_that_waits_says_until_when_at_the_present_pace(
    bench: Bench, mib: list[float], done: dict[str, float], holder: str, days: int
) -> None:
    learned(bench)
    added(bench, *mib)
    before(bench, **done)
    limit(bench)
    bench.enqueue(job())
    assert bench.claim() == ()
    assert held(bench, job()) == (holder, days)
    assert bench.state().hash("count")["held_by_budget"] == "1"


def test_a_job_starts_as_soon_as_enough_is_added(bench: Bench) -> None:
    learned(bench)
    added(bench, 4)
    limit(bench)
    bench.enqueue(job())
    assert bench.claim() == ()
    added(bench, 5)
    bench.clock.advance(AGAIN_MS)
    assert len(bench.claim()) == 1


def test_a_job_that_a_further_commit_requests_waits_no_longer_than_until_it_asks_again(bench: Bench) -> None:
    """The scaler starts an actor for it, which asks: its writers may have added enough."""
    learned(bench)
    added(bench, 4)
    limit(bench)
    bench.enqueue(job())
    assert bench.claim() == ()
    before = bench.job()
    bench.enqueue(job())
    assert bench.job() == before, "a repeated request"
    bench.enqueue(replace(job(), version=2))
    found = bench.job()
    assert (found.opens_ms, found.holder) == (before.ready_at_ms, "amplification|t-1")
    bench.clock.advance(AGAIN_MS)
    assert bench.claim() == ()
    assert held(bench, job()) == ("amplification|t-1", 1)


def test_what_a_run_rewrote_replaces_what_was_reserved_on_the_day_on_which_it_began(bench: Bench) -> None:
    learned(bench)
    added(bench, 20, 0)
    limit(bench)
    bench.clock.advance(DAY_MS - bench.clock.now_ms % DAY_MS - 1_000)
    bench.enqueue(job("a", priority=0))
    bench.enqueue(job("b"))
    first, second = bench.claim(slots=2)
    end(bench, first, 3)
    bench.clock.advance(2_000)
    end(bench, second, 12, RunResult.YIELD)
    assert rewritten(bench) == {1: 15}, "more than was predicted counts, too"


def test_a_run_that_reports_nothing_keeps_its_reservation_of_rewritten_bytes(bench: Bench) -> None:
    learned(bench)
    added(bench, 20, 0)
    limit(bench)
    bench.enqueue(job())
    (claim,) = bench.claim()
    bench.finish(claim, RunResult.YIELD)
    assert rewritten(bench) == {0: 10}


def test_runs_are_counted_before_there_is_a_limit(bench: Bench) -> None:
    learned(bench)
    added(bench, 5, 0)
    bench.enqueue(job("a"))
    (claim,) = bench.claim()
    assert rewritten(bench) == {}
    end(bench, claim, 0.5)
    assert rewritten(bench) == {0: 0.5}
    limit(bench)
    bench.enqueue(job("b"))
    assert bench.claim() == ()


def test_a_run_that_ends_without_its_limit_or_its_table_is_counted_once_or_not_at_all(bench: Bench) -> None:
    learned(bench)
    added(bench, 20, 0)
    limit(bench)
    bench.enqueue(job("a", priority=0))
    bench.enqueue(job("b"))
    first, second = bench.claim(slots=2)
    limit(bench, "")
    end(bench, first, 3)
    assert rewritten(bench) == {0: 13}
    bench.client.unlink(keys.rates(QUEUE, "t-1"), keys.table_state(QUEUE, "t-1"))
    end(bench, second, 3)
    assert bench.client.exists(keys.rates(QUEUE, "t-1")) == 0


def test_a_request_for_any_time_is_not_held_by_amplification_and_is_counted(bench: Bench) -> None:
    learned(bench)
    added(bench)
    limit(bench)
    bench.enqueue(job(any_time=True))
    (claim,) = bench.claim()
    end(bench, claim, 7)
    assert rewritten(bench) == {0: 7}


def test_kinds_that_rewrite_no_data_are_not_held_and_not_counted(bench: Bench) -> None:
    added(bench)
    limit(bench)
    kinds = ("vacuum", "checkpoint", "set_properties", *(one.kind for one in UPKEEP))
    for kind in (*kinds, "sort", "cluster", "deduplicate", "expire"):
        bench.enqueue(job(kind=kind))
    claims = bench.claim(slots=9)
    assert {claim.key.kind for claim in claims} == set(kinds)
    for claim in claims:
        end(bench, claim, 7)
    assert rewritten(bench) == {}


def test_jobs_that_share_a_slot_fit_into_the_amplification_together_as_foreseen(bench: Bench) -> None:
    learned(bench)
    added(bench, 10, 0)
    limit(bench)
    for number in range(4):
        bench.enqueue(job(str(number)))
    foreseen = bench.run(queries.order(QUEUE, claims=9))
    assert rewritten(bench) == {}
    claims = bench.claim(share=Share(4, 1 << 40))
    assert [one.id for one in foreseen] == [claim.id for claim in claims]
    assert (len(claims), rewritten(bench)) == (2, {0: 20})


@pytest.mark.parametrize(("small_files", "starts"), [(50, False), (51, True)])
def test_jobs_of_crowded_partitions_exceed_the_limits_of_their_table_if_it_says_so(
    bench: Bench, small_files: int, starts: bool
) -> None:
    learned(bench)
    added(bench)
    limit(bench)
    bench.run(admin_commands.set_budget(QUEUE, Scope.TABLE, "t-1", encode_budgets("0.001 GiB/day")))
    state = PartitionStats(files=99, counts=(small_files - 3, 0, 2, 0, 0, 1), sizes=(9, 0, 9, 0, 0, 9))
    bench.client.hset(keys.partitions(QUEUE, "t-1"), "crowded", state.encode())
    bench.enqueue(job("crowded"))
    assert bench.claim() == ()
    bench.run(admin_commands.set_exemption(QUEUE, "t-1", "50"))
    bench.enqueue(job("not there"))
    bench.clock.advance(AGAIN_MS)
    assert [one.key.partition for one in bench.claim(slots=2)] == ["crowded"] * starts


def test_no_table_exceeds_the_budget_of_its_tenant(bench: Bench) -> None:
    learned(bench)
    bench.run(admin_commands.set_budget(QUEUE, Scope.TENANT, "acme", encode_budgets("0.001 GiB/day")))
    bench.run(admin_commands.set_exemption(QUEUE, "t-1", "1"))
    state = PartitionStats(files=99, counts=(9, 0, 2, 0, 0, 1), sizes=(9, 0, 9, 0, 0, 9))
    bench.client.hset(keys.partitions(QUEUE, "t-1"), "crowded", state.encode())
    bench.enqueue(job("crowded"))
    assert bench.claim() == ()


def test_the_audit_finds_nothing_to_repair_while_jobs_wait_for_bytes_to_be_added(bench: Bench) -> None:
    learned(bench)
    added(bench, 5)
    limit(bench)
    for number in range(3):
        bench.enqueue(job(str(number)))
    assert len(bench.claim(slots=3)) == 1
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0
