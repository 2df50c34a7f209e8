"""The Glue catalog tells by way of EventBridge that a table or its partitions changed; it knows names and no places.

So a table must be registered under `database.table` for these to find it. The events are sent on a best-effort basis.
Source: "Automating AWS Glue with EventBridge" in the developer guide of AWS Glue.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import IgnoredReason, Outcome
from decider.events.table_names import name_hint

GLUE = "aws.glue"
TABLE_CHANGED = "Glue Data Catalog Table State Change"
DELETED = frozenset({"DeleteTable", "BatchDeleteTable"})


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "detail-type" in event and event.get("source") == GLUE


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn a change of a table into a hint by its name; raises InvalidInput naming the field."""
    kind = reading.text(event, "detail-type")
    reading.one_of(event, "source", (GLUE,))
    detail = reading.fields(event.get("detail"), "detail")
    if kind != TABLE_CHANGED:
        yield IgnoredReason.UNKNOWN_EVENT
        return
    inner = reading.within("detail")
    database = inner.text(detail, "databaseName")
    table = inner.text(detail, "tableName")
    change = inner.text(detail, "typeOfChange")
    yield IgnoredReason.NOT_A_COMMIT if change in DELETED else name_hint(database, table)
