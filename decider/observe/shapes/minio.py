"""MinIO sends the shape of S3 with the event and the key once more on top; the records are what counts.

The key on top stands there decoded already, the ones in the records do not: reading only the latter spares us the
question which of the two a sender meant.
"""

from collections.abc import Mapping

from decider.observe.shapes import s3
from decider.observe.shapes.hint import Taken, fields_of, text_of


def matches(body: object) -> bool:
    """Say whether a body looks like this shape."""
    return isinstance(body, dict) and "EventName" in body and "Records" in body


def take(body: object, bucket_locations: Mapping[str, str] = s3.NO_BUCKETS) -> Taken:
    """Turn a notification into hints, with buckets mapped as in `s3.take`; raises InvalidInput naming the field."""
    notification = fields_of(body, "body")
    text_of(notification.get("EventName"), "EventName")
    text_of(notification.get("Key"), "Key")
    return s3.take({"Records": notification.get("Records")}, bucket_locations)
