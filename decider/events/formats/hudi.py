"""Hudi's callback after a write names the table's place; a look finds a Delta log there only where one is kept, too.

Apache XTable and similar tools keep one beside Hudi's own timeline. A place without it leads nowhere, with that
reason. Source: "Post-commit Callback" in the documentation of Apache Hudi.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import Outcome
from decider.events.table_names import location_hint


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "commitTime" in event and ("basePath" in event or "tableName" in event)


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn one callback into a hint; raises InvalidInput naming the field that is missing or wrong."""
    reading.text(event, "commitTime")
    reading.text(event, "tableName")
    yield location_hint(reading.text(event, "basePath"), reading.place("basePath"))
