"""Events of Google Cloud Storage about objects, through a push subscription of Pub/Sub or through Eventarc.

A push message's attributes have everything needed, and its data repeat the object's metadata; a message without these
attributes holds some other event in its data. Source: "Pub/Sub notifications for Cloud Storage", "Push subscriptions".
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.object_keys import hint_of_key
from decider.events.table_hint import IgnoredReason, Outcome

WRITTEN = "OBJECT_FINALIZE"
FINALIZED = "google.cloud.storage.object.v1.finalized"
"""The type of the CloudEvents that Eventarc sends."""


def matches(event: Fields) -> bool:
    """Return whether an event has this format."""
    message = event.get("message")
    return isinstance(message, dict) and ("attributes" in message or "data" in message)


def parse(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a push message into a hint; raises InvalidInput naming the field that is missing or wrong."""
    message = context.fields(event.get("message"), "message")
    context.text(event, "subscription")
    inner = context.within("message")
    inner.text(message, "messageId")
    attributes = inner.fields(message.get("attributes") or {}, "attributes")
    if "eventType" not in attributes and "data" in message:
        yield from inner.unwrap(inner.json(inner.base64(message, "data"), "data"), "data")
        return
    place = inner.within("attributes")
    written = place.text(attributes, "eventType") == WRITTEN
    found = _object(place.text(attributes, "bucketId"), place.text(attributes, "objectId"), context)
    yield found if written else IgnoredReason.UNKNOWN_EVENT


def finalized(data: object, context: ReadContext) -> Outcome:
    """Return what the data of Eventarc's CloudEvent are; raises InvalidInput naming the field."""
    about = context.fields(data)
    return _object(context.text(about, "bucket"), context.text(about, "name"), context)


def _object(bucket: str, key: str, context: ReadContext) -> Outcome:
    return hint_of_key(context.buckets.get(bucket, f"gs://{bucket}"), key)
