"""Every failure leaves as a problem document: what happened, which field, what is allowed, and never our internals.

`shared.errors` says what a caller can do; here that becomes an HTTP status, in one table.
"""

import reprlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException

from decider.web.problem_document import FieldProblem, ProblemDocument
from shared.errors import Conflict, InvalidInput, LakewrightError, RetryableError, Unsupported

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"

MAX_VALUE_CHARS = 200
"""How much of a wrong value is sent back: enough to recognise it, no mirror for a megabyte."""

MAX_FIELD_PROBLEMS = 20
"""How many wrong fields one answer names."""

RETRY_AFTER_S = 5
"""When a caller may try again after a failure of the moment; a Redis fail-over takes about as long."""

_TYPES: Mapping[int, tuple[str, str]] = {
    400: ("malformed", "The request cannot be read"),
    401: ("unauthorized", "A token or a signature is needed"),
    403: ("forbidden", "This caller may not do that"),
    404: ("not-found", "There is no such thing"),
    405: ("method-not-allowed", "This method is not offered here"),
    408: ("too-slow", "The body did not arrive in time"),
    409: ("conflict", "The request contradicts what is there"),
    413: ("too-large", "The body is too large"),
    422: ("invalid-input", "The request cannot be used"),
    429: ("too-fast", "Too many calls"),
    500: ("internal", "The service failed"),
    502: ("table-unreadable", "The table cannot be read"),
    503: ("unavailable", "The service cannot answer at the moment"),
}


class ApiError(Exception):
    """A call that a router refuses with a status of its own; `field` names the culprit."""

    def __init__(self, status: int, detail: str, *, field: str = "", value: Any = None, allowed: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.field = field
        self.value = value
        self.allowed = allowed


def not_found(noun: str, name: str) -> ApiError:
    """Return the refusal for a thing that is not there."""
    return ApiError(HTTPStatus.NOT_FOUND, f"there is no {noun} {shown(name)!r}", field=noun, value=name)


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
    """Build a problem answer."""
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
    """Return a value as an error may show it: plain, short, and no deeper than a few levels, as JSON may be."""
    if value is None or isinstance(value, bool | int | float):
        return value if not isinstance(value, float) or value == value else "NaN"  # noqa: PLR0124 - NaN is not JSON
    text = value if isinstance(value, str) else reprlib.repr(value)
    # A lone surrogate is legal in a JSON text and cannot be sent back as UTF-8.
    text = text[: MAX_VALUE_CHARS + 1].encode(errors="replace").decode()
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "…"


def install(app: FastAPI) -> None:
    """Make every failure of this application a problem."""
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
    return try_later("Redis does not answer; the call changed nothing, try again")


def try_later(detail: str) -> JSONResponse:
    """Build the answer to a call that cannot be served at the moment."""
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
    return respond(500, "the service met a state it did not expect; its log says which")
