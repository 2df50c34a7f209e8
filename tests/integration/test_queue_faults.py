"""The faults a queue must survive, with a real server: replies that are lost, and a server that is killed."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from shared.queue import audit, keys, reads, steering, transitions
from shared.queue.model import (
    Band,
    Beat,
    BeatStatus,
    Claim,
    FinishOutcome,
    JobKey,
    JobSpec,
    JobState,
    Level,
    QueueSettings,
    Verdict,
)
from shared.queue.transition import Transition, Tries
from tests.support.queue_executors import EXECUTORS, Executor
from tests.support.queue_invariants import every_queued_job_is_reachable
from tests.support.queue_state import State, read_state
from tests.support.redis_server import RedisServer
from tests.support.reply_thief import ReplyThief

pytestmark = pytest.mark.redis

QUEUE = "default"
LEASE_MS = 60_000


def spec(cell: str = "{}", version: int = 1) -> JobSpec:
    return JobSpec(JobKey("t-1", cell, "compact"), "acme", Band.NORMAL, 5, 1 << 20, version)


def claim(nonce: str = "c-1") -> Transition[tuple[Claim, ...]]:
    return transitions.claim(QUEUE, worker="w-1", nonce=nonce, slots=1, lease_ms=LEASE_MS)


def finish(held: Claim, nonce: str = "f-1") -> Transition[Any]:
    return transitions.finish(
        QUEUE,
        worker="w-1",
        nonce=nonce,
        id=held.id,
        token=held.token,
        verdict=Verdict.DONE,
        cost_bytes=1,
        seen_version=held.version,
        counters={"runs": 1},
    )


def ingest(expected: int = -1, cells: dict[str, str | None] | None = None) -> Transition[Any]:
    return transitions.ingest(
        QUEUE,
        table="t-1",
        expected=expected,
        cursor={"version": str(expected + 1)},
        cells=cells or {"{}": "state"},
        jobs=[spec(version=expected + 1)],
        ledger=[("decision", 0)],
        counters={"commits": 1},
    )


@pytest.fixture
def thief(redis_server: RedisServer) -> Iterator[ReplyThief]:
    with redis_server.client() as client:
        client.flushall()
    made = ReplyThief(redis_server.port)
    yield made
    made.close()


@pytest.fixture(params=list(EXECUTORS))
def executor(request: pytest.FixtureRequest, thief: ReplyThief) -> Iterator[Executor]:
    with EXECUTORS[request.param](thief.url, QUEUE, None, Tries(4, 0.01)) as made:
        # The first calls load the scripts, so that the reply that is stolen is the one that is meant.
        made.run(reads.depth(QUEUE))
        yield made


def held(executor: Executor) -> Claim:
    executor.run(transitions.enqueue(QUEUE, spec()))
    (found,) = executor.run(claim("c-0"))
    return found


def beat(of: Claim) -> Transition[Any]:
    return transitions.heartbeat(QUEUE, worker="w-1", beats=[Beat(of.id, of.token, "{}")], lease_ms=LEASE_MS)


def failed(made: Executor) -> None:
    end = finish(held(made), "f-0")
    made.run(replace(end, args=tuple("fail" if arg == "done" else arg for arg in end.args)))


def waits_for_a_slot(made: Executor) -> None:
    held(made)
    made.run(transitions.enqueue(QUEUE, replace(spec("urgent"), band=Band.URGENT)))


CALLS: dict[str, Callable[[Executor], Transition[Any]]] = {
    "enqueue": lambda _: transitions.enqueue(QUEUE, spec()),
    "claim": lambda made: (made.run(transitions.enqueue(QUEUE, spec())), claim())[1],
    "heartbeat": lambda made: beat(held(made)),
    "finish": lambda made: finish(held(made)),
    "ingest": lambda _: ingest(),
    "cancel": lambda made: transitions.cancel(QUEUE, held(made).id, nonce="x-1"),
    "promote": lambda made: (made.run(transitions.enqueue(QUEUE, spec())), steering.promote(QUEUE, spec().id))[1],
    "requeue": lambda made: (failed(made), steering.requeue(QUEUE, spec().id))[1],
    "weigh": lambda _: steering.weigh(QUEUE, Level.TABLE, "t-1", 2),
    "limit": lambda made: (held(made), steering.limit(QUEUE, Level.TABLE, "t-1", steering.Slots(1)))[1],
    "pause": lambda made: (held(made), steering.pause(QUEUE, Level.TENANT, "acme"))[1],
    "preempt": lambda made: (waits_for_a_slot(made), steering.preempt(QUEUE, steering.Preemption(0, 0)))[1],
    "audit": lambda made: (held(made), audit.jobs(QUEUE, [spec().id]))[1],
    "configure": lambda _: transitions.configure(QUEUE, QueueSettings(max_attempts=3)),
}


def without_times(state: State) -> Any:
    """A state in which the moment of a call, and what follows from it, is left out."""
    timed = ("t0", "started", "token", "d_t0", "last_call_ms", "last_call", "revoked", "looked_at")
    hashes = {
        name: {field: value for field, value in fields.items() if field not in timed}
        for name, fields in state.hashes.items()
    }
    return hashes, {name: set(members) for name, members in state.zsets.items()}, state.streams, set(state.replies)


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_a_lost_reply_doubles_no_effect(
    redis_server: RedisServer, thief: ReplyThief, executor: Executor, name: str, lost: int
) -> None:
    """The same call, once with its reply and once with replies lost, leaves the same store and the same answer."""
    with redis_server.client() as client:
        expected = executor.run(CALLS[name](executor))
        undisturbed = without_times(read_state(client, QUEUE))
        client.flushdb()
        call = CALLS[name](executor)
        thief.steal(lost)
        reply = executor.run(call)
        assert thief.left_to_steal == 0, "the reply must have been lost, or nothing was tested"
        assert without_times(read_state(client, QUEUE)) == undisturbed
        if name == "claim":
            assert [(one.id, one.attempts) for one in reply] == [(one.id, one.attempts) for one in expected]
        elif name not in ("enqueue", "preempt"):
            assert repr(reply) == repr(expected)


START = keys.prefix(QUEUE)
FLOW = "2|acme|t-1"
DAMAGE: dict[str, tuple[Callable[[Redis], Any], Transition[Any]]] = {
    "jobs": (lambda client: client.delete(f"{START}f:{FLOW}", f"{START}queued"), audit.jobs(QUEUE, [spec().id])),
    "flow": (lambda client: client.zadd(f"{START}f:{FLOW}", {"gone": 1}), audit.flow(QUEUE, FLOW, 0)),
    "node": (lambda client: client.zadd(f"{START}n:2|acme", {"gone": 0}), audit.node(QUEUE, "2|acme", "ready", 0)),
    "index": (lambda client: client.zadd(f"{START}dead", {"gone": 1}), audit.index(QUEUE, JobState.QUARANTINED, 0)),
    "flight": (lambda client: client.hset(f"{START}infl", "table|t-9", 3), audit.flight(QUEUE)),
    "parked": (
        lambda client: client.zadd(f"{START}p:table|t-1", {"1|nobody": 0}),
        audit.parked(QUEUE, Level.TABLE, "t-1"),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_audit_whose_reply_was_lost_has_mended_once(
    redis_server: RedisServer, thief: ReplyThief, executor: Executor, name: str
) -> None:
    """Each audit script finds real damage; its repetition finds none, and the store is as before the damage."""
    damage, call = DAMAGE[name]
    with redis_server.client() as client:
        executor.run(transitions.enqueue(QUEUE, spec()))
        sound = without_times(read_state(client, QUEUE))
        damage(client)
        assert without_times(read_state(client, QUEUE)) != sound, "without damage nothing is tested"
        thief.steal(1)
        again = executor.run(call)
        assert thief.left_to_steal == 0
        assert again == 0 or again.mended == 0, "the repetition mended once more"
        assert without_times(read_state(client, QUEUE)) == sound


def test_a_server_killed_under_load_keeps_all_that_it_acknowledged(own_redis_server: RedisServer) -> None:
    killer = threading.Thread(target=own_redis_server.restart)
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, Tries(40, 0.05)) as executor:
        for number in range(400):
            executor.run(transitions.enqueue(QUEUE, spec(f"{number}")))
            if number == 100:
                killer.start()
        killer.join(30)
        assert executor.run(reads.depth(QUEUE)).depth[JobState.QUEUED] == 400
        with own_redis_server.client() as client:
            every_queued_job_is_reachable(read_state(client, QUEUE))


def test_nothing_acknowledged_is_lost_with_the_server(own_redis_server: RedisServer) -> None:
    """After every kill -9 the running jobs run on, the finished ones stay gone, and tokens increase."""
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, Tries(40, 0.05)) as executor:
        tokens: list[int] = []
        for life in range(3):
            for number in range(10):
                executor.run(transitions.enqueue(QUEUE, spec(f"{life}-{number}")))
            (finished,) = executor.run(claim(f"c-{life}-a"))
            (running,) = executor.run(claim(f"c-{life}-b"))
            assert executor.run(finish(finished, f"f-{life}")).outcome is FinishOutcome.GONE
            own_redis_server.restart()
            (reply,) = executor.run(beat(running))
            assert reply.status is BeatStatus.OK, "an acknowledged claim must survive"
            assert executor.run(reads.job(QUEUE, finished.id)) is None, "an acknowledged end must survive"
            tokens += [finished.token, running.token]
        depth = executor.run(reads.depth(QUEUE)).depth
        assert (depth[JobState.QUEUED], depth[JobState.LEASED]) == (3 * 8, 3)
        assert tokens == sorted(set(tokens))


def test_tokens_increase_even_if_their_counter_went_with_the_tail_of_the_log(own_redis_server: RedisServer) -> None:
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, Tries(40, 0.05)) as executor:
        executor.run(transitions.enqueue(QUEUE, spec("a")))
        executor.run(transitions.enqueue(QUEUE, spec("b")))
        (first,) = executor.run(claim("c-1"))
        with own_redis_server.client() as client:
            client.hdel(keys.virtual(QUEUE), "token")
        own_redis_server.restart()
        (second,) = executor.run(claim("c-2"))
        assert second.token > first.token


def test_a_killed_server_leaves_each_ingest_whole_or_undone(own_redis_server: RedisServer) -> None:
    """Cursor, cells, counters and jobs agree after every restart, whichever call the kill has met."""
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, Tries(40, 0.05)) as executor:
        for version in range(30):
            assert executor.run(ingest(version - 1, {"{}": str(version)})).applied
            if version % 10 == 5:
                own_redis_server.restart()
            with own_redis_server.client() as client:
                state = read_state(client, QUEUE)
            assert state.hash("cur:t-1")["version"] == str(version)
            assert state.hash("cells:t-1") == {"{}": str(version)}
            assert state.hash("count:t-1") == {"commits": str(version + 1)}
            assert state.streams["led:t-1"] == version + 1
            assert next(iter(state.jobs.values()))["version"] == str(version)
