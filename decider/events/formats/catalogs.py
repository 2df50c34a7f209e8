"""Catalogs: Iceberg metrics reports, Lakekeeper, Polaris, and the commit callback of Hudi.

Iceberg events are parsed, so that a catalog can be connected today, and ignored: the sweep finds the commits. A Hudi
callback names a location; a refresh finds a Delta log there only if a tool such as Apache XTable writes one.

Sources: `ReportMetricsRequest` of Iceberg's REST catalog specification; the event publisher of Lakekeeper;
`notifications-api.yaml`, the CloudEvents mapper and the webhook listener of Apache Polaris; "Post-commit Callback" of
Apache Hudi.
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import IgnoredReason, Outcome
from decider.events.table_names import location_hint

COMMIT_REPORT = "commit-report"
SCAN_REPORT = "scan-report"

LAKEKEEPER_EXTENSIONS = ("tabular-id", "tabularid")
LAKEKEEPER_UPDATED = "updateTable"

POLARIS_NOTIFICATIONS = ("UNKNOWN", "CREATE", "UPDATE", "DROP", "VALIDATE")
POLARIS_CHANGES = frozenset({"CREATE", "UPDATE"})
POLARIS_UPDATED = frozenset({"AFTER_UPDATE_TABLE", "AFTER_COMMIT_TABLE"})
"""The events after which a table has a new version; the second is the older name."""


def matches_iceberg(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "report-type" in event


def parse_iceberg(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Check one report; raises InvalidInput naming the field that is missing or wrong."""
    kind = context.one_of(event, "report-type", (COMMIT_REPORT, SCAN_REPORT))
    context.text(event, "table-name")
    context.fields(event.get("metrics"), "metrics")
    if kind == COMMIT_REPORT:
        context.text(event, "operation")
    yield IgnoredReason.ICEBERG if kind == COMMIT_REPORT else IgnoredReason.NOT_A_COMMIT


def matches_lakekeeper(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "specversion" in event and any(name in event for name in LAKEKEEPER_EXTENSIONS)


def parse_lakekeeper(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Check one event; raises InvalidInput naming the field that is missing or wrong."""
    for field in ("specversion", "id", "source", "name", "namespace"):
        context.text(event, field)
    context.text(event, next((name for name in LAKEKEEPER_EXTENSIONS if name in event), LAKEKEEPER_EXTENSIONS[0]))
    if context.text(event, "type") != LAKEKEEPER_UPDATED:
        yield IgnoredReason.NOT_A_COMMIT
        return
    data = event.get("data")
    context.fields(context.json(data, "data") if isinstance(data, str) else data, "data")
    yield IgnoredReason.ICEBERG


def matches_polaris(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "notification-type" in event or "event_type" in event


def parse_polaris(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Check a notification or an event; raises InvalidInput naming the field that is missing or wrong."""
    if "event_type" in event:
        yield _polaris_event(event, context)
        return
    kind = context.one_of(event, "notification-type", POLARIS_NOTIFICATIONS)
    payload = context.fields(event.get("payload"), "payload")
    inner = context.within("payload")
    inner.text(payload, "table-name")
    inner.text(payload, "table-uuid")
    inner.text(payload, "metadata-location")
    yield IgnoredReason.ICEBERG if kind in POLARIS_CHANGES else IgnoredReason.NOT_A_COMMIT


def _polaris_event(event: Fields, context: ReadContext) -> Outcome:
    if context.text(event, "event_type") not in POLARIS_UPDATED:
        return IgnoredReason.NOT_A_COMMIT
    if "table_name" not in event:
        context.text(event, "table_identifier")
        return IgnoredReason.ICEBERG
    context.text(event, "table_name")
    levels = context.objects(event.get("namespace"), "namespace")
    if not all(isinstance(level, str) for level in levels):
        raise wrong(context.place("namespace"), levels, "a list of texts")
    return IgnoredReason.ICEBERG


def matches_hudi(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "commitTime" in event and ("basePath" in event or "tableName" in event)


def parse_hudi(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn one callback into a hint; raises InvalidInput naming the field that is missing or wrong."""
    context.text(event, "commitTime")
    context.text(event, "tableName")
    yield location_hint(context.text(event, "basePath"), context.place("basePath"))
