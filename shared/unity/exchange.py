"""One request to a Unity catalog and its answer, and which of our errors each status means.

Only the catalog itself may say that a table is gone, because the state of such a table is deleted: a 404 of a proxy, or
of another path of the same server, is an error of the configuration.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from shared.errors import LakewrightError, NoTable, PermanentError, RetryableError

_GONE = frozenset(
    {
        "NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "TABLE_NOT_FOUND",
        "RESOURCE_DOES_NOT_EXIST",
        "CATALOG_DOES_NOT_EXIST",
        "SCHEMA_DOES_NOT_EXIST",
        "TABLE_DOES_NOT_EXIST",
    }
)
"""Values of `error_code` with which a catalog says that it has no such table; the first four are the open server's
(`ErrorCode` of its source), the others are Databricks'."""

_MESSAGE_CHARS = 200


@dataclass(frozen=True, slots=True)
class UnityRequest:
    """A GET of a path below the catalog's address."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class UnityAnswer:
    """Status and body of an answer."""

    status: int
    body: bytes


Send = Callable[[UnityRequest], UnityAnswer]
"""Sends a request and waits for the answer. Raises RetryableError where there is none, PermanentError for one that is
too large."""


def decode_answer(answer: UnityAnswer, doing: str) -> Mapping[str, Any]:
    """Return the object that a catalog answered; `doing` begins the errors, as in `catalog unity: reading a.b.c`.

    Raises NoTable where the catalog says that it has no such table, RetryableError for 429 and 5xx, PermanentError for
    everything else that is no success.
    """
    found = _object(answer.body)
    if answer.status != HTTPStatus.OK:
        raise _failure(answer.status, found, doing)
    if found is None:
        raise PermanentError(
            f"{doing}: the answer is no JSON object; is `uri` in LAKEWRIGHT_CATALOGS the address of the REST API, such "
            "as https://catalog.example.com/api/2.1/unity-catalog?"
        )
    return found


def _failure(status: int, found: Mapping[str, Any] | None, doing: str) -> LakewrightError:
    code, message = ("", "") if found is None else (_text(found, "error_code"), _text(found, "message"))
    failed = f"{doing}: {status} {code}".rstrip() + (f": {message}" if message else "")
    if status == HTTPStatus.NOT_FOUND and code in _GONE:
        return NoTable(failed, field="location")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return PermanentError(
            f"{failed}; check `token` in LAKEWRIGHT_CATALOGS, and that it has USE CATALOG, USE SCHEMA and SELECT there"
        )
    if status == HTTPStatus.NOT_IMPLEMENTED:
        return PermanentError(f"{failed}; the catalog does not offer this")
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return RetryableError(failed)
    return PermanentError(failed if code else f"{failed}; check `uri` in LAKEWRIGHT_CATALOGS")


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return " ".join(value.split())[:_MESSAGE_CHARS] if isinstance(value, str) else ""
