"""Events from a queue of SQS (moto's server): doubled, in any order, and not acknowledged, they lose nothing."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from decider.background.event_consumers import SqsConsumer
from decider.events import message_handler
from decider.events.sqs_queue import SqsMessage, SqsQueue
from shared.errors import RetryableError
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.s3_server import KEYS, REGION, S3Server
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server("sqs")
    yield made
    made.close()


@pytest.fixture
def sqs(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client, and the environment that leads everything to the same server."""
    for name, value in (
        ("AWS_ENDPOINT_URL_SQS", server.url),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", KEYS["access_key_id"]),
        ("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"]),
    ):
        monkeypatch.setenv(name, value)
    client = boto3.client("sqs", region_name=REGION)
    yield client
    client.close()


@pytest.fixture
def url(sqs: Any, request: pytest.FixtureRequest) -> str:
    return str(sqs.create_queue(QueueName=request.node.name[:70].strip("[]"))["QueueUrl"])


def event(table: WrittenTable, version: int) -> str:
    return json.dumps({"table": table.path.as_uri(), "version": version})


def waiting(sqs: Any, url: str) -> int:
    """Return how many messages the queue has, with those that are hidden."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)


def consumer_of(live: LiveDecider, queue: SqsQueue) -> SqsConsumer:
    made: SqsConsumer = live.task("sqs_1")
    return SqsConsumer(queue, made._handler)


def settings(server: RedisServer, root: Path, url: str) -> Any:
    return decider_settings(server.url, roots=(root.as_uri(),), sqs_queues=(url,))


def test_events_that_are_doubled_and_in_any_order_lead_to_the_tables_newest_version(
    own_redis_server: RedisServer, tmp_path: Path, sqs: Any, url: str
) -> None:
    tables = [WrittenTable(tmp_path / name) for name in ("orders", "clicks")]
    for table in tables:
        table.append(3)
    for table in tables:
        for version in (3, 1, 3, 0, 2, 1):
            sqs.send_message(QueueUrl=url, MessageBody=event(table, version))
    with LiveDecider(settings(own_redis_server, tmp_path, url)) as live:
        until("the queue is empty", lambda: waiting(sqs, url) == 0)
        for table in tables:
            name = table.path.name
            until(f"{name} is read", lambda name=name: live.get(f"/v1/tables/{name}")["state"])  # type: ignore[misc]
            assert live.get(f"/v1/tables/{name}")["state"]["version"] == table.version
        assert live.get("/v1/rejected-events") == {"rejected": []}


def test_a_message_that_was_not_acknowledged_is_delivered_again_and_changes_nothing(
    own_redis_server: RedisServer, tmp_path: Path, sqs: Any, url: str
) -> None:
    """The consumer dies between handling and acknowledging."""

    class Dies(SqsQueue):
        def delete(self, messages: object) -> None:
            raise RetryableError(f"killed with {messages}")

    table = WrittenTable(tmp_path / "orders")
    sqs.send_message(QueueUrl=url, MessageBody=event(table, 0))
    other = str(sqs.create_queue(QueueName="unused")["QueueUrl"])
    with LiveDecider(settings(own_redis_server, tmp_path, other)) as live:
        with pytest.raises(RetryableError, match="killed"):
            live.run(consumer_of(live, Dies(url, hidden_s=0)).run_once())
        assert waiting(sqs, url) == 1
        assert live.run(consumer_of(live, SqsQueue(url)).run_once()) == 1
        assert waiting(sqs, url) == 0
        until("the table is read", lambda: live.get("/v1/tables/orders")["state"])
        assert live.get("/v1/tables/orders")["state"]["version"] == 0


def test_a_message_that_cannot_be_used_is_set_aside_and_shown_and_delays_no_other(
    own_redis_server: RedisServer, tmp_path: Path, sqs: Any, url: str
) -> None:
    table = WrittenTable(tmp_path / "orders")
    for body in ("no JSON", '{"what": "is this"}', event(table, 0)):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    with LiveDecider(settings(own_redis_server, tmp_path, url)) as live:
        until("the queue is empty", lambda: waiting(sqs, url) == 0)
        rejected = live.get("/v1/rejected-events")["rejected"]
        assert {one["body"] for one in rejected} == {"no JSON", '{"what": "is this"}'}
        assert all(one["source"] == url and one["reason"] for one in rejected)
        metrics = live.client.get("/metrics").text
        assert 'lakewright_events_total{result="malformed"} 2.0' in metrics
        until("the table is read", lambda: live.get("/v1/tables/orders")["state"])


def test_a_message_whose_table_cannot_be_read_now_stays_in_the_queue_until_it_was_delivered_often(
    own_redis_server: RedisServer, tmp_path: Path, sqs: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_handler, "MAX_DELIVERIES", 2)
    sqs.send_message(QueueUrl=url, MessageBody=event(WrittenTable(tmp_path / "orders"), 0))
    other = str(sqs.create_queue(QueueName="unused")["QueueUrl"])
    with LiveDecider(settings(own_redis_server, tmp_path, other)) as live:
        resolver = live.services.requests.resolver

        async def unreadable(_: str) -> str:
            return "location_unreadable"

        monkeypatch.setattr(resolver, "_probe", unreadable)
        consumer = consumer_of(live, SqsQueue(url, hidden_s=0))
        live.run(consumer.run_once())
        assert (waiting(sqs, url), live.get("/v1/rejected-events")["rejected"]) == (1, [])
        live.run(consumer.run_once())
        assert waiting(sqs, url) == 0
        (rejected,) = live.get("/v1/rejected-events")["rejected"]
        assert rejected["reason"] == "location_unreadable in 2 deliveries"


def test_messages_that_were_handled_before_a_failure_are_acknowledged(tmp_path: Path, sqs: Any, url: str) -> None:
    """Redis goes away in the middle of a batch: the rest is delivered again."""
    for name in ("orders", "clicks"):
        sqs.send_message(QueueUrl=url, MessageBody=event(WrittenTable(tmp_path / name), 0))
    deleted: list[SqsMessage] = []

    class Fails:
        calls = 0

        async def handle(self, _: object) -> str:
            self.calls += 1
            if self.calls > 1:
                raise RetryableError("Redis does not answer")
            return "handled"

    class Notes(SqsQueue):
        def delete(self, messages: Any) -> None:
            deleted.extend(messages)
            super().delete(messages)

    with pytest.raises(RetryableError):
        asyncio.run(SqsConsumer(Notes(url, hidden_s=0), Fails()).run_once())  # type: ignore[arg-type]
    assert (len(deleted), waiting(sqs, url)) == (1, 1)
