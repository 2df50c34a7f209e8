"""What a slot does about calls that the queue does not answer: no claim is forgotten, no outage waited out twice."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

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
