"""S3 by way of EventBridge: one object per event, and its key is not encoded, other than in S3's own notifications.

Source: "EventBridge event message structure" in the user guide of Amazon S3.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.object_keys import hint_of_key
from decider.events.table_hint import IgnoredReason, Outcome

S3 = "aws.s3"
WRITTEN = "Object Created"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "detail-type" in event and "detail" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn an event of S3 into a hint, any other into a count; raises InvalidInput naming the field."""
    kind = reading.text(event, "detail-type")
    source = reading.text(event, "source")
    detail = reading.fields(event.get("detail"), "detail")
    if source != S3 or kind != WRITTEN:
        yield IgnoredReason.UNKNOWN_EVENT
        return
    inner = reading.within("detail")
    bucket = inner.within("bucket").text(inner.fields(detail.get("bucket"), "bucket"), "name")
    key = inner.within("object").text(inner.fields(detail.get("object"), "object"), "key")
    yield hint_of_key(reading.buckets.get(bucket, f"s3://{bucket}"), key)
