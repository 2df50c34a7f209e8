"""Jobs under budgets: reserved when they start, held with reason and time of the renewal, counted when they end."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from shared.errors import InvalidInput
from shared.policy.budgets import encode_budgets, encode_prices
from shared.prices import Prices, Usage
from shared.queue import admin_commands, commands, keys, queries
from shared.queue.admin_commands import Preemption
from shared.queue.model import Band, Claim, JobRequest, JobState, RunResult, Scope, Share
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, repaired_by, spec

pytestmark = pytest.mark.redis

DAY_MS = 86_400_000
ASKED_AGAIN_MS, SPREAD_MS = 900_000, 5_000
MIB = 1 << 20
UNKNOWN_CORE_MS = 500
"""What a MiB is predicted to use at most of a kind that has not run, as in budget.lua; a job's fixed work is 8 MiB."""


def budget(bench: Bench, text: str, scope: Scope = Scope.TABLE, name: str = "t-1") -> None:
    bench.run(admin_commands.set_budget(QUEUE, scope, name, encode_budgets(text)))


def learned(bench: Bench, core_s: float = 10.0, *, runs: int = 10, table: str = "t-1") -> None:
    """Let merges of 8 MiB, as `job` makes them, have used so much; a job may use a quarter more."""
    base = 16.0
    figures = (1000 * core_s, 8 * MIB, 8 * MIB, 100, 2)
    sums, rates = ([runs * one for one in figures], [one / base for one in figures])
    text = ",".join(map(str, [runs, runs * base, *sums, *rates]))
    bench.client.hset(keys.rates(QUEUE, table), "compact|0", text)
    bench.client.hset(keys.table_state(QUEUE, table), "version", "1")


def job(version: int = 1, **more: object) -> JobRequest:
    return spec(version, cost_bytes=8 * MIB, **more)  # type: ignore[arg-type] # as `spec` takes them


def end(bench: Bench, claim: Claim, core_s: float, verdict: RunResult = RunResult.DONE, **more: int) -> None:
    bench.finish(claim, verdict, counters=Usage(core_ms=round(1000 * core_s), **more).counters())


def spent(bench: Bench, scope: str = "table|t-1") -> list[float]:
    """Core-milliseconds of the day and of the month."""
    figures = bench.state().hash("spent")[scope].split(",")
    return [float(figures[2]), float(figures[7])]


def held(bench: Bench, request: JobRequest) -> tuple[str, int]:
    """What a job waits for, and until when."""
    found = bench.job(request)
    assert found.state is JobState.DELAYED
    return found.holder, found.opens_ms or 0


def renewal(bench: Bench) -> int:
    return (bench.clock.now_ms // DAY_MS + 1) * DAY_MS


def later(bench: Bench) -> None:
    """Wait until jobs that are held ask again."""
    bench.clock.advance(ASKED_AGAIN_MS + SPREAD_MS)


def test_a_job_that_may_break_a_budget_waits_for_its_renewal_and_says_so(bench: Bench) -> None:
    learned(bench)
    budget(bench, "24 core-seconds/day")
    bench.enqueue(job(partition="a", priority=0))
    bench.enqueue(job(partition="b"))
    bench.enqueue(spec(table="other"))
    claims = bench.claim(slots=3)
    assert {claim.key.table for claim in claims} == {"t-1", "other"}
    assert spent(bench) == [12_500, 12_500], "the most that the one which runs is predicted to use"
    end(bench, next(claim for claim in claims if claim.key.table == "t-1"), 12)
    waits, renewed_ms = job(partition="b"), renewal(bench)
    assert held(bench, waits) == ("table|t-1", renewed_ms)
    asks_again_ms = bench.job(waits).ready_at_ms or 0
    assert 0 <= asks_again_ms - bench.clock.now_ms - ASKED_AGAIN_MS <= SPREAD_MS
    assert bench.state().zset("budgetwaits") == {"t-1": asks_again_ms}

    while bench.clock.now_ms < renewed_ms - 1:
        bench.clock.advance(min(ASKED_AGAIN_MS + SPREAD_MS, renewed_ms - 1 - bench.clock.now_ms))
        assert waits.id not in {claim.id for claim in bench.claim(slots=3)}
        assert held(bench, waits)[1] == renewed_ms
    bench.clock.advance(1 + SPREAD_MS)
    assert waits.id in {claim.id for claim in bench.claim(slots=3)}
    assert bench.job(waits).opens_ms is None
    assert bench.state().hash("count")["held_by_budget"] == "1", "it waited once"


def test_what_a_run_used_replaces_what_was_reserved_for_it(bench: Bench) -> None:
    learned(bench)
    budget(bench, "24 core-seconds/day; 50 core-seconds/month")
    for number in range(3):
        bench.enqueue(job(partition=str(number)))
    (claim,) = bench.claim(slots=3)
    end(bench, claim, 3)
    assert spent(bench) == [3_000, 3_000]
    later(bench)
    (claim,) = bench.claim(slots=3)
    end(bench, claim, 20, RunResult.YIELD)
    assert spent(bench) == [23_000, 23_000], "more than was predicted counts, too"
    later(bench)
    assert bench.claim(slots=3) == ()


def test_a_run_that_reports_nothing_keeps_its_reservation(bench: Bench) -> None:
    learned(bench)
    budget(bench, "24 core-seconds/day")
    bench.enqueue(job())
    (claim,) = bench.claim()
    bench.finish(claim, RunResult.YIELD)
    assert spent(bench)[0] == 12_500
    bench.clock.advance(1)
    budget(bench, "26 core-seconds/day")
    (claim,) = bench.claim()
    bench.clock.advance(LEASE_MS + 1)
    assert bench.claim() == (), "the lease is over, and the budget reserved twice"
    assert spent(bench)[0] == 25_000


def test_a_job_that_comes_back_without_a_budget_pays_nothing(bench: Bench) -> None:
    learned(bench)
    budget(bench, "24 core-seconds/day")
    bench.enqueue(job())
    (claim,) = bench.claim()
    end(bench, claim, 1, RunResult.YIELD)
    budget(bench, "")
    (claim,) = bench.claim()
    budget(bench, "24 core-seconds/day")
    bench.enqueue(job(partition="other"))
    assert len(bench.claim()) == 1
    before = spent(bench)
    end(bench, claim, 5)
    assert spent(bench) == before, "it began before there was a budget"


def test_use_belongs_to_the_day_and_month_in_which_the_run_began(bench: Bench) -> None:
    bench.clock.advance(round(datetime(2028, 2, 29, 23, 59, 40, tzinfo=UTC).timestamp() * 1000) - bench.clock.now_ms)
    learned(bench)
    budget(bench, "1 core-hours/day; 1 core-hours/month")
    bench.enqueue(job(partition="a"))
    bench.enqueue(job(partition="b"))
    first, second = bench.claim(slots=2)
    end(bench, first, 5)
    bench.clock.advance(30_000)
    bench.enqueue(job(partition="c"))
    (third,) = bench.claim()
    end(bench, second, 7)
    assert spent(bench)[0] == spent(bench)[1] > 12_000, "what is reserved for the third"
    end(bench, third, 1)
    assert spent(bench) == [1_000, 1_000]


def test_a_month_is_renewed_on_its_first_day(bench: Bench) -> None:
    learned(bench)
    budget(bench, "20 core-seconds/month")
    for year, month, day in ((2027, 12, 31), (2028, 1, 1), (2028, 2, 29), (2100, 2, 28)):
        bench.clock.advance(round(datetime(year, month, day, 12, tzinfo=UTC).timestamp() * 1000) - bench.clock.now_ms)
        bench.run(commands.cancel(QUEUE, job(partition="b").id, nonce=bench.nonce()))
        bench.enqueue(job(partition="a", priority=0))
        bench.enqueue(job(partition="b"))
        (claim,) = bench.claim(slots=2)
        end(bench, claim, 10)
        following = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        assert held(bench, job(partition="b"))[1] == following.timestamp() * 1000


def test_a_clock_that_is_set_back_begins_no_budget_again(bench: Bench) -> None:
    learned(bench)
    budget(bench, "30 core-seconds/day")
    bench.enqueue(job(partition="a", priority=0))
    (claim,) = bench.claim()
    end(bench, claim, 20)
    renewed_ms = renewal(bench)
    bench.clock.advance(-DAY_MS)
    bench.enqueue(job(partition="b"))
    assert bench.claim() == ()
    assert held(bench, job(partition="b")) == ("table|t-1", renewed_ms)
    assert spent(bench)[0] == 20_000


def test_all_budgets_of_a_job_count_its_use_and_the_last_renewal_is_shown(bench: Bench) -> None:
    learned(bench)
    budget(bench, "1 core-hours/day")
    budget(bench, "100 core-seconds/day", Scope.TENANT, "acme")
    budget(bench, "20 core-seconds/month", Scope.QUEUE, "")
    bench.enqueue(job(partition="a", priority=0))
    bench.enqueue(job(partition="b"))
    (claim,) = bench.claim(slots=2)
    end(bench, claim, 10)
    assert {scope: spent(bench, scope)[0] for scope in ("table|t-1", "tenant|acme", "queue|")} == {
        "table|t-1": 10_000,
        "tenant|acme": 10_000,
        "queue|": 10_000,
    }
    holder, opens_ms = held(bench, job(partition="b"))
    assert (holder, opens_ms > renewal(bench)) == ("queue|", True)
    budget(bench, "", Scope.QUEUE, "")
    assert "queue|" not in bench.state().hash("spent")
    later(bench)
    assert len(bench.claim()) == 1


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        ("0.01 GiB/day", "!table|t-1"),
        ("101 requests/day", "!table|t-1"),
        ("0.02 USD/day", "!table|t-1"),
        ("5 EUR/day", "?table|t-1"),
        ("1 GiB/day; 1000 requests/month; 1 USD/day", ""),
    ],
)
def test_bytes_requests_and_money_are_limited_as_core_time_is(bench: Bench, text: str, holder: str) -> None:
    learned(bench)
    bench.run(admin_commands.set_prices(QUEUE, encode_prices(Prices(core_hour=Decimal(8)))))
    budget(bench, text)
    bench.enqueue(job())
    claims = bench.claim()
    assert bool(claims) is (holder == "")
    assert holder == "" or held(bench, job())[0] == holder


def test_a_request_for_any_time_starts_and_is_counted(bench: Bench) -> None:
    learned(bench)
    budget(bench, "10 core-seconds/day")
    bench.enqueue(job())
    assert bench.claim() == ()
    bench.enqueue(job(any_time=True))
    (claim,) = bench.claim()
    end(bench, claim, 30)
    assert spent(bench) == [30_000, 30_000]


def test_jobs_that_share_a_slot_fit_into_the_budget_together(bench: Bench) -> None:
    learned(bench)
    budget(bench, "30 core-seconds/day")
    for number in range(4):
        bench.enqueue(job(partition=str(number)))
    assert len(bench.claim(share=Share(4, 1 << 40))) == 2
    assert spent(bench)[0] == 25_000


def test_claims_are_foreseen_as_they_are_and_foreseeing_reserves_nothing(bench: Bench) -> None:
    learned(bench)
    budget(bench, "30 core-seconds/day")
    for number in range(4):
        bench.enqueue(job(partition=str(number), band=Band.URGENT))
    bench.enqueue(spec(table="other"))
    foreseen = bench.run(queries.order(QUEUE, claims=9))
    assert bench.state().hash("spent") == {}
    assert [one.id for one in foreseen] == [claim.id for claim in bench.claim(slots=9)]
    assert len(foreseen) == 3


def test_a_waiting_job_over_budget_preempts_nothing(bench: Bench) -> None:
    learned(bench)
    budget(bench, "10 core-seconds/day")
    bench.enqueue(spec(table="runs", band=Band.LOW))
    (running,) = bench.claim()
    bench.enqueue(job(band=Band.URGENT))
    bench.clock.advance(3_000)
    assert bench.run(admin_commands.preempt(QUEUE, Preemption(max_wait_ms=0, min_run_ms=0))) == ()
    assert bench.beat(running).reason is None


def test_jobs_that_waited_for_a_budget_come_back_one_after_another_the_best_first(bench: Bench) -> None:
    learned(bench)
    budget(bench, "1 core-seconds/day")
    for number in (3, 0, 2, 1):
        bench.enqueue(job(partition=str(number), priority=number))
    assert bench.claim(slots=4) == ()
    ready_ms = [bench.job(job(partition=str(number))).ready_at_ms or 0 for number in range(4)]
    assert ready_ms == sorted(set(ready_ms))


def known_runs(bench: Bench) -> float:
    return float(bench.state().hash("rates:t-1")["compact|0"].split(",")[0])


def test_what_runs_use_is_learned_by_kind_and_bytes(bench: Bench) -> None:
    budget(bench, "1 core-hours/day")
    bench.ingest(-1, 1)
    bench.enqueue(job())
    (claim,) = bench.claim()
    assert spent(bench)[0] == 16 * UNKNOWN_CORE_MS, "nothing is known"
    for margin, runs in ((2.0, 1), (1.25, 10)):
        end(bench, claim, 4)
        while known_runs(bench) < runs:
            bench.enqueue(job())
            (claim,) = bench.claim()
            end(bench, claim, 4)
        before = spent(bench)[0]
        bench.enqueue(spec(cost_bytes=24 * MIB))
        (claim,) = bench.claim()
        assert spent(bench)[0] - before == 8_000 * margin, "twice the bytes and the fixed work"
        end(bench, claim, 8, RunResult.YIELD)
        assert known_runs(bench) == runs, "only whole runs teach"
        (claim,) = bench.claim()


def test_runs_that_found_nothing_to_do_say_nothing_of_those_that_write(bench: Bench) -> None:
    budget(bench, "1 core-hours/day")
    bench.ingest(-1, 1)
    nothing, found, dear = (0.01, 0), (4, 2), (6, 0)
    for (core_s, writes), runs, bound_s in (
        (nothing, 1, 0.02),
        (found, 1, 8),
        (nothing, 1, 8),
        (found, 2, 8),
        (dear, 2, 12),
    ):
        bench.enqueue(job())
        (claim,) = bench.claim()
        end(bench, claim, core_s, writes=writes)
        bench.enqueue(job())
        before = spent(bench)[0]
        (claim,) = bench.claim()
        assert (known_runs(bench), spent(bench)[0] - before) == (runs, 1000 * bound_s)
        bench.finish(claim, RunResult.YIELD, counters=Usage().counters())


def test_the_audit_finds_nothing_to_repair_while_jobs_wait_for_a_budget(bench: Bench) -> None:
    learned(bench)
    budget(bench, "13 core-seconds/day")
    for number in range(3):
        bench.enqueue(job(partition=str(number)))
    assert len(bench.claim(slots=3)) == 1
    assert sum(repaired_by(bench.executor, QUEUE, bench.client)) == 0


def test_a_band_has_no_budget() -> None:
    with pytest.raises(InvalidInput, match="a band has no budget"):
        admin_commands.set_budget(QUEUE, Scope.BAND, "1", "")
