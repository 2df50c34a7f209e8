"""Polaris tells of Iceberg tables: by notifications to another catalog, and by the events of its listeners.

The events come as CloudEvents, or bare with the table's name in one text, as its releases differ. Recognised, and
ignored until Iceberg is done. Source: `notifications-api.yaml` in the specification of Apache Polaris, its mapper of
CloudEvents, and the reference of its webhook listener.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import IgnoredReason, Outcome

NOTIFICATIONS = ("UNKNOWN", "CREATE", "UPDATE", "DROP", "VALIDATE")
CHANGES = frozenset({"CREATE", "UPDATE"})
UPDATED = frozenset({"AFTER_UPDATE_TABLE", "AFTER_COMMIT_TABLE"})
"""The events after which a table has a new version; the second is the older name."""


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "notification-type" in event or "event_type" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Check a notification or an event; raises InvalidInput naming the field that is missing or wrong."""
    if "event_type" in event:
        yield _event(event, reading)
        return
    kind = reading.one_of(event, "notification-type", NOTIFICATIONS)
    payload = reading.fields(event.get("payload"), "payload")
    inner = reading.within("payload")
    inner.text(payload, "table-name")
    inner.text(payload, "table-uuid")
    inner.text(payload, "metadata-location")
    yield IgnoredReason.ICEBERG if kind in CHANGES else IgnoredReason.NOT_A_COMMIT


def _event(event: Fields, reading: ReadContext) -> Outcome:
    if reading.text(event, "event_type") not in UPDATED:
        return IgnoredReason.NOT_A_COMMIT
    if "table_name" not in event:
        reading.text(event, "table_identifier")
        return IgnoredReason.ICEBERG
    reading.text(event, "table_name")
    levels = reading.objects(event.get("namespace"), "namespace")
    if not all(isinstance(level, str) for level in levels):
        raise wrong(reading.place("namespace"), levels, "a list of texts")
    return IgnoredReason.ICEBERG
