"""SQS consumer: has the tables refreshed that messages of a queue name; any number of deciders share the queue."""

import asyncio

from decider.background.runner import Schedule
from decider.events.message_handler import MessageHandler, MessageResult
from decider.events.sqs_queue import SqsMessage, SqsQueue

RETRY_S = 5.0
"""Pause after a failure: a queue that does not answer is asked a few times a minute."""


class SqsConsumer:
    """Takes messages of one queue, and deletes those that are handled or set aside."""

    def __init__(self, queue: SqsQueue, handler: MessageHandler) -> None:
        self.schedule = Schedule(0.0, "sqs_consumer_failed", retry_s=RETRY_S)
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
