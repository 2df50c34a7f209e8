"""Random traces of a queue under budgets: none is broken by a run that used no more than was predicted, and none idles.

Limits of write amplification are budgets, too, which grow with what writers add.

The use of every run is drawn from what its table needs per byte, and added up here apart from the queue.
"""

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.queue_executor import SyncQueueExecutor
from decider.state.commit_pace import DAY_MS, IngestedDays, ingested_after
from shared.policy.budgets import AMPLIFICATION_DAYS, Budget, encode_budgets, encode_prices, parse_budgets
from shared.prices import PRESETS, Usage
from shared.queue import admin_commands, commands, keys, queries
from shared.queue.model import Band, Claim, HeartbeatEntry, JobId, JobKey, JobRequest, RunResult, Scope, Share
from shared.table import Commit, DataFile, PartitionKey
from tests.support.queue_state import TestClock, emptied

pytestmark = pytest.mark.redis

QUEUE = "default"
MIB = 1 << 20
HOUR_MS = 3_600_000
LEASE_MS = 24 * HOUR_MS
FLEET, CORE_MS = 1_000, 40
TRACES = int(os.environ.get("LAKEWRIGHT_PROMISE_TRACES", "25"))
PRICES = PRESETS["s3-tables-2024-12"]
STARTS = tuple(
    round(datetime(*at, tzinfo=UTC).timestamp() * 1000) for at in ((2027, 12, 31, 20), (2028, 2, 28), (2026, 5, 5))
)

scopes = st.sampled_from([(Scope.TABLE, "a"), (Scope.TABLE, "b"), (Scope.TENANT, "t"), (Scope.QUEUE, "")])
amounts = st.sampled_from(
    ["20 core-seconds", "2 core-hours", "0.1 GiB", "2 GiB", "40 requests", "900 requests", "0.01 USD", "1 USD"]
)
budgets = st.lists(st.builds("{}/{}".format, amounts, st.sampled_from(["day", "month"])), min_size=1, max_size=3)
sizes = st.integers(0, 64 * MIB)
limits = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["0.5", "2.0", "10"]))
others = (
    st.tuples(st.just("write"), st.sampled_from("ab"), st.integers(1, 256 * MIB)),
    st.tuples(st.just("claim"), st.integers(1, 3)),
    st.tuples(st.just("advance"), st.integers(1, 40 * HOUR_MS)),
    st.tuples(st.just("end"), st.sampled_from([RunResult.DONE, RunResult.DONE, RunResult.YIELD, RunResult.FAIL])),
    st.tuples(st.just("end"), st.just(None)),
)
steps = st.one_of(
    st.tuples(
        st.just("request"), st.sampled_from("abc"), st.integers(0, 5), st.sampled_from(["compact", "vacuum"]), sizes
    ),
    *others,
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run: its table, the moment of its start, the most that it was predicted to use, and what it used."""

    table: str
    kind: str
    started_ms: int
    bound: Usage
    used: Usage


@dataclass(slots=True)
class Trace:
    """A queue under budgets, what runs in it, and what ran."""

    queue: SyncQueueExecutor
    clock: TestClock
    budgets: dict[str, tuple[Budget, ...]]
    limits: dict[str, str]
    random: Random
    running: list[tuple[Claim, int, Usage]] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    added: list[tuple[str, int, int]] = field(default_factory=list)
    ingested: defaultdict[str, IngestedDays] = field(default_factory=lambda: defaultdict(tuple))
    numbers: "count[int]" = field(default_factory=count)

    def request(self, table: str, partition: int, kind: str, cost_bytes: int) -> None:
        key = JobKey(table, str(partition), kind)
        spec = JobRequest(key, "t", Band.NORMAL, self.random.randrange(32), cost_bytes, next(self.numbers))
        self.queue.run(commands.enqueue(QUEUE, spec))

    def write(self, table: str, size_bytes: int) -> None:
        """Let a writer add a file."""
        now_ms = self.clock.now_ms
        commit = Commit(len(self.added), now_ms, "WRITE", (DataFile("a", size_bytes, PartitionKey("{}")),))
        self.added.append((table, now_ms // DAY_MS, size_bytes))
        self.ingested[table] = ingested_after(self.ingested[table], commit, now_ms)
        text = json.dumps(self.ingested[table], separators=(",", ":"))
        self.queue.redis.hset(keys.table_state(QUEUE, table), "ingested", text)

    def advance(self, span_ms: int) -> None:
        """Let time pass while the leases are renewed."""
        end_ms = self.clock.now_ms + span_ms
        while self.clock.now_ms < end_ms:
            self.clock.advance(min(LEASE_MS - 1, end_ms - self.clock.now_ms))
            beats = [HeartbeatEntry(claim.id, claim.token, "") for claim, _, _ in self.running]
            self.queue.run(commands.heartbeat(QUEUE, worker="w", beats=beats, lease_ms=LEASE_MS))

    def claim(self, jobs: int) -> int:
        nonce, share = str(next(self.numbers)), Share(jobs, 1 << 40)
        call = commands.claim(QUEUE, worker="w", nonce=nonce, slots=1, lease_ms=LEASE_MS, share=share)
        claims = self.queue.run(call)
        for claim in claims:
            reserved = self.queue.redis.hget(keys.job(QUEUE, claim.id), "reserved")
            figures = [int(one) for one in reserved.split(b"|")[0].split(b",")[2:]] if reserved else [0] * 5
            self.running.append((claim, self.clock.now_ms, Usage(*figures)))
            assert reserved or not self.scopes(claim.key.table), "a job under a budget has a reservation"
        self.check()
        for table in {claim.key.table for claim in claims if claim.key.kind == "compact"} & self.limits.keys():
            self.check_amplification(table)
        return len(claims)

    def end(self, result: RunResult | None) -> None:
        """End the oldest run; None: its actor dies."""
        if not self.running:
            return
        claim, started_ms, bound = self.running.pop(0)
        used = self.need(claim)
        self.ran.append(Ran(claim.key.table, claim.key.kind, started_ms, bound, used if result else bound))
        self.finish(claim, result or RunResult.CRASHED, used if result else None)

    def finish(self, claim: Claim, result: RunResult, used: Usage | None) -> None:
        call = commands.finish(
            *(QUEUE,),
            worker="w",
            nonce=str(next(self.numbers)),
            id=claim.id,
            token=claim.token,
            run_result=result,
            cost_bytes=claim.cost_bytes,
            seen_version=claim.version,
            counters={} if used is None else used.counters(),
        )
        self.queue.run(call)

    def need(self, claim: Claim) -> Usage:
        """What a run uses: of a table's own rates, which are below what is assumed of unknown ones."""
        units = units_of(claim.cost_bytes) * self.random.uniform(0.5, 1)
        rates = {"a": (50, 1 << 20, 1 << 19, 20, 1), "b": (450, 1 << 21, 1 << 21, 150, 15)}
        return Usage(*(int(units * rate) for rate in rates.get(claim.key.table, (1, 1, 1, 1, 1))))

    def scopes(self, table: str) -> list[str]:
        return [one for one in (f"table|{table}", "tenant|t", "queue|") if one in self.budgets]

    def check(self) -> None:
        """No budget is broken, beyond what runs used more than predicted, by the most that may still be used."""
        runs = self.runs()
        for scope, found in self.budgets.items():
            for budget in found:
                sums: defaultdict[str, Fraction] = defaultdict(Fraction)
                for one in runs:
                    if scope in self.scopes(one.table):
                        allowed = Usage(*map(min, zip(figures(one.used), figures(one.bound), strict=True)))
                        sums[period_of(one.started_ms, budget.period)] += in_unit(allowed, budget.unit)
                for period, total in sums.items():
                    assert total <= budget.amount * (1 + Fraction(1, 10**12)), (
                        scope,
                        str(budget),
                        period,
                        float(total),
                    )

    def runs(self) -> list[Ran]:
        """All runs, those that have not ended with the most that they may use."""
        return self.ran + [Ran(claim.key.table, claim.key.kind, at, bound, bound) for claim, at, bound in self.running]

    def check_amplification(self, table: str) -> None:
        """No job has started that may rewrite more than was added permits, in these thirty days."""
        since = self.clock.now_ms // DAY_MS - AMPLIFICATION_DAYS
        done = sum(
            min(rewrite_of(one.used), rewrite_of(one.bound))
            for one in self.runs()
            if (one.table, one.kind) == (table, "compact") and one.started_ms // DAY_MS > since
        )
        added = sum(size for name, day, size in self.added if name == table and day > since)
        assert done <= Fraction(self.limits[table]) * added, (table, done, added)


def rewrite_of(used: Usage) -> int:
    return max(used.bytes_read, used.bytes_written)


def units_of(cost_bytes: int) -> float:
    """MiB of a job, with its fixed work."""
    return cost_bytes / MIB + 8


def learn(queue: SyncQueueExecutor, table: str) -> None:
    """Let runs of a table have used so much core time per MiB that the most which is predicted is `CORE_MS`."""
    rates = [10, 100, 100 * CORE_MS, 0, 0, 0, 0, CORE_MS / 1.25, 0, 0, 0, 0]
    queue.redis.hset(keys.rates(QUEUE, table), "compact|0", ",".join(map(str, rates)))


def figures(used: Usage) -> tuple[int, ...]:
    return (used.core_ms, used.bytes_read, used.bytes_written, used.reads, used.writes)


def period_of(at_ms: int, period: str) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d" if period == "day" else "%Y-%m")


def in_unit(used: Usage, unit: str) -> Fraction:
    """A usage in the unit of a budget, exactly."""
    return {
        "core-hours": Fraction(used.core_ms, HOUR_MS),
        "core-seconds": Fraction(used.core_ms, 1_000),
        "GiB": Fraction(used.bytes_read + used.bytes_written, 1 << 30),
        "requests": Fraction(used.reads + used.writes),
        "USD": PRICES.cost(used),
    }[unit]


def under(
    queue: SyncQueueExecutor,
    start_ms: int,
    found: dict[tuple[Scope, str], str],
    seed: int,
    limited: dict[str, str] | None = None,
) -> Trace:
    """An empty queue with these budgets, and limits of write amplification by table."""
    clock = emptied(queue)
    clock.advance(start_ms - clock.now_ms)
    queue.run(admin_commands.set_prices(QUEUE, encode_prices(PRICES)))
    for table in "abc":
        queue.redis.hset(keys.table_state(QUEUE, table), "version", "1")
    for (scope, name), text in found.items():
        queue.run(admin_commands.set_budget(QUEUE, scope, name, encode_budgets(text)))
    for table, limit in (limited or {}).items():
        queue.run(admin_commands.set_amplification(QUEUE, table, limit))
    kept = {f"{scope}|{name}": parse_budgets(text) for (scope, name), text in found.items()}
    return Trace(queue, clock, kept, limited or {}, Random(seed))


merges = st.tuples(st.just("request"), st.just("a"), st.integers(0, 5), st.just("compact"), sizes)


@settings(max_examples=TRACES, deadline=None)
@given(
    st.sampled_from(["0.5", "2.0", "10"]),
    st.lists(st.one_of(merges, *others), min_size=20, max_size=80),
    st.integers(0, 2**32),
)
def test_no_limit_of_write_amplification_is_broken(
    queue: SyncQueueExecutor, limit: str, trace: list[tuple[object, ...]], seed: int
) -> None:
    done = under(queue, STARTS[2], {}, seed, {"a": limit})
    for name, *args in trace:
        getattr(done, str(name))(*args)


@settings(max_examples=TRACES, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.dictionaries(scopes, budgets.map("; ".join)),
    limits,
    st.lists(steps, min_size=5, max_size=60),
    st.integers(0, 2**32),
)
def test_no_budget_is_broken_and_every_job_that_fits_is_served(
    queue: SyncQueueExecutor,
    start_ms: int,
    found: dict[tuple[Scope, str], str],
    limited: dict[str, str],
    trace: list[tuple[object, ...]],
    seed: int,
) -> None:
    done = under(queue, start_ms, found, seed, limited)
    for name, *args in trace:
        getattr(done, str(name))(*args)
    while done.running:
        done.end(RunResult.DONE)
    served_ms = done.clock.now_ms
    while sum(queue.run(queries.depth(QUEUE)).depth.values()):
        while done.claim(3):
            served_ms = done.clock.now_ms
            while done.running:
                done.end(RunResult.DONE)
        done.advance(900_000 * 4)
        if done.clock.now_ms - served_ms > 63 * 24 * HOUR_MS:
            break
        done.advance(max(0, min(wakes(queue), default=0) - done.clock.now_ms))
    waiting = [queue.run(queries.job(QUEUE, job)) for job in ids(queue)]
    assert all(one and one.holder.startswith("!") for one in waiting), "a job that fits waits for ever"


def ids(queue: SyncQueueExecutor) -> list[JobId]:
    return [
        JobId(one.decode())
        for key in (keys.queued(QUEUE), keys.delayed(QUEUE))
        for one in queue.redis.zrange(key, 0, -1)
    ]


def wakes(queue: SyncQueueExecutor) -> list[int]:
    """When what is held may start; nothing happens before."""
    found = [queue.run(queries.job(QUEUE, job)) for job in ids(queue)]
    return [one.opens_ms + 6_000 for one in found if one and one.opens_ms]


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_within_a_tenth_of_what_is_measured_after_ten_runs(queue: SyncQueueExecutor, seed: int) -> None:
    """The mean of a hundred jobs of all sizes, whose use varies by half around what their bytes and fixed work need."""
    done = under(queue, STARTS[2], {(Scope.TABLE, "a"): "1000 core-hours/day"}, seed)
    random = Random(seed)
    predicted = measured = 0.0
    for run in range(110):
        cost_bytes = round(2 ** random.uniform(20, 34))
        done.request("a", run, "compact", cost_bytes)
        if run >= 10:
            _, units, core_ms, *_ = map(float, queue.redis.hget(keys.rates(QUEUE, "a"), "compact|0").split(b","))
            predicted += core_ms / units * units_of(cost_bytes)
        assert done.claim(1) == 1
        used = Usage(core_ms=round((2_000 + cost_bytes / MIB * 40) * random.uniform(0.5, 1.5)))
        measured += used.core_ms if run >= 10 else 0
        claim, _, _ = done.running.pop()
        done.finish(claim, RunResult.DONE, used)
    assert 0.9 <= predicted / measured <= 1.1


@pytest.mark.parametrize("seed", range(2))
def test_a_fleet_under_a_tenth_of_its_work_gains_no_less_per_price_than_in_the_order_without_a_budget(
    queue: SyncQueueExecutor, seed: int
) -> None:
    """A thousand tables with a job each, on two days: what waited comes back in the order of its worth.

    Per core time it is less in the mean, because what is left at the end of a day goes to jobs that are smaller and
    worth less; so it is compared with the other order for the same time, a part of its next job included.
    """
    random = Random(seed)
    benefits = [random.randrange(4, 4_000) for _ in range(FLEET)]
    costs = [round(2 ** random.uniform(22, 30)) for _ in range(FLEET)]
    used = [round(units_of(cost) * CORE_MS) for cost in costs]
    a_day_ms = sum(used) // 20

    def order(budget: dict[tuple[Scope, str], str], most_ms: int) -> list[int]:
        """Serve the fleet one by one for two days; return the tables in their order."""
        done, served = under(queue, STARTS[2], budget, seed), list[int]()
        for number, (benefit, cost) in enumerate(zip(benefits, costs, strict=True)):
            learn(queue, f"t{number}")
            priority = ceil(24 - log2(benefit * 512 * MIB / (cost + 8 * MIB)))
            key = JobKey(f"t{number}", "0", "compact")
            request = JobRequest(key, "t", Band.NORMAL, min(31, max(0, priority)), cost, number)
            queue.run(commands.enqueue(QUEUE, request))
        for _ in range(2):
            while sum(used[one] for one in served) <= most_ms:
                done.advance(20)
                if done.claim(1) == 0 and not queue.redis.zcount(keys.delayed(QUEUE), 0, done.clock.now_ms):
                    break
                while done.running:
                    claim, _, _ = done.running.pop()
                    served.append(int(claim.key.table[1:]))
                    done.finish(claim, RunResult.DONE, Usage(core_ms=used[served[-1]]))
            done.advance(24 * HOUR_MS - done.clock.now_ms % (24 * HOUR_MS) + 6_000)
        return served

    under_budget = order({(Scope.QUEUE, ""): f"{a_day_ms / 1000} core-seconds/day"}, 10**12)
    *without, further = order({}, 2 * a_day_ms)
    spent, of_today = (sum(used[one] for one in served) for served in (under_budget, without))
    gained, gained_today = (sum(benefits[one] for one in served) for served in (under_budget, without))
    print(f"{gained:,} files for {spent:,} ms under a budget, {gained_today:,} for {of_today:,} ms without")
    assert spent <= 2 * a_day_ms
    assert set(without) <= set(under_budget), "all that the other order serves for the same budget, and more"
    in_same_time = gained_today + benefits[further] * Fraction(spent - of_today, used[further])
    assert gained >= in_same_time * Fraction(999, 1000)
