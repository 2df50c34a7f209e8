"""A body is recognised by what it holds, or read as the shape that its sender promised; anything else is refused.

A list is a batch, each item an event of its own. To add a source, write its module and its line in the table below.
The order matters: the first that matches wins, so a shape that contains another stands before it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from decider.events.field_reader import NO_BUCKETS, Fields, Reading, parsed, wrong
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
from decider.events.table_hint import Outcome, Taken


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of event: the source's name in the API, how it looks, and how it is read."""

    source: str
    looks: str
    matches: Callable[[Fields], bool]
    take: Callable[[Fields, Reading], Iterable[Outcome]]


SHAPES = (
    Shape("lakekeeper", '{"specversion", "type", "tabular-id", …}', lakekeeper.matches, lakekeeper.take),
    Shape("cloudevents", '{"specversion": "1.0", "type", "data"}', cloudevents.matches, cloudevents.take),
    Shape("sns", '{"Type", "TopicArn", "Message"}', sns.matches, sns.take),
    Shape("sqs", '{"messageId", "body"}', sqs.matches, sqs.take),
    Shape("minio", '{"EventName", "Key", "Records": […]}', minio.matches, minio.take),
    Shape("s3", '{"Records": [{"eventName", "s3": {"bucket", "object"}}]}', s3.matches, s3.take),
    Shape("glue", '{"detail-type", "source": "aws.glue", "detail"}', glue.matches, glue.take),
    Shape("eventbridge", '{"detail-type", "source": "aws.s3", "detail"}', eventbridge.matches, eventbridge.take),
    Shape("gcs", '{"message": {"attributes", "data"}, "subscription"}', gcs.matches, gcs.take),
    Shape("openlineage", '{"eventType": "COMPLETE", "run", "outputs"}', openlineage.matches, openlineage.take),
    Shape("azure", '{"eventType": "Microsoft.Storage.…", "data"}', azure.matches, azure.take),
    Shape("iceberg", '{"report-type", "table-name", "metrics"}', iceberg.matches, iceberg.take),
    Shape("polaris", '{"notification-type", "payload"} or {"event_type"}', polaris.matches, polaris.take),
    Shape("hudi", '{"commitTime", "tableName", "basePath"}', hudi.matches, hudi.take),
    Shape("airflow", '{"dag_id", "state", "outlets"}', airflow.matches, airflow.take),
    Shape("lakewright", '{"table": "db.t" or a URI, "version"?}', lakewright.matches, lakewright.take),
)
"""Every shape that is understood."""


def recognise(
    body: bytes,
    *,
    source: str | None = None,
    bucket_locations: Mapping[str, str] = NO_BUCKETS,
    headers: Mapping[str, str] = NO_BUCKETS,
) -> Taken:
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
) -> Taken:
    """Turn decoded JSON into hints, as `recognise` does."""
    demanded = None if source is None else _demanded(source)
    return Taken.of(_outcomes(body, Reading(_recognised, bucket_locations), demanded))


def _demanded(source: str) -> Shape:
    found = next((shape for shape in SHAPES if shape.source == source), None)
    if found is None:
        raise wrong("source", source, "one of " + ", ".join(shape.source for shape in SHAPES))
    return found


def _recognised(value: object, reading: Reading) -> Iterable[Outcome]:
    return _outcomes(value, reading, None)


def _outcomes(value: object, reading: Reading, demanded: Shape | None) -> Iterable[Outcome]:
    if not isinstance(value, list):
        yield from _event(value, reading, demanded)
        return
    for index, item in enumerate(reading.objects(value)):
        place = reading.item(index)
        yield from _event(place.fields(item), place, demanded)


def _event(value: object, reading: Reading, demanded: Shape | None) -> Iterable[Outcome]:
    shape = demanded or next((one for one in SHAPES if isinstance(value, dict) and one.matches(value)), None)
    if shape is None:
        raise wrong(reading.at or "body", value, "one of " + "; ".join(f"{one.source}: {one.looks}" for one in SHAPES))
    return shape.take(reading.fields(value), reading)
