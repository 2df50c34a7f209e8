"""Events from topics of Kafka: doubled, in any order, and not committed, they lose nothing.

The brokers are those that librdkafka brings for tests: they speak Kafka's protocol over TCP and are no Kafka;
`test_kafka_broker` runs the same tests with a real one.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from decider.background.event_consumers import KafkaConsumer
from decider.events.kafka_topics import KafkaTopics, Partition
from shared.errors import InvalidInput, RetryableError
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.long("crashes")]

TOPIC = "commits"


class Brokers:
    """Brokers with a producer; `options` are those of consumers."""

    def __init__(self, producer: Producer, options: dict[str, str]) -> None:
        self._producer = producer
        self.options = options

    def send(self, *bodies: str | None, partition: int = 0) -> None:
        for body in bodies:
            self._producer.produce(TOPIC, body and body.encode(), partition=partition)
        assert self._producer.flush(scaled(10)) == 0

    def committed(self) -> list[int]:
        """Return the group's offset of each partition; negative: none."""
        with closing(Consumer({**self.options, "group.id": "lakewright", "log_level": 3})) as group:
            places = [TopicPartition(TOPIC, number) for number in (0, 1)]
            return [one.offset for one in group.committed(places, timeout=scaled(10))]


@pytest.fixture
def brokers() -> Brokers:
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 3})
    found = producer.list_topics(timeout=scaled(10)).brokers.values()
    servers = ",".join(f"{one.host}:{one.port}" for one in found)
    # These brokers keep a member that left until its session ends; six seconds is the least that they accept.
    return Brokers(producer, {"bootstrap.servers": servers, "session.timeout.ms": "6000"})


@pytest.fixture
def start(own_redis_server: RedisServer, tmp_path: Path) -> Iterator[Callable[..., LiveDecider]]:
    """Start a decider that reads a topic."""
    started: list[LiveDecider] = []

    def started_with(options: Mapping[str, str], topic: str = TOPIC) -> LiveDecider:
        access: dict[str, Any] = {"kafka_topics": (topic,), "kafka_options": options}
        started.append(
            LiveDecider(decider_settings(own_redis_server.url, roots=(tmp_path.as_uri(),), **access)).start()
        )
        return started[-1]

    yield started_with
    for live in started:
        live.close()


def event(table: WrittenTable, version: int) -> str:
    return json.dumps({"table": table.path.as_uri(), "version": version})


def test_events_that_are_doubled_and_in_any_order_lead_to_the_tables_newest_version(
    brokers: Brokers, start: Callable[..., LiveDecider], tmp_path: Path
) -> None:
    tables = [WrittenTable(tmp_path / name) for name in ("orders", "clicks")]
    for number, table in enumerate(tables):
        table.append(3)
        brokers.send(*(event(table, version) for version in (3, 1, 3, 0, 2, 1)), partition=number)
    live = start(brokers.options)
    for table in tables:
        name = table.path.name
        until(f"{name} is there", lambda name=name: live.client.get(f"/v1/tables/{name}").is_success)  # type: ignore[misc]
        until(f"{name} is read", lambda name=name: live.get(f"/v1/tables/{name}")["state"])  # type: ignore[misc]
        assert live.get(f"/v1/tables/{name}")["state"]["version"] == table.version
    until("all is committed", lambda: brokers.committed() == [6, 6])
    assert live.get("/v1/rejected-events") == {"rejected": []}


def test_a_message_that_cannot_be_used_is_set_aside_and_shown_and_delays_no_other(
    brokers: Brokers, start: Callable[..., LiveDecider], tmp_path: Path
) -> None:
    table = WrittenTable(tmp_path / "orders")
    brokers.send("no JSON", None, '{"what": "is this"}', event(table, 0))
    live = start(brokers.options)
    until("the table is there", lambda: live.client.get("/v1/tables/orders").is_success)
    until("all is committed", lambda: brokers.committed()[0] == 4)
    rejected = live.get("/v1/rejected-events")["rejected"]
    assert {(one["body"], one["source"]) for one in rejected} == {
        ("no JSON", "kafka:commits[0]@0"),
        ('{"what": "is this"}', "kafka:commits[0]@2"),
    }
    assert 'lakewright_events_total{result="malformed"} 2.0' in live.client.get("/metrics").text


def test_a_message_that_was_handled_and_not_committed_comes_again_and_changes_nothing(
    brokers: Brokers, start: Callable[..., LiveDecider], tmp_path: Path
) -> None:
    """The consumer dies between handling and committing; another decider goes on."""

    class Dies(KafkaTopics):
        def commit(self, offsets: Mapping[Partition, int]) -> None:
            raise RetryableError(f"killed with {offsets}")

    table = WrittenTable(tmp_path / "orders")
    brokers.send(event(table, 0))
    first = start({**brokers.options, "group.id": "another"}, "unused")
    topics = Dies([TOPIC], brokers.options)
    consumer = KafkaConsumer(topics, first.task("kafka")._handler, clock_s=time.monotonic)

    def killed() -> bool:
        try:
            first.run(consumer.run_once())
        except RetryableError as problem:
            return "killed" in str(problem)
        return False

    until("it is killed", killed)
    topics.close()
    assert brokers.committed()[0] < 0
    until("the table is there", lambda: first.client.get("/v1/tables/orders").is_success)
    second = start(brokers.options)
    until("it is committed", lambda: brokers.committed()[0] == 1)
    until("the table is read", lambda: second.get("/v1/tables/orders")["state"])
    assert second.get("/v1/tables/orders")["state"]["version"] == 0
    assert len(second.get("/v1/tables")["tables"]) == 1


def test_two_members_share_the_partitions_and_one_that_leaves_is_replaced(brokers: Brokers) -> None:
    brokers.send("a", partition=0)
    brokers.send("b", partition=1)
    one = KafkaTopics([TOPIC], brokers.options)
    seen: set[bytes] = set()

    def take(topics: KafkaTopics) -> set[bytes]:
        found = topics.receive(wait_s=0.2)
        if found:
            topics.commit({at.partition: at.offset + 1 for at in found})
        seen.update(at.body for at in found)
        return seen

    until("one has all", lambda: take(one) == {b"a", b"b"})
    one.close()
    brokers.send("c", partition=0)
    brokers.send("d", partition=1)
    with closing(KafkaTopics([TOPIC], brokers.options)) as other:
        until("the other has the rest", lambda: take(other) == {b"a", b"b", b"c", b"d"})
        assert brokers.committed() == [2, 2]


def test_brokers_that_do_not_answer_are_an_error_that_is_retried() -> None:
    topics = KafkaTopics([TOPIC], {"bootstrap.servers": "127.0.0.1:9"})

    def fails() -> bool:
        try:
            topics.receive(wait_s=0.2)
        except RetryableError as problem:
            return "127.0.0.1:9" in str(problem)
        return False

    try:
        until("it says so", fails)
    finally:
        topics.close()


def test_options_that_librdkafka_refuses_stop_the_start() -> None:
    with pytest.raises(InvalidInput, match=r"LAKEWRIGHT_KAFKA_OPTIONS: .*no\.such\.option"):
        KafkaTopics([TOPIC], {"bootstrap.servers": "127.0.0.1:9", "no.such.option": "1"})
