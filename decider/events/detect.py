"""Detects the format of an event body, or parses it as the source that the client names; others are rejected.

A list is a batch. To add a source, write its functions in the module of its family, and its line in the table below.
The first match wins, so a format that contains another precedes it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from decider.events.field_reader import NO_BUCKETS, Fields, ReadContext, parsed, wrong
from decider.events.formats import aws, azure, catalogs, cloudevents, gcs, lakewright, schedulers
from decider.events.table_hint import Outcome, ParsedEvents


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event format: name of the source in the API, outline, detection and parser."""

    source: str
    outline: str
    matches: Callable[[Fields], bool]
    parse: Callable[[Fields, ReadContext], Iterable[Outcome]]


FORMATS = (
    EventFormat(
        "lakekeeper", '{"specversion", "type", "tabular-id", …}', catalogs.matches_lakekeeper, catalogs.parse_lakekeeper
    ),
    EventFormat("cloudevents", '{"specversion": "1.0", "type", "data"}', cloudevents.matches, cloudevents.parse),
    EventFormat("sns", '{"Type", "TopicArn", "Message"}', aws.matches_sns, aws.parse_sns),
    EventFormat("sqs", '{"messageId", "body"}', aws.matches_sqs, aws.parse_sqs),
    EventFormat("minio", '{"EventName", "Key", "Records": […]}', aws.matches_minio, aws.parse_minio),
    EventFormat("s3", '{"Records": [{"eventName", "s3": {"bucket", "object"}}]}', aws.matches_s3, aws.parse_s3),
    EventFormat("glue", '{"detail-type", "source": "aws.glue", "detail"}', aws.matches_glue, aws.parse_glue),
    EventFormat(
        "eventbridge", '{"detail-type", "source": "aws.s3", "detail"}', aws.matches_eventbridge, aws.parse_eventbridge
    ),
    EventFormat("gcs", '{"message": {"attributes", "data"}, "subscription"}', gcs.matches, gcs.parse),
    EventFormat(
        "openlineage",
        '{"eventType": "COMPLETE", "run", "outputs"}',
        schedulers.matches_openlineage,
        schedulers.parse_openlineage,
    ),
    EventFormat("azure", '{"eventType": "Microsoft.Storage.…", "data"}', azure.matches, azure.parse),
    EventFormat(
        "iceberg", '{"report-type", "table-name", "metrics"}', catalogs.matches_iceberg, catalogs.parse_iceberg
    ),
    EventFormat(
        "polaris",
        '{"notification-type", "payload"} or {"event_type"}',
        catalogs.matches_polaris,
        catalogs.parse_polaris,
    ),
    EventFormat("airflow", '{"dag_id", "state", "outlets"}', schedulers.matches_airflow, schedulers.parse_airflow),
    EventFormat("lakewright", '{"table": "db.t" or a URI, "version"?}', lakewright.matches, lakewright.parse),
)
"""Supported formats, in the order of detection."""


def parse_body(
    body: bytes,
    *,
    source: str | None = None,
    bucket_locations: Mapping[str, str] = NO_BUCKETS,
    headers: Mapping[str, str] = NO_BUCKETS,
) -> ParsedEvents:
    """Parse a request body into table hints; `source` names its format, None detects it.

    `headers`, names in lower case, are the attributes of a CloudEvent in binary mode; `bucket_locations` maps bucket
    names to URI prefixes. Raises InvalidInput, and nothing else, with what was found and what is expected.
    """
    value = parsed(body, "body")
    event = cloudevents.from_headers(headers, value)
    return parse_value(value if event is None else event, source=source, bucket_locations=bucket_locations)


def parse_value(
    body: object, *, source: str | None = None, bucket_locations: Mapping[str, str] = NO_BUCKETS
) -> ParsedEvents:
    """Parse decoded JSON into table hints, as `parse_body` does."""
    named = None if source is None else _named(source)
    return ParsedEvents.of(_outcomes(body, ReadContext(_parse_wrapped, bucket_locations), named))


def _named(source: str) -> EventFormat:
    found = next((one for one in FORMATS if one.source == source), None)
    if found is None:
        raise wrong("source", source, "one of " + ", ".join(one.source for one in FORMATS))
    return found


def _parse_wrapped(value: object, context: ReadContext) -> Iterable[Outcome]:
    return _outcomes(value, context, None)


def _outcomes(value: object, context: ReadContext, named: EventFormat | None) -> Iterable[Outcome]:
    if not isinstance(value, list):
        yield from _event(value, context, named)
        return
    for index, item in enumerate(context.objects(value)):
        place = context.item(index)
        yield from _event(place.fields(item), place, named)


def _event(value: object, context: ReadContext, named: EventFormat | None) -> Iterable[Outcome]:
    found = named or next((one for one in FORMATS if isinstance(value, dict) and one.matches(value)), None)
    if found is None:
        raise wrong(
            context.at or "body", value, "one of " + "; ".join(f"{one.source}: {one.outline}" for one in FORMATS)
        )
    return found.parse(context.fields(value), context)
