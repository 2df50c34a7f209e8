"""Actors are listed as they say themselves, forgotten when they fall silent, and drained without losing a job."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis import exceptions
from redis.client import Pipeline

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.presence import DEATH_TTL_MS, ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, connect
from actor.worker import ActorContext, Worker, WorkerSettings
from shared.errors import RetryableError
from shared.jobs.payload import JobPayload, PredictedCost
from shared.policy.policy import MIB, Policy
from shared.policy.properties import policy_digest
from shared.queue import commands
from shared.queue.model import Band, JobKey, JobRequest
from tests.support.live_decider import LiveDecider
from tests.support.memory_engine import MemoryEngine
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis

ABOUT = ActorInfo(2, 1_767_276_187_000, "worker-7", {"lakewright": "0.1.0", "java": "17.0.13"})
KEPT_MS = 3_000
"""Thirty beats: a machine that is busy must not make a living actor look gone."""
TIMES = LeaseTimes(lease_s=scaled(2.0), interval_s=0.1, margin_s=scaled(0.5))


def queue(url: str) -> SyncQueueExecutor:
    return SyncQueueExecutor(connect(url), "default")


def request(number: int) -> JobRequest:
    payload = JobPayload(
        "memory://t", "t", Policy(target_bytes=8 * MIB), "eligible", PredictedCost(8, 7, 800_000), policy_digest({})
    )
    return JobRequest(JobKey(f"t-{number}", "{}", "compact"), "default", Band.NORMAL, 5, 800_000, 1, payload.encode())


class LiveActor:
    """One slot on a table in memory, with heartbeat and presence as a service wires them."""

    def __init__(self, url: str, engine: MemoryEngine, name: str, *, after_ms: int) -> None:
        about = replace(ABOUT, started_ms=ABOUT.started_ms + after_ms)
        self.presence = Presence(queue(url), name, about, ttl_ms=KEPT_MS)
        self.actor = ActorContext(
            name, Heartbeat(queue(url), name, TIMES, announce=self._announce), threading.Event(), threading.Event()
        )
        self.slot = threading.Thread(
            target=Worker(EngineSet([engine]), queue(url), self.actor, WorkerSettings(idle_s=0.05)).run
        )
        self.actor.heartbeat.start()
        self.slot.start()

    def _announce(self, jobs: Any, busy_slots: int) -> None:
        if self.presence.announce(jobs, busy_slots):
            self.actor.draining.set()

    def fall_silent(self) -> None:
        self.actor.stopping.set()
        self.slot.join(scaled(10))
        self.actor.heartbeat.close()


@pytest.fixture
def start(redis_url: str) -> Iterator[Callable[..., LiveActor]]:
    started: list[LiveActor] = []

    def new(engine: MemoryEngine, name: str = "a-1") -> LiveActor:
        started.append(LiveActor(redis_url, engine, name, after_ms=len(started)))
        return started[-1]

    yield new
    for one in started:
        one.fall_silent()


def listed(decider: LiveDecider) -> dict[str, Any]:
    return {one["id"]: one for one in decider.get("/v1/actors")["actors"]}


def test_an_actor_is_listed_with_what_it_says_and_forgotten_when_it_falls_silent(
    decider: LiveDecider, start: Callable[..., LiveActor]
) -> None:
    live = start(MemoryEngine())
    start(MemoryEngine(), "a-2")
    one = listed(decider)["a-1"]
    assert (one["state"], one["slots"], one["jobs"], one["host"]) == ("idle", 2, [], "worker-7")
    assert one["versions"] == dict(ABOUT.versions)
    assert one["started_at"] == "2026-01-01T14:03:07Z"
    assert 0 <= one["heartbeat_age_s"] <= one["expires_after_s"] == KEPT_MS / 1000
    assert decider.get("/v1/actors")["slots"] == 4
    assert decider.get("/v1/status")["actors"] == {"idle": 2}
    assert 'lakewright_actors{group="default",state="idle"} 2.0' in decider.client.get("/metrics").text
    live.fall_silent()
    until("it is forgotten", lambda: set(listed(decider)) == {"a-2"})
    live.presence.deregister()


def test_a_drained_actor_finishes_its_job_takes_no_more_and_another_one_takes_over(
    decider: LiveDecider, start: Callable[..., LiveActor], redis_url: str
) -> None:
    engine = MemoryEngine([100_000] * 8)
    may_commit = threading.Event()
    engine.before_commit = lambda: _expect(may_commit.wait(scaled(20)))
    live = start(engine)
    jobs = queue(redis_url)
    jobs.run(commands.enqueue("default", request(1)))
    until("it works", lambda: listed(decider)["a-1"]["state"] == "working")
    assert listed(decider)["a-1"]["jobs"] == [request(1).id]
    assert decider.get("/v1/actors")["busy_slots"] == listed(decider)["a-1"]["busy_slots"] == 1

    answer = decider.post("/v1/actors/a-1/drain", {})
    assert answer.status_code == 200, answer.text
    jobs.run(commands.enqueue("default", request(2)))
    assert listed(decider)["a-1"]["state"] == "draining"
    until("it has heard of it", live.actor.draining.is_set)
    may_commit.set()
    until("it has finished", lambda: listed(decider)["a-1"]["state"] == "drained")
    (run,) = decider.get("/v1/jobs", state="finished")["jobs"]
    assert (run["id"], run["result"]) == (request(1).id, "done")
    assert decider.get("/v1/actors")["slots"] == 0
    (waiting,) = decider.get("/v1/jobs", state="queued")["jobs"]
    assert waiting["id"] == request(2).id

    start(engine, "a-2")
    until("another takes it", lambda: len(decider.get("/v1/jobs", state="finished")["jobs"]) == 2)


def test_an_actor_that_died_is_listed_with_the_cause_and_offers_no_slots(
    decider: LiveDecider, start: Callable[..., LiveActor]
) -> None:
    live = start(MemoryEngine())
    live.fall_silent()
    live.presence.report_death("the JVM was killed by SIGKILL (9)" + "x" * 5_000)
    one = listed(decider)["a-1"]
    assert (one["state"], one["jobs"]) == ("died", [])
    assert one["error"].startswith("the JVM was killed by SIGKILL (9)")
    assert one["expires_after_s"] == DEATH_TTL_MS / 1000
    assert decider.get("/v1/actors")["slots"] == 0
    start(MemoryEngine())
    one = listed(decider)["a-1"]
    assert (one["state"], one["error"]) == ("idle", ""), "the next process of that name has its place"


def test_a_new_process_under_an_old_name_begins_without_the_old_request(
    decider: LiveDecider, start: Callable[..., LiveActor]
) -> None:
    live = start(MemoryEngine())
    decider.post("/v1/actors/a-1/drain", {})
    until("it is drained", lambda: live.actor.draining.is_set())
    live.fall_silent()
    start(MemoryEngine())
    assert listed(decider)["a-1"]["state"] == "idle"


def test_a_request_heard_after_a_first_word_whose_answer_was_lost_is_kept(
    decider: LiveDecider, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word is said again as the first one, and is not to be taken for that of a new process."""
    jobs = queue(redis_url)
    presence = Presence(jobs, "a-1", ABOUT, ttl_ms=KEPT_MS)
    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "execute", _lost_answer(Pipeline.execute))
        with pytest.raises(RetryableError, match="a-1"):
            presence.announce((), busy_slots=0)
    assert decider.post("/v1/actors/a-1/drain", {}).status_code == 200
    assert presence.announce((), busy_slots=0)
    another = Presence(jobs, "a-1", replace(ABOUT, started_ms=ABOUT.started_ms + 1), ttl_ms=KEPT_MS)
    assert not another.announce((), busy_slots=0)


def test_draining_no_one_is_an_error_that_names_it(decider: LiveDecider) -> None:
    answer = decider.post("/v1/actors/unknown/drain", {})
    assert (answer.status_code, answer.json()["value"]) == (404, "unknown")


def test_an_actor_that_cannot_say_that_it_is_there_says_why(own_redis_server: RedisServer) -> None:
    presence = Presence(queue(own_redis_server.url), "a-1", ABOUT, ttl_ms=KEPT_MS)
    presence.announce((), busy_slots=0)
    own_redis_server.kill()
    with pytest.raises(RetryableError, match="a-1"):
        presence.announce((), busy_slots=0)
    with pytest.raises(RetryableError, match="a-1"):
        presence.deregister()


def _lost_answer(execute: Callable[..., Any]) -> Callable[..., Any]:
    def lost(*arguments: Any) -> None:
        execute(*arguments)
        raise exceptions.ConnectionError("the answer was lost")

    return lost


def _expect(met: bool) -> None:
    assert met
