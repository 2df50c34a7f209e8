"""Random lives of a queue on a real server, compared step by step with a model and with the laws of the design."""

import os
from collections.abc import Iterator

import pytest
import redis
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from shared.queue import admin_commands, audit, commands, keys, queries
from shared.queue.lua_library import ScriptName
from shared.queue.model import (
    ALONE,
    Band,
    CancelOutcome,
    Claim,
    FinishOutcome,
    HeartbeatEntry,
    HeartbeatStatus,
    JobRequest,
    JobState,
    MoveOutcome,
    RunResult,
    Scope,
    Share,
)
from tests.support.queue_bench import repaired
from tests.support.queue_invariants import check
from tests.support.queue_life import LEASE_MS, QUEUE, SETTINGS, QueueLife, specs
from tests.support.queue_state import states_in
from tests.support.redis_server import RedisServer, find_binaries

pytestmark = pytest.mark.redis
SHARES = (Share(2, 6 << 20), Share(3, 1 << 41))
EXAMPLES = int(os.environ.get("LAKEWRIGHT_STRESS_EXAMPLES", "100"))
STEPS = 50
NAMES = {Scope.BAND: ["2", "3"], Scope.TENANT: ["x", "y"], Scope.TABLE: ["t1", "t2"]}
REPAIRABLE = ("f:", "n:", "i:", "p:", "queued", "lease", "delay", "dead", "infl")
"""Keys without which an audit can still tell what they held."""


class QueueMachine(QueueLife):
    """Each rule is one call, which the queue and its model must answer alike."""

    @rule(spec=specs)
    def enqueue(self, spec: JobRequest) -> None:
        assert self.run(commands.enqueue(QUEUE, spec)) == self.model.put(spec)
        self.arrived(spec)

    @rule(requests=st.lists(specs, max_size=3), on_time=st.booleans())
    def ingest(self, requests: list[JobRequest], *, on_time: bool) -> None:
        mine = [spec for spec in requests if spec.key.table == "t1"]
        expected = self.cursor if on_time else self.cursor + 1
        before = self.dump()
        reply = self.run(
            commands.ingest(
                QUEUE,
                table="t1",
                expected_version=expected,
                state_fields={"version": str(expected + 1)},
                partitions={"a": str(expected)},
                jobs=mine,
                ledger=[("{}", index) for index in range(len(mine))],
                counters={"commits": 1},
            )
        )
        if not on_time:
            assert (reply.applied, reply.version) == (False, self.cursor)
            assert self.dump() == before
            return
        self.cursor += 1
        assert (reply.applied, reply.version) == (True, self.cursor)
        assert reply.outcomes == tuple(self.model.put(spec).outcome for spec in mine)
        for spec in mine:
            self.arrived(spec)

    @rule(slots=st.integers(1, 3), worker=st.sampled_from(["w1", "w2"]))
    def claim(self, slots: int, worker: str) -> None:
        foreseen = None if self.something_is_due() else self.queue.run(queries.order(QUEUE, claims=slots))
        got = self.run(self.claim_command(slots, worker))
        if foreseen is not None:
            assert [claim.id for claim in got] == [one.id for one in foreseen], "the order was foreseen wrongly"
        self.claimed(got, slots)

    @rule(share=st.sampled_from(SHARES), worker=st.sampled_from(["w1", "w2"]))
    def claim_to_share(self, share: Share, worker: str) -> None:
        self.claimed(self.run(self.claim_command(1, worker, share)), 1, share)

    def claimed(self, got: tuple[Claim, ...], slots: int, share: Share = ALONE) -> None:
        stopping = {job_id for job_id, job in self.model.jobs.items() if job.stopping}
        for job_id in self.model.take_up_due(serves=bool(got)):
            if job_id in stopping:
                self.end_of_stopped(job_id)
        for number, claim in enumerate(got):
            if share.jobs == 1 or number == 0:
                self.model.check_and_take(claim, LEASE_MS)
            else:
                self.model.check_and_take_along(got[:number], claim, LEASE_MS, share)
            self.claimed_at[claim.token] = self.steps
            newest = max((version for _, version in self.waiting[claim.id]), default=0)
            assert claim.version >= newest, "I5: a claim after an event must see its version"
        assert len(got) >= slots or not self.model.ready(), "I7: a ready job was not found"
        assert share.jobs == 1 or not got or not self.model.fits(got, share), "a job that fits was left behind"
        self.claims += got

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(),
        verdict=st.sampled_from(RunResult),
        seen=st.integers(-1, 3),
        actual=st.sampled_from([0, 9 << 20]),
    )
    def finish(self, data: st.DataObject, verdict: RunResult, seen: int, actual: int) -> None:
        self.finish_with(self.some_claim(data), verdict, seen, actual)

    def finish_with(self, claim: Claim, verdict: RunResult, seen: int, actual: int) -> None:
        before = self.dump()
        outcome = self.run(self.finish_command(claim, verdict, seen, actual)).outcome
        self.finished(claim, verdict, seen, outcome, actual)
        assert outcome is not FinishOutcome.STALE or self.dump() == before, "I4: a stale call changes nothing"

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(),
        verdict=st.sampled_from(RunResult),
        seen=st.integers(-1, 3),
        actual=st.sampled_from([0, 9 << 20]),
        share=st.sampled_from([ALONE, *SHARES]),
    )
    def finish_and_claim(self, data: st.DataObject, verdict: RunResult, seen: int, actual: int, share: Share) -> None:
        """Both in one call are as one after the other; where the end is refused, nothing is claimed."""
        claim, before = self.some_claim(data), self.dump()
        end = self.finish_command(claim, verdict, seen, actual)
        ended, got = self.run(commands.finish_and_claim(end, self.claim_command(1, "w1", share)))
        self.finished(claim, verdict, seen, ended.outcome, actual)
        if ended.outcome is FinishOutcome.STALE:
            assert got == ()
            assert self.dump() == before, "I4: a stale call changes nothing"
            return
        self.claimed(got, 1, share)

    def finished(self, claim: Claim, verdict: RunResult, seen: int, outcome: FinishOutcome, actual: int) -> None:
        job = self.model.jobs.get(claim.id)
        stopping = job is not None and job.stopping
        assert outcome == self.model.finish(claim, verdict, seen)
        if outcome is FinishOutcome.STALE:
            return
        self.model.correct(claim, actual)
        started = self.claimed_at[claim.token]
        if verdict is RunResult.DONE:
            self.served(claim.id, lambda step, version: step < started or version <= seen)
        elif verdict is RunResult.CANCELLED or stopping:
            self.served(claim.id, lambda step, _: step < started)

    @precondition(lambda self: self.model.of(JobState.LEASED))
    @rule(data=st.data(), ahead=st.sampled_from([-1, 0, 1]))
    def event_while_running(self, data: st.DataObject, ahead: int) -> None:
        """An event arrives, and the run is done: it has seen the version before the event's, that one, or the next."""
        running = [claim for claim in self.claims if self.model.holds(claim)]
        claim = data.draw(st.sampled_from(running))
        self.enqueue(JobRequest(claim.key, claim.tenant, claim.band, 5, 1, claim.version + 1))
        pending = self.model.jobs[claim.id].pending
        assert pending is not None
        self.finish_with(claim, RunResult.DONE, pending.version + ahead, 1)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        claim = self.some_claim(data)
        before = self.dump()
        beats = [HeartbeatEntry(claim.id, claim.token, "{}")]
        (reply,) = self.run(commands.heartbeat(QUEUE, worker="w1", beats=beats, lease_ms=LEASE_MS))
        if not self.model.holds(claim):
            assert reply.status is HeartbeatStatus.LOST
            assert self.dump() == before, "I4: a stale call changes nothing"
            return
        job = self.model.jobs[claim.id]
        job.at_ms = self.clock.now_ms + LEASE_MS
        assert reply.status is (HeartbeatStatus.STOP if job.stopping or job.revoked else HeartbeatStatus.OK)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
        leased = self.model.jobs[job_id].state is JobState.LEASED
        outcome = self.run(commands.cancel(QUEUE, job_id, nonce=f"n{self.steps}"))
        assert outcome is (CancelOutcome.STOPPING if leased else CancelOutcome.DELETED)
        self.model.cancel(job_id)
        started = self.started(job_id) if leased else 0
        self.served(job_id, lambda step, _: step >= started)

    @rule(data=st.data(), level=st.sampled_from(list(NAMES)), weight=st.sampled_from([None, 0.5, 3.0]))
    def weigh(self, data: st.DataObject, level: Scope, weight: float | None) -> None:
        name = data.draw(st.sampled_from(NAMES[level]))
        self.run(admin_commands.set_weight(QUEUE, level, name, weight))
        if level is Scope.TABLE:
            self.model.weights[name] = weight or 1

    @rule(
        data=st.data(),
        level=st.sampled_from([Scope.TENANT, Scope.TABLE]),
        most=st.sampled_from([None, admin_commands.SlotLimit(1), admin_commands.SlotLimit(2)]),
    )
    def limit(self, data: st.DataObject, level: Scope, most: admin_commands.SlotLimit | None) -> None:
        name = data.draw(st.sampled_from(NAMES[level]))
        self.run(admin_commands.set_limit(QUEUE, level, name, most))
        self.model.limits.pop((level, name), None)
        if most is not None:
            self.model.limits[level, name] = most.count

    @rule(data=st.data(), level=st.sampled_from(Scope), paused=st.booleans())
    def pause(self, data: st.DataObject, level: Scope, *, paused: bool) -> None:
        """What is paused is more often resumed, or nothing would be served for most of a life."""
        name = data.draw(st.sampled_from(NAMES[level])) if level in NAMES else ""
        if self.model.paused and paused:
            level, name, paused = *data.draw(st.sampled_from(sorted(self.model.paused))), False
        self.run(admin_commands.pause(QUEUE, level, name, paused=paused))
        (self.model.paused.add if paused else self.model.paused.discard)((level, name))
        if level is Scope.BAND and paused:
            self.model.held_back.add(name)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), band=st.sampled_from([Band.URGENT, Band.NORMAL]))
    def promote(self, data: st.DataObject, band: Band) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
        outcome = self.run(admin_commands.expedite(QUEUE, job_id, band))
        leased = self.model.jobs[job_id].state is JobState.LEASED
        assert outcome is (MoveOutcome.LEASED if leased else MoveOutcome.QUEUED)
        self.model.promote(job_id, int(band))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
        outcome = self.run(admin_commands.requeue(QUEUE, job_id))
        leased = self.model.jobs[job_id].state is JobState.LEASED
        assert outcome is (MoveOutcome.LEASED if leased else MoveOutcome.QUEUED)
        self.model.requeue(job_id)

    @precondition(lambda self: self.model.of(JobState.LEASED))
    @rule()
    def preempt(self) -> None:
        """Only for a job of a better kind of band, strict, weighted or background, and no one more than twice."""
        for one in self.run(admin_commands.preempt(QUEUE, admin_commands.Preemption(0, 0, 2))):
            waiting, victim = self.model.jobs[one.waiting], self.model.jobs[one.victim]
            assert one.waiting in self.model.ready()
            assert SETTINGS.strict_bands <= victim.request.band
            is_for_strict = waiting.request.band < SETTINGS.strict_bands
            assert is_for_strict or waiting.request.band < victim.request.band == Band.BACKGROUND
            assert victim.state is JobState.LEASED
            assert not victim.revoked
            assert not victim.stopping
            assert victim.preempted < 2
            victim.revoked, victim.preempted = True, victim.preempted + 1

    def audit(self) -> int:
        return sum(repaired(self.queue, self.client))

    @rule()
    def audit_of_a_sound_queue(self) -> None:
        """I16: nothing is changed."""
        before = self.dump()
        assert self.audit() == 0
        assert self.dump() == before

    @rule(data=st.data())
    def audit_of_a_queue_that_lost_a_key(self, data: st.DataObject) -> None:
        """I16: one key is gone, and the audit restores what it held, as the laws then show."""
        start = keys.prefix(QUEUE)
        names = [key.decode().removeprefix(start) for key in self.client.scan_iter(match=start + "*")]
        lost = sorted(name for name in names if name.startswith(REPAIRABLE))
        if not lost:
            return
        name = data.draw(st.sampled_from(lost))
        self.client.delete(start + name)
        self.audit()
        assert self.audit() == 0
        for job in self.model.jobs.values():
            if name == "lease" and job.state is JobState.LEASED:
                job.at_ms = self.clock.now_ms + audit.LOST_LEASE_MS
            elif name == "delay" and job.state is JobState.DELAYED:
                job.at_ms = self.clock.now_ms
            elif name == "dead" and job.state is JobState.QUARANTINED:
                job.at_ms = self.clock.now_ms + SETTINGS.half_open_ms
        self.again = None

    @precondition(lambda self: self.again)
    @rule()
    def lost_reply(self) -> None:
        """Whatever is sent twice has the effect of once."""
        assert self.again is not None
        transition, reply = self.again
        before = self.dump()
        repeated = self.queue.run(transition)
        # A request that made a job is merged into it the second time, and who was revoked is not revoked again.
        assert repeated == reply or transition.script in (ScriptName.ENQUEUE, ScriptName.PREEMPT)
        assert self.dump() == before

    @precondition(lambda self: self.remembered)
    @rule(data=st.data())
    def very_late_repetition(self, data: st.DataObject) -> None:
        """I12: the same nonce gets the same reply, whatever has happened since."""
        transition, reply = data.draw(st.sampled_from(self.remembered))
        before = self.dump()
        assert self.queue.run(transition) == reply
        assert self.dump() == before

    @rule(by_ms=st.sampled_from([1, 10, 4_000, 20_000, 61_000, 3_600_000, 25_000_000]))
    def time_passes(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        self.model.now_ms = self.clock.now_ms
        self.again = None

    @precondition(lambda self: self.claims)
    @rule()
    def workers_die(self) -> None:
        """All leases run out, and others take over: the way to stale tokens that single rules seldom find."""
        self.time_passes(LEASE_MS + 1)
        self.claim(3, "w2")

    @rule()
    def counter_is_lost(self) -> None:
        """I3: the last token is lost with the tail of the log, and the clock has moved on meanwhile."""
        self.client.hdel("{lw:machine}:v", "token")
        self.clock.advance(1)
        self.model.now_ms = self.clock.now_ms
        self.again = None

    @invariant()
    def laws_hold(self) -> None:
        state = self.dump()
        check(state, self.model)
        assert states_in(state) == self.states, "no repetition, audit or lost key moves a job"
        for job_id, events in self.waiting.items():
            assert not events or job_id in self.model.jobs, f"I5: {job_id} lost {events}"

    def teardown(self) -> None:
        depth = self.queue.run(queries.depth(QUEUE)).depth
        assert depth == {state: len(self.model.of(state)) for state in JobState}


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as made:
        yield made
        made.flushdb()


def live(client: redis.Redis, lives: int) -> None:
    run_state_machine_as_test(
        lambda: QueueMachine(client),  # type: ignore[arg-type] # any factory will do
        settings=hypothesis_settings(max_examples=lives, stateful_step_count=STEPS),
    )


def test_a_queue_keeps_its_laws_through_any_life(client: redis.Redis) -> None:
    live(client, EXAMPLES)


def test_the_laws_hold_on_every_other_server_there_is() -> None:
    """Redis and Valkey run scripts and print numbers in ways of their own: the same lives on each that is installed."""
    others = find_binaries()[1:]
    if not others:
        pytest.skip("only one server of version 7 or newer is installed")
    for binary in others:
        with RedisServer(binary, appendfsync="everysec") as server, server.client() as made:
            live(made, EXAMPLES)
