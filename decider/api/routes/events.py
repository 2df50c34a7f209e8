"""Events: what a store or a writer sends, in any known shape, becomes hints, which are never trusted beyond that."""

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse

from decider.api.dependencies import Parts, Services
from decider.api.event_examples import BODY
from decider.api.openapi import failures
from decider.api.schemas.events import EventsAccepted, IgnoredEvents, SubscriptionValidation
from decider.events.detect import SHAPES, recognise
from decider.events.table_hint import ParsedEvents, SubscriptionConfirmation, ValidationHandshake
from decider.web.errors import ApiError
from shared.errors import InvalidInput

router = APIRouter(prefix="/v1/events", tags=["events"])

SOURCES = tuple(shape.source for shape in SHAPES)

MINUTE_S = 60

LONG_BODY_BYTES = 65_536
"""Longer bodies, of a hundred events and more, are read beside the event loop: they would hold the others up."""

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": SubscriptionValidation, "description": "The code of Event Grid's handshake; nothing was taken."}
}

_GRANTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The origin may send events.",
        "headers": {
            "WebHook-Allowed-Origin": {"description": "The origin.", "schema": {"type": "string"}},
            "WebHook-Allowed-Rate": {"description": "Calls per minute.", "schema": {"type": "string"}},
        },
    }
}

Source = Annotated[
    str,
    Path(
        max_length=40,
        description="The source whose shape is demanded: " + ", ".join(SOURCES) + ".",
        openapi_examples={"S3": {"value": "s3"}},
    ),
]

Origin = Annotated[
    str,
    Header(
        alias="WebHook-Request-Origin",
        max_length=255,
        description="Who wants to send events.",
        openapi_examples={"Event Grid": {"value": "eventgrid.azure.net"}},
    ),
]


@router.post(
    "",
    status_code=202,
    response_model=EventsAccepted,
    summary="Tell of a commit, in any known shape",
    openapi_extra=BODY,
    responses=failures(409) | _ANSWERS,
)
async def post_event(request: Request, parts: Parts) -> EventsAccepted | Response:
    """Take an event or a batch of events, recognising the shape.

    Events are hints: what they say about a table is checked against its log, so lost, doubled, reordered and forged
    events cost latency at most. Tables that are not known are taken only below an allowed root. CloudEvents may have
    their attributes in headers.
    """
    return await _take(request, None, parts)


@router.post(
    "/{source}",
    status_code=202,
    response_model=EventsAccepted,
    summary="Tell of a commit, in the shape of one source",
    openapi_extra=BODY,
    responses=failures(404, 409, 422) | _ANSWERS,
)
async def post_event_of(source: Source, request: Request, parts: Parts) -> EventsAccepted | Response:
    """Take an event or a batch of events of one source; a body of another shape is refused."""
    return await _take(request, _known(source), parts)


@router.options("", response_class=Response, summary="May an origin send events", responses=failures(422) | _GRANTED)
async def ask_to_send(origin: Origin, parts: Parts) -> Response:
    """Answer the handshake of CloudEvents' webhooks: whether an origin may send, and how often."""
    return _grant(origin, parts)


@router.options(
    "/{source}",
    response_class=Response,
    summary="May an origin send events of a source",
    responses=failures(404, 422) | _GRANTED,
)
async def ask_to_send_of(source: Source, origin: Origin, parts: Parts) -> Response:
    """Answer the handshake of CloudEvents' webhooks for the events of one source."""
    _known(source)
    return _grant(origin, parts)


def _known(source: str) -> str:
    if source not in SOURCES:
        raise ApiError(
            404, f"there is no event source {source!r}", field="source", value=source, allowed=", ".join(SOURCES)
        )
    return source


def _grant(origin: str, parts: Services) -> Response:
    if origin not in parts.settings.webhook_origins:
        raise ApiError(
            403,
            "this origin may not send events; add it to LAKEWRIGHT_WEBHOOK_ORIGINS",
            field="WebHook-Request-Origin",
            value=origin,
        )
    per_minute = str(int(parts.settings.limits.events_per_s * MINUTE_S))
    return Response(headers={"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": per_minute})


async def _take(request: Request, source: str | None, parts: Services) -> EventsAccepted | Response:
    body = await request.body()
    try:
        read = partial(recognise, body, source=source, bucket_locations=parts.settings.bucket_locations)
        if len(body) > LONG_BODY_BYTES:
            taken = await asyncio.to_thread(read, headers=request.headers)
        else:
            taken = read(headers=request.headers)
    except InvalidInput as problem:
        # What cannot be recognised cannot be read at all, which is 400; a value that is read but unusable is 422.
        raise ApiError(400, str(problem), field=problem.field, allowed=problem.allowed) from problem
    if isinstance(taken.handshake, ValidationHandshake):
        # Event Grid takes 200 for an answer and 202 for none.
        return JSONResponse(SubscriptionValidation(validationResponse=taken.handshake.code).model_dump(mode="json"))
    return await _take_hints(taken, parts)


async def _take_hints(taken: ParsedEvents, parts: Services) -> EventsAccepted:
    accepted, refused = await parts.intake.take(taken.hints)
    for reason, count in taken.ignored:
        refused[reason] += count
    if isinstance(taken.handshake, SubscriptionConfirmation):
        refused[str(await parts.confirmer.confirm(taken.handshake))] += 1
    parts.metrics.count_hints(accepted, refused)
    ignored = tuple(IgnoredEvents(reason=reason, count=count) for reason, count in sorted(refused.items()))
    return EventsAccepted(accepted=accepted, ignored=ignored)
