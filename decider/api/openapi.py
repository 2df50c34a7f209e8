"""OpenAPI document: every body of a request has an example, and every failure is a problem document.

Routers list the statuses of an operation; the form of a failure is the same everywhere and is added here.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from decider.gateway.roles import needed, takes_events
from decider.web.base_model import RequestModel, ResponseModel
from decider.web.errors import MEDIA_TYPE, ProblemDocument

FAILURES: Mapping[int, str] = {
    400: "The body is malformed or of an unknown event format.",
    401: "The token or signature is missing or invalid.",
    403: "The role of the token does not permit this operation.",
    404: "The resource does not exist.",
    408: "The body was not received in time.",
    409: "The request conflicts with the current state.",
    413: "The body exceeds the size limit.",
    422: "A field is invalid; see `field`, `value` and `allowed`.",
    429: "The client exceeds its rate limit; retry after `Retry-After` seconds.",
    502: "The table's log is unreadable.",
    503: "Redis or an object store is unavailable, or Redis is not durable; retry later.",
}

ANYWHERE = (401, 403, 429, 503)
"""Failures of every operation below /v1."""

WITH_BODY = (400, 408, 413)
"""Failures of every operation with a body, raised before the route."""

_METHODS = ("get", "post", "put", "patch", "delete", "options")

SECURITY_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "Token of a role that permits the operation."},
    "password": {
        "type": "http",
        "scheme": "basic",
        "description": "For webhooks: a token of the role `hook` as the password, with any user name.",
    },
    "key": {
        "type": "apiKey",
        "in": "query",
        "name": "key",
        "description": "For webhooks that cannot set headers: a token of the role `hook`.",
    },
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "For webhooks that are signed as Standard Webhooks specifies: `v1,<base64>`, HMAC-SHA256 of "
        "`<webhook-id>.<webhook-timestamp>.<body>`.",
    },
}
"""Authentication schemes; without tokens, the loopback address needs none."""


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documented failures of an operation, including the ones common to all operations."""
    chosen = sorted({*statuses, *ANYWHERE})
    return {status: {"model": ProblemDocument, "description": FAILURES[status]} for status in chosen}


def describe(app: FastAPI) -> dict[str, Any]:
    """Build the OpenAPI document."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    _restore_examples(schemas)
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                _finish(methods[method], schemas)
                if needed(method.upper(), path) is not None:
                    methods[method]["security"] = _ways(path)
    return document


def _restore_examples(schemas: dict[str, Any]) -> None:
    """Put the models' own examples back: the generator drops every null in them, and a null is part of an answer."""
    waiting: list[type[BaseModel]] = [ResponseModel, RequestModel]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        extra = model.model_config.get("json_schema_extra")
        if model.__name__ in schemas and isinstance(extra, dict) and "examples" in extra:
            schemas[model.__name__]["examples"] = extra["examples"]


def _ways(path: str) -> list[dict[str, list[str]]]:
    """Return the authentication schemes of a path, and none for the loopback address without tokens."""
    ways = tuple(SECURITY_SCHEMES) if takes_events(path) else ("token",)
    shown: list[dict[str, list[str]]] = [{way: []} for way in ways]
    return [*shown, {}]


def _finish(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    if "requestBody" in operation:
        for early in WITH_BODY:
            problem = {"application/json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
            operation["responses"].setdefault(str(early), {"description": FAILURES[early], "content": problem})
        for body in operation["requestBody"]["content"].values():
            _add_example(body, schemas)
        operation["responses"] = dict(sorted(operation["responses"].items()))
    for status, response in operation["responses"].items():
        content = response.get("content", {})
        if int(status) >= HTTPStatus.BAD_REQUEST and content:
            # A call that answers with a stream is described as if it failed with one, too.
            described = content.pop(next(iter(content)))
            _add_example(described, schemas)
            described["example"]["status"] = int(status)
            response["content"] = {MEDIA_TYPE: described}


def _add_example(media: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Put the schema's first example beside it, or its defaults: without one, all fields are optional."""
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if name and "example" not in media and "examples" not in media:
        defaults = {field: one.get("default") for field, one in schemas[name]["properties"].items()}
        media["example"] = dict(schemas[name].get("examples", [defaults])[0])
