"""The faults a queue must survive, with a real server: replies that are lost, and a server that is killed."""

import inspect
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_origin

import pytest
from redis import Redis

from shared.queue import admin_commands, audit, commands, keys, queries
from shared.queue.command import Command
from shared.queue.model import Claim, FinishOutcome, HeartbeatStatus, JobState, Scope
from shared.retry import RetryPolicy
from tests.support.proxy import Fate, Proxy
from tests.support.queue_bench import EXECUTORS, Executor
from tests.support.queue_calls import (
    CALLS,
    FIRST,
    MEANWHILE,
    QUEUE,
    SAME_REPLY,
    TAKE,
    Place,
    beat,
    claim,
    finish,
    ingest,
    spec,
)
from tests.support.queue_invariants import every_queued_job_is_reachable
from tests.support.queue_state import State, read_state
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled

pytestmark = pytest.mark.redis


class Thief(Proxy):
    """`steal(n)` swallows the next n replies, each with its connection, before which others may act `meanwhile`."""

    meanwhile: Callable[[], object] | None = None

    def __init__(self, target_port: int) -> None:
        self._lock = threading.Lock()
        self.left_to_steal = 0
        super().__init__(target_port)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def steal(self, replies: int = 1) -> None:
        with self._lock:
            self.left_to_steal = replies

    def fate(self, *, is_reply: bool) -> Fate:
        with self._lock:
            if not is_reply or self.left_to_steal == 0:
                return Fate.PASS
            self.left_to_steal -= 1
        if self.meanwhile is not None:
            self.meanwhile()
        return Fate.END


@pytest.fixture
def thief(redis_server: RedisServer) -> Iterator[Thief]:
    with redis_server.client() as client:
        client.flushall()
    made = Thief(redis_server.port)
    yield made
    made.close()


@pytest.fixture(params=list(EXECUTORS))
def executor(request: pytest.FixtureRequest, thief: Thief) -> Iterator[Executor]:
    with EXECUTORS[request.param](thief.url, QUEUE, None, RetryPolicy(4, 0.01)) as made:
        # The first calls load the scripts, so that the reply that is stolen is the one that is meant.
        made.run(queries.depth(QUEUE))
        yield made


def without_times(state: State) -> Any:
    """A state in which the moment of a call, and what follows from it, is left out."""
    timed = ("first_ms", "started", "token", "d_first_ms", "last_call_ms", "last_call", "revoked", "polled_ms")
    hashes = {
        name: {field: value for field, value in fields.items() if field not in timed}
        for name, fields in state.hashes.items()
    }
    return hashes, {name: set(members) for name, members in state.zsets.items()}, state.streams, set(state.replies)


def without_tokens(reply: Any) -> Any:
    """A reply with claims, of which token and times differ between two lives."""
    *end, claims = reply if len(reply) == 2 else (reply,)
    return end, [(one.id, one.attempts, one.version) for one in claims]


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_a_lost_reply_doubles_no_effect(
    redis_server: RedisServer, thief: Thief, executor: Executor, name: str, lost: int
) -> None:
    """The same call, once with its reply and once with replies lost, leaves the same store and the same answer."""
    with redis_server.client() as client:
        place = Place(executor, client)
        expected = executor.run(CALLS[name](place))
        undisturbed = without_times(read_state(client, QUEUE))
        client.flushdb()
        call = CALLS[name](place)
        thief.steal(lost)
        reply = executor.run(call)
        assert thief.left_to_steal == 0, "the reply must have been lost, or nothing was tested"
        assert without_times(read_state(client, QUEUE)) == undisturbed
        if name in ("claim", "finish_and_claim"):
            assert without_tokens(reply) == without_tokens(expected)
        elif name not in ("enqueue", "preempt"):
            assert repr(reply) == repr(expected)


def functions(module: ModuleType) -> set[str]:
    """The functions of a module that make a transition."""
    own = [one for _, one in inspect.getmembers(module, inspect.isfunction) if one.__module__ == module.__name__]
    public = {one.__name__: one.__annotations__["return"] for one in own if not one.__name__.startswith("_")}
    return {name for name, made in public.items() if get_origin(made) is Command}


def test_no_transition_is_left_out() -> None:
    assert len(functions(commands)) >= 8
    tried = {name.partition(":")[0] for name in CALLS}
    assert tried - {"audit"} == functions(commands) | functions(admin_commands)
    assert set(DAMAGE) == functions(audit)
    assert set(MEANWHILE) == set(CALLS) - {"enqueue"}, "an enqueue has tests of its own below"


@pytest.mark.parametrize("name", MEANWHILE)
def test_a_call_between_a_lost_reply_and_its_repetition_is_not_undone(
    redis_server: RedisServer, thief: Thief, executor: Executor, name: str
) -> None:
    """Both together leave the store as if each had run once, in one of the two orders."""
    order, others = MEANWHILE[name]
    with (
        redis_server.client() as client,
        EXECUTORS["sync"](redis_server.url, QUEUE, None, RetryPolicy(1, 0.01)) as other,
    ):
        place = Place(executor, client)
        call = CALLS[name](place)
        steps = (call, *others) if order == FIRST else (*others, call)
        answers = {step.script: executor.run(step) for step in steps}
        expected = without_times(read_state(client, QUEUE))
        client.flushdb()
        call = CALLS[name](place)
        thief.meanwhile = lambda: [other.run(step) for step in others]
        thief.steal(1)
        reply = executor.run(call)
        assert thief.left_to_steal == 0
        assert without_times(read_state(client, QUEUE)) == expected
        if name in SAME_REPLY:
            assert reply == answers[call.script]


@pytest.mark.parametrize("is_over", [False, True])
def test_an_enqueue_whose_job_was_taken_before_its_repetition_costs_one_run_at_most(
    redis_server: RedisServer, thief: Thief, executor: Executor, *, is_over: bool
) -> None:
    """A run that goes on serves the repetition, too; if it is over, one more run finds nothing to do."""

    def taken() -> None:
        claims = other.run(TAKE)
        runs.extend(claims)
        if is_over:
            other.run(finish(claims[0]))

    runs: list[Claim] = []
    with EXECUTORS["sync"](redis_server.url, QUEUE, None, RetryPolicy(1, 0.01)) as other:
        thief.meanwhile = taken
        thief.steal(1)
        executor.run(commands.enqueue(QUEUE, spec()))
        if is_over:
            runs += other.run(claim("c-9"))
        assert other.run(finish(runs[-1], "f-9")).outcome is FinishOutcome.DELETED
        assert len(runs) == 1 + is_over
        assert other.run(queries.job(QUEUE, spec().id)) is None


START = keys.prefix(QUEUE)
FLOW = "2|acme|t-1"
DAMAGE: dict[str, tuple[Callable[[Redis], Any], Command[Any]]] = {
    "jobs": (lambda client: client.delete(f"{START}f:{FLOW}", f"{START}queued"), audit.jobs(QUEUE, [spec().id])),
    "flow": (lambda client: client.zadd(f"{START}f:{FLOW}", {"gone": 1}), audit.flow(QUEUE, FLOW, "queued", 0)),
    "node": (lambda client: client.zadd(f"{START}n:2|acme", {"gone": 0}), audit.node(QUEUE, "2|acme", "ready", 0)),
    "index": (lambda client: client.zadd(f"{START}dead", {"gone": 1}), audit.index(QUEUE, JobState.QUARANTINED, 0)),
    "in_flight": (lambda client: client.hset(f"{START}infl", "table|t-9", 3), audit.in_flight(QUEUE)),
    "throttled": (
        lambda client: client.zadd(f"{START}p:table|t-1", {"1|no one": 0}),
        audit.throttled(QUEUE, Scope.TABLE, "t-1"),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_audit_whose_reply_was_lost_has_repaired_once(
    redis_server: RedisServer, thief: Thief, executor: Executor, name: str
) -> None:
    """Each audit script finds real damage; its repetition finds none, and the store is as before the damage."""
    damage, call = DAMAGE[name]
    with redis_server.client() as client:
        executor.run(commands.enqueue(QUEUE, spec()))
        sound = without_times(read_state(client, QUEUE))
        damage(client)
        assert without_times(read_state(client, QUEUE)) != sound, "without damage nothing is tested"
        thief.steal(1)
        again = executor.run(call)
        assert thief.left_to_steal == 0
        assert again == 0 or again.repaired == 0, "the repetition repaired once more"
        assert without_times(read_state(client, QUEUE)) == sound


def test_a_server_killed_under_load_keeps_all_that_it_acknowledged(own_redis_server: RedisServer) -> None:
    killer = threading.Thread(target=own_redis_server.restart)
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, RetryPolicy(40, 0.05)) as executor:
        for number in range(400):
            executor.run(commands.enqueue(QUEUE, spec(f"{number}")))
            if number == 100:
                killer.start()
        killer.join(scaled(30))
        assert executor.run(queries.depth(QUEUE)).depth[JobState.QUEUED] == 400
        with own_redis_server.client() as client:
            every_queued_job_is_reachable(read_state(client, QUEUE))


def test_nothing_acknowledged_is_lost_with_the_server(own_redis_server: RedisServer) -> None:
    """After every kill -9 the running jobs run on, the finished ones stay gone, and tokens increase."""
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, RetryPolicy(40, 0.05)) as executor:
        tokens: list[int] = []
        for life in range(3):
            for number in range(10):
                executor.run(commands.enqueue(QUEUE, spec(f"{life}-{number}")))
            (finished,) = executor.run(claim(f"c-{life}-a"))
            (running,) = executor.run(claim(f"c-{life}-b"))
            assert executor.run(finish(finished, f"f-{life}")).outcome is FinishOutcome.DELETED
            own_redis_server.restart()
            (reply,) = executor.run(beat(running))
            assert reply.status is HeartbeatStatus.OK, "an acknowledged claim must survive"
            assert executor.run(queries.job(QUEUE, finished.id)) is None, "an acknowledged end must survive"
            tokens += [finished.token, running.token]
        depth = executor.run(queries.depth(QUEUE)).depth
        assert (depth[JobState.QUEUED], depth[JobState.LEASED]) == (3 * 8, 3)
        assert tokens == sorted(set(tokens))


def test_tokens_increase_even_if_their_counter_went_with_the_tail_of_the_log(own_redis_server: RedisServer) -> None:
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, RetryPolicy(40, 0.05)) as executor:
        executor.run(commands.enqueue(QUEUE, spec("a")))
        executor.run(commands.enqueue(QUEUE, spec("b")))
        (first,) = executor.run(claim("c-1"))
        with own_redis_server.client() as client:
            client.hdel(keys.virtual_times(QUEUE), "token")
        own_redis_server.restart()
        (second,) = executor.run(claim("c-2"))
        assert second.token > first.token


def test_a_killed_server_leaves_each_ingest_whole_or_undone(own_redis_server: RedisServer) -> None:
    """Cursor, partitions, counters and jobs agree after every restart, whichever call the kill has met."""
    with EXECUTORS["sync"](own_redis_server.url, QUEUE, None, RetryPolicy(40, 0.05)) as executor:
        for version in range(30):
            assert executor.run(ingest(version - 1, {"{}": str(version)})).applied
            if version % 10 == 5:
                own_redis_server.restart()
            with own_redis_server.client() as client:
                state = read_state(client, QUEUE)
            assert state.hash("cur:t-1")["version"] == str(version)
            assert state.hash("partitions:t-1") == {"{}": str(version)}
            assert state.hash("count:t-1") == {"commits": str(version + 1)}
            assert state.streams["led:t-1"] == version + 1
            assert next(iter(state.jobs.values()))["version"] == str(version)
