"""A topic's message wraps what was published; before the first one the topic wants its subscription confirmed.

The signature of a message is not checked. Who may call is decided by the token that the subscription's URL carries,
and an event is a hint, so a forged one costs a look at most. Confirming means to visit a page that an event names;
whether that is done is decided elsewhere, by a list of topics. Source: "HTTP/HTTPS notification JSON format" and
"HTTP/HTTPS subscription confirmation JSON format" in the developer guide of Amazon SNS.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import IgnoredReason, Outcome, SubscriptionConfirmation

TYPES = ("Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation")


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "Type" in event and "TopicArn" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn a message into the hints that it holds; raises InvalidInput naming the field that is missing or wrong."""
    kind = reading.one_of(event, "Type", TYPES)
    reading.text(event, "MessageId")
    topic = reading.text(event, "TopicArn")
    message = reading.text(event, "Message")
    if kind == "Notification":
        yield from reading.unwrap(reading.json(message, "Message"), "Message")
    elif kind == "SubscriptionConfirmation":
        reading.text(event, "Token")
        yield SubscriptionConfirmation(topic, reading.text(event, "SubscribeURL"))
    else:
        yield IgnoredReason.UNKNOWN_EVENT
