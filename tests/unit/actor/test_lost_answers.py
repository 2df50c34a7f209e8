"""What a slot does about calls that the queue does not answer: no claim is forgotten, no outage waited out twice."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from actor.outage_log import OutageLog
from actor.queue_executor import TIMEOUT_S, SyncSentinelPool, connect
from actor.slot_queue import SlotQueue
from shared.errors import RetryableError
from shared.queue import commands
from shared.queue.command import Command
from shared.queue.lua_library import ScriptName
from shared.queue.model import ALONE, Finished, FinishOutcome, JobId, RunResult, Token
from tests.support.fake_queue import FakeClock, FakeQueue
from tests.support.worker_world import Heart, finish_args

LEASE_S = Heart.lease_ms / 1000


class Slot:
    """A slot's calls, a clock, and a queue that is silent or answers."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.heart = Heart()
        self.silent = True
        self.queue = FakeQueue(self.answer)
        self.calls = SlotQueue(self.queue, "a-1", self.heart, (), ALONE)  # type: ignore[arg-type]

    def answer(self, command: Command[Any]) -> str:
        if self.silent:
            raise RetryableError("no answer")
        if command.script is ScriptName.FINISH:
            return "deleted"
        job = [
            "j-9",
            "t-1",
            "{}",
            "compact",
            "default",
            "1",
            "5",
            "9",
            "",
            "0",
            "1",
            "1",
            *("0", "0", "", "0", "0", "0", ""),
        ]
        return json.dumps([job])

    def pause(self) -> None:
        self.clock.advance(0.5)

    def end(self, number: int) -> Command[Finished]:
        of = {"worker": "a-1", "nonce": f"n{number}", "id": JobId(f"j-{number}"), "token": Token(number)}
        return commands.finish("default", **of, run_result=RunResult.DONE, cost_bytes=0, seen_version=1)

    def tries(self) -> list[str]:
        return [str(finish_args(one)[2]) for one in self.queue.sent if finish_args(one)]


@pytest.fixture
def slot(monkeypatch: pytest.MonkeyPatch) -> Slot:
    clock = FakeClock(100.0)
    monkeypatch.setattr("actor.slot_queue.time", SimpleNamespace(monotonic=clock))
    return Slot(clock)


def test_jobs_that_end_one_after_the_other_wait_out_an_outage_together(slot: Slot) -> None:
    """Eight jobs of a shared commit: an actor that is asked to stop meanwhile ends after one lease, not after eight."""
    with capture_logs() as logs:
        ends = [slot.calls.finish(JobId(f"j-{number}"), slot.end(number), slot.pause) for number in range(8)]
    assert ends == [Finished(FinishOutcome.STALE)] * 8
    assert slot.clock.now - 100.0 == LEASE_S
    assert slot.tries() == ["j-0"] * 5 + [f"j-{number}" for number in range(1, 8)], "each is tried once at least"
    undelivered = [one["job"] for one in logs if one["event"] == "finish_undeliverable"]
    assert undelivered == [f"j-{number}" for number in range(8)]


@pytest.mark.parametrize("answered", ["finish", "claim"])
def test_after_an_answer_the_next_outage_is_waited_out_as_long_as_the_first(slot: Slot, answered: str) -> None:
    slot.calls.finish(JobId("j-0"), slot.end(0), slot.pause)
    slot.silent = False
    if answered == "claim":
        slot.calls.claim()
    else:
        slot.calls.finish(JobId("j-1"), slot.end(1), slot.pause)
    slot.silent, since = True, slot.clock.now
    slot.calls.finish(JobId("j-2"), slot.end(2), slot.pause)
    assert slot.clock.now - since == LEASE_S


def test_an_end_with_a_claim_that_is_not_answered_leaves_both_to_their_leases(slot: Slot) -> None:
    with capture_logs() as logs:
        assert slot.calls.finish_and_claim(JobId("j-0"), slot.end(0), slot.pause) == (Finished(FinishOutcome.STALE), ())
    assert len({one.args for one in slot.queue.sent}) == 1, "under one nonce, so that it claims once"
    assert slot.clock.now - 100.0 == LEASE_S, "by then the lease of a job that it claimed is over, too"
    assert [one["job"] for one in logs] == ["j-0"]


def test_a_claim_that_was_not_answered_is_repeated_while_what_it_leased_may_be_ours(slot: Slot) -> None:
    """Otherwise its jobs would wait for the end of their leases, and each would count an attempt without a run."""
    with pytest.raises(RetryableError):
        slot.calls.claim()
    slot.clock.advance(LEASE_S - 0.1)
    slot.silent = False
    (held,) = slot.calls.claim()
    assert slot.queue.sent[0].args == slot.queue.sent[1].args
    assert slot.heart.held == [(held.lease, 100.0)], "the lease counts from the first try"
    slot.calls.claim()
    assert slot.queue.sent[2].args != slot.queue.sent[1].args, "an answered claim is not repeated"


def test_a_claim_is_not_repeated_when_what_it_leased_is_free_again(slot: Slot) -> None:
    with pytest.raises(RetryableError):
        slot.calls.claim()
    slot.clock.advance(LEASE_S)
    slot.silent = False
    slot.calls.claim()
    first, second = slot.queue.sent
    assert first.args != second.args
    assert [since for _, since in slot.heart.held] == [100.0 + LEASE_S]


URL = "ann:p%40ss@one:1,two/lakewright/5?sentinel_password=other"


def pool_of(url: str, *, connections: int = 3) -> SyncSentinelPool:
    pool = connect(url, connections=connections).connection_pool
    assert isinstance(pool, SyncSentinelPool)
    return pool


def test_the_primary_is_asked_for_from_sentinels_and_gets_what_the_url_says() -> None:
    pool = pool_of(f"redis+sentinel://{URL}")
    assert (pool.service_name, pool.max_connections, pool.timeout) == ("lakewright", 3, TIMEOUT_S)
    primary = pool.connection_kwargs
    assert (primary["username"], primary["password"], primary["db"]) == ("ann", "p@ss", 5)
    assert (primary["retry"].get_retries(), primary["socket_timeout"]) == (0, TIMEOUT_S)
    assert not {"host", "port"} & primary.keys()


def test_sentinels_get_credentials_and_limits_of_their_own() -> None:
    found = [
        one.connection_pool.connection_kwargs for one in pool_of(f"redis+sentinel://{URL}").sentinel_manager.sentinels
    ]
    assert [(one["host"], one["port"]) for one in found] == [("one", 1), ("two", 26379)]
    for one in found:
        assert (one["password"], one["socket_timeout"], one["retry"].get_retries()) == ("other", TIMEOUT_S, 0)
        assert one["username"] is None


@pytest.mark.parametrize(("scheme", "is_encrypted"), [("redis+sentinel", False), ("rediss+sentinel", True)])
def test_the_scheme_says_whether_connections_are_encrypted(scheme: str, is_encrypted: bool) -> None:
    pool = pool_of(f"{scheme}://{URL}")
    assert ("SSL" in pool.connection_class.__name__) == is_encrypted
    classes = [one.connection_pool.connection_class.__name__ for one in pool.sentinel_manager.sentinels]
    assert ["SSL" in name for name in classes] == [is_encrypted] * 2


@pytest.mark.parametrize("in_use", [True, False])
def test_connections_to_the_sentinels_are_closed_with_all_others(in_use: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, closed = pool_of(f"redis+sentinel://{URL}"), []
    for sentinel in pool.sentinel_manager.sentinels:
        monkeypatch.setattr(sentinel, "close", lambda: closed.append(1))
    pool.disconnect(inuse_connections=in_use)
    assert len(closed) == (2 if in_use else 0)


def test_an_outage_is_logged_at_its_begin_every_half_minute_and_at_its_end() -> None:
    now_s = 0.0
    outage = OutageLog(every_s=30.0, clock_s=lambda: now_s)
    with capture_logs() as logs:
        for _ in range(61 * 3):
            outage.failed(error="refused")
            now_s += 1 / 3
        outage.succeeded()
        outage.succeeded()
    assert [(one["event"], one.get("for_s")) for one in logs] == [
        ("queue_unavailable", 0), ("queue_unavailable", 30), ("queue_unavailable", 60), ("queue_available", None),
    ]  # fmt: skip
    assert logs[-1]["failures"] == 183


def test_the_next_outage_is_logged_at_once() -> None:
    outage = OutageLog(clock_s=lambda: 0.0)
    with capture_logs() as logs:
        for _ in range(2):
            outage.failed(error="refused")
            outage.succeeded()
    assert [one["event"] for one in logs] == ["queue_unavailable", "queue_available"] * 2
