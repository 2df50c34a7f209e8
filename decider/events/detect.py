"""A body is recognised by what it holds, or read as the shape that its sender promised; anything else is refused.

A list is a batch, each item an event of its own. To add a source, write its module and its line in the table below.
The order matters: the first that matches wins, so a shape that contains another stands before it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from decider.events.field_reader import NO_BUCKETS, Fields, ReadContext, parsed, wrong
from decider.events.formats import (
    airflow,
    azure,
    cloudevents,
    eventbridge,
    gcs,
    glue,
    hudi,
    iceberg,
    lakekeeper,
    lakewright,
    minio,
    openlineage,
    polaris,
    s3,
    sns,
    sqs,
)
from decider.events.table_hint import Outcome, ParsedEvents


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One kind of event: the source's name in the API, how it looks, and how it is read."""

    source: str
    looks: str
    matches: Callable[[Fields], bool]
    take: Callable[[Fields, ReadContext], Iterable[Outcome]]


SHAPES = (
    EventFormat("lakekeeper", '{"specversion", "type", "tabular-id", …}', lakekeeper.matches, lakekeeper.take),
    EventFormat("cloudevents", '{"specversion": "1.0", "type", "data"}', cloudevents.matches, cloudevents.take),
    EventFormat("sns", '{"Type", "TopicArn", "Message"}', sns.matches, sns.take),
    EventFormat("sqs", '{"messageId", "body"}', sqs.matches, sqs.take),
    EventFormat("minio", '{"EventName", "Key", "Records": […]}', minio.matches, minio.take),
    EventFormat("s3", '{"Records": [{"eventName", "s3": {"bucket", "object"}}]}', s3.matches, s3.take),
    EventFormat("glue", '{"detail-type", "source": "aws.glue", "detail"}', glue.matches, glue.take),
    EventFormat("eventbridge", '{"detail-type", "source": "aws.s3", "detail"}', eventbridge.matches, eventbridge.take),
    EventFormat("gcs", '{"message": {"attributes", "data"}, "subscription"}', gcs.matches, gcs.take),
    EventFormat("openlineage", '{"eventType": "COMPLETE", "run", "outputs"}', openlineage.matches, openlineage.take),
    EventFormat("azure", '{"eventType": "Microsoft.Storage.…", "data"}', azure.matches, azure.take),
    EventFormat("iceberg", '{"report-type", "table-name", "metrics"}', iceberg.matches, iceberg.take),
    EventFormat("polaris", '{"notification-type", "payload"} or {"event_type"}', polaris.matches, polaris.take),
    EventFormat("hudi", '{"commitTime", "tableName", "basePath"}', hudi.matches, hudi.take),
    EventFormat("airflow", '{"dag_id", "state", "outlets"}', airflow.matches, airflow.take),
    EventFormat("lakewright", '{"table": "db.t" or a URI, "version"?}', lakewright.matches, lakewright.take),
)
"""Every shape that is understood."""


def recognise(
    body: bytes,
    *,
    source: str | None = None,
    bucket_locations: Mapping[str, str] = NO_BUCKETS,
    headers: Mapping[str, str] = NO_BUCKETS,
) -> ParsedEvents:
    """Turn a request's body into hints; `source` demands a shape by name, None recognises it.

    `headers`, names in lower case, are the attributes of a CloudEvent in binary mode; `bucket_locations` maps names of
    buckets to URI prefixes. Raises InvalidInput, and nothing else, for whatever is not understood: it says what was
    found and what would do.
    """
    value = parsed(body, "body")
    event = cloudevents.from_headers(headers, value)
    return recognise_value(value if event is None else event, source=source, bucket_locations=bucket_locations)


def recognise_value(
    body: object, *, source: str | None = None, bucket_locations: Mapping[str, str] = NO_BUCKETS
) -> ParsedEvents:
    """Turn decoded JSON into hints, as `recognise` does."""
    demanded = None if source is None else _demanded(source)
    return ParsedEvents.of(_outcomes(body, ReadContext(_recognised, bucket_locations), demanded))


def _demanded(source: str) -> EventFormat:
    found = next((shape for shape in SHAPES if shape.source == source), None)
    if found is None:
        raise wrong("source", source, "one of " + ", ".join(shape.source for shape in SHAPES))
    return found


def _recognised(value: object, reading: ReadContext) -> Iterable[Outcome]:
    return _outcomes(value, reading, None)


def _outcomes(value: object, reading: ReadContext, demanded: EventFormat | None) -> Iterable[Outcome]:
    if not isinstance(value, list):
        yield from _event(value, reading, demanded)
        return
    for index, item in enumerate(reading.objects(value)):
        place = reading.item(index)
        yield from _event(place.fields(item), place, demanded)


def _event(value: object, reading: ReadContext, demanded: EventFormat | None) -> Iterable[Outcome]:
    shape = demanded or next((one for one in SHAPES if isinstance(value, dict) and one.matches(value)), None)
    if shape is None:
        raise wrong(reading.at or "body", value, "one of " + "; ".join(f"{one.source}: {one.looks}" for one in SHAPES))
    return shape.take(reading.fields(value), reading)
