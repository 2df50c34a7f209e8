"""Metrics reports of Iceberg's REST catalog: a commit report says that a table changed, a scan report does not.

Recognised, and ignored until Iceberg is done. Source: `ReportMetricsRequest` in Iceberg's REST catalog specification.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import IgnoredReason, Outcome

COMMIT = "commit-report"
SCAN = "scan-report"


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "report-type" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Check one report; raises InvalidInput naming the field that is missing or wrong."""
    kind = reading.one_of(event, "report-type", (COMMIT, SCAN))
    reading.text(event, "table-name")
    reading.fields(event.get("metrics"), "metrics")
    if kind == COMMIT:
        reading.text(event, "operation")
    yield IgnoredReason.ICEBERG if kind == COMMIT else IgnoredReason.NOT_A_COMMIT
