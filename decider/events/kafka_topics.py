"""Topics of Kafka as a source of messages; confluent-kafka is only imported where topics are configured.

Offsets are committed by the caller alone, up to the first message that is not handled.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import InvalidInput, RetryableError

BATCH = 100
"""Messages of one call: handling them takes far less than `max.poll.interval.ms` (five minutes)."""

WAIT_S = 1.0
"""Seconds for which a call waits for messages: a decider that stops waits for the end of it."""

DEFAULTS = {"group.id": "lakewright", "auto.offset.reset": "earliest", "client.id": "lakewright"}
"""Options that others may replace: a new group reads all that a topic holds, and so misses nothing."""

_OURS = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": False}
"""An offset that is committed by itself may be one of a message that was not handled."""


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A partition of a topic."""

    topic: str
    number: int


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """A message with its place."""

    partition: Partition
    offset: int
    body: bytes

    @property
    def source(self) -> str:
        """Its place, as people look it up."""
        return f"kafka:{self.partition.topic}[{self.partition.number}]@{self.offset}"


class KafkaTopics:
    """A member of a consumer group; the calls block, for threads."""

    def __init__(self, topics: Sequence[str], options: Mapping[str, str]) -> None:
        """Connect in the background. Raises InvalidInput without confluent-kafka, or for options that it refuses."""
        try:
            import confluent_kafka as kafka  # noqa: PLC0415 - an extra
        except ImportError as problem:
            raise InvalidInput("LAKEWRIGHT_KAFKA_TOPICS needs the client: pip install 'lakewright[kafka]'") from problem
        self._kafka = kafka
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._is_paused = False
        # Errors come to `_note`; lines on standard error would be no JSON.
        quiet = logging.getLogger("lakewright.kafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        settings: dict[str, Any] = {**DEFAULTS, **options, **_OURS, "error_cb": self._note}
        try:
            self._consumer = kafka.Consumer(settings, logger=quiet)
            self._consumer.subscribe(list(topics))
        except kafka.KafkaException as problem:
            raise InvalidInput(f"LAKEWRIGHT_KAFKA_OPTIONS: {problem.args[0].str()}") from problem

    def receive(self, *, wait_s: float = WAIT_S, is_full: bool = False) -> list[KafkaMessage]:
        """Wait for messages, and return them; `is_full` stops the delivery, and only keeps the membership.

        Partitions that join during the call may deliver in any case. Raises RetryableError if no broker answers.
        """
        found: list[Any] = []
        with self._lock:
            try:
                self._pause(is_full=is_full)
                found += self._consumer.consume(1, wait_s)
                if found and not is_full:
                    found += self._consumer.consume(BATCH, 0)
            except (self._kafka.KafkaException, RuntimeError) as problem:
                # Received messages are returned: the position is behind them, and a later commit would be, too.
                if not found:
                    raise RetryableError(f"Kafka: {problem}") from problem
                self._note(problem)
        messages = [_message(one) for one in found if one.error() is None]
        problem_text = next((str(one.error()) for one in found if one.error() is not None), self._problem)
        if not messages and problem_text:
            self._problem = None
            raise RetryableError(f"Kafka: {problem_text}")
        return messages

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Have the group continue at these offsets. Raises RetryableError: messages are delivered again."""
        found = [self._kafka.TopicPartition(at.topic, at.number, offset) for at, offset in offsets.items()]
        with self._lock:
            try:
                done = self._consumer.commit(offsets=found, asynchronous=False)
            except (self._kafka.KafkaException, RuntimeError) as problem:
                raise RetryableError(f"Kafka: a commit failed: {problem}") from problem
        if failed := [one for one in done or () if one.error is not None]:
            raise RetryableError(f"Kafka: a commit of {failed[0].topic} failed: {failed[0].error}")

    def close(self) -> None:
        """Leave the group, so that others take over at once."""
        with self._lock:
            self._consumer.close()

    def _pause(self, *, is_full: bool) -> None:
        if is_full or self._is_paused:
            assigned = self._consumer.assignment()
            (self._consumer.pause if is_full else self._consumer.resume)(assigned)
            self._is_paused = is_full

    def _note(self, problem: Any) -> None:
        self._problem = str(problem)


def _message(found: Any) -> KafkaMessage:
    return KafkaMessage(Partition(found.topic(), found.partition()), found.offset(), found.value() or b"")
