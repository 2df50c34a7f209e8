"""OpenLineage tells which data sets a run wrote; a complete run's outputs are hints, by place or by name.

A data set's namespace is a bucket or a file system where its name is a path, and a catalog where it is a table; some
senders add the catalog's name as a symlink. Source: the specification of OpenLineage, `RunEvent` and "Naming".
"""

from collections.abc import Iterable

from decider.events.field_reader import Fields, ReadContext
from decider.events.table_hint import IgnoredReason, Outcome, TableHint
from decider.events.table_names import name_hint
from shared.errors import InvalidInput
from shared.locations import key_location

COMPLETE = "COMPLETE"
TYPES = ("START", "RUNNING", COMPLETE, "ABORT", "FAIL", "OTHER")
PLACES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "az", "file")
"""Schemes of namespaces under which a name is a path."""


def matches(event: Fields) -> bool:
    """Say whether an event looks like this shape."""
    return "eventType" in event and "run" in event


def take(event: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Turn the outputs of a complete run into hints; raises InvalidInput naming the field."""
    kind = reading.one_of(event, "eventType", TYPES)
    reading.within("run").text(reading.fields(event.get("run"), "run"), "runId")
    reading.within("job").text(reading.fields(event.get("job"), "job"), "name")
    outputs = reading.within("outputs")
    for index, item in enumerate(outputs.objects(event.get("outputs") or [])):
        found = tuple(_dataset(item, outputs.item(index)))
        yield from found if kind == COMPLETE else (IgnoredReason.NOT_A_COMMIT,)


def _dataset(item: object, reading: ReadContext) -> Iterable[Outcome]:
    dataset = reading.fields(item)
    namespace, name = reading.text(dataset, "namespace"), reading.text(dataset, "name")
    if namespace.partition(":")[0] in PLACES:
        yield _at(namespace, name, reading)
        return
    aliases = tuple(_aliases(dataset, reading))
    yield from aliases or (name_hint(name),)


def _at(namespace: str, name: str, reading: ReadContext) -> Outcome:
    prefix = "file:///" if namespace in ("file", "file:", "file://") else namespace
    scheme, _, rest = prefix.partition("://")
    prefix = reading.buckets.get(rest.strip("/"), prefix) if scheme != "file" else prefix
    try:
        return TableHint(key_location(prefix, name.strip("/")))
    except InvalidInput:
        return IgnoredReason.NOT_A_LOCATION


def _aliases(dataset: Fields, reading: ReadContext) -> Iterable[Outcome]:
    """Yield what the symlinks of a data set name, if it has some."""
    facets = reading.fields(dataset.get("facets") or {}, "facets")
    inner = reading.within("facets")
    symlinks = inner.fields(facets.get("symlinks") or {}, "symlinks")
    identifiers = inner.within("symlinks").within("identifiers")
    for index, item in enumerate(identifiers.objects(symlinks.get("identifiers") or [])):
        place = identifiers.item(index)
        identifier = place.fields(item)
        name = place.text(identifier, "name")
        namespace = place.text(identifier, "namespace")
        yield _at(namespace, name, place) if namespace.partition(":")[0] in PLACES else name_hint(name)
