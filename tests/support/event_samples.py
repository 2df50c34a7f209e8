"""The samples of tests/data/events, what each comes down to, and every damage that is done to them by rule."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decider.events.table_hint import ParsedEvents, SubscriptionConfirmation, TableHint, ValidationHandshake

FOLDER = Path(__file__).resolve().parents[1] / "data" / "events"

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One file: its source, what is taken of it, and the fields without which it is none."""

    file: str
    source: str
    taken: ParsedEvents
    needed: tuple[Place, ...]

    @property
    def body(self) -> Any:
        """The sample as JSON."""
        return json.loads((FOLDER / f"{self.file}.json").read_text())


@dataclass(frozen=True, slots=True)
class Damage:
    """A body that is not what it was, and the field that must be named."""

    name: str
    body: bytes
    field: str


def hints(*found: TableHint) -> ParsedEvents:
    return ParsedEvents(hints=found)


def counted(reason: str, count: int = 1) -> ParsedEvents:
    return ParsedEvents(ignored=((reason, count),))


ORDERS = TableHint("s3://lake/sales/orders%20eu", version=42)
IN_CATALOG = hints(TableHint(name="sales.orders", catalog_path=("sales", "orders")))
ARN = "arn:aws:sns:eu-west-1:123456789012:lake-commits"
CONFIRM_URL = f"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={ARN}&Token=2336412f37EXAMPLE"
BLOBS = (
    TableHint("abfss://lake@lakeacct.dfs.core.windows.net/sales/orders", version=42),
    TableHint("abfss://lake@lakeacct.dfs.core.windows.net/sales/returns%20eu", version=7),
)
RECORD: tuple[Place, ...] = (
    ("Records",),
    ("Records", 0),
    ("Records", 0, "eventName"),
    ("Records", 0, "s3"),
    ("Records", 0, "s3", "bucket"),
    ("Records", 0, "s3", "bucket", "name"),
    ("Records", 0, "s3", "object"),
    ("Records", 0, "s3", "object", "key"),
)
CLOUD: tuple[Place, ...] = (("specversion",), ("id",), ("source",), ("type",))

SAMPLES = (
    Sample("s3", "s3", hints(ORDERS), RECORD),
    Sample("s3_test_event", "s3", counted("test_event"), ()),
    Sample("sns", "sns", hints(ORDERS), (("Type",), ("MessageId",), ("TopicArn",), ("Message",))),
    Sample(
        "sns_subscription",
        "sns",
        ParsedEvents(handshake=SubscriptionConfirmation(ARN, CONFIRM_URL)),
        (("Type",), ("MessageId",), ("TopicArn",), ("Message",), ("Token",), ("SubscribeURL",)),
    ),
    Sample("sqs", "sqs", hints(ORDERS), (("Records", 0), ("Records", 0, "messageId"), ("Records", 0, "body"))),
    Sample("sqs_pipe", "sqs", hints(ORDERS), ((0,), (0, "messageId"), (0, "body"))),
    Sample(
        "eventbridge",
        "eventbridge",
        hints(ORDERS),
        (
            ("detail-type",),
            ("source",),
            ("detail",),
            ("detail", "bucket"),
            ("detail", "bucket", "name"),
            ("detail", "object"),
            ("detail", "object", "key"),
        ),
    ),
    Sample(
        "glue",
        "glue",
        IN_CATALOG,
        (
            ("detail-type",),
            ("source",),
            ("detail",),
            ("detail", "databaseName"),
            ("detail", "tableName"),
            ("detail", "typeOfChange"),
        ),
    ),
    Sample(
        "minio", "minio", hints(TableHint("s3://lake/sales/orders", version=42)), (("EventName",), ("Key",), *RECORD)
    ),
    Sample(
        "gcs",
        "gcs",
        hints(TableHint("gs://lake/sales/orders", version=42)),
        (
            ("message",),
            ("subscription",),
            ("message", "messageId"),
            ("message", "attributes", "bucketId"),
            ("message", "attributes", "objectId"),
        ),
    ),
    Sample(
        "gcs_eventarc",
        "cloudevents",
        hints(TableHint("gs://lake/sales/orders", version=42)),
        (*CLOUD, ("data",), ("data", "bucket"), ("data", "name")),
    ),
    Sample(
        "azure",
        "azure",
        hints(*BLOBS),
        (
            (0,),
            (0, "eventType"),
            (0, "data"),
            (0, "data", "destinationUrl"),
            (1, "eventType"),
            (1, "data", "url"),
        ),
    ),
    Sample(
        "azure_validation",
        "azure",
        ParsedEvents(handshake=ValidationHandshake("512d38b6-c7b8-40c8-89fe-f46f9e9622b6")),
        ((0, "eventType"), (0, "data"), (0, "data", "validationCode")),
    ),
    Sample("azure_cloudevent", "cloudevents", hints(BLOBS[0]), (*CLOUD, ("data",), ("data", "destinationUrl"))),
    Sample("cloudevents", "cloudevents", hints(TableHint(name="sales.orders", version=42)), CLOUD),
    Sample(
        "cloudevents_batch",
        "cloudevents",
        hints(TableHint(name="sales.orders", version=42), TableHint(name="sales.returns")),
        ((0,), (0, "specversion"), (1, "id"), (1, "source"), (1, "type")),
    ),
    Sample(
        "lakekeeper",
        "lakekeeper",
        IN_CATALOG,
        (*CLOUD, ("name",), ("namespace",), ("tabular-id",), ("data",)),
    ),
    Sample(
        "openlineage",
        "openlineage",
        hints(TableHint("s3://lake/sales/orders"), TableHint(name="sales.returns")),
        (
            ("eventType",),
            ("run",),
            ("run", "runId"),
            ("job",),
            ("job", "name"),
            ("outputs", 0),
            ("outputs", 0, "namespace"),
            ("outputs", 0, "name"),
        ),
    ),
    Sample(
        "iceberg",
        "iceberg",
        IN_CATALOG,
        (("report-type",), ("table-name",), ("metrics",), ("operation",)),
    ),
    Sample(
        "polaris_notification",
        "polaris",
        hints(TableHint(metadata_folder="s3://lake/sales/orders/metadata")),
        (
            ("notification-type",),
            ("payload",),
            ("payload", "table-name"),
            ("payload", "table-uuid"),
            ("payload", "metadata-location"),
        ),
    ),
    Sample(
        "polaris",
        "cloudevents",
        IN_CATALOG,
        (*CLOUD, ("data", "namespace")),
    ),
    Sample(
        "polaris_webhook",
        "polaris",
        IN_CATALOG,
        (("table_identifier",),),
    ),
    Sample(
        "airflow",
        "airflow",
        ParsedEvents(
            hints=(TableHint("s3://lake/sales/orders"), TableHint(name="sales.returns")),
            ignored=(("not_a_table_location", 1),),
        ),
        (("dag_id",), ("state",), ("outlets",), ("outlets", 0), ("outlets", 0, "uri")),
    ),
    Sample("lakewright", "lakewright", hints(TableHint(name="sales.orders", version=42)), (("table",),)),
    Sample(
        "lakewright_list",
        "lakewright",
        hints(TableHint(name="sales.orders", version=42), TableHint("s3://lake/sales/returns")),
        ((0,), (0, "table"), (1, "table")),
    ),
    Sample(
        "lakewright_commit",
        "lakewright",
        hints(TableHint("s3://lake/sales/orders", version=42)),
        (("table",), ("added", 0), ("added", 0, "path"), ("removed", 0, "path")),
    ),
)
"""Every sample."""

WRONG: tuple[tuple[str, Any], ...] = (("a number", 7), ("true", True), ("an empty text", ""), ("a list", [[]]))
"""What can stand for nothing that is needed; a list is wrong even where a list is needed, as its item is no event."""


def damages(sample: Sample) -> Iterator[Damage]:
    """Yield the sample with each needed field missing, null and of four wrong kinds, and its bytes spoilt."""
    for place in sample.needed:
        spoken = spoken_place(place)
        if isinstance(place[-1], str):
            yield Damage(f"{spoken} missing", dumped(without(sample.body, place)), spoken)
        yield Damage(f"{spoken} null", dumped(replaced(sample.body, place, None)), spoken)
        for name, value in WRONG:
            yield Damage(f"{spoken} is {name}", dumped(replaced(sample.body, place, value)), spoken)
    whole = dumped(sample.body)
    yield Damage("cut short", whole[: len(whole) // 2], "body")
    yield Damage("in UTF-16", whole.decode().encode("utf-16"), "body")
    yield Damage("not UTF-8", whole[:-1] + b', "x": "\xff\xfe"}', "body")
    yield Damage("too deep", b"[" * 5_000 + whole + b"]" * 5_000, "body")
    yield Damage("twice in a row", whole + whole, "body")


def spoken_place(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def replaced(body: Any, place: Place, value: Any) -> Any:
    parent = parent_of(body, place)
    parent[place[-1]] = value
    return body


def without(body: Any, place: Place) -> Any:
    del parent_of(body, place)[place[-1]]
    return body


def parent_of(body: Any, place: Place) -> Any:
    found = body
    for part in place[:-1]:
        found = found[part]
    return found
