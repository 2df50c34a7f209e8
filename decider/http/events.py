"""Events: what a store or a writer sends, in any known shape, becomes hints, which are never trusted beyond that."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from decider.http.openapi import failures
from decider.http.problems import Refused
from decider.http.schemas.events import EventsTaken, IgnoredHints
from decider.http.services import Parts, Services
from decider.observe.shapes.recognise import SHAPES, recognise
from shared.errors import InvalidInput

router = APIRouter(prefix="/v1/events", tags=["events"])

_S3 = {
    "Records": [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "eventName": "ObjectCreated:Put",
            "s3": {
                "bucket": {"name": "lake"},
                "object": {"key": "sales/orders/_delta_log/00000000000000000042.json", "size": 1204},
            },
        }
    ]
}

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "description": "Any of the known shapes; one event or a batch of up to 10,000.",
                    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}],
                },
                "examples": {
                    "s3": {"summary": "A notification of S3", "value": _S3},
                    "lakewright": {"summary": "Our own shape", "value": {"table": "sales.orders", "version": 42}},
                    "list": {"summary": "Several tables", "value": [{"table": "s3://lake/sales/orders"}]},
                },
            }
        },
    }
}


@router.post(
    "",
    status_code=202,
    summary="Tell of a commit, in any known shape",
    openapi_extra=_BODY,
    responses=failures(400, 413),
)
async def post_event(request: Request, parts: Parts) -> EventsTaken:
    """Take an event or a batch of events, recognising the shape.

    Events are hints: what they say about a table is checked against its log, so lost, doubled, reordered and forged
    events cost latency at most. Tables that are not known are taken only below an allowed root.
    """
    return await _take(await request.body(), None, parts)


@router.post(
    "/{source}",
    status_code=202,
    summary="Tell of a commit, in the shape of one source",
    openapi_extra=_BODY,
    responses=failures(400, 404, 413, 422),
)
async def post_event_of(
    source: Annotated[
        str,
        Path(
            max_length=40,
            description="The source whose shape is demanded: " + ", ".join(shape.source for shape in SHAPES) + ".",
            openapi_examples={"S3": {"value": "s3"}},
        ),
    ],
    request: Request,
    parts: Parts,
) -> EventsTaken:
    """Take an event or a batch of events of one source; a body of another shape is refused."""
    known = [shape.source for shape in SHAPES]
    if source not in known:
        raise Refused(
            404, f"there is no event source {source!r}", field="source", value=source, allowed=", ".join(known)
        )
    return await _take(await request.body(), source, parts)


async def _take(body: bytes, source: str | None, parts: Services) -> EventsTaken:
    try:
        taken = recognise(body, source=source, bucket_locations=parts.settings.bucket_locations)
    except InvalidInput as problem:
        # What cannot be recognised cannot be read at all, which is 400; a value that is read but unusable is 422.
        raise Refused(400, str(problem), field=problem.field, allowed=problem.allowed) from problem
    accepted, refused = await parts.intake.take(taken.hints)
    for reason, count in taken.ignored:
        refused[reason] += count
    parts.metrics.count_hints(accepted, refused)
    ignored = tuple(IgnoredHints(reason=reason, count=count) for reason, count in sorted(refused.items()))
    return EventsTaken(accepted=accepted, ignored=ignored)
