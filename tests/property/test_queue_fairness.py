"""Fairness by the bound of start-time fair queueing itself, at each level of the tree, for any number of workers.

Goyal, Vin, Cheng 1996: for two flows that have work throughout, |S_i/w_i - S_j/w_j| <= L_i/w_i + L_j/w_j, where S is
the service they got in any interval and L their largest job.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from actor.queue_executor import SyncQueueExecutor
from shared.queue import admin_commands, commands, keys
from shared.queue.admin_commands import SlotLimit
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import ALONE, Band, Claim, JobKey, JobRequest, Scope, Share
from shared.queue.settings import SETTINGS
from tests.support.examples import examples
from tests.support.queue_bench import QUEUE, end_of
from tests.support.queue_invariants import every_queued_job_is_reachable
from tests.support.queue_state import emptied, library_with_test_clock, read_state

pytestmark = pytest.mark.redis

LEASE_MS = 3_600_000
MIB = 1 << 20
CLAIMS = 60
BACKLOG = 20_000
SHARED = "shared"
MAX_LAG = 16_384_000
"""As in `tree.lua`: how far a tag may lie behind the virtual time, in thousandths of a MiB."""


costs = st.lists(st.integers(1, 64), min_size=1, max_size=4)
weights = st.sampled_from([0.5, 1.0, 2.0, 5.0])


@dataclass(frozen=True, slots=True)
class Flow:
    """A competitor: its weight, and the sizes of its jobs in MiB, over and over."""

    weight: float
    sizes: list[int]
    format: str = ""


@dataclass(slots=True)
class Race:
    """Competitors at one level that always have more jobs than the workers can take."""

    queue: SyncQueueExecutor
    level: Scope
    flows: list[Flow]
    shared_table: bool = False
    share: Share = ALONE
    arrived: list[int] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    marks: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arrived, self.served = [0] * len(self.flows), [0.0] * len(self.flows)
        for number, flow in enumerate(self.flows):
            self.queue.run(admin_commands.set_weight(QUEUE, self.level, self.name(number), flow.weight))
            # More than one claim takes: a table of which no job waits owes nothing, and is not held to the bound.
            for _ in range(8 + self.share.jobs):
                self.arrive(number)
        self.marks.append(list(self.served))

    def name(self, number: int) -> str:
        return str(number + 1) if self.level is Scope.BAND else f"{self.level}-{number}"

    def table(self, number: int) -> str:
        if self.shared_table:
            return SHARED
        return self.name(number) if self.level is Scope.TABLE else f"of-{number}"

    def arrive(self, number: int) -> None:
        """Enqueue the flow's next job."""
        flow, serial = self.flows[number], self.arrived[number]
        if flow.format and not serial:
            self.queue.redis.hset(keys.table_state(QUEUE, self.table(number)), "format", flow.format)
        spec = JobRequest(
            JobKey(self.table(number), f"{number}-{serial}", "compact"),
            tenant=self.name(number)
            if self.level is Scope.TENANT
            else f"t-{0 if self.level is Scope.TABLE else number}",
            band=Band(number + 1) if self.level is Scope.BAND else Band.NORMAL,
            priority=5,
            cost_bytes=flow.sizes[serial % len(flow.sizes)] * MIB,
            version=1,
        )
        self.queue.run(commands.enqueue(QUEUE, spec))
        self.arrived[number] += 1

    def number_of(self, claim: Claim) -> int:
        name = {Scope.BAND: str(int(claim.band)), Scope.TENANT: claim.tenant, Scope.TABLE: claim.key.table}[self.level]
        return next(number for number in range(len(self.flows)) if self.name(number) == name)

    def note(self, claim: Claim, cost_bytes: int | None = None) -> None:
        number = self.number_of(claim)
        self.served[number] += (claim.cost_bytes if cost_bytes is None else cost_bytes) / MIB
        self.arrive(number)

    def largest(self, flow: Flow) -> float:
        """The most MiB that one claim serves: a job by itself, or as many as share a commit."""
        job = max(flow.sizes)
        return max(job, min(self.share.jobs * job, self.share.bytes / MIB)) if self.share.jobs > 1 else job

    def end_step(self, step: int) -> None:
        """Check every interval that ends with this step and starts at a mark."""
        self.mark(step)
        self.check()

    def mark(self, step: int) -> None:
        """Set a mark at each fifth of the race; the first was set before it."""
        if step % (CLAIMS // 5) == 0:
            self.marks.append(list(self.served))

    def check(self) -> None:
        """Compare each pair's service since each mark with the bound."""
        for mark in self.marks:
            self._check_since(mark)

    def _check_since(self, mark: list[float]) -> None:
        got = [now - then for now, then in zip(self.served, mark, strict=True)]
        for i, one in enumerate(self.flows):
            for j, other in enumerate(self.flows[:i]):
                if one.format != other.format:
                    continue
                apart = abs(got[i] / one.weight - got[j] / other.weight)
                bound = self.largest(one) / one.weight + self.largest(other) / other.weight
                assert apart <= bound + 0.01 * CLAIMS, f"{i} and {j} are {apart} MiB apart, the bound is {bound}"


@pytest.mark.parametrize("level", [Scope.BAND, Scope.TENANT, Scope.TABLE])
@settings(max_examples=examples(0.12))
@given(data=st.data())
def test_two_flows_never_drift_further_apart_than_the_bound(
    queue: SyncQueueExecutor, level: Scope, data: st.DataObject
) -> None:
    """Checked over every interval that starts at a fifth of the race, while workers come and go."""
    emptied(queue)
    flows = data.draw(st.lists(st.builds(Flow, weights, costs), min_size=2, max_size=3))
    race = Race(queue, level, flows)
    running: list[Claim] = []
    for step in range(CLAIMS):
        workers = data.draw(st.integers(1, 6)) if step % 10 == 0 else len(running) + 1
        for claim in running[: max(0, len(running) + 1 - workers)]:
            finish(queue, claim)
            running.remove(claim)
        (claim,) = claimed(queue, f"{step}")
        running.append(claim)
        race.note(claim)
        race.end_step(step)
    assert min(race.served) > 0


@pytest.mark.parametrize("level", [Scope.BAND, Scope.TENANT])
@settings(max_examples=examples(0.12))
@given(data=st.data())
def test_a_limit_that_all_share_leaves_the_bound_as_it_is(
    queue: SyncQueueExecutor, level: Scope, data: st.DataObject
) -> None:
    """Whoever requests more than the limit allows finds everybody parked, and must not wipe out who is owed what."""
    emptied(queue)
    flows = data.draw(st.lists(st.builds(Flow, weights, costs), min_size=2, max_size=3))
    race = Race(queue, level, flows, shared_table=True)
    limit = data.draw(st.integers(1, 3))
    queue.run(admin_commands.set_limit(QUEUE, Scope.TABLE, SHARED, SlotLimit(limit)))
    running: list[Claim] = []
    for step in range(CLAIMS):
        new = claimed(queue, f"{step}", data.draw(st.integers(1, 4)))
        for claim in new:
            race.note(claim)
        running += new
        assert len(running) <= limit
        done = data.draw(st.integers(1, len(running)))
        for claim in running[:done]:
            finish(queue, claim)
        running = running[done:]
        race.end_step(step)
    assert sum(race.arrived) > CLAIMS
    assert min(race.served) > 0


@pytest.mark.parametrize("level", [Scope.BAND, Scope.TENANT, Scope.TABLE])
@settings(max_examples=examples(0.12))
@given(data=st.data())
def test_jobs_that_are_claimed_together_are_one_service_in_the_bound(
    queue: SyncQueueExecutor, level: Scope, data: st.DataObject
) -> None:
    """Each of them is charged: whoever always finds company gets no more than whoever never does."""
    emptied(queue)
    flows = data.draw(st.lists(st.builds(Flow, weights, costs), min_size=2, max_size=3))
    share = Share(data.draw(st.integers(2, 8)), data.draw(st.integers(1, 128)) * MIB)
    race = Race(queue, level, flows, share=share)
    running: list[tuple[Claim, ...]] = []
    together = 0
    for step in range(CLAIMS):
        new = claimed(queue, f"{step}", share=share if data.draw(st.booleans()) else ALONE)
        assert len({race.number_of(claim) for claim in new}) == 1
        together += len(new) > 1
        running.append(new)
        for claim in new:
            race.note(claim)
        for done in running[: data.draw(st.integers(0, 2))]:
            for claim in done:
                finish(queue, claim)
            running.remove(done)
        race.end_step(step)
    event("jobs were claimed together" if together else "each job was claimed by itself")


@pytest.mark.parametrize("level", [Scope.BAND, Scope.TENANT, Scope.TABLE])
@settings(max_examples=examples(0.12))
@given(data=st.data())
def test_the_bound_holds_for_what_jobs_cost_in_the_end(
    queue: SyncQueueExecutor, level: Scope, data: st.DataObject
) -> None:
    """Estimates may be wrong by any factor: the difference is charged when the run ends."""
    emptied(queue)
    actual = data.draw(st.lists(st.lists(st.integers(1, 64), min_size=1, max_size=4), min_size=2, max_size=3))
    flows = [Flow(data.draw(weights), sizes) for sizes in actual]
    race = Race(queue, level, flows)
    guess = data.draw(st.lists(st.integers(1, 64), min_size=1, max_size=5))
    for number, flow in enumerate(flows):
        race.flows[number] = Flow(flow.weight, guess)
    for step in range(CLAIMS):
        (claim,) = claimed(queue, f"{step}")
        number = race.number_of(claim)
        cost = actual[number][step % len(actual[number])] * MIB
        race.note(claim, cost)
        finish(queue, claim, cost)
        race.mark(step)
    race.flows = [Flow(flow.weight, sizes) for flow, sizes in zip(flows, actual, strict=True)]
    race.check()


@pytest.mark.parametrize("level", [Scope.TENANT, Scope.TABLE])
@settings(max_examples=examples(0.12))
@given(data=st.data())
def test_the_bound_holds_within_a_format_while_actors_of_another_one_claim(
    queue: SyncQueueExecutor, level: Scope, data: st.DataObject
) -> None:
    """Jobs of the other format may be so large that whoever waits falls back by more than it may make up for."""
    emptied(queue)
    flows = data.draw(st.lists(st.builds(Flow, weights, costs, st.just("one")), min_size=2, max_size=3))
    large = data.draw(st.sampled_from([1, 100, 10_000]))
    rival = data.draw(st.builds(Flow, weights, costs, st.just("other")))
    race = Race(queue, level, [*flows, Flow(rival.weight, [size * large for size in rival.sizes], rival.format)])
    fleet = data.draw(st.lists(st.sampled_from([("one",), ("other",), ("one", "other")]), min_size=1, max_size=5))
    served = 0
    for step in range(CLAIMS):
        formats = fleet[step % len(fleet)]
        for claim in claimed(queue, f"{step}", abilities=[f"{one}/compact" for one in formats]):
            assert race.flows[race.number_of(claim)].format in formats
            served += 1
            race.note(claim)
            finish(queue, claim)
        race.end_step(step)
        every_queued_job_is_reachable(read_state(queue.redis, QUEUE), lag=MAX_LAG)
    assert served == CLAIMS, "an actor found nothing, although there were jobs that it can run"


def claimed(
    queue: SyncQueueExecutor, nonce: str, slots: int = 1, share: Share = ALONE, abilities: Sequence[str] = ()
) -> tuple[Claim, ...]:
    call = commands.claim(
        QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=LEASE_MS, abilities=abilities, share=share
    )
    return queue.run(call)


def finish(queue: SyncQueueExecutor, claim: Claim, cost_bytes: int | None = None) -> None:
    queue.run(end_of(claim, cost_bytes=claim.cost_bytes if cost_bytes is None else cost_bytes, seen_version=1))


def request(partition: str, *, tenant: str = "crowd", table: str = "crowded", priority: int = 5) -> JobRequest:
    return JobRequest(JobKey(table, partition, "compact"), tenant, Band.NORMAL, priority, 64 * MIB, 1)


def test_a_newcomer_behind_twenty_thousand_jobs_that_are_being_served_is_served_next(queue: SyncQueueExecutor) -> None:
    """Its tag is the tree's virtual time, which no backlog can be before; on the same table's level as well."""
    emptied(queue)
    queue.run(commands.enqueue(QUEUE, request("0")))
    for first in range(0, BACKLOG, 500):
        pipeline = queue.redis.pipeline(transaction=False)
        for number in range(first, first + 500):
            call = commands.enqueue(QUEUE, request(str(number)))
            pipeline.fcall(LIBRARY.function(call.script), len(call.keys), *call.keys, *call.args)
        pipeline.execute()
    for number in range(100):
        claimed(queue, f"n{number}", 8)
    queue.run(commands.enqueue(QUEUE, request("x", tenant="newcomer", table="other")))
    assert [claim.tenant for claim in claimed(queue, "first")] == ["newcomer"]
    queue.run(commands.enqueue(QUEUE, request("x", table="another")))
    assert [claim.key.table for claim in claimed(queue, "second")] == ["another"]


LIBRARY = library_with_test_clock()
AGING_MS = SETTINGS["aging_ms"].default


@settings(max_examples=examples(0.15))
@given(
    priority=st.integers(0, MAX_PRIORITY),
    rivals=st.lists(st.tuples(st.integers(0, MAX_PRIORITY), st.integers(1, 3 * AGING_MS)), min_size=1, max_size=40),
)
def test_a_job_is_overtaken_only_by_those_that_arrive_soon_enough(
    queue: SyncQueueExecutor, priority: int, rivals: list[tuple[int, int]]
) -> None:
    """A better priority p' overtakes priority p only if it arrives less than (p - p') aging intervals later."""
    clock = emptied(queue)
    start_ms = clock.now_ms
    queue.run(commands.enqueue(QUEUE, request("patient", priority=priority)))
    for number, (better, after_ms) in enumerate(rivals):
        clock.advance(after_ms)
        queue.run(commands.enqueue(QUEUE, request(str(number), priority=better)))
    overtook = []
    for number in range(len(rivals) + 1):
        (claim,) = claimed(queue, f"n{number}")
        if claim.key.partition == "patient":
            break
        overtook.append(claim)
    for claim in overtook:
        assert claim.enqueued_at_ms - start_ms <= (priority - claim.priority) * AGING_MS
