"""Schedulers: Airflow callbacks and OpenLineage run events, which name the data sets that a task has written.

Airflow has no webhook: a callback is Python, so its format is Lakewright's own (docs/events/airflow.md). An outlet is
the URI of an asset or the name of a registered table. An OpenLineage namespace is a bucket or file system if the name
is a path, and a catalog otherwise; symlinks are aliases. Source: OpenLineage specification, `RunEvent` and "Naming".
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext, wrong
from decider.events.table_hint import IgnoredReason, Outcome, TableHint
from decider.events.table_names import name_hint, table_hint
from shared.errors import InvalidInput
from shared.paths.locations import key_location

SUCCESS = "success"

COMPLETE = "COMPLETE"
OPENLINEAGE_TYPES = ("START", "RUNNING", COMPLETE, "ABORT", "FAIL", "OTHER")
LOCATION_SCHEMES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "az", "file")
"""Schemes of namespaces under which a name is a path."""


def matches_airflow(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "dag_id" in event


def parse_airflow(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn the outlets of a task that succeeded into hints; raises InvalidInput naming the field."""
    context.text(event, "dag_id")
    context.optional_text(event, "task_id")
    context.optional_text(event, "run_id")
    succeeded = context.text(event, "state") == SUCCESS
    outlets = context.within("outlets")
    for index, item in enumerate(outlets.objects(event.get("outlets"))):
        found = _airflow_outlet(item, outlets.item(index))
        yield found if succeeded else IgnoredReason.NOT_A_COMMIT


def _airflow_outlet(item: object, context: ReadContext) -> Outcome:
    if isinstance(item, dict):
        text = context.text(item, "name" if "name" in item and "uri" not in item else "uri")
    elif isinstance(item, str) and item:
        text = item
    else:
        raise wrong(context.at, item, 'a URI, a name, or {"uri": …}')
    try:
        return table_hint(text, context.at)
    except InvalidInput:
        return IgnoredReason.NOT_A_LOCATION


def matches_openlineage(event: Fields) -> bool:
    """Return whether an event has this format."""
    return "eventType" in event and "run" in event


def parse_openlineage(event: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Turn the outputs of a complete run into hints; raises InvalidInput naming the field."""
    kind = context.one_of(event, "eventType", OPENLINEAGE_TYPES)
    context.within("run").text(context.fields(event.get("run"), "run"), "runId")
    context.within("job").text(context.fields(event.get("job"), "job"), "name")
    outputs = context.within("outputs")
    for index, item in enumerate(outputs.objects(event.get("outputs") or [])):
        found = tuple(_openlineage_dataset(item, outputs.item(index)))
        yield from found if kind == COMPLETE else (IgnoredReason.NOT_A_COMMIT,)


def _openlineage_dataset(item: object, context: ReadContext) -> Iterable[Outcome]:
    dataset = context.fields(item)
    namespace, name = context.text(dataset, "namespace"), context.text(dataset, "name")
    if namespace.partition(":")[0] in LOCATION_SCHEMES:
        yield _openlineage_at(namespace, name, context)
        return
    aliases = tuple(_openlineage_aliases(dataset, context))
    yield from aliases or (name_hint(name),)


def _openlineage_at(namespace: str, name: str, context: ReadContext) -> Outcome:
    prefix = "file:///" if namespace in ("file", "file:", "file://") else namespace
    scheme, _, rest = prefix.partition("://")
    prefix = context.buckets.get(rest.strip("/"), prefix) if scheme != "file" else prefix
    try:
        return TableHint(key_location(prefix, name.strip("/")))
    except InvalidInput:
        return IgnoredReason.NOT_A_LOCATION


def _openlineage_aliases(dataset: Fields, context: ReadContext) -> Iterable[Outcome]:
    """Yield the names in the symlinks of a data set, if it has any."""
    facets = context.fields(dataset.get("facets") or {}, "facets")
    inner = context.within("facets")
    symlinks = inner.fields(facets.get("symlinks") or {}, "symlinks")
    identifiers = inner.within("symlinks").within("identifiers")
    for index, item in enumerate(identifiers.objects(symlinks.get("identifiers") or [])):
        place = identifiers.item(index)
        identifier = place.fields(item)
        name = place.text(identifier, "name")
        namespace = place.text(identifier, "namespace")
        yield (
            _openlineage_at(namespace, name, place)
            if namespace.partition(":")[0] in LOCATION_SCHEMES
            else name_hint(name)
        )
