"""AWS: S3 notifications, directly or via EventBridge, SNS or SQS; MinIO, which extends them; and Glue.

S3 notifications have form-url-encoded keys, decoded exactly once; EventBridge has plain keys. Glue events name a table
and no location, so the table must be registered as `database.table`. SNS messages wrap an event, and SQS records wrap
one each; the signature of an SNS message is not checked, because the subscription's URL carries a token and an event
only triggers a read of the log. Whether a subscription is confirmed is decided by a list of topics, not here.

Sources, in the AWS guides: "Event message structure" and "EventBridge event message structure" (S3), "Automating AWS
Glue with EventBridge", "HTTP/HTTPS notification JSON format" (SNS), "Using Lambda with Amazon SQS".
"""

from collections.abc import Iterable
from urllib.parse import unquote_plus

from decider.events.field_reader import Fields, ReadContext
from decider.events.object_keys import hint_of_key
from decider.events.table_hint import IgnoredReason, Outcome, SubscriptionConfirmation
from decider.events.table_names import catalog_hint

S3_WRITTEN = frozenset({"ObjectCreated:Put", "ObjectCreated:CompleteMultipartUpload", "ObjectCreated:Copy"})
"""Events after which an object is there; MinIO and some proxies put `s3:` before the name."""

S3_TEST = "s3:TestEvent"

S3_SOURCE = "aws.s3"
EVENTBRIDGE_WRITTEN = "Object Created"

GLUE_SOURCE = "aws.glue"
GLUE_TABLE_CHANGED = "Glue Data Catalog Table State Change"
GLUE_DELETED = frozenset({"DeleteTable", "BatchDeleteTable"})

SNS_TYPES = ("Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation")

SQS_SOURCE = "aws:sqs"


def matches_s3(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "Records" in event or event.get("Event") == S3_TEST


def parse_s3(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a notification into hints; raises InvalidInput naming the field that is missing or wrong."""
    if event.get("Event") == S3_TEST:
        yield IgnoredReason.TEST_EVENT
        return
    records = context.within("Records")
    for index, item in enumerate(records.objects(event.get("Records"))):
        yield _s3_record(item, records.item(index))


def _s3_record(item: object, context: ReadContext) -> Outcome:
    record = context.fields(item)
    name = context.text(record, "eventName")
    about = context.fields(record.get("s3"), "s3")
    inner = context.within("s3")
    bucket = inner.within("bucket").text(inner.fields(about.get("bucket"), "bucket"), "name")
    encoded = inner.within("object").text(inner.fields(about.get("object"), "object"), "key")
    if name.removeprefix("s3:") not in S3_WRITTEN:
        return IgnoredReason.UNKNOWN_EVENT
    try:
        key = unquote_plus(encoded, errors="strict")
    except UnicodeDecodeError:
        return IgnoredReason.BAD_KEY
    return hint_of_key(context.buckets.get(bucket, f"s3://{bucket}"), key)


def matches_minio(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "EventName" in event and "Records" in event


def parse_minio(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a notification into hints; raises InvalidInput naming the field."""
    context.text(event, "EventName")
    context.text(event, "Key")
    yield from parse_s3({"Records": event.get("Records")}, context)


def matches_eventbridge(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "detail-type" in event and "detail" in event


def parse_eventbridge(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn an event of S3_SOURCE into a hint, any other into a count; raises InvalidInput naming the field."""
    kind = context.text(event, "detail-type")
    source = context.text(event, "source")
    detail = context.fields(event.get("detail"), "detail")
    if source != S3_SOURCE or kind != EVENTBRIDGE_WRITTEN:
        yield IgnoredReason.UNKNOWN_EVENT
        return
    inner = context.within("detail")
    bucket = inner.within("bucket").text(inner.fields(detail.get("bucket"), "bucket"), "name")
    key = inner.within("object").text(inner.fields(detail.get("object"), "object"), "key")
    yield hint_of_key(context.buckets.get(bucket, f"s3://{bucket}"), key)


def matches_glue(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "detail-type" in event and event.get("source") == GLUE_SOURCE


def parse_glue(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a change of a table into a hint by its name; raises InvalidInput naming the field."""
    kind = context.text(event, "detail-type")
    context.one_of(event, "source", (GLUE_SOURCE,))
    detail = context.fields(event.get("detail"), "detail")
    if kind != GLUE_TABLE_CHANGED:
        yield IgnoredReason.UNKNOWN_EVENT
        return
    inner = context.within("detail")
    database = inner.text(detail, "databaseName")
    table = inner.text(detail, "tableName")
    change = inner.text(detail, "typeOfChange")
    yield IgnoredReason.NOT_A_COMMIT if change in GLUE_DELETED else catalog_hint(database, table)


def matches_sns(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "Type" in event and "TopicArn" in event


def parse_sns(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a message into the hints that it holds; raises InvalidInput naming the field that is missing or wrong."""
    kind = context.one_of(event, "Type", SNS_TYPES)
    context.text(event, "MessageId")
    topic = context.text(event, "TopicArn")
    message = context.text(event, "Message")
    if kind == "Notification":
        yield from context.unwrap(context.json(message, "Message"), "Message")
    elif kind == "SubscriptionConfirmation":
        context.text(event, "Token")
        yield SubscriptionConfirmation(topic, context.text(event, "SubscribeURL"))
    else:
        yield IgnoredReason.UNKNOWN_EVENT


def matches_sqs(event: Fields) -> bool:
    """Return whether an event has this format."""
    records = event.get("Records")
    first = records[0] if isinstance(records, list) and records else event
    return isinstance(first, dict) and (first.get("eventSource") == SQS_SOURCE or {"messageId", "body"} <= first.keys())


def parse_sqs(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn one record, or a list of them, into the hints of their bodies; raises InvalidInput naming the field."""
    if "Records" not in event:
        yield from _sqs_record(event, context)
        return
    records = context.within("Records")
    for index, item in enumerate(records.objects(event["Records"])):
        place = records.item(index)
        yield from _sqs_record(place.fields(item), place)


def _sqs_record(record: Fields, context: ReadContext) -> Iterable[Outcome]:
    context.text(record, "messageId")
    return context.unwrap(context.json(context.text(record, "body"), "body"), "body")
