"""Events: every known format becomes table hints, and a hint only triggers a read of the table's log."""

import asyncio
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from decider.api.dependencies import Http, Operations, Requests
from decider.api.openapi import failures
from decider.api.services import HttpServices, OperationServices, RequestServices
from decider.events.detect import FORMATS, parse_body
from decider.events.table_hint import ParsedEvents, SubscriptionConfirmation, ValidationHandshake
from decider.store.registry.rejected_events import KEPT
from decider.web.base_model import ResponseModel, Time, read_from
from decider.web.errors import ApiError
from shared.errors import InvalidInput

_KEY = "sales/orders/_delta_log/00000000000000000042.json"

_S3 = {
    "Records": [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": "lake"}, "object": {"key": _KEY, "size": 1204}},
        }
    ]
}

_EXAMPLES = {
    "s3": {"summary": "S3 event notification", "value": _S3},
    "lakewright": {"summary": "Lakewright event", "value": {"table": "sales.orders", "version": 42}},
    "list": {"summary": "Batch", "value": [{"table": "s3://lake/sales/orders"}]},
}

BODY: dict[str, Any] = {
    "requestBody": {
        "description": "One event or a batch of up to 10,000, in a format of docs/events.",
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "description": "Any supported format; one event or a batch of up to 10,000.",
                    "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}, "maxItems": 10_000}],
                },
                "examples": _EXAMPLES,
            }
        },
    }
}


class IgnoredEvents(ResponseModel):
    """Number of ignored events for one reason."""

    reason: str = Field(description="Machine-readable reason, such as `unknown_table` or `not_a_commit`.")
    count: int = Field(description="Number of events.", ge=0)


class EventsAccepted(ResponseModel):
    """Result of a delivery.

    An accepted event triggers a refresh of the table; state is read from the table's log only.
    """

    accepted: int = Field(description="Number of events that matched a known table.", ge=0)
    ignored: tuple[IgnoredEvents, ...] = Field(description="Ignored events by reason.")


class SubscriptionValidation(ResponseModel):
    """Response to the validation handshake of Azure Event Grid."""

    validationResponse: str = Field(description="Validation code from the request.")  # noqa: N815 - Event Grid's name for it


router = APIRouter(prefix="/v1", tags=["events"])

SOURCES = tuple(one.source for one in FORMATS)

MINUTE_S = 60

LONG_BODY_BYTES = 65_536
"""Longer bodies, of a hundred events and more, are parsed in a thread: they would block the event loop."""

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": SubscriptionValidation, "description": "Validation code of Azure Event Grid; no event was accepted."}
}

_GRANTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The origin may send events.",
        "headers": {
            "WebHook-Allowed-Origin": {"description": "Allowed origin.", "schema": {"type": "string"}},
            "WebHook-Allowed-Rate": {"description": "Requests per minute.", "schema": {"type": "string"}},
        },
    }
}

Source = Annotated[
    str,
    Path(
        max_length=40,
        description="Event source: " + ", ".join(SOURCES) + ".",
        openapi_examples={"S3": {"value": "s3"}},
    ),
]

Origin = Annotated[
    str,
    Header(
        alias="WebHook-Request-Origin",
        max_length=255,
        description="Origin that requests validation.",
        openapi_examples={"Event Grid": {"value": "eventgrid.azure.net"}},
    ),
]


class EventReceiver:
    """Parses a request's events and has their tables refreshed."""

    def __init__(self, requests: RequestServices, operations: OperationServices, http: HttpServices) -> None:
        self._requests = requests
        self._metrics = operations.metrics
        self._buckets = http.settings.bucket_locations

    async def accept(self, request: Request, *, source: str | None = None) -> EventsAccepted | Response:
        """Accept the events in a request's body; `source` is the only format that is tried, None tries all."""
        body = await request.body()
        try:
            read = partial(parse_body, body, source=source, bucket_locations=self._buckets)
            if len(body) > LONG_BODY_BYTES:
                events = await asyncio.to_thread(read, headers=request.headers)
            else:
                events = read(headers=request.headers)
        except InvalidInput as problem:
            # A body of no known format is malformed, which is 400; a field that is read and invalid is 422.
            raise ApiError(400, str(problem), field=problem.field, allowed=problem.allowed) from problem
        if isinstance(events.handshake, ValidationHandshake):
            # Event Grid accepts 200 as the answer, and not 202.
            return JSONResponse(
                SubscriptionValidation(validationResponse=events.handshake.code).model_dump(mode="json")
            )
        return await self._resolve(events)

    async def _resolve(self, events: ParsedEvents) -> EventsAccepted:
        """Queue the refresh of the tables that the events name, and count what is ignored by reason."""
        accepted, ignored = await self._requests.resolver.accept(events.hints)
        for reason, count in events.ignored:
            ignored[reason] += count
        if isinstance(events.handshake, SubscriptionConfirmation):
            ignored[str(await self._requests.subscriptions.confirm(events.handshake))] += 1
        self._metrics.count_hints(accepted, ignored)
        rows = tuple(IgnoredEvents(reason=reason, count=count) for reason, count in sorted(ignored.items()))
        return EventsAccepted(accepted=accepted, ignored=rows)


async def _receiver(requests: Requests, operations: Operations, http: Http) -> EventReceiver:
    return EventReceiver(requests, operations, http)


Receiver = Annotated[EventReceiver, Depends(_receiver)]
"""Injects what takes the events of a request."""


@router.post(
    "/events",
    status_code=202,
    response_model=EventsAccepted,
    summary="Post commit events",
    openapi_extra=BODY,
    responses=failures(409) | _ANSWERS,
)
async def post_event(request: Request, receiver: Receiver) -> EventsAccepted | Response:
    """Accept one event or a batch and detect its format.

    An event only triggers a read of the table's log, so lost, duplicate, reordered and forged events cost latency at
    most. Unknown tables are registered only below an allowed root. CloudEvents are accepted in binary mode as well.
    """
    return await receiver.accept(request)


@router.post(
    "/events/{source}",
    status_code=202,
    response_model=EventsAccepted,
    summary="Post commit events of one source",
    openapi_extra=BODY,
    responses=failures(404, 409, 422) | _ANSWERS,
)
async def post_event_of(source: Source, request: Request, receiver: Receiver) -> EventsAccepted | Response:
    """Accept one event or a batch of one source; other formats are rejected."""
    return await receiver.accept(request, source=_known(source))


@router.options(
    "/events", response_class=Response, summary="CloudEvents webhook validation", responses=failures(422) | _GRANTED
)
async def ask_to_send(origin: Origin, http: Http) -> Response:
    """Return whether an origin may send events, and its rate limit."""
    return _grant(origin, http)


@router.options(
    "/events/{source}",
    response_class=Response,
    summary="CloudEvents webhook validation for one source",
    responses=failures(404, 422) | _GRANTED,
)
async def ask_to_send_of(source: Source, origin: Origin, http: Http) -> Response:
    """Return whether an origin may send events of one source, and its rate limit."""
    _known(source)
    return _grant(origin, http)


def _known(source: str) -> str:
    if source not in SOURCES:
        raise ApiError(
            404, f"event source {source!r} does not exist", field="source", value=source, allowed=", ".join(SOURCES)
        )
    return source


def _grant(origin: str, http: Http) -> Response:
    if origin not in http.settings.webhook_origins:
        raise ApiError(
            403,
            "origin not allowed; add it to LAKEWRIGHT_WEBHOOK_ORIGINS",
            field="WebHook-Request-Origin",
            value=origin,
        )
    per_minute = str(int(http.settings.limits.events_per_s * MINUTE_S))
    return Response(headers={"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": per_minute})


class RejectedEventView(ResponseModel, alias_generator=read_from(at="at_ms")):
    """A message that could not be used."""

    at: Time = Field(description="When it was set aside.")
    source: str = Field(description="Queue that delivered it.")
    reason: str = Field(description="Why it could not be used.")
    body: str = Field(description="Beginning of the message.")


class RejectedEventList(ResponseModel):
    """Newest messages that were set aside."""

    rejected: tuple[RejectedEventView, ...] = Field(description="Messages, the newest first.")


@router.get("/rejected-events", summary="List rejected events", responses=failures(422))
async def list_rejected_events(
    requests: Requests,
    limit: Annotated[int, Query(ge=1, le=KEPT, description="Maximum number of items to return.")] = 100,
) -> RejectedEventList:
    """List the newest messages of event queues that were set aside, with the reason; the newest thousand are kept."""
    found = await requests.rejected.newest(limit)
    return RejectedEventList(rejected=tuple(map(RejectedEventView.of, found)))
