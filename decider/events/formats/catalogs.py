"""Catalogs: Iceberg metrics reports, Lakekeeper and Polaris.

An Iceberg event names a table by its namespaces and its name, and not the catalog as it is called here. A notification
of Polaris has not even the namespaces in its body, but the metadata file.

Sources: `ReportMetricsRequest` of Iceberg's REST catalog specification; the event publisher of Lakekeeper;
`notifications-api.yaml`, the CloudEvents mapper and the webhook listener of Apache Polaris.
"""

from collections.abc import Iterable, Sequence

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import IgnoredReason, Outcome
from decider.events.table_names import catalog_hint, metadata_hint

COMMIT_REPORT = "commit-report"
SCAN_REPORT = "scan-report"

LAKEKEEPER_EXTENSIONS = ("tabular-id", "tabularid")
LAKEKEEPER_UPDATED = "updateTable"
LEVEL_SEPARATOR = "\x1f"
"""Separator of the levels of a namespace in Iceberg's REST protocol."""

POLARIS_NOTIFICATIONS = ("UNKNOWN", "CREATE", "UPDATE", "DROP", "VALIDATE")
POLARIS_CHANGES = frozenset({"CREATE", "UPDATE"})
POLARIS_UPDATED = frozenset({"AFTER_UPDATE_TABLE", "AFTER_COMMIT_TABLE"})
"""The events after which a table has a new version; the second is the older name."""


def matches_iceberg(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "report-type" in event


def parse_iceberg(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn a report of a commit into a hint; raises InvalidInput naming the field that is missing or wrong."""
    kind = context.one_of(event, "report-type", (COMMIT_REPORT, SCAN_REPORT))
    name = context.text(event, "table-name")
    context.fields(event.get("metrics"), "metrics")
    if kind == COMMIT_REPORT:
        context.text(event, "operation")
    yield catalog_hint(*_reported_path(name)) if kind == COMMIT_REPORT else IgnoredReason.NOT_A_COMMIT


def _reported_path(name: str) -> Sequence[str]:
    """Return namespaces and table of a reported name, which begins with the writer's own name of the catalog.

    After a catalog that is called by a URI comes a slash, after any other one a dot.
    """
    after = name.rpartition("/")[2] if "/" in name else name.partition(".")[2]
    return after.split(".")


def matches_lakekeeper(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "specversion" in event and any(name in event for name in LAKEKEEPER_EXTENSIONS)


def parse_lakekeeper(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn an update into a hint; raises InvalidInput naming the field that is missing or wrong."""
    for field in ("specversion", "id", "source"):
        context.text(event, field)
    table, namespace = context.text(event, "name"), context.text(event, "namespace")
    context.text(event, next((name for name in LAKEKEEPER_EXTENSIONS if name in event), LAKEKEEPER_EXTENSIONS[0]))
    if context.text(event, "type") != LAKEKEEPER_UPDATED:
        yield IgnoredReason.NOT_A_COMMIT
        return
    data = event.get("data")
    context.fields(context.json(data, "data") if isinstance(data, str) else data, "data")
    yield catalog_hint(*namespace.split(LEVEL_SEPARATOR if LEVEL_SEPARATOR in namespace else "."), table)


def matches_polaris(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "notification-type" in event or "event_type" in event


def parse_polaris(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn an event into a hint; raises InvalidInput naming the field that is missing or wrong."""
    if "event_type" in event:
        yield _polaris_event(event, context)
        return
    kind = context.one_of(event, "notification-type", POLARIS_NOTIFICATIONS)
    payload = context.fields(event.get("payload"), "payload")
    inner = context.within("payload")
    inner.text(payload, "table-name")
    inner.text(payload, "table-uuid")
    written = inner.text(payload, "metadata-location")
    yield metadata_hint(written) if kind in POLARIS_CHANGES else IgnoredReason.NOT_A_COMMIT


def _polaris_event(event: Fields, context: ReadContext) -> Outcome:
    if context.text(event, "event_type") not in POLARIS_UPDATED:
        return IgnoredReason.NOT_A_COMMIT
    if "table_name" not in event:
        return catalog_hint(*context.text(event, "table_identifier").split("."))
    table = context.text(event, "table_name")
    levels = context.objects(event.get("namespace"), "namespace")
    if not all(isinstance(level, str) for level in levels):
        raise wrong(context.place("namespace"), levels, "a list of texts")
    return catalog_hint(*levels, table)
