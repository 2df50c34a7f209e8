"""The queue's settings while it runs: the decider tells the slots and nothing else, and a quota that grows is felt."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from typer.testing import CliRunner

from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor
from decider.background import queue_upkeep
from services.cli.__main__ import app
from shared.queue import admin_commands, commands, keys
from shared.queue.admin_commands import SlotQuota
from shared.queue.model import Band, Claim, FinishOutcome, JobKey, JobRequest, RunResult, Scope
from shared.queue.settings import QueueSettings
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.waiting import until

pytestmark = pytest.mark.redis

QUEUE = "default"


@pytest.fixture
def decider(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveDecider]:
    """A decider that searches for slots all the time."""
    monkeypatch.setattr(queue_upkeep, "SLOTS_EVERY_S", 0.02)
    with LiveDecider(decider_settings(redis_url)) as live:
        yield live


def announce(queue: SyncQueueExecutor, slots: int) -> None:
    about = ActorInfo(slots=slots, started_ms=1, host="h", versions={})
    Presence(queue, "a-1", about, ttl_ms=60_000).announce([], busy_slots=0)


def request(number: int) -> JobRequest:
    return JobRequest(JobKey("orders-1", str(number), "compact"), "sales", Band.NORMAL, 5, 1 << 20, 1)


def claimed(queue: SyncQueueExecutor, nonce: str, slots: int = 1) -> tuple[Claim, ...]:
    return queue.run(commands.claim(QUEUE, worker="w", nonce=nonce, slots=slots, lease_ms=60_000))


def test_the_decider_tells_the_slots_and_leaves_settings_and_a_newer_schema_alone(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    stated = {b"schema": b"3", b"aging_ms": b"5000", b"strict_in_row": b"3"}
    queue.redis.hset(keys.config(QUEUE), mapping=stated)
    for slots in (4, 7):
        announce(queue, slots)
        until("the slots are known", lambda slots=slots: decider.get("/v1/queue")["slots"] == slots)
    assert queue.redis.hgetall(keys.config(QUEUE)) == stated | {b"slots": b"7"}


@pytest.mark.parametrize(("level", "name"), [(Scope.TABLE, "orders-1"), (Scope.TENANT, "sales")])
def test_a_quota_that_grows_lets_in_at_once_what_it_held_back(
    decider: LiveDecider, queue: SyncQueueExecutor, level: Scope, name: str
) -> None:
    """No run has ended and no audit has come: the slots alone have changed."""
    announce(queue, 2)
    until("the slots are known", lambda: decider.get("/v1/queue")["slots"] == 2)
    queue.run(admin_commands.set_limit(QUEUE, level, name, SlotQuota(50)))
    for number in range(12):
        queue.run(commands.enqueue(QUEUE, request(number)))
    assert len(claimed(queue, "before", slots=8)) == 1
    assert claimed(queue, "still", slots=8) == ()
    announce(queue, 16)
    nonces = iter(range(1_000))
    served: list[Claim] = []
    until("the rest of its share is served", lambda: served.extend(claimed(queue, f"n{next(nonces)}", 8)) or served)
    assert len(served) == 7


def shown(decider: LiveDecider) -> dict[str, int]:
    return {one["name"]: one["value"] for one in decider.get("/v1/queue/settings")["settings"]}


def test_settings_are_shown_and_changed_while_the_queue_runs(decider: LiveDecider, queue: SyncQueueExecutor) -> None:
    """What is not said stays, and the scripts follow with the next call: here after one failure instead of eight."""
    assert shown(decider) == asdict(QueueSettings())
    answer = decider.client.patch("/v1/queue/settings", json={"max_attempts": 1, "aging_ms": None})
    assert answer.status_code == 200
    assert answer.json() == decider.get("/v1/queue/settings")
    assert shown(decider) == asdict(QueueSettings(max_attempts=1))
    queue.run(commands.enqueue(QUEUE, request(1)))
    (claim,) = claimed(queue, "n1")
    how: Any = {"worker": "w", "nonce": "f", "cost_bytes": 1, "seen_version": 1, "run_result": RunResult.FAIL}
    end = queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, **how))
    assert end.outcome is FinishOutcome.QUARANTINED


def test_the_command_line_takes_times_as_people_write_them(decider: LiveDecider) -> None:
    def stated(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["--url", decider.url, "queue", *arguments], env={"COLUMNS": "200"})
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    assert re.search(r"^aging +2h +time +2h +0s +1d ", stated("settings"), re.MULTILINE)
    stated("set", "aging=1.5min", "backoff_base_ms=250ms", "strict-in-row=3")
    assert shown(decider) == asdict(QueueSettings(aging_ms=90_000, backoff_base_ms=250, strict_in_row=3))
    assert re.search(r"^backoff-base +250ms ", stated("settings"), re.MULTILINE)


def test_what_is_shown_of_a_queue_that_was_written_by_hand_is_what_counts(
    decider: LiveDecider, queue: SyncQueueExecutor
) -> None:
    queue.redis.hset(keys.config(QUEUE), mapping={"aging_ms": "soon", "strict_in_row": "4"})
    assert shown(decider) == asdict(QueueSettings(strict_in_row=4))
