"""Random traces of a queue with work windows: nothing starts outside of one, and no job waits for ever."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.queue_executor import SyncQueueExecutor
from shared.policy.work_windows import HeldWork, QueueWindow
from shared.queue import admin_commands, commands, queries
from shared.queue.model import (
    Band,
    Claim,
    HeartbeatEntry,
    HeartbeatStatus,
    JobId,
    JobKey,
    JobRequest,
    RunResult,
    Share,
    StopReason,
)
from tests.support.queue_state import TestClock, emptied

pytestmark = pytest.mark.redis

QUEUE = "default"
HOUR_MS = 3_600_000
LEASE_MS = 4 * HOUR_MS
STEP_MS = 40 * 60_000
"""Less than the shortest window lasts, and more than a job waits until it asks again."""
TRACES = int(os.environ.get("LAKEWRIGHT_PROMISE_TRACES", "25"))
CHANGES = tuple(
    round(datetime(2026, *at, tzinfo=UTC).timestamp() * 1000)
    for at in ((3, 8, 3), (3, 28, 20), (4, 4, 10), (10, 3, 12), (10, 24, 20), (10, 31, 20), (7, 1, 0))
)
"""Hours before clocks are changed in three zones, in both directions, and a time without a change."""
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")

hours = st.integers(0, 23)
windows = st.builds(
    lambda held, days, opens, length, zone: HeldWork(
        held, f"{days}{opens:02}:30-{(opens + length) % 24:02}:15 {zone}".strip()
    ),
    st.sampled_from(["all", "heavy"]),
    st.sampled_from(["", "Sat-Sun ", "Mon-Fri ", "Sun "]),
    hours,
    st.integers(1, 23),
    st.sampled_from(ZONES),
)
kinds = st.sampled_from(["compact", "compact", "vacuum"])
rarely = st.sampled_from([False, False, False, True])
steps = st.one_of(
    st.tuples(*(st.just("request"), st.sampled_from("abc"), st.integers(0, 3), kinds, st.integers(0, 1), rarely)),
    st.tuples(st.just("claim"), st.integers(1, 3)),
    st.tuples(st.just("open"), st.sampled_from("ab")),
    st.tuples(st.just("wait"), st.integers(1, 12 * HOUR_MS)),
    st.tuples(st.just("end"), st.sampled_from([RunResult.DONE, RunResult.YIELD])),
)


@dataclass(slots=True)
class Trace:
    """A queue, its clock, its tables' windows, and what runs; any_time: jobs of which a request may start so."""

    queue: SyncQueueExecutor
    clock: TestClock
    windows: dict[str, HeldWork]
    running: list[Claim] = field(default_factory=list)
    any_time: dict[JobId, bool] = field(default_factory=dict)
    later: dict[JobId, bool] = field(default_factory=dict)
    numbers: "count[int]" = field(default_factory=count)

    def renew(self) -> None:
        """Set the windows' times, as deciders do again and again: the queue knows those of two weeks."""
        for table, held in self.windows.items():
            self.queue.run(admin_commands.set_window(QUEUE, table, held.in_queue(self.clock.now_ms)))

    def wait(self, span_ms: int) -> None:
        """Let time pass while the leases are renewed; at each moment exactly the runs that may go on are let."""
        end_ms = self.clock.now_ms + span_ms
        while self.clock.now_ms < end_ms:
            self.clock.advance(min(LEASE_MS - 1, end_ms - self.clock.now_ms))
            self.renew()
            beats = [HeartbeatEntry(claim.id, claim.token, "") for claim in self.running]
            replies = self.queue.run(commands.heartbeat(QUEUE, worker="w", beats=beats, lease_ms=LEASE_MS))
            for claim, reply in zip(self.running, replies, strict=True):
                if self.is_held(claim):
                    assert (reply.status, reply.reason) == (HeartbeatStatus.STOP, StopReason.WINDOW)

    def open(self, table: str) -> None:
        """Wait for the next opening of a table's window."""
        held = self.windows.get(table)
        if held is not None:
            times = QueueWindow.decode(held.in_queue(self.clock.now_ms)).times
            self.wait(max(0, next(opens for opens, _ in times if opens > self.clock.now_ms) - self.clock.now_ms))

    def is_held(self, claim: Claim) -> bool:
        """Whether a promise is broken if this job starts now; by the zone's clocks, not by what the queue knows."""
        held = self.windows.get(claim.key.table)
        if held is None or self.any_time.get(claim.id):
            return False
        now_ms = self.clock.now_ms
        return QueueWindow.decode(held.in_queue(now_ms)).holds(claim.key.kind, claim.extent, now_ms)

    def request(self, table: str, partition: int, kind: str, extent: int, *, any_time: bool) -> None:
        key = JobKey(table, str(partition), kind)
        spec = JobRequest(key, "t", Band.NORMAL, 5, 1, next(self.numbers), extent=extent, any_time=any_time)
        self.queue.run(commands.enqueue(QUEUE, spec))
        known = self.later if any(claim.id == spec.id for claim in self.running) else self.any_time
        known[spec.id] = known.get(spec.id, False) or any_time

    def claim(self, jobs: int) -> int:
        nonce, share = str(next(self.numbers)), Share(jobs, 1 << 40)
        call = commands.claim(QUEUE, worker="w", nonce=nonce, slots=1, lease_ms=LEASE_MS, share=share)
        claims = self.queue.run(call)
        for claim in claims:
            assert not self.is_held(claim), f"{claim.key} starts outside of its window"
        self.running += claims
        return len(claims)

    def end(self, verdict: RunResult) -> None:
        if not self.running:
            return
        claim = self.running.pop(0)
        self.queue.run(
            commands.finish(
                *(QUEUE,),
                worker="w",
                nonce=str(next(self.numbers)),
                id=claim.id,
                token=claim.token,
                run_result=verdict,
                cost_bytes=1,
                seen_version=claim.version,
            )
        )
        later = self.later.pop(claim.id, False)
        self.any_time[claim.id] = later or (verdict is RunResult.YIELD and self.any_time.get(claim.id, False))


@settings(max_examples=TRACES, deadline=None)
@given(
    st.sampled_from(CHANGES),
    st.dictionaries(st.sampled_from("ab"), windows, min_size=1),
    st.lists(steps, min_size=5, max_size=40),
)
def test_nothing_starts_outside_of_its_window_and_every_job_is_served_once_it_opens(
    queue: SyncQueueExecutor, start_ms: int, held: dict[str, HeldWork], trace: list[tuple[object, ...]]
) -> None:
    clock = emptied(queue)
    clock.advance(start_ms - clock.now_ms)
    done = Trace(queue, clock, held)
    done.renew()
    for name, *args in trace:
        if name == "request":
            done.request(*args[:-1], any_time=bool(args[-1]))  # type: ignore[arg-type] # as the strategy draws them
        else:
            getattr(done, str(name))(*args)
    while done.running:
        done.end(RunResult.DONE)
    for _ in range(8 * 24 * HOUR_MS // STEP_MS):
        while done.claim(3):
            while done.running:
                done.end(RunResult.DONE)
        depth = queue.run(queries.depth(QUEUE)).depth
        if not sum(depth.values()):
            break
        clock.advance(STEP_MS)
        done.renew()
    assert not sum(queue.run(queries.depth(QUEUE)).depth.values()), "a job waits for ever"
