"""A queue's records wrap what was put into the queue; each body is read as the event that it holds.

Queues do not call anybody: this is what a forwarder hands on, such as an EventBridge pipe (a list of records) or a
function (the same under `Records`). Source: "Using Lambda with Amazon SQS", "Amazon SQS as a source" of pipes.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import Outcome

_SOURCE = "aws:sqs"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    records = event.get("Records")
    first = records[0] if isinstance(records, list) and records else event
    return isinstance(first, dict) and (first.get("eventSource") == _SOURCE or {"messageId", "body"} <= first.keys())


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn one record, or a list of them, into the hints of their bodies; raises InvalidInput naming the field."""
    if "Records" not in event:
        yield from _record(event, reading)
        return
    records = reading.within("Records")
    for index, item in enumerate(records.objects(event["Records"])):
        place = records.item(index)
        yield from _record(place.fields(item), place)


def _record(record: Fields, reading: ReadContext) -> Iterable[Outcome]:
    reading.text(record, "messageId")
    return reading.unwrap(reading.json(reading.text(record, "body"), "body"), "body")
