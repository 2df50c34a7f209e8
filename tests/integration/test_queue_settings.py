"""The queue's settings while it runs: the decider tells the slots and nothing else, and a quota that grows is felt."""

from collections.abc import Iterator

import pytest

from actor.store.presence import About, Presence
from actor.store.queue import SyncQueue, connect
from decider.duties import queue_care
from shared.queue import keys, steering, transitions
from shared.queue.model import Band, Claim, JobKey, JobSpec, Level
from shared.queue.steering import Quota
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis

QUEUE = "default"


@pytest.fixture
def queue(redis_url: str) -> Iterator[SyncQueue]:
    client = connect(redis_url)
    yield SyncQueue(client, QUEUE)
    client.close()


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that looks for slots all the time."""
    monkeypatch.setattr(queue_care, "SLOTS_EVERY_S", 0.02)
    live = LiveDecider(decider_settings(redis_url)).start()
    yield live
    live.close()


def announce(queue: SyncQueue, slots: int) -> None:
    about = About(slots=slots, started_ms=1, host="h", versions={})
    Presence(queue, "a-1", about, kept_ms=60_000).announce([])


def claimed(queue: SyncQueue, nonce: str, slots: int = 1) -> tuple[Claim, ...]:
    return queue.run(transitions.claim(QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=60_000))


def test_the_decider_tells_the_slots_and_leaves_settings_and_a_newer_schema_alone(
    decider: LiveDecider, queue: SyncQueue
) -> None:
    said = {b"schema": b"2", b"aging_ms": b"5000", b"strict_in_row": b"3"}
    queue.redis.hset(keys.cfg(QUEUE), mapping=said)
    for slots in (4, 7):
        announce(queue, slots)
        until("the slots are known", lambda slots=slots: decider.get("/v1/queue")["slots"] == slots)
    assert queue.redis.hgetall(keys.cfg(QUEUE)) == said | {b"slots": b"7"}


@pytest.mark.parametrize(("level", "name"), [(Level.TABLE, "orders-1"), (Level.TENANT, "sales")])
def test_a_quota_that_grows_lets_in_at_once_what_it_held_back(
    decider: LiveDecider, queue: SyncQueue, level: Level, name: str
) -> None:
    """No run has ended and no audit has come: the slots alone have changed."""
    announce(queue, 2)
    until("the slots are known", lambda: decider.get("/v1/queue")["slots"] == 2)
    queue.run(steering.limit(QUEUE, level, name, Quota(50)))
    for number in range(12):
        wish = JobSpec(JobKey("orders-1", str(number), "compact"), "sales", Band.NORMAL, 5, 1 << 20, 1)
        queue.run(transitions.enqueue(QUEUE, wish))
    assert len(claimed(queue, "before", slots=8)) == 1
    assert claimed(queue, "still", slots=8) == ()
    announce(queue, 16)
    nonces = iter(range(1_000))
    served: list[Claim] = []
    until("the rest of its share is served", lambda: served.extend(claimed(queue, f"n{next(nonces)}", 8)) or served)
    assert len(served) == 7
