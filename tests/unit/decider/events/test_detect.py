"""Every body yields hints and counted reasons, or one error that names the field; topics of Kafka, too."""

from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

from decider.events.detect import parse_body, parse_value
from decider.events.kafka_topics import KafkaTopics
from decider.events.table_hint import MAX_BATCH, TableHint
from shared.errors import InvalidInput, RetryableError

COMMIT = "t/_delta_log/00000000000000000007.json"


def record(key: str = COMMIT, event: str = "ObjectCreated:Put", bucket: str = "lake") -> dict[str, Any]:
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": event,
        "s3": {"bucket": {"name": bucket}, "object": {"key": key, "size": 1, "sequencer": "0A"}},
    }


def s3(*records: object) -> dict[str, Any]:
    return {"Records": list(records)}


@pytest.mark.parametrize(
    ("key", "location"),
    [
        ("a+b/t/_delta_log/00000000000000000007.json", "s3://lake/a%20b/t"),
        ("a%2Bb/t/_delta_log/00000000000000000007.json", "s3://lake/a+b/t"),
        ("a%252Bb/_delta_log/00000000000000000007.json", "s3://lake/a%252Bb"),
        ("x%3D1/%C3%BC/_delta_log/00000000000000000007.json", "s3://lake/x=1/%C3%BC"),
    ],
)
def test_a_key_is_decoded_exactly_once(key: str, location: str) -> None:
    assert parse_value(s3(record(key))).hints == (TableHint(location, version=7),)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("t/part-0.parquet", "not_a_commit"),
        ("_delta_log/00000000000000000007.json", "not_a_commit"),
        ("t/_delta_log/7.json", "not_a_commit"),
        ("t/_delta_log/0000000000000000000\u0667.json", "not_a_commit"),
        ("t/_delta_log/00000000000000000007.json.tmp", "not_a_commit"),
        ("t/_delta_log/00000000000000000007.crc", "not_a_commit"),
        ("t/_delta_log/.00000000000000000007.json.crc", "not_a_commit"),
        ("t/_delta_log/00000000000000000007.checkpoint.parquet", "not_a_commit"),
        ("t/_delta_log/00000000000000000001.00000000000000000007.compacted.json", "not_a_commit"),
        ("t/_delta_log/_last_checkpoint", "not_a_commit"),
        ("t/_delta_log/.tmp/00000000000000000007.json", "not_a_commit"),
        ("t/_delta_log/_staged_commits/00000000000000000007.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", "not_a_commit"),
        ("../t/_delta_log/00000000000000000007.json", "invalid_object_key"),
        ("a//t/_delta_log/00000000000000000007.json", "invalid_object_key"),
        ("t%FF/_delta_log/00000000000000000007.json", "invalid_object_key"),
        ("t\ud800/_delta_log/00000000000000000007.json", "invalid_object_key"),
        ("t/_delta_log/99999999999999999999.json", "invalid_object_key"),
    ],
)
def test_any_other_object_is_ignored_with_a_counted_reason(key: str, reason: str) -> None:
    taken = parse_value(s3(record(key), record(key)))
    assert (taken.hints, taken.ignored) == ((), ((reason, 2),))


def test_an_object_that_was_not_written_is_no_hint() -> None:
    taken = parse_value(s3(record(event="ObjectRemoved:Delete"), record()))
    assert (len(taken.hints), taken.ignored) == (1, (("unknown_event", 1),))


def test_the_test_event_of_a_bucket_is_taken_without_hints() -> None:
    taken = parse_value({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"})
    assert (taken.hints, taken.ignored) == ((), (("test_event", 1),))


def test_a_bucket_can_stand_for_a_directory() -> None:
    taken = parse_value(
        s3(record("a+b/_delta_log/00000000000000000007.json")), bucket_locations={"lake": "file:///data"}
    )
    assert taken.hints == (TableHint("file:///data/a%20b", version=7),)


def test_minio_is_recognised_before_s3_and_its_records_count() -> None:
    body = {"EventName": "s3:ObjectCreated:Put", "Key": f"lake/{COMMIT}", **s3(record(event="s3:ObjectCreated:Put"))}
    assert parse_value(body).hints == parse_value(body, source="minio").hints == (TableHint("s3://lake/t", version=7),)


@pytest.mark.parametrize(
    ("body", "hints"),
    [
        ({"table": "sales.orders"}, (TableHint(name="sales.orders"),)),
        ({"table": "sales.orders", "version": 12}, (TableHint(name="sales.orders", version=12),)),
        ({"table": "s3a://b/t/", "version": 0}, (TableHint("s3://b/t", version=0),)),
        ({"table": "/data/t", "version": None}, (TableHint("file:///data/t"),)),
        ([{"table": "a.b"}, {"table": "a.c"}], (TableHint(name="a.b"), TableHint(name="a.c"))),
        ([], ()),
        (
            {"table": "a.b", "version": 3, "operation": "WRITE", "added": [{"path": "p", "size": 1}], "removed": []},
            (TableHint(name="a.b", version=3),),
        ),
    ],
)
def test_our_own_shape_names_tables(body: object, hints: tuple[TableHint, ...]) -> None:
    assert parse_value(body).hints == hints


MALFORMED: list[tuple[Any, str | None, str]] = [
    (None, None, "body"),
    (7, None, "body"),
    ("text", None, "body"),
    ({}, None, "body"),
    ({"tabel": "a.b"}, None, "body"),
    ({"table": "a.b", "verison": 3}, None, "verison"),
    ({"table": 5}, None, "table"),
    ({"table": ""}, None, "table"),
    ({"table": "a b"}, None, "table"),
    ({"table": "a.b.c.d.e"}, None, "table"),
    ({"table": "x/y"}, None, "table"),
    ({"table": "s3://b/../k"}, None, "table"),
    ({"table": "a.b", "version": "3"}, None, "version"),
    ({"table": "a.b", "version": -1}, None, "version"),
    ({"table": "a.b", "version": True}, None, "version"),
    ({"table": "a.b", "version": 2**63}, None, "version"),
    ({"table": "a.b", "added": {"path": "p"}}, None, "added"),
    ({"table": "a.b", "removed": [{"size": 3}]}, None, "removed[0].path"),
    ([{"table": "a.b"}, 3], None, "[1]"),
    ([{"table": "a.b"}, {"table": None}], None, "[1].table"),
    ({"Records": {}}, None, "Records"),
    ({"Records": [1]}, None, "Records[0]"),
    (s3(record(), {"eventName": "ObjectCreated:Put"}), None, "Records[1].s3"),
    (s3({**record(), "eventName": None}), None, "Records[0].eventName"),
    (s3({**record(), "s3": {"bucket": {}, "object": {"key": "k"}}}), None, "Records[0].s3.bucket.name"),
    (s3({**record(), "s3": {"bucket": {"name": "b"}, "object": []}}), None, "Records[0].s3.object"),
    (s3({**record(), "s3": {"bucket": {"name": "b"}, "object": {"key": 1}}}), None, "Records[0].s3.object.key"),
    ({"EventName": 1, "Key": "k", "Records": []}, None, "EventName"),
    ({"table": "a.b"}, "s3", "Records"),
    ({"table": "a.b"}, "minio", "EventName"),
    (s3(record()), "lakewright", "Records"),
    ({"table": "a.b"}, "carrier-pigeon", "source"),
    ([{"table": "a.b"}] * (MAX_BATCH + 1), None, "body"),
    (s3(*[record()] * (MAX_BATCH + 1)), None, "Records"),
]


@pytest.mark.parametrize(("body", "source", "field"), MALFORMED)
def test_a_malformed_event_is_refused_by_the_name_of_the_field(body: object, source: str | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_value(body, source=source)
    assert refusal.value.field == field
    assert refusal.value.allowed
    assert "expected" in str(refusal.value) or "cannot be used" in str(refusal.value)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 5_000, "not JSON"),
    ],
)
def test_a_body_that_is_not_json_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse_body(body)


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
