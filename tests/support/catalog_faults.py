"""What a REST catalog of the tests does beside its work: faults on request, and tokens by OAuth2 that can be revoked.

A POST to /faults names what happens to the next commits: `lost-reply` makes the commit and answers 502, `dropped`
answers 502 without it, `late` answers 504 and makes it a second later, `unavailable` answers 503 once, `conflict`
answers 409, `error` answers 500 without it, `malformed` 400, `forbidden` 403, `missing` 404, `invalid` 422, `slow`
answers seconds later, `cut` makes it and ends the connection within the answer; an empty name leaves a commit alone.
A GET of /faults counts the names that are left, the late commits to be made, and the requests with a token so far. A
DELETE of /tokens revokes every token that was issued for `CREDENTIAL` or in exchange for one of them.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.support.rest_catalog import error_response

CREDENTIAL = "lakewright:a-secret"
LATE_S = 1.0
SLOW_S = 3.0
_REFUSED = {"malformed": 400, "forbidden": 403, "missing": 404, "invalid": 422}
_NOT_MADE = {"error": 500, "dropped": 502, "unavailable": 503, **_REFUSED}


class Faults:
    """The faults that are planned, and the tokens that were issued."""

    def __init__(self) -> None:
        self._planned: deque[str] = deque()
        self._late: set[asyncio.Task[Response]] = set()
        self._issued: set[str] = set()
        self._asked = 0

    def routes(self) -> list[Route]:
        """Return what is served beside the catalog."""
        return [
            Route("/faults", self._plan, methods=["POST"]),
            Route("/faults", self._count),
            Route("/v1/oauth/tokens", self._issue, methods=["POST"]),
            Route("/tokens", self._revoke, methods=["DELETE"]),
        ]

    def is_issued(self, request: Request) -> bool:
        """Whether a request, which is counted, has a token that was issued and not revoked."""
        self._asked += 1
        return request.headers.get("authorization", "").removeprefix("Bearer ") in self._issued

    async def commit(self, make: Callable[[], Awaitable[Response]]) -> Response:
        """Answer a commit under the next fault; `make` makes it."""
        fault = self._planned.popleft() if self._planned else ""
        match fault:
            case "conflict":
                return error_response(409, "CommitFailedException", "by request")
            case _ if fault in _NOT_MADE:
                return error_response(_NOT_MADE[fault], "ServiceFailureException", fault)
            case "slow":
                await asyncio.sleep(SLOW_S)
            case "late":
                task = asyncio.create_task(_make_late(make))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                return error_response(504, "ServiceFailureException", fault)
        made = await make()
        if fault == "cut":
            return _Unfinished()
        return error_response(502, "ServiceFailureException", fault) if fault == "lost-reply" else made

    async def _issue(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        id_and_secret = f"{form.get('client_id')}:{form.get('client_secret')}"
        if id_and_secret != CREDENTIAL and form.get("subject_token") not in self._issued:
            return JSONResponse({"error": "invalid_client", "error_description": "unknown"}, status_code=401)
        token = secrets.token_hex()
        self._issued.add(token)
        kind = "urn:ietf:params:oauth:token-type:access_token"
        body = {"access_token": token, "token_type": "bearer", "issued_token_type": kind, "expires_in": 3_600}
        return JSONResponse(body)

    async def _revoke(self, _: Request) -> Response:
        self._issued.clear()
        return Response(status_code=204)

    async def _plan(self, request: Request) -> Response:
        self._planned.extend(await request.json())
        return Response(status_code=204)

    async def _count(self, _: Request) -> Response:
        return JSONResponse({"planned": len(self._planned), "late": len(self._late), "asked": self._asked})


async def _make_late(make: Callable[[], Awaitable[Response]]) -> Response:
    await asyncio.sleep(LATE_S)
    return await make()


class _Unfinished(Response):
    """An answer whose body never comes: the server ends the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"1000"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
