"""Calls of every transition of a queue, each with what must have happened before it, for tests of lost replies."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from redis import Redis

from shared.queue import admin_commands, audit, commands, keys
from shared.queue.command import Command
from shared.queue.model import (
    Band,
    Claim,
    HeartbeatEntry,
    JobKey,
    JobRequest,
    RunResult,
    Scope,
    StagedState,
    Timer,
)
from tests.support.queue_bench import Executor

QUEUE = "default"
LEASE_MS = 60_000


def spec(partition: str = "{}", version: int = 1) -> JobRequest:
    return JobRequest(JobKey("t-1", partition, "compact"), "acme", Band.NORMAL, 5, 1 << 20, version)


def claim(nonce: str = "c-1") -> Command[tuple[Claim, ...]]:
    return commands.claim(QUEUE, worker="w-1", nonce=nonce, slots=1, lease_ms=LEASE_MS)


def finish(held: Claim, nonce: str = "f-1") -> Command[Any]:
    return commands.finish(
        QUEUE,
        worker="w-1",
        nonce=nonce,
        id=held.id,
        token=held.token,
        run_result=RunResult.DONE,
        cost_bytes=1,
        seen_version=held.version,
        counters={"runs": 1},
    )


def finish_and_claim(made: Executor) -> Command[Any]:
    """The end of a run while another job waits."""
    end = finish(held(made))
    made.run(commands.enqueue(QUEUE, spec("next")))
    return commands.finish_and_claim(end, claim())


def ingest(expected: int = -1, partitions: dict[str, str | None] | None = None) -> Command[Any]:
    return commands.ingest(
        QUEUE,
        table="t-1",
        expected_version=expected,
        state_fields={"version": str(expected + 1)},
        partitions=partitions or {"{}": "state"},
        jobs=[spec(version=expected + 1)],
        ledger=[("decision", 0)],
        counters={"commits": 1},
    )


def held(executor: Executor) -> Claim:
    executor.run(commands.enqueue(QUEUE, spec()))
    (found,) = executor.run(claim("c-0"))
    return found


def beat(of: Claim) -> Command[Any]:
    return commands.heartbeat(QUEUE, worker="w-1", beats=[HeartbeatEntry(of.id, of.token, "{}")], lease_ms=LEASE_MS)


def failed(made: Executor) -> None:
    end = finish(held(made), "f-0")
    made.run(replace(end, args=tuple("fail" if arg == "done" else arg for arg in end.args)))


def waits_for_a_slot(made: Executor) -> None:
    held(made)
    made.run(commands.enqueue(QUEUE, replace(spec("urgent"), band=Band.URGENT)))


@dataclass(frozen=True, slots=True)
class Place:
    """An executor, and the server itself for what no transition writes."""

    executor: Executor
    client: Redis

    def run(self, transition: Command[Any]) -> Any:
        return self.executor.run(transition)


def timer_rang(made: Place) -> Command[Any]:
    timer = Timer("a", 50)
    made.run(replaced(-1, timers=[timer, Timer("b", 90)]))
    return commands.decide(
        QUEUE, nonce="d-1", table="t-1", timer=timer, job=spec(), record="why", counters={"enqueued": 1}
    )


def replaced(expected: int, *, timers: list[Timer] | None = None, staged: StagedState | None = None) -> Command[Any]:
    cursor = {"version": str(expected + 1)}
    return commands.ingest(
        QUEUE,
        table="t-1",
        expected_version=expected,
        state_fields=cursor,
        partitions={} if staged else {"new": "state"},
        reset=staged or True,
        jobs=[spec(version=expected + 1)],
        timers=timers or (),
        counters={"rebuilds": 1},
    )


def staged(made: Place) -> Command[Any]:
    made.run(ingest())
    made.client.hset(keys.staged_partitions(QUEUE, "x"), mapping={"a": "1", "b": "2"})
    made.client.zadd(keys.staged_timers(QUEUE, "x"), {"a": 7})
    for key in (keys.staged_partitions(QUEUE, "x"), keys.staged_timers(QUEUE, "x")):
        made.client.expire(key, 100)
    return replaced(0, staged=StagedState("x", 2, 1))


SLOTS = admin_commands.SlotLimit
CALLS: dict[str, Callable[[Place], Command[Any]]] = {
    "enqueue": lambda _: commands.enqueue(QUEUE, spec()),
    "claim": lambda made: (made.run(commands.enqueue(QUEUE, spec())), claim())[1],
    "heartbeat": lambda made: beat(held(made)),
    "finish": lambda made: finish(held(made)),
    "finish_and_claim": finish_and_claim,
    "ingest": lambda _: ingest(),
    "ingest: reset": lambda made: (made.run(ingest()), replaced(0))[1],
    "ingest: staged": staged,
    "decide": timer_rang,
    "cancel": lambda made: commands.cancel(QUEUE, held(made).id, nonce="x-1"),
    "expedite": lambda made: (made.run(commands.enqueue(QUEUE, spec())), admin_commands.expedite(QUEUE, spec().id))[1],
    "requeue": lambda made: (failed(made), admin_commands.requeue(QUEUE, spec().id))[1],
    "set_budget": lambda _: admin_commands.set_budget(QUEUE, Scope.TENANT, "acme", "1.0/day/1,0,0,0,0|as configured"),
    "set_amplification": lambda _: admin_commands.set_amplification(QUEUE, "t-1", "2"),
    "set_exemption": lambda _: admin_commands.set_exemption(QUEUE, "t-1", "1000"),
    "set_prices": lambda _: admin_commands.set_prices(QUEUE, "USD/1,0,0,0,0"),
    "set_window": lambda _: admin_commands.set_window(QUEUE, "t-1", "all|1-2|0:00-1:00 UTC"),
    "set_weight": lambda _: admin_commands.set_weight(QUEUE, Scope.TABLE, "t-1", 2),
    "set_limit": lambda made: (held(made), admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SLOTS(1)))[1],
    "pause": lambda made: (held(made), admin_commands.pause(QUEUE, Scope.TENANT, "acme"))[1],
    "pause: resume": lambda made: (
        made.run(commands.enqueue(QUEUE, spec())),
        made.run(PAUSE),
        made.run(claim("c-0")),
        RESUME,
    )[3],
    "preempt": lambda made: (waits_for_a_slot(made), admin_commands.preempt(QUEUE, admin_commands.Preemption(0, 0)))[1],
    "audit": lambda made: (held(made), audit.jobs(QUEUE, [spec().id]))[1],
    "configure": lambda _: commands.configure(QUEUE, {"max_attempts": 3}),
    "forget_refusals": lambda made: (held(made), commands.forget_refusals(QUEUE, "t-1", ["{}"]))[1],
}
"""A call of each transition, with what must have happened before it; behind a colon, another use of the same one."""

PAUSE = admin_commands.pause(QUEUE, Scope.TENANT, "acme")
RESUME = admin_commands.pause(QUEUE, Scope.TENANT, "acme", paused=False)
CANCEL = commands.cancel(QUEUE, spec().id, nonce="o-1")
NEXT = commands.enqueue(QUEUE, spec(version=2))
TAKE = commands.claim(QUEUE, worker="w-2", nonce="o-1", slots=1, lease_ms=LEASE_MS)
FIRST, LAST = "first", "last"
MEANWHILE: dict[str, tuple[str, tuple[Command[Any], ...]]] = {
    "claim": (FIRST, (CANCEL,)),
    "heartbeat": (FIRST, (CANCEL,)),
    "finish": (FIRST, (NEXT, TAKE)),
    "finish_and_claim": (FIRST, (NEXT, TAKE)),
    "ingest": (FIRST, (ingest(0),)),
    "ingest: reset": (FIRST, (ingest(1),)),
    "ingest: staged": (FIRST, (ingest(1),)),
    "decide": (FIRST, (TAKE,)),
    "cancel": (FIRST, (NEXT,)),
    "expedite": (FIRST, (TAKE,)),
    "requeue": (FIRST, (TAKE,)),
    "set_budget": (LAST, (admin_commands.set_budget(QUEUE, Scope.TENANT, "acme", "2.0/day/1,0,0,0,0|other"),)),
    "set_amplification": (LAST, (admin_commands.set_amplification(QUEUE, "t-1", "3"),)),
    "set_exemption": (LAST, (admin_commands.set_exemption(QUEUE, "t-1", "50"),)),
    "set_prices": (LAST, (admin_commands.set_prices(QUEUE, "EUR/2,0,0,0,0"),)),
    "set_window": (LAST, (admin_commands.set_window(QUEUE, "t-1", "all|3-4|0:00-1:00 UTC"),)),
    "set_weight": (LAST, (admin_commands.set_weight(QUEUE, Scope.TABLE, "t-1", 3),)),
    "set_limit": (LAST, (admin_commands.set_limit(QUEUE, Scope.TABLE, "t-1", SLOTS(2)),)),
    "pause": (LAST, (RESUME,)),
    "pause: resume": (LAST, (PAUSE,)),
    "preempt": (FIRST, (CANCEL,)),
    "audit": (FIRST, (NEXT,)),
    "configure": (LAST, (commands.configure(QUEUE, {"max_attempts": 5}),)),
    "forget_refusals": (LAST, (NEXT,)),
}
"""What another client does between a call and its repetition, and where the call then counts: before it, or after."""

SAME_REPLY = ("finish", "decide", "cancel")
"""Calls with a nonce: their repetition is answered as they were, whatever has happened since."""
