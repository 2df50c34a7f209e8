"""The life of one queue beside its model: what the rules of the state machine share."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from actor.queue_executor import SyncQueueExecutor
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import (
    ALONE,
    Band,
    Claim,
    Debounce,
    Finished,
    FinishOutcome,
    JobId,
    JobKey,
    JobRequest,
    JobState,
    RunResult,
    Share,
)
from shared.queue.settings import QueueSettings
from tests.support.queue_model import QueueModel
from tests.support.queue_state import States, TestClock, illegal, library_with_test_clock, read_state, states_in

QUEUE = "machine"
SETTINGS = QueueSettings(max_attempts=2, strict_in_row=2)
LEASE_MS = 60_000
STALE = Finished(FinishOutcome.STALE)
REMEMBERED = (ScriptName.CANCEL, ScriptName.CLAIM, ScriptName.FINISH, ScriptName.FINISH_AND_CLAIM)

specs = st.builds(
    JobRequest,
    key=st.builds(
        JobKey, table=st.sampled_from(["t1", "t2"]), partition=st.sampled_from(["a", "b", "c"]), kind=st.just("c")
    ),
    tenant=st.sampled_from(["x", "y"]),
    band=st.sampled_from([Band.URGENT, Band.NORMAL, Band.NORMAL, Band.LOW, Band.BACKGROUND]),
    priority=st.integers(0, 9),
    cost_bytes=st.sampled_from([0, 1, 5 << 20, 1 << 40]),
    version=st.integers(0, 3),
    payload=st.sampled_from(["", "{}", '{"a":"é"}', "z"]),
    debounce=st.sampled_from([Debounce(), Debounce(), Debounce(5_000, 8_000)]),
    precedence=st.sampled_from([0, 0, 1]),
    extent=st.sampled_from([0, 0, 1]),
    any_time=st.sampled_from([False, False, True]),
)


class QueueLife(RuleBasedStateMachine):
    """One queue, its model, and for each key the arrivals that no finished run has served yet (I5)."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        client.flushdb()
        self.client = client
        self.queue = SyncQueueExecutor(client, QUEUE, library=library_with_test_clock())
        self.clock = TestClock(client, QUEUE)
        self.model = QueueModel(SETTINGS, self.clock.now_ms)
        self.claims: list[Claim] = []
        self.waiting: dict[JobId, list[tuple[int, int]]] = {}
        self.claimed_at: dict[int, int] = {}
        self.states: States = {}
        self.cursor = -1
        self.steps = 0
        self.remembered: list[tuple[Command[Any], Any]] = []
        self.again: tuple[Command[Any], Any] | None = None
        self.queue.run(commands.configure(QUEUE, asdict(SETTINGS)))

    def run(self, transition: Command[Any]) -> Any:
        """Run a transition of the table of job states and keep it, so that `lost_reply` can run it a second time."""
        self.steps += 1
        reply = self.queue.run(transition)
        after = states_in(self.dump())
        wrong = illegal(self.states, after, transition.script)
        assert not wrong, f"{transition.script} must not make {wrong}"
        self.states = after
        self.again = (transition, reply)
        if transition.script in REMEMBERED and reply not in ((), STALE, (STALE, ())):
            self.remembered.append(self.again)
        return reply

    def claim_command(self, slots: int, worker: str, share: Share = ALONE) -> Command[tuple[Claim, ...]]:
        call = {"worker": worker, "nonce": f"n{self.steps}"}
        return commands.claim(QUEUE, **call, slots=slots, lease_ms=LEASE_MS, share=share)

    def finish_command(self, claim: Claim, verdict: RunResult, seen: int, actual: int) -> Command[Finished]:
        return commands.finish(
            QUEUE,
            worker="w1",
            nonce=f"n{self.steps}",
            id=claim.id,
            token=claim.token,
            run_result=verdict,
            cost_bytes=actual,
            seen_version=seen,
            counters={"runs": 1},
        )

    def arrived(self, spec: JobRequest) -> None:
        self.waiting.setdefault(spec.id, []).append((self.steps, spec.version))

    def served(self, job: JobId, test: Callable[[int, int], bool]) -> None:
        left = [(step, version) for step, version in self.waiting.get(job, []) if not test(step, version)]
        self.waiting[job] = left

    def something_is_due(self) -> bool:
        return any(job.at_ms is not None and job.at_ms <= self.clock.now_ms for job in self.model.jobs.values())

    def some_claim(self, data: st.DataObject) -> Claim:
        """Pick a claim, more often one whose job is running, for its own worker or by now for another."""
        running = [claim for claim in self.claims if claim.id in self.model.of(JobState.LEASED)]
        return data.draw(st.sampled_from(self.claims + 3 * running))

    def end_of_stopped(self, job_id: JobId) -> None:
        started = self.started(job_id)
        self.served(job_id, lambda step, _: step < started)

    def started(self, job_id: JobId) -> int:
        return max(self.claimed_at[claim.token] for claim in self.claims if claim.id == job_id)

    def dump(self) -> Any:
        return read_state(self.client, QUEUE)
