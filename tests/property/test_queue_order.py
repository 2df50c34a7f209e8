"""The order that is foreseen is the order of the claims, and within a tenant it is that of benefit per cost."""

from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.queue_executor import SyncQueueExecutor
from shared.queue import admin_commands, commands, limits, queries
from shared.queue.admin_commands import SlotLimit
from shared.queue.model import Band, Claim, JobKey, JobRequest, RunResult, Scope
from shared.queue.settings import QueueSettings
from tests.support.examples import examples
from tests.support.queue_bench import QUEUE, repaired
from tests.support.queue_invariants import every_queued_job_is_reachable, turns_follow_ranks
from tests.support.queue_state import emptied, read_state

pytestmark = pytest.mark.redis

LEASE_MS = 3_600_000
MIB = 1 << 20
AGING_MS = QueueSettings().aging_ms
TABLES = 12

requests = st.builds(
    lambda table, partition, **rest: JobRequest(JobKey(f"t{table}", partition, "c"), tenant=f"of-{table % 3}", **rest),
    table=st.integers(0, TABLES - 1),
    partition=st.sampled_from(["a", "b", "c", "d"]),
    band=st.sampled_from([Band.HIGH, Band.NORMAL, Band.NORMAL, Band.NORMAL, Band.BACKGROUND]),
    priority=st.integers(0, limits.MAX_PRIORITY),
    cost_bytes=st.sampled_from([0, 64 * MIB, 1_024 * MIB, 16_384 * MIB]),
    version=st.integers(0, 3),
)


def claimed(queue: SyncQueueExecutor, nonce: str, slots: int = 1) -> tuple[Claim, ...]:
    return queue.run(commands.claim(QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=LEASE_MS))


def finish(queue: SyncQueueExecutor, claim: Claim, cost_bytes: int) -> None:
    call = {"worker": "w", "nonce": f"f{claim.token}", "id": claim.id, "token": claim.token}
    queue.run(commands.finish(QUEUE, **call, run_result=RunResult.DONE, cost_bytes=cost_bytes, seen_version=9))


def job(table: str, priority: int, *, partition: str = "a", cost_bytes: int = MIB) -> JobRequest:
    return JobRequest(JobKey(table, partition, "c"), "acme", Band.NORMAL, priority, cost_bytes, 1)


@settings(max_examples=examples(0.4))
@given(data=st.data())
def test_the_order_that_is_foreseen_is_that_of_the_claims(queue: SyncQueueExecutor, data: st.DataObject) -> None:
    """However many tables wait, whatever they owe, weigh and may run at once, and while jobs come and go in between."""
    clock = emptied(queue)
    queue.run(commands.configure(QUEUE, {"aging_ms": data.draw(st.sampled_from([0, 5_000, AGING_MS]))}))
    running: list[Claim] = []
    for level, names in ((Scope.TABLE, "t0 t1 t2"), (Scope.TENANT, "of-0 of-1")):
        for name in names.split():
            queue.run(admin_commands.set_weight(QUEUE, level, name, data.draw(st.sampled_from([None, 0.5, 3.0]))))
            limit = data.draw(st.sampled_from([None, None, SlotLimit(1), SlotLimit(3)]))
            queue.run(admin_commands.set_limit(QUEUE, level, name, limit))
    for step in range(data.draw(st.integers(1, 5))):
        for request in data.draw(st.lists(requests, max_size=20)):
            clock.advance(data.draw(st.sampled_from([0, 1, 5_000])))
            queue.run(commands.enqueue(QUEUE, request))
        for claim in running[: data.draw(st.integers(0, 4))]:
            finish(queue, claim, data.draw(st.sampled_from([0, claim.cost_bytes, 2 * claim.cost_bytes])))
            running.remove(claim)
        wanted = data.draw(st.integers(1, limits.MAX_FORESEEN))
        foreseen = queue.run(queries.order(QUEUE, claims=wanted))
        got = [claim for number in range(wanted) for claim in claimed(queue, f"{step}-{number}")]
        assert [one.id for one in foreseen] == [claim.id for claim in got]
        running += got


@settings(max_examples=examples(0.25))
@given(
    waiting=st.dictionaries(
        st.integers(0, 99), st.tuples(st.integers(0, 31), st.integers(0, 10 * AGING_MS)), min_size=2, max_size=20
    )
)
def test_of_a_tenants_tables_the_one_of_most_benefit_per_cost_is_served_and_none_is_overtaken_for_ever(
    queue: SyncQueueExecutor, waiting: dict[int, tuple[int, int]]
) -> None:
    """A better priority p' overtakes priority p of another table only if it is at most (p - p') intervals younger."""
    clock = emptied(queue)
    start_ms = clock.now_ms
    for number, (priority, after_ms) in sorted(waiting.items(), key=lambda one: one[1][1]):
        clock.advance(start_ms + after_ms - clock.now_ms)
        queue.run(commands.enqueue(QUEUE, job(f"t{number}", priority)))
    served = [claimed(queue, f"{number}")[0] for number in range(len(waiting))]
    for number, later in enumerate(served):
        for earlier in served[:number]:
            ahead_ms = earlier.enqueued_at_ms - later.enqueued_at_ms
            assert ahead_ms <= (later.priority - earlier.priority) * AGING_MS


def test_a_table_with_many_jobs_leads_by_its_benefit_and_no_further(queue: SyncQueueExecutor) -> None:
    """Two steps ahead are two intervals of turns: at a second per MiB, 14,400 MiB; then the others have theirs."""
    emptied(queue)
    for number in range(30):
        queue.run(commands.enqueue(QUEUE, job("busy", 3, partition=f"{number}", cost_bytes=1_000 * MIB)))
    queue.run(commands.enqueue(QUEUE, job("other", 5)))
    served = [claimed(queue, f"{number}")[0].key.table for number in range(20)]
    assert served.index("other") == 2 * AGING_MS // 1_000_000 + 1


def test_a_better_job_takes_its_table_forward_and_a_worse_one_does_not(queue: SyncQueueExecutor) -> None:
    emptied(queue)
    for request in (job("a", 5), job("b", 4), job("a", 6, partition="worse"), job("a", 3, partition="better")):
        queue.run(commands.enqueue(QUEUE, request))
    foreseen = queue.run(queries.order(QUEUE, claims=4))
    served = [claimed(queue, f"{number}")[0] for number in range(4)]
    assert [one.id for one in foreseen] == [claim.id for claim in served]
    assert [(claim.key.table, claim.priority) for claim in served] == [("a", 3), ("b", 4), ("a", 5), ("a", 6)]


def test_a_table_whose_best_job_is_cancelled_goes_back_to_the_rank_of_the_next(queue: SyncQueueExecutor) -> None:
    emptied(queue)
    best = job("a", 1, partition="best")
    for request in (best, job("a", 5), job("b", 4)):
        queue.run(commands.enqueue(QUEUE, request))
    queue.run(commands.cancel(QUEUE, best.id, nonce="n"))
    assert [claimed(queue, f"{number}")[0].key.table for number in range(2)] == ["b", "a"]


def test_a_table_at_its_limit_comes_back_with_its_turn(queue: SyncQueueExecutor) -> None:
    """What it owes is not forgotten while it is throttled, and a better job that arrives meanwhile counts."""
    emptied(queue)
    queue.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "a", SlotLimit(1)))
    for number in range(3):
        queue.run(commands.enqueue(QUEUE, job("a", 5, partition=f"{number}", cost_bytes=100 * MIB)))
    queue.run(commands.enqueue(QUEUE, job("b", 5, cost_bytes=100 * MIB)))
    queue.run(commands.enqueue(QUEUE, job("b", 5, partition="second", cost_bytes=100 * MIB)))
    first, second = claimed(queue, "1")[0], claimed(queue, "2")[0]
    assert [first.key.table, second.key.table] == ["a", "b"]
    third = claimed(queue, "3")[0]
    assert third.key.table == "b", "a is at its limit"
    queue.run(commands.enqueue(QUEUE, job("a", 4, partition="better")))
    queue.run(commands.enqueue(QUEUE, job("c", 4, cost_bytes=100 * MIB)))
    finish(queue, first, first.cost_bytes)
    assert claimed(queue, "4")[0].key.partition == "better"


def test_a_queue_that_an_earlier_release_left_is_served_and_repaired(queue: SyncQueueExecutor) -> None:
    """It kept start tags of tables where turns are now, with a virtual time and idle tags for each leaf."""
    emptied(queue)
    queue.run(commands.configure(QUEUE, asdict(QueueSettings())))
    for number in range(6):
        for partition in "ab":
            queue.run(commands.enqueue(QUEUE, job(f"t{number}", number, partition=partition)))
    prefix = f"{{lw:{QUEUE}}}:"
    for number in range(6):
        queue.redis.zadd(f"{prefix}n:2|acme", {f"t{number}": 1_000 * (6 - number)})
    queue.redis.zadd(f"{prefix}i:2|acme", {"gone": 9_000})
    queue.redis.hset(f"{prefix}v", "2|acme", "1000")
    before = claimed(queue, "first")
    assert [claim.key.table for claim in before] == ["t5"], "its tag was the least"
    assert sum(repaired(queue, queue.redis)) == 5
    assert sum(repaired(queue, queue.redis)) == 0
    served = [claimed(queue, f"{number}")[0] for number in range(11)]
    assert [claim.key.table for claim in served[:2]] == ["t0", "t0"]
    assert len({claim.id for claim in (*before, *served)}) == 12
    state = read_state(queue.redis, QUEUE)
    every_queued_job_is_reachable(state)
    turns_follow_ranks(state)
