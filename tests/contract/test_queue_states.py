"""The scripts make the transitions of the table of job states, each of them, and no other."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.queue import admin_commands, commands, queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import Claim, Debounce, JobRequest, JobState, RunResult, Scope
from shared.queue.states import TRANSITIONS, Transition, is_legal
from tests.support.queue_bench import LEASE_MS, QUEUE, Bench, spec
from tests.support.queue_state import job_states, transitions

pytestmark = pytest.mark.redis

WAIT = Debounce(5_000, 8_000)
BEYOND_LEASE = Debounce(2 * LEASE_MS, 2 * LEASE_MS)
FAILURES = {"max_attempts": 2, "backoff_base_ms": 20_000, "backoff_cap_ms": 20_000, "half_open_ms": 30_000}
Seen = set[tuple[Transition, ScriptName]]


class Observed:
    """A bench that notes each change of a job's state with the script that made it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.seen: Seen = set()
        self._run = bench.run
        bench.run = self.run  # type: ignore[method-assign, assignment]
        bench.run(commands.configure(QUEUE, FAILURES))

    def run(self, command: Command[Any]) -> Any:
        before = job_states(self.bench.client, QUEUE)
        reply = self._run(command)
        after = job_states(self.bench.client, QUEUE)
        self.seen |= {(change, command.script) for change in transitions(before, after)}
        return reply

    def empty(self) -> None:
        """Cancel what there is; a run that is under way ends."""
        for job, state in job_states(self.bench.client, QUEUE).items():
            view = self._run(queries.job(QUEUE, job))
            self._run(commands.cancel(QUEUE, job, nonce=self.bench.nonce()))
            if state is JobState.LEASED:
                ended = {"worker": "w-1", "nonce": self.bench.nonce(), "cost_bytes": 0, "seen_version": -1}
                self._run(commands.finish(QUEUE, id=job, token=view.token, run_result=RunResult.CANCELLED, **ended))

    def release_due(self) -> None:
        """Have a claim make the transitions of time alone: while the queue is paused nothing is handed out."""
        self.run(admin_commands.pause(QUEUE, Scope.QUEUE))
        assert self.bench.claim() == ()
        self.run(admin_commands.pause(QUEUE, Scope.QUEUE, paused=False))

    def claimed(self, request: JobRequest | None = None) -> Claim:
        """Return the claim of a job that was requested just now."""
        self.bench.enqueue(request or spec())
        self.bench.clock.advance(20)
        (claim,) = self.bench.claim()
        return claim

    def expire(self, claim: Claim) -> None:
        self.bench.clock.advance(LEASE_MS + 20)
        self.release_due()
        assert claim.id not in job_states(self.bench.client, QUEUE) or self.state() is not JobState.LEASED

    def state(self) -> JobState | None:
        return job_states(self.bench.client, QUEUE).get(spec().id)

    def delayed(self) -> None:
        self.bench.enqueue(spec(debounce=WAIT))
        assert self.state() is JobState.DELAYED

    def quarantined(self) -> None:
        self.bench.finish(self.claimed(), RunResult.QUARANTINE)
        assert self.state() is JobState.QUARANTINED

    def cancel(self) -> None:
        self.run(commands.cancel(QUEUE, spec().id, nonce=self.bench.nonce()))

    def requests(self, request: JobRequest) -> tuple[Callable[[], object], ...]:
        """Ways to request a job, one per script."""
        return (
            lambda: self.bench.enqueue(request),
            lambda: (
                self.bench.ingest(-1, 0, jobs=[request], reset=True)
                if self.bench.state().hashes.get("cur:t-1") is None
                else self.bench.ingest(*self.versions(), jobs=[request])
            ),
            lambda: self.run(commands.decide(QUEUE, nonce=self.bench.nonce(), table="t-1", job=request)),
        )

    def versions(self) -> tuple[int, int]:
        """The version that the queue has of the table, and the next one."""
        version = int(self.bench.state().hashes["cur:t-1"]["version"])
        return version, version + 1


@pytest.fixture
def observed(bench: Bench) -> Observed:
    return Observed(bench)


def request_in_every_way(observed: Observed) -> None:
    for request in (spec(), spec(debounce=WAIT)):
        for way in observed.requests(request):
            way()
            observed.empty()
    for way in observed.requests(spec(2)):
        observed.delayed()
        way()
        observed.empty()


def end_in_every_way(observed: Observed) -> None:
    bench = observed.bench
    for result in (RunResult.DONE, RunResult.YIELD, RunResult.FAIL, RunResult.QUARANTINE):
        bench.finish(observed.claimed(), result)
        observed.empty()
    for request in (None, spec(2), spec(2, debounce=BEYOND_LEASE)):
        for loses_lease in (False, True):
            claim = observed.claimed()
            observed.cancel()
            if request is not None:
                bench.enqueue(request)
            observed.expire(claim) if loses_lease else bench.finish(claim, RunResult.CANCELLED)
            observed.empty()
    observed.expire(observed.claimed())
    bench.clock.advance(20)
    (claim,) = bench.claim()
    observed.expire(claim)
    assert observed.state() is JobState.QUARANTINED
    observed.empty()


def wait_for_an_actor_with_the_ability(observed: Observed) -> None:
    """A claim sets a job aside that its actor cannot run, and a claim of one that can returns it."""
    bench = observed.bench
    before, now = observed.versions()
    bench.ingest(before, now, jobs=[spec()], state_fields={"version": str(now), "format": "delta"})

    def claim(ability: str) -> tuple[Claim, ...]:
        call = {"worker": "w-1", "nonce": bench.nonce(), "slots": 1, "lease_ms": LEASE_MS}
        return observed.run(commands.claim(QUEUE, **call, abilities=[ability]))

    assert claim("delta/vacuum") == ()
    assert observed.state() is JobState.DELAYED
    observed.run(admin_commands.pause(QUEUE, Scope.QUEUE))
    assert claim("delta/compact") == ()
    assert observed.state() is JobState.QUEUED
    observed.run(admin_commands.pause(QUEUE, Scope.QUEUE, paused=False))
    observed.empty()


def leave_every_waiting_state(observed: Observed) -> None:
    by_hand = (
        lambda: observed.run(admin_commands.expedite(QUEUE, spec().id)),
        lambda: observed.run(admin_commands.requeue(QUEUE, spec().id)),
    )
    for enter, waits_ms in ((observed.delayed, 10_000), (observed.quarantined, 40_000)):
        for leave in (*by_hand, observed.cancel):
            enter()
            leave()
            observed.empty()
        enter()
        observed.bench.clock.advance(waits_ms)
        observed.release_due()
        assert observed.state() is JobState.QUEUED
        observed.empty()
    observed.bench.enqueue(spec())
    observed.cancel()


def test_the_scripts_make_every_transition_of_the_table_and_no_other(observed: Observed) -> None:
    request_in_every_way(observed)
    end_in_every_way(observed)
    leave_every_waiting_state(observed)
    wait_for_an_actor_with_the_ability(observed)
    assert observed.seen == {(change, script) for change, scripts in TRANSITIONS.items() for script in scripts}


def test_a_claim_may_release_a_job_and_hand_it_out_at_once_and_no_other_script_may() -> None:
    assert is_legal((JobState.DELAYED, JobState.LEASED), ScriptName.CLAIM)
    assert not is_legal((JobState.DELAYED, JobState.LEASED), ScriptName.EXPEDITE)
    assert not is_legal((None, JobState.LEASED), ScriptName.CLAIM)


def test_a_claim_may_release_a_job_and_set_it_aside_at_once_and_no_other_script_may() -> None:
    assert is_legal((JobState.QUARANTINED, JobState.DELAYED), ScriptName.CLAIM)
    assert not is_legal((JobState.QUARANTINED, JobState.DELAYED), ScriptName.REQUEUE)
    assert not is_legal((None, JobState.DELAYED), ScriptName.CLAIM)
