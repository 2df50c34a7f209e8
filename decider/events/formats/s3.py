"""S3 notifications, as S3 itself sends them to a queue or a topic and as many others send them over HTTP.

Keys arrive form-url-encoded and are decoded exactly once; a second time would turn an escaped percent sign into
another key. Source: "Event message structure" in the user guide of Amazon S3.
"""

from collections.abc import Iterable
from urllib.parse import unquote_plus

from decider.events.field_reader import Fields, ReadContext
from decider.events.object_keys import hint_of_key
from decider.events.table_hint import IgnoredReason, Outcome

WRITTEN = frozenset({"ObjectCreated:Put", "ObjectCreated:CompleteMultipartUpload", "ObjectCreated:Copy"})
"""Events after which an object is there; MinIO and some proxies put `s3:` before the name."""

TEST_EVENT = "s3:TestEvent"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "Records" in event or event.get("Event") == TEST_EVENT


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn a notification into hints; raises InvalidInput naming the field that is missing or wrong."""
    if event.get("Event") == TEST_EVENT:
        yield IgnoredReason.TEST_EVENT
        return
    records = reading.within("Records")
    for index, item in enumerate(records.objects(event.get("Records"))):
        yield _record(item, records.item(index))


def _record(item: object, reading: ReadContext) -> Outcome:
    record = reading.fields(item)
    name = reading.text(record, "eventName")
    about = reading.fields(record.get("s3"), "s3")
    inner = reading.within("s3")
    bucket = inner.within("bucket").text(inner.fields(about.get("bucket"), "bucket"), "name")
    encoded = inner.within("object").text(inner.fields(about.get("object"), "object"), "key")
    if name.removeprefix("s3:") not in WRITTEN:
        return IgnoredReason.UNKNOWN_EVENT
    try:
        key = unquote_plus(encoded, errors="strict")
    except UnicodeDecodeError:
        return IgnoredReason.BAD_KEY
    return hint_of_key(reading.buckets.get(bucket, f"s3://{bucket}"), key)
