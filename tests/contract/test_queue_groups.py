"""Groups of a queue: each serves its own tables alone; jobs follow their table, never lost, never in two groups."""

import random
from collections.abc import Callable

import pytest

from shared.queue import admin_commands, audit, commands, keys, queries
from shared.queue.admin_commands import SlotLimit, SlotQuota
from shared.queue.model import Claim, Debounce, FinishOutcome, JobId, JobState, RunResult, Scope, Share
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, end_of, repaired_by, spec

pytestmark = pytest.mark.redis

ETL = keys.in_group(QUEUE, "etl")
BOTH = (QUEUE, ETL)


def move(bench: Bench, group: str, *, table: str = "t-1") -> None:
    """Note in a table's state that it belongs to a group now, as a decider does; empty for the queue itself."""
    found = bench.client.hget(keys.table_state(QUEUE, table), "version")
    before = -1 if found is None else int(found)
    assert bench.ingest(before, before + 1, table=table, state_fields=fields(before + 1, group)).applied


def fields(version: int, group: str) -> dict[str, str]:
    return {"version": str(version), "format": "delta", "group": group}


def claim(bench: Bench, queue: str, slots: int = 1, share: int = 1) -> tuple[Claim, ...]:
    call = {"worker": f"w-{queue}", "nonce": bench.nonce(), "lease_ms": LEASE_MS}
    return bench.run(commands.claim(queue, **call, slots=slots, share=Share(share, 1 << 40)))


def finish(bench: Bench, queue: str, held: Claim, result: RunResult = RunResult.DONE) -> FinishOutcome:
    ended = end_of(held, result, nonce=bench.nonce())
    return bench.run(ended.__class__(ended.script, (keys.prefix(queue),), ended.args, ended.decode)).outcome


def jobs_in(bench: Bench, queue: str) -> dict[JobState, set[JobId]]:
    """The jobs of a group by state, as its indexes have them."""
    found = {state: bench.run(queries.jobs(queue, state)).jobs for state in JobState}
    return {state: {job.id for job in jobs} for state, jobs in found.items() if jobs}


def consistent(bench: Bench) -> bool:
    """Whether audits of both groups find nothing to repair."""
    return not any(sum(repaired_by(bench, queue, bench.client)) for queue in BOTH)


def test_a_job_is_claimed_in_the_group_of_its_table_alone(bench: Bench) -> None:
    move(bench, "etl", table="t-2")
    for table in ("t-1", "t-2", "t-3"):
        bench.enqueue(spec(table=table))
    assert {one.key.table for one in claim(bench, ETL, 4)} == {"t-2"}
    assert {one.key.table for one in claim(bench, QUEUE, 4)} == {"t-1", "t-3"}
    assert consistent(bench)


def test_jobs_of_an_ingest_are_in_the_group_that_it_notes(bench: Bench) -> None:
    assert bench.ingest(-1, 0, state_fields=fields(0, "etl"), jobs=[spec()]).applied
    assert jobs_in(bench, QUEUE) == {}
    assert len(claim(bench, ETL)) == 1


def test_decisions_follow_the_group(bench: Bench) -> None:
    move(bench, "etl")
    bench.run(commands.decide(QUEUE, nonce="d-1", table="t-1", job=spec()))
    assert jobs_in(bench, QUEUE) == {}
    assert len(claim(bench, ETL)) == 1


def delayed(bench: Bench) -> None:
    bench.enqueue(spec(debounce=Debounce(5_000, 8_000)))


def failed(bench: Bench) -> None:
    bench.enqueue(spec())
    assert bench.finish(bench.claim()[0], RunResult.FAIL) is FinishOutcome.DELAYED


def quarantined(bench: Bench) -> None:
    bench.enqueue(spec())
    assert bench.finish(bench.claim()[0], RunResult.QUARANTINE) is FinishOutcome.QUARANTINED


def set_aside(bench: Bench) -> None:
    move(bench, "")
    bench.enqueue(spec())
    call = commands.claim(QUEUE, worker="w", nonce="a", slots=1, lease_ms=LEASE_MS, abilities=["iceberg/compact"])
    assert bench.run(call) == ()


WAITING: dict[str, Callable[[Bench], None]] = {
    "queued": lambda bench: bench.enqueue(spec()) and None,
    "delayed": delayed,
    "failed": failed,
    "quarantined": quarantined,
    "set aside": set_aside,
}
EXPECTED = {"queued": "queued", "set aside": "queued", "failed": "delayed"}


@pytest.mark.parametrize(("state", "how"), [("queued", "claim"), *((state, "audit") for state in WAITING)])
def test_a_job_that_waits_follows_its_table_as_it_is(bench: Bench, state: str, how: str) -> None:
    WAITING[state](bench)
    before = bench.job()
    move(bench, "etl")
    if how == "audit":
        assert bench.run(audit.jobs(QUEUE, [spec().id])) == 1
    else:
        assert claim(bench, QUEUE) == ()
    assert jobs_in(bench, QUEUE) == {}
    assert jobs_in(bench, ETL) == {JobState(EXPECTED.get(state, state)): {spec().id}}
    after = bench.job()
    assert (after.attempts, after.version, after.enqueued_at_ms) == (
        before.attempts,
        before.version,
        before.enqueued_at_ms,
    )
    if state != "set aside":
        assert after.ready_at_ms == before.ready_at_ms
    assert consistent(bench)
    bench.clock.advance(24 * 3_600_000)
    assert [one.id for one in claim(bench, ETL)] == [spec().id]
    assert claim(bench, QUEUE) == ()


def test_a_claim_takes_jobs_of_its_own_group_past_those_that_it_hands_over(bench: Bench) -> None:
    for number in range(5):
        bench.enqueue(spec(partition=str(number)))
    bench.enqueue(spec(table="t-2"))
    move(bench, "etl")
    assert [one.key.table for one in claim(bench, QUEUE, 4)] == ["t-2"]
    assert len(jobs_in(bench, ETL)[JobState.QUEUED]) == 5
    assert consistent(bench)


def test_what_runs_in_the_old_group_is_not_leased_in_the_new_one_until_it_ends(bench: Bench) -> None:
    bench.enqueue(spec())
    (held,) = claim(bench, QUEUE)
    move(bench, "etl")
    bench.enqueue(spec(2))
    bench.enqueue(spec(2, partition="other"))
    assert [one.key.partition for one in claim(bench, ETL, 4)] == ["other"]
    assert finish(bench, QUEUE, held) is FinishOutcome.DELETED
    bench.clock.advance(1_000)
    assert [one.id for one in claim(bench, ETL, 4)] == [held.id]
    assert consistent(bench)


def test_jobs_that_share_a_slot_wait_for_their_own_runs_in_the_old_group(bench: Bench) -> None:
    bench.enqueue(spec(partition="b"))
    claim(bench, QUEUE)
    move(bench, "etl")
    for partition in "abc":
        bench.enqueue(spec(2, partition=partition))
        bench.clock.advance(1)
    assert [one.key.partition for one in claim(bench, ETL, 1, share=8)] == ["a"]


def test_a_lease_that_is_over_in_the_old_group_holds_nothing_up(bench: Bench) -> None:
    """Its actors may be gone for good."""
    bench.enqueue(spec())
    claim(bench, QUEUE)
    move(bench, "etl")
    bench.enqueue(spec(2))
    bench.clock.advance(LEASE_MS + 1)
    assert len(claim(bench, ETL)) == 1


@pytest.mark.parametrize("result", [RunResult.YIELD, RunResult.FAIL, RunResult.QUARANTINE])
def test_a_run_that_ends_unfinished_goes_on_in_the_new_group(bench: Bench, result: RunResult) -> None:
    bench.enqueue(spec())
    (held,) = claim(bench, QUEUE)
    move(bench, "etl")
    assert finish(bench, QUEUE, held, result) is not FinishOutcome.DELETED
    assert jobs_in(bench, QUEUE) == {}
    bench.clock.advance(24 * 3_600_000)
    assert [one.id for one in claim(bench, ETL)] == [held.id]


def test_what_was_requested_beside_a_run_is_done_in_the_new_group(bench: Bench) -> None:
    bench.enqueue(spec())
    (held,) = claim(bench, QUEUE)
    bench.enqueue(spec(2))
    move(bench, "etl")
    assert finish(bench, QUEUE, held) is FinishOutcome.REQUEUED
    assert [one.version for one in claim(bench, ETL)] == [2]


def test_a_run_whose_lease_expires_is_repeated_in_the_new_group(bench: Bench) -> None:
    bench.enqueue(spec())
    claim(bench, QUEUE)
    move(bench, "etl")
    bench.clock.advance(LEASE_MS + 20)
    assert claim(bench, QUEUE) == ()
    (again,) = claim(bench, ETL)
    assert again.attempts == 1


def test_a_job_that_comes_back_is_merged_with_the_one_of_the_new_group(bench: Bench) -> None:
    bench.enqueue(spec(2))
    (held,) = claim(bench, QUEUE)
    move(bench, "etl")
    bench.enqueue(spec(3))
    assert finish(bench, QUEUE, held, RunResult.YIELD) is FinishOutcome.REQUEUED
    assert [one.version for one in claim(bench, ETL, 4)] == [3]
    assert claim(bench, ETL) == claim(bench, QUEUE) == ()


def test_a_job_that_comes_back_while_the_new_group_runs_it_is_noted_beside_the_run(bench: Bench) -> None:
    bench.enqueue(spec(2))
    (held,) = claim(bench, QUEUE)
    bench.enqueue(spec(4))
    move(bench, "etl")
    bench.enqueue(spec(3))
    bench.clock.advance(LEASE_MS + 1)
    (running,) = claim(bench, ETL)
    assert finish(bench, QUEUE, held) is FinishOutcome.REQUEUED
    assert jobs_in(bench, QUEUE) == {}
    assert finish(bench, ETL, running) is FinishOutcome.REQUEUED
    assert [one.version for one in claim(bench, ETL)] == [4]


def test_there_and_back_again(bench: Bench) -> None:
    bench.enqueue(spec())
    for group, queue in (("etl", QUEUE), ("", ETL), ("etl", QUEUE)):
        move(bench, group)
        assert claim(bench, queue) == ()
    assert len(claim(bench, ETL)) == 1
    assert consistent(bench)


def test_a_cancel_reaches_the_run_in_the_old_group_and_the_job_in_the_new_one(bench: Bench) -> None:
    bench.enqueue(spec())
    (held,) = claim(bench, QUEUE)
    move(bench, "etl")
    bench.enqueue(spec(2))
    assert bench.run(commands.cancel(QUEUE, held.id, nonce=bench.nonce())) == "stopping"
    assert jobs_in(bench, ETL) == {}
    assert finish(bench, QUEUE, held, RunResult.CANCELLED) is FinishOutcome.DELETED


def test_people_name_a_job_without_its_group(bench: Bench) -> None:
    move(bench, "etl")
    bench.enqueue(spec(debounce=Debounce(5_000, 8_000)))
    assert bench.job().state is JobState.DELAYED
    assert bench.run(admin_commands.expedite(QUEUE, spec().id)) == "queued"
    (held,) = claim(bench, ETL)
    assert finish(bench, ETL, held, RunResult.QUARANTINE) is FinishOutcome.QUARANTINED
    assert bench.run(admin_commands.requeue(QUEUE, spec().id)) == "queued"
    assert len(claim(bench, ETL)) == 1


def test_what_was_set_for_a_table_stays_when_it_moves(bench: Bench) -> None:
    bench.run(admin_commands.pause(QUEUE, Scope.TABLE, "t-1"))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-2", SlotLimit(1)))
    for table in ("t-1", "t-2"):
        for partition in "ab":
            bench.enqueue(spec(table=table, partition=partition))
        move(bench, "etl", table=table)
    sum(repaired_by(bench, QUEUE, bench.client))
    assert [one.key.table for one in claim(bench, ETL, 4)] == ["t-2"]
    bench.run(admin_commands.pause(QUEUE, Scope.TABLE, "t-1", paused=False))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-2", None))
    assert sorted(one.key.table for one in claim(bench, ETL, 4)) == ["t-1", "t-1", "t-2"]


def test_pauses_limits_and_settings_of_a_group_are_its_own(bench: Bench) -> None:
    move(bench, "etl", table="t-2")
    bench.run(admin_commands.pause(ETL, Scope.QUEUE))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TENANT, "acme", SlotLimit(1)))
    for table in ("t-1", "t-2"):
        for partition in "ab":
            bench.enqueue(spec(table=table, partition=partition))
    assert claim(bench, ETL, 4) == ()
    assert len(claim(bench, QUEUE, 4)) == 1
    bench.run(admin_commands.pause(ETL, Scope.QUEUE, paused=False))
    assert len(claim(bench, ETL, 4)) == 2


def test_a_quota_is_a_share_of_the_slots_of_the_group(bench: Bench) -> None:
    move(bench, "etl")
    bench.run(commands.configure(QUEUE, {"slots": 100}))
    bench.run(commands.configure(ETL, {"slots": 4}))
    bench.run(admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SlotQuota(50)))
    for partition in "abcd":
        bench.enqueue(spec(partition=partition))
    assert len(claim(bench, ETL, 4)) == 2


def test_the_history_says_in_which_group_a_job_ran(bench: Bench) -> None:
    move(bench, "etl", table="t-2")
    for table in ("t-1", "t-2"):
        bench.enqueue(spec(table=table))
    for queue in BOTH:
        finish(bench, queue, claim(bench, queue)[0])
    found = bench.run(queries.history(QUEUE)).runs
    assert [(run.key.table, run.group) for run in found] == [("t-2", "etl"), ("t-1", "")]


class Wandering:
    """Tables that move between groups at random while jobs are requested, claimed, ended, lost and repaired."""

    GROUPS = ("", "etl", "hot")

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.dice = random.Random(seed)
        self.newest = 0
        self.wanted: dict[JobId, int] = {}
        self.held: list[tuple[str, Claim, int]] = []

    @property
    def queues(self) -> list[str]:
        return [keys.in_group(QUEUE, group) for group in self.GROUPS]

    def step(self) -> None:
        acts = (self.request, self.request, self.claim, self.claim, self.claim, self.end, self.end, self.move)
        self.dice.choice((*acts, self.wait, self.repair))()

    def request(self) -> None:
        self.newest += 1
        request = spec(self.newest, table=self.dice.choice("tuv"), partition=self.dice.choice("abc"))
        self.bench.enqueue(request)
        self.wanted[request.id] = self.newest

    def move(self) -> None:
        move(self.bench, self.dice.choice(self.GROUPS), table=self.dice.choice("tuv"))

    def wait(self) -> None:
        self.bench.clock.advance(self.dice.choice((1, 1_000, LEASE_MS // 2, LEASE_MS + 1)))

    def claim(self) -> None:
        queue = self.dice.choice(self.queues)
        claims = claim(self.bench, queue, *self.dice.choice(((3, 1), (1, 1), (1, 4))))
        running = {one.id for _, one, until_ms in self.held if until_ms > self.bench.clock.now_ms}
        assert running.isdisjoint({one.id for one in claims}), "a job runs in two groups"
        assert all(self.group_of(one.key.table) == queue for one in claims), "a job is claimed outside of its group"
        self.held += [(queue, one, self.bench.clock.now_ms + LEASE_MS) for one in claims]

    def group_of(self, table: str) -> str:
        found = self.bench.client.hget(keys.table_state(QUEUE, table), "group")
        return keys.in_group(QUEUE, (found or b"").decode())

    def end(self, result: RunResult | None = None) -> None:
        if not self.held:
            return
        queue, held, _ = self.held.pop(self.dice.randrange(len(self.held)))
        result = result or self.dice.choice((RunResult.DONE, RunResult.DONE, RunResult.YIELD, RunResult.FAIL))
        ended = finish(self.bench, queue, held, result)
        if result is RunResult.DONE and ended is not FinishOutcome.STALE and held.version >= self.wanted[held.id]:
            self.wanted[held.id] = -1

    def repair(self) -> None:
        for queue in self.queues:
            sum(repaired_by(self.bench, queue, self.bench.client))

    def finish_all(self) -> None:
        """Run everything that waits, as actors of all groups do in the end."""
        for _ in range(200):
            self.bench.clock.advance(24 * 3_600_000)
            for queue in self.queues:
                self.held += [(queue, one, 0) for one in claim(self.bench, queue, 8)]
            while self.held:
                self.end(RunResult.DONE)
            if not any(jobs_in(self.bench, queue) for queue in self.queues):
                return
        raise AssertionError("jobs remain")


@pytest.mark.parametrize("seed", range(2))
def test_wherever_tables_move_every_request_is_done_by_one_group_at_a_time(bench: Bench, seed: int) -> None:
    world = Wandering(bench, seed)
    for queue in world.queues:
        bench.run(commands.configure(queue, {"max_attempts": 100, "backoff_base_ms": 1_000, "backoff_cap_ms": 2_000}))
    for _ in range(300):
        world.step()
    world.finish_all()
    assert set(world.wanted.values()) == {-1}
    world.repair()
    assert not any(sum(repaired_by(bench, queue, bench.client)) for queue in world.queues)
