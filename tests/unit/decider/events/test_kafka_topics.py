"""A member of a consumer group: no message that its client handed out is dropped."""

from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

from decider.events.kafka_topics import KafkaTopics
from shared.errors import RetryableError


def message(offset: int) -> Any:
    return SimpleNamespace(
        topic=lambda: "commits", partition=lambda: 0, offset=lambda: offset, value=lambda: b"{}", error=lambda: None
    )


class FailingClient:
    """Stands for a client that fails in the calls of these numbers, from 1 on."""

    def __init__(self, *failing: int) -> None:
        self._failing = failing
        self._calls = 0

    def subscribe(self, topics: list[str]) -> None:
        """Do nothing."""

    def consume(self, count: int, wait_s: float) -> list[Any]:
        """Return one message."""
        self._calls += 1
        if self._calls in self._failing:
            raise confluent_kafka.KafkaException("the broker is away")
        return [message(self._calls)]


def topics(monkeypatch: pytest.MonkeyPatch, client: FailingClient) -> KafkaTopics:
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _settings, **_: client)
    return KafkaTopics(["commits"], {"bootstrap.servers": "kafka:9092"})


def test_messages_that_were_received_before_a_failure_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    received = topics(monkeypatch, FailingClient(2)).receive(wait_s=0)
    assert [one.offset for one in received] == [1]


def test_a_failure_without_messages_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RetryableError, match="Kafka: the broker is away"):
        topics(monkeypatch, FailingClient(1)).receive(wait_s=0)
