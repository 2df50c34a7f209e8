"""An offset is committed when every message before it is handled or set aside, and not earlier."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from decider.background.event_consumers import KafkaConsumer
from decider.events.kafka_topics import KafkaMessage, Partition
from decider.events.message_handler import Message, MessageResult
from shared.errors import RetryableError

A, B = Partition("commits", 0), Partition("commits", 1)


@dataclass
class Broker:
    """Batches to deliver, one a call, and what was committed."""

    batches: list[list[KafkaMessage]]
    committed: dict[Partition, int] = field(default_factory=dict)
    calls: list[tuple[float, bool]] = field(default_factory=list)
    commits: int = 0
    is_away: bool = False
    is_closed: bool = False

    def receive(self, *, wait_s: float, is_full: bool) -> list[KafkaMessage]:
        self.calls.append((wait_s, is_full))
        return self.batches.pop(0) if self.batches else []

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        if self.is_away:
            raise RetryableError("no broker answers")
        self.commits += 1
        self.committed |= offsets

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Handler:
    """Results by body; the rest is handled. A result that is an error is raised once."""

    results: dict[bytes, Any] = field(default_factory=dict)
    seen: list[Message] = field(default_factory=list)

    async def handle(self, message: Message) -> MessageResult:
        self.seen.append(message)
        result = self.results.get(message.body, MessageResult.HANDLED)
        if isinstance(result, Exception):
            del self.results[message.body]
            raise result
        return MessageResult(result)


class Clock:
    """A clock that stands still."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def message(at: Partition, offset: int, body: bytes | None = None) -> KafkaMessage:
    return KafkaMessage(at, offset, f"{at.number}-{offset}".encode() if body is None else body)


def consumer(broker: Broker, handler: Handler, clock: Clock | None = None, **limits: Any) -> KafkaConsumer:
    return KafkaConsumer(broker, handler, clock_s=clock or Clock(), **limits)  # type: ignore[arg-type]


def test_a_batch_is_committed_when_it_is_handled_and_nothing_without_one() -> None:
    broker, handler = Broker([[message(A, 7), message(B, 3), message(A, 8)]]), Handler()
    task = consumer(broker, handler)
    assert asyncio.run(task.run_once()) == 3
    assert broker.committed == {A: 9, B: 4}
    assert [one.source for one in handler.seen][:2] == ["kafka:commits[0]@7", "kafka:commits[1]@3"]
    assert asyncio.run(task.run_once()) == 0
    assert broker.commits == 1


def test_what_may_succeed_later_holds_back_its_partition_alone_and_later_messages_are_handled() -> None:
    broker = Broker([[message(A, 7), message(A, 8), message(A, 9), message(B, 1)], [message(A, 10)]])
    handler, clock = Handler({b"0-8": MessageResult.LATER}), Clock()
    task = consumer(broker, handler, clock)
    asyncio.run(task.run_once())
    assert broker.committed == {A: 8, B: 2}
    asyncio.run(task.run_once())
    assert broker.committed == {A: 8, B: 2}
    assert [one.body for one in handler.seen] == [b"0-7", b"0-8", b"0-9", b"1-1", b"0-10"]
    clock.now_s += 12
    handler.results[b"0-8"] = MessageResult.SET_ASIDE
    asyncio.run(task.run_once())
    assert (handler.seen[-1].body, handler.seen[-1].deliveries) == (b"0-8", 2)
    assert broker.committed == {A: 11, B: 2}
    assert [wait_s for wait_s, _ in broker.calls] == [1.0, 1.0, 0.0], "one that is due does not wait for others"


def test_messages_before_a_failure_are_committed_and_the_others_are_handled_next() -> None:
    broker = Broker([[message(A, 1), message(A, 2), message(A, 3)]])
    handler = Handler({b"0-2": RetryableError("Redis does not answer")})
    task = consumer(broker, handler)
    with pytest.raises(RetryableError, match="Redis"):
        asyncio.run(task.run_once())
    assert broker.committed == {A: 2}
    asyncio.run(task.run_once())
    assert broker.committed == {A: 4}
    assert [one.body for one in handler.seen] == [b"0-1", b"0-2", b"0-2", b"0-3"]


def test_a_commit_that_failed_is_repeated() -> None:
    broker = Broker([[message(A, 1)]], is_away=True)
    task = consumer(broker, Handler())
    with pytest.raises(RetryableError):
        asyncio.run(task.run_once())
    broker.is_away = False
    asyncio.run(task.run_once())
    assert broker.committed == {A: 2}


def test_no_message_is_requested_while_too_many_wait_but_one_that_comes_is_kept() -> None:
    broker = Broker([[message(A, 1), message(A, 2)], [message(B, 5)]])
    handler = Handler(dict.fromkeys((b"0-1", b"0-2", b"1-5"), MessageResult.LATER))
    task = consumer(broker, handler, max_pending=2)
    asyncio.run(task.run_once())
    asyncio.run(task.run_once())
    assert broker.calls == [(1.0, False), (1.0, True)]
    assert broker.committed == {A: 1, B: 5}


def test_a_partition_that_starts_over_is_committed_where_it_is() -> None:
    """A topic that was deleted and made again: its old offset would skip what it will hold."""
    broker = Broker([[message(A, 900)], [message(A, 0)]])
    task = consumer(broker, Handler())
    for _ in range(2):
        asyncio.run(task.run_once())
    assert broker.committed == {A: 1}


def test_tombstones_are_passed_over() -> None:
    broker, handler = Broker([[message(A, 1, b""), message(A, 2, b"")]]), Handler()
    assert asyncio.run(consumer(broker, handler).run_once()) == 0
    assert (broker.committed, handler.seen) == ({A: 3}, [])


def test_a_consumer_that_is_stopped_leaves_its_group_with_what_it_handled_committed() -> None:
    broker = Broker([[message(A, 1), message(A, 2)]])

    class Waits(Handler):
        async def handle(self, one: Message) -> MessageResult:
            if one.body == b"0-2":
                reached.set()
                await asyncio.Event().wait()
            return await super().handle(one)

    async def stopped() -> None:
        running = asyncio.create_task(consumer(broker, Waits()).run_once())
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    reached = asyncio.Event()
    asyncio.run(stopped())
    assert broker.is_closed
    assert broker.committed == {A: 2}
