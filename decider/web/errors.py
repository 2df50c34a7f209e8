"""Every failure becomes a problem document (RFC 9457): cause, field, accepted values, and no internals.

`shared.errors` classifies failures by what a caller can do; one table here maps them to HTTP statuses.
"""

import reprlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException

from decider.web.base_model import ResponseModel
from shared.errors import Conflict, InvalidInput, LakewrightError, RetryableError, Unsupported


class FieldProblem(ResponseModel):
    """One invalid field."""

    field: str = Field(description="Field path, such as `partitions.0` or `query.limit`.")
    message: str = Field(description="Reason.")
    value: Any = Field(None, description="Value from the request, truncated if long.")


class ProblemDocument(ResponseModel):
    """Problem details (RFC 9457, `application/problem+json`)."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lakewright:problem:invalid-input",
                    "title": "Invalid request",
                    "status": 422,
                    "detail": "location 'tables/orders' cannot be used: it is a relative path",
                    "field": "location",
                    "value": "tables/orders",
                    "allowed": "an absolute path, or a URI with one of the schemes file, gs, s3",
                    "errors": [],
                }
            ]
        },
    )

    type: str = Field(description="Machine-readable problem type.")
    title: str = Field(description="Human-readable problem type.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="Human-readable cause and remedy.")
    field: str = Field("", description="Invalid field, the first if there are several; empty if none.")
    value: Any = Field(None, description="Value of that field, truncated if long.")
    allowed: str = Field("", description="Accepted values; empty if the detail lists them.")
    errors: tuple[FieldProblem, ...] = Field((), description="All invalid fields.")


log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"

MAX_VALUE_CHARS = 200
"""Characters of an invalid value in a response: enough to recognize it."""

MAX_FIELD_PROBLEMS = 20
"""Maximum number of invalid fields in one response."""

RETRY_AFTER_S = 5
"""Seconds after which a client may retry; a Redis failover takes about as long."""

_TYPES: Mapping[int, tuple[str, str]] = {
    400: ("bad-request", "Malformed request"),
    401: ("unauthorized", "Missing or invalid credentials"),
    403: ("forbidden", "Insufficient permissions"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    408: ("request-timeout", "Request timeout"),
    409: ("conflict", "Conflict with current state"),
    413: ("payload-too-large", "Payload too large"),
    422: ("invalid-input", "Invalid request"),
    429: ("rate-limited", "Too many requests"),
    500: ("internal-error", "Internal error"),
    502: ("table-unreadable", "Table log unreadable"),
    503: ("unavailable", "Service unavailable"),
}


class ApiError(Exception):
    """A request rejected with its own HTTP status; `field` names the invalid field."""

    def __init__(self, status: int, detail: str, *, field: str = "", value: Any = None, allowed: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.field = field
        self.value = value
        self.allowed = allowed


def not_found(noun: str, name: str) -> ApiError:
    """Return the error for a resource that does not exist."""
    return ApiError(HTTPStatus.NOT_FOUND, f"{noun} {shown(name)!r} does not exist", field=noun, value=name)


def respond(  # noqa: PLR0913 - the members of RFC 9457
    status: int,
    detail: str,
    *,
    field: str = "",
    value: Any = None,
    allowed: str = "",
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build a problem response."""
    kind, title = _TYPES.get(status, ("failed", HTTPStatus(status).phrase))
    problem = ProblemDocument(
        type=f"urn:lakewright:problem:{kind}",
        title=title,
        status=status,
        detail=detail,
        field=field,
        value=shown(value),
        allowed=allowed,
        errors=tuple(errors),
    )
    return JSONResponse(problem.model_dump(mode="json"), status, headers, media_type=MEDIA_TYPE)


def shown(value: Any) -> Any:
    """Return a value for an error message: plain, truncated, and of bounded depth."""
    if value is None or isinstance(value, bool | int | float):
        return value if not isinstance(value, float) or value == value else "NaN"  # noqa: PLR0124 - NaN is not JSON
    text = value if isinstance(value, str) else reprlib.repr(value)
    # A lone surrogate is legal in a JSON text and cannot be sent back as UTF-8.
    text = text[: MAX_VALUE_CHARS + 1].encode(errors="replace").decode()
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "…"


def install(app: FastAPI) -> None:
    """Register the handlers that turn every failure into a problem document."""
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(LakewrightError, _ours)
    app.add_exception_handler(RedisError, _store_gone)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(_: Request, raised: Exception) -> JSONResponse:
    assert isinstance(raised, ApiError)  # noqa: S101 - narrows for the type checker; the handler is registered so
    later = {"retry-after": str(RETRY_AFTER_S)} if raised.status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return respond(
        raised.status, str(raised), field=raised.field, value=raised.value, allowed=raised.allowed, headers=later
    )


async def _ours(_: Request, raised: Exception) -> JSONResponse:
    match raised:
        case Unsupported(field=field, allowed=allowed):
            return respond(409, str(raised), field=field, allowed=allowed)
        case InvalidInput(field=field, allowed=allowed):
            return respond(422, str(raised), field=field, allowed=allowed)
        case Conflict():
            return respond(409, str(raised))
        case RetryableError():
            return try_later(str(raised))
        case _:
            log.warning("request_failed", error=str(raised))
            return respond(502, str(raised))


async def _store_gone(request: Request, raised: Exception) -> JSONResponse:
    log.warning("redis_unavailable", path=request.url.path, error=str(raised))
    return try_later("Redis does not respond; nothing was changed; retry later")


def try_later(detail: str) -> JSONResponse:
    """Build a 503 response that asks the client to retry."""
    return respond(503, detail, headers={"retry-after": str(RETRY_AFTER_S)})


async def _validation(_: Request, raised: Exception) -> JSONResponse:
    assert isinstance(raised, RequestValidationError)  # noqa: S101 - as above
    found = [_field_problem(error) for error in raised.errors()[:MAX_FIELD_PROBLEMS]]
    first = found[0]
    status = 400 if any(error["type"] == "json_invalid" for error in raised.errors()) else 422
    detail = f"{first.field}: {first.message}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
    return respond(status, detail, field=first.field, value=first.value, errors=found)


def _field_problem(error: Mapping[str, Any]) -> FieldProblem:
    place, *path = [str(part) for part in error["loc"]] or ["body"]
    field = "body" if error["type"] == "json_invalid" else ".".join(path) or place
    given = error.get("input")
    value = None if error["type"] in ("missing", "json_invalid") else shown(given)
    return FieldProblem(field=field, message=str(error["msg"]), value=value)


async def _http(_: Request, raised: Exception) -> JSONResponse:
    assert isinstance(raised, HTTPException)  # noqa: S101 - as above
    field = "body" if raised.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE) else ""
    return respond(raised.status_code, str(raised.detail), field=field, headers=raised.headers)


async def _unexpected(request: Request, raised: Exception) -> JSONResponse:
    log.error("request_crashed", method=request.method, path=request.url.path, exc_info=raised)
    return respond(500, "unexpected error; see the log of the service")
