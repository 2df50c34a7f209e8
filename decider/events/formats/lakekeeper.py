"""Lakekeeper's events are CloudEvents about Iceberg tables, told by the extension `tabular-id`.

They are recognised, so that a catalog's feed can be connected today, and ignored, because Iceberg is not done yet.
Source: the publisher of events in Lakekeeper's sources; the data of `updateTable` are the whole commit request.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import IgnoredReason, Outcome

EXTENSIONS = ("tabular-id", "tabularid")
UPDATED = "updateTable"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "specversion" in event and any(name in event for name in EXTENSIONS)


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Check one event; raises InvalidInput naming the field that is missing or wrong."""
    for field in ("specversion", "id", "source", "name", "namespace"):
        reading.text(event, field)
    reading.text(event, next((name for name in EXTENSIONS if name in event), EXTENSIONS[0]))
    if reading.text(event, "type") != UPDATED:
        yield IgnoredReason.NOT_A_COMMIT
        return
    data = event.get("data")
    reading.fields(reading.json(data, "data") if isinstance(data, str) else data, "data")
    yield IgnoredReason.ICEBERG
