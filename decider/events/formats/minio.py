"""MinIO sends the shape of S3 with the event and the key once more on top; the records are what counts.

The key on top stands there decoded already, the ones in the records do not: reading only the latter spares us the
question which of the two a sender meant.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.formats import s3
from decider.events.table_hint import Outcome


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "EventName" in event and "Records" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn a notification into hints; raises InvalidInput naming the field."""
    reading.text(event, "EventName")
    reading.text(event, "Key")
    yield from s3.take({"Records": event.get("Records")}, reading)
