"""Consumers of event queues have the tables refreshed that messages name; any number of deciders share the work.

Those of Kafka share the partitions as one group. Kafka has no acknowledgment of single messages: a partition's
committed offset is the offset of its first message that is not handled. Messages behind one whose table cannot be read
now are handled, and come again after a crash, which costs a read.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from decider.background.runner import Schedule
from decider.events.kafka_topics import WAIT_S, KafkaMessage, Partition
from decider.events.message_handler import Message, MessageHandler, MessageResult
from decider.events.sqs_queue import SqsMessage, SqsQueue

RETRY_S = 5.0
"""Pause after a failure: brokers that do not answer are asked a few times a minute."""

REDELIVERY_S = 12.0
"""Seconds until a message that may succeed later is tried again; after ten tries, two minutes, it is set aside."""

MAX_PENDING = 1_000
"""Messages that wait for their next try; with more, none is received, or memory would follow the topic."""


class Topics(Protocol):
    """Port: the messages of the topics that are consumed."""

    def receive(self, *, wait_s: float, is_full: bool) -> list[KafkaMessage]:
        """Wait for messages; none of the assigned partitions delivers if `is_full`."""

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Have the group continue at these offsets."""

    def close(self) -> None:
        """Leave the group."""


@dataclass(slots=True, eq=False)
class _Pending:
    """A message that is not handled: how often it was tried, and when it is tried next."""

    message: KafkaMessage
    tries: int = 0
    due_s: float = 0.0


class KafkaConsumer:
    """Takes messages of topics, and commits the offsets of those that are handled or set aside."""

    def __init__(
        self,
        topics: Topics,
        handler: MessageHandler,
        *,
        clock_s: Callable[[], float],
        redelivery_s: float = REDELIVERY_S,
        max_pending: int = MAX_PENDING,
    ) -> None:
        self.schedule = Schedule(0.0, "kafka_consumer_failed", retry_s=RETRY_S)
        self._topics = topics
        self._handler = handler
        self._clock_s = clock_s
        self._redelivery_s = redelivery_s
        self._max_pending = max_pending
        self._pending: list[_Pending] = []
        self._received: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}

    async def run_once(self) -> int:
        """Handle the messages of one call and those that are due again; return the number of calls of the handler."""
        try:
            return await self._run_once()
        except asyncio.CancelledError:
            await asyncio.to_thread(self._topics.close)
            raise

    async def _run_once(self) -> int:
        is_full = len(self._pending) >= self._max_pending
        wait_s = 0.0 if self._due() else WAIT_S
        self._add(await asyncio.to_thread(self._topics.receive, wait_s=wait_s, is_full=is_full))
        due = self._due()
        try:
            for one in due:
                await self._handle(one)
        finally:
            # Those before a failure, too.
            await self._commit()
        return len(due)

    def _add(self, messages: Sequence[KafkaMessage]) -> None:
        for one in messages:
            self._received[one.partition] = one.offset + 1
            # A message without a body is a tombstone of a compacted topic, and no event.
            if one.body:
                self._pending.append(_Pending(one))

    def _due(self) -> list[_Pending]:
        now_s = self._clock_s()
        return [one for one in self._pending if one.due_s <= now_s]

    async def _handle(self, one: _Pending) -> None:
        message = Message(one.message.source, one.message.body, one.tries + 1)
        if await self._handler.handle(message) is MessageResult.LATER:
            one.tries += 1
            one.due_s = self._clock_s() + self._redelivery_s
        else:
            self._pending.remove(one)

    async def _commit(self) -> None:
        handled = dict(self._received)
        for one in self._pending:
            at = one.message.partition
            handled[at] = min(handled[at], one.message.offset)
        moved = {at: offset for at, offset in handled.items() if offset != self._committed.get(at)}
        if moved:
            await asyncio.to_thread(self._topics.commit, moved)
            self._committed |= moved


SQS_RETRY_S = 5.0
"""Pause after a failure: a queue that does not answer is asked a few times a minute."""


class SqsConsumer:
    """Takes messages of one queue, and deletes those that are handled or set aside."""

    def __init__(self, queue: SqsQueue, handler: MessageHandler) -> None:
        self.schedule = Schedule(0.0, "sqs_consumer_failed", retry_s=SQS_RETRY_S)
        self._queue = queue
        self._handler = handler

    async def run_once(self) -> int:
        """Handle the messages of one request; return their number."""
        messages = await asyncio.to_thread(self._queue.receive)
        done: list[SqsMessage] = []
        try:
            for one in messages:
                if await self._handler.handle(one.message) is not MessageResult.LATER:
                    done.append(one)  # noqa: PERF401 - what comes before a failure is kept
        finally:
            # Those before a failure, too: the others are delivered again.
            if done:
                await asyncio.to_thread(self._queue.delete, done)
        return len(messages)
